"""Held-out text: each document by itself, which share a 13-gram with what is trained on, likelihood of choices."""

from __future__ import annotations

import gzip
import io
import json
import math
import signal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from corpusmill import benchmarks
from corpusmill.benchmarks import Question
from corpusmill.dataset import overlap
from corpusmill.dataset.manifest import HELDOUT, open_manifest
from corpusmill.errors import NotFound, Refused, UsageError
from corpusmill.kernels.gather import IGNORED
from mill import cli
from tests.training.packed import publish_dataset, word
from tests.training.toy import Toy
from training import launch
from training.loop import _trainer
from training.model import Layout
from training.parallel import Ranks
from training.run import RunSpec
from training.use import seen
from training.use.choices import answers
from training.use.trained import Trained, open_trained

WISH = ('name="evaluated"', "mixture.stage=[{steps=6}]", "run.evaluate_every=3")


def walks(count: int, seed: int) -> list[np.ndarray]:
    """Held out (seed 2): every third document holds 13 words of one to train on, another third 12 of them."""
    rng = np.random.default_rng(seed)
    made = [np.append(rng.integers(1, 97, 20), 0) for _ in range(count)]
    if seed == 2:
        common = np.append(np.random.default_rng(0).integers(1, 97, 20), 0)  # the first of seed 0
        for k in range(count):
            shared = (13, 12, 0)[k % 3]
            made[k][:shared] = common[:shared]
    return made


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("held")
    return Toy(str(folder / "s"), publish_dataset(folder / "s", folder / "m", count=120, made=walks), "")


@pytest.fixture(scope="module")
def run(own: Toy, ranks: Ranks, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunSpec, dict[str, Any], Path]:
    """A short run in this process, screened as the launcher does it: the run, its result, its folder."""
    folder, spec = tmp_path_factory.mktemp("run"), own.spec(*WISH)
    said: list[str] = []
    launch._screened(spec, own.open(), said.append)
    launch._screened(spec, own.open(), said.append)
    assert len(said) == 1, "once a dataset"
    before = signal.getsignal(signal.SIGTERM)
    torch.set_num_threads(1)
    result = _trainer(spec, 1, folder, folder, ranks).run()
    signal.signal(signal.SIGTERM, before)
    return spec, result, folder


@pytest.fixture(scope="module")
def trained(own: Toy, run: tuple[RunSpec, dict[str, Any], Path]) -> Trained:
    return open_trained(own.open(), run[0].run_id)


def held(own: Toy) -> list[tuple[bytes, list[int]]]:
    """The held-out documents: id and tokens, put together again from rows and side tables."""
    store, found = own.open(), list[tuple[bytes, list[int]]]()
    part = open_manifest(store, own.manifest).partitions[HELDOUT]
    for shard in part.shards:
        tokens, side = store.table(shard.tokens)["tokens"].to_pylist(), store.table(shard.rows).to_pylist()
        docs: dict[int, list[int]] = {}
        for row, pieces in zip(tokens, side, strict=True):
            values, at = np.frombuffer(row, "<u2").tolist(), 0
            for size, ref in zip(pieces["doc_lens"], pieces["doc_refs"], strict=True):
                docs.setdefault(ref, []).append(values[at : at + size])
                at += size
        ids = store.table(shard.docs)["doc_id"].to_pylist()
        found += [(ids[ref], pieces) for ref, pieces in sorted(docs.items())]
    return found


def test_13_words_in_common_are_an_overlap_and_12_are_none(own: Toy, run: tuple[RunSpec, dict[str, Any], Path]) -> None:
    manifest = open_manifest(own.open(), own.manifest)
    found = overlap.shared(own.open(), manifest)
    common = walks(1, 0)[0].tolist()
    begin = {one: next(n for n in (13, 12, 0) if [*chain(*pieces)][:n] == common[:n]) for one, pieces in held(own)}
    assert sorted(begin.values()) == [0] * 4 + [12] * 4 + [13] * 4
    # What is cut at a row's end has no n-gram across the cut, here as in training.
    together = {one for one, pieces in held(own) if len(pieces[0]) >= 13}
    assert found == {one for one, n in begin.items() if n == 13 and one in together}
    assert len(found) >= 2


def test_figures_are_those_of_each_document_alone(
    own: Toy, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["evaluate", trained.run_id, "--store", own.uri, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    store = own.open()
    rows = pq.read_table(io.BytesIO(store.get(said["documents"]))).to_pylist()
    assert len(rows) == said["all"]["documents"] == 12
    for row, (_, pieces) in zip(rows, held(own), strict=True):
        lost = 0.0
        for piece in pieces:
            if len(piece) < 2:
                continue
            tokens = torch.tensor([piece])
            labels = torch.cat([tokens[:, 1:], torch.tensor([[IGNORED]])], 1)
            layout = Layout.of(np.array([len(piece)]), len(piece), 16, trained.rope_base, torch.device("cpu"))
            lost += float(trained.model(tokens, labels, layout).detach())
        assert row["labels"] == sum(len(piece) - 1 for piece in pieces)
        assert row["nll"] == pytest.approx(lost, rel=1e-4)
        assert row["bits_per_byte"] == pytest.approx(lost / math.log(2) / row["text_bytes"], rel=1e-4)
    clean = [row for row in rows if not row["shares_ngram"]]
    assert 0 < len(clean) < len(rows)
    for name, some in (("", rows), ("clean_", clean)):
        bits = sum(row["nll"] for row in some) / math.log(2) / sum(row["text_bytes"] for row in some)
        assert said["all"][f"{name}bits_per_byte"] == pytest.approx(bits)
    assert json.loads(store.get(said["stored"]))["all"] == said["all"]
    assert cli.run(["evaluate", f"{trained.run_id}/6", "--on", "toy", "--store", own.uri]) == 0
    assert "held out of" in capsys.readouterr().out


def test_training_evaluates_on_the_way_and_at_the_end_as_the_verb_does(
    own: Toy, trained: Trained, run: tuple[RunSpec, dict[str, Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, result, folder = run
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "heldout" in line] == [3, 6]
    last = lines[-1]
    assert (last["heldout"], last["heldout_clean"]) == (result["heldout_after"], result["heldout_clean_after"])
    assert lines[2]["heldout"] > lines[-1]["heldout"] != lines[-1]["heldout_clean"]
    assert cli.run(["evaluate", trained.run_id, "--store", own.uri, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["all"]
    assert figures["bits_per_byte"] == pytest.approx(result["heldout_after"], rel=1e-5)
    assert figures["clean_bits_per_byte"] == pytest.approx(result["heldout_clean_after"], rel=1e-5)


def test_the_likeliest_choice_is_that_of_the_whole_text_after_the_question(trained: Trained) -> None:
    questions = [
        Question("a", "w05 w06 w07", ("w08", "w50 w51 w52"), 0),
        Question("b", " ".join(word(1 + n % 90) for n in range(60)), ("w08 w09", "w10"), 1),  # longer than the context
    ]
    for question, found in zip(questions, answers(trained, questions), strict=True):
        for choice, likelihood in zip(question.choices, found.loglikelihood, strict=True):
            ids = [int(w[1:]) for w in f"{question.text} {choice}".split()][-49:]
            layout = Layout.of(np.array([len(ids)]), len(ids), 16, trained.rope_base, torch.device("cpu"))
            chances = trained.model.logits(torch.tensor([ids]), layout)[0].log_softmax(-1)
            size = len(choice.split())
            wanted = sum(float(chances[-size - 1 + k, token].detach()) for k, token in enumerate(ids[-size:]))
            assert likelihood == pytest.approx(wanted, rel=1e-4)
        assert found.raw == int(np.argmax(found.loglikelihood))
    sizes = [len(choice) for choice in questions[0].choices]
    first = answers(trained, questions)[0]
    assert first.normalised == int(
        np.argmax([one / size for one, size in zip(first.loglikelihood, sizes, strict=True)])
    )


def test_registered_benchmarks_of_multiple_choice_are_answered(
    own: Toy, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [
        {"id": "1", "question": "w05 w06", "choices": ["w07", "w70"], "answer": "w07"},
        {"id": "2", "question": "w15 w16", "choices": ["w17", "w70", "w71"], "answer": 2},
    ]
    for name, rows in (("good", items), ("bad", [items[0] | {"answer": "w99"}])):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        fields = 'fields = ["question"]\nchoices = "choices"\nanswer = "answer"\n'
        (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\nfile = "{name}.jsonl.gz"\n{fields}')
    monkeypatch.setenv("CORPUSMILL_BENCHMARKS", str(tmp_path))
    good, bad = (str(tmp_path / f"{name}.toml") for name in ("good", "bad"))
    assert [q.answer for q in benchmarks.questions(good)] == [0, 2]
    ask = ["evaluate", trained.run_id, "--store", own.uri, "--json", "--benchmark"]
    assert cli.run([*ask, good]) == 0
    said = json.loads(capsys.readouterr().out)["benchmarks"][good]
    done = answers(trained, benchmarks.questions(good))
    assert said["accuracy"] == sum(one.raw == one.question.answer for one in done) / 2
    assert (said["items"], said["chance"]) == (2, pytest.approx(5 / 12))
    with pytest.raises(UsageError, match="item '1' of benchmark 'bad' is not of multiple choice"):
        benchmarks.questions(bad)
    with pytest.raises(UsageError, match="is not of multiple choice"):
        benchmarks.questions("humaneval")
    with pytest.raises(NotFound):
        benchmarks.questions("nowhere")
    assert cli.run([*ask, good, "--items", "0"]) == UsageError.exit_code


@pytest.mark.parametrize(("name", "items"), [("arc-easy", 2376), ("openbookqa", 500), ("piqa", 1838)])
def test_the_registered_sets_have_an_answer_for_every_item(
    name: str,
    items: int,
    own: Toy,
    trained: Trained,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The real files, where they are; the toy's tokenizer knows no word of theirs, so only the work is checked."""
    monkeypatch.setenv("CORPUSMILL_BENCHMARKS", str(data_dir / "benchmarks"))
    found = benchmarks.questions(name)
    with gzip.open(data_dir / "benchmarks" / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as file:
        rows = [json.loads(line) for line in file]
    assert len(found) == len(rows) == items
    for question, row in zip(found, rows, strict=True):
        given = row["answer"] if isinstance(row["answer"], str) else row["choices"][row["answer"]]
        assert question.choices[question.answer] == given
        assert question.text == row["question"]
    ask = ["evaluate", trained.run_id, "--store", own.uri, "--json", "--benchmark", name, "--items", "6"]
    assert cli.run(ask) == 0
    said = json.loads(capsys.readouterr().out)["benchmarks"][name]
    done = answers(trained, found[:6])
    assert said["accuracy"] == pytest.approx(sum(one.raw == one.question.answer for one in done) / 6)
    assert said["normalised_accuracy"] == pytest.approx(sum(one.normalised == one.question.answer for one in done) / 6)
    assert said["chance"] == pytest.approx(sum(1 / len(row["choices"]) for row in rows[:6]) / 6)
    assert all(math.isfinite(likelihood) and likelihood < 0 for one in done for likelihood in one.loglikelihood)


def test_registered_sets_without_choices_are_refused_and_a_missing_folder_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("gsm8k-test", "humaneval", "lambada"):
        with pytest.raises(UsageError, match="is not of multiple choice"):
            benchmarks.questions(name)
    monkeypatch.delenv("CORPUSMILL_BENCHMARKS", raising=False)
    with pytest.raises(UsageError, match=r"in files of yours\n.*Set CORPUSMILL_BENCHMARKS to"):
        benchmarks.questions("piqa")


def test_another_tokenizer_is_refused(own: Toy, trained: Trained, tmp_path: Path) -> None:
    from training.use.report import evaluate

    other = publish_dataset(own.uri, tmp_path / "m", "strange", count=20, tokenizer=b"{ }")
    with pytest.raises(Refused, match="another tokenizer"):
        evaluate(own.open(), trained, other, open_manifest(own.open(), other))


def test_every_dataset_that_is_trained_on_is_searched(own: Toy, tmp_path: Path) -> None:
    """A second dataset holds, to train on, what the first one holds out."""
    store, first = own.open(), open_manifest(own.open(), own.manifest)
    digest = publish_dataset(own.uri, tmp_path / "m", "copy", made=lambda count, seed: walks(12, 2), count=12)
    both = [first, open_manifest(store, digest)]
    assert overlap.shared(store, first, both) > overlap.shared(store, first, [first])
    assert overlap.found(store, first, both[::-1]) == overlap.found(store, first, both)
    spec = own.spec(f"mixture.stage=[{{steps=1, weights={{crawl=1, '{digest}:books'=1}}}}]", "mixture.max_epochs=99")
    assert seen.trained_on(store, spec.manifests, spec.beginning) == both
