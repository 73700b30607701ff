"""What a step reads, and which steps read a document: the answers are those of the run itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from corpusmill.errors import NotFound, UsageError
from corpusmill.store import Store
from mill import cli
from tests.training.toy import CONFIG, Toy
from training.checkpoints import commits
from training.data import NO_BATCHES, Loader, batch_digest, chained
from training.questions import BatchRead, batch, runs_on, trace
from training.run import RunSpec

SETTINGS = ("mixture.stage=[{steps=6, weights={crawl=3, books=1}}, {steps=5}]", "mixture.max_epochs=9")


@pytest.fixture(scope="module")
def spec(toy: Toy) -> RunSpec:
    """A recorded run with checkpoints after steps 3, 7 and 9, of which only what names them is there."""
    made = toy.spec('name="asked"', *SETTINGS)
    store = toy.open()
    made.record(store)
    for step in (3, 7, 9):
        commits.write(store, commits.folder_of(made.run_id, step), {"step": step, "batch_chain": ""})
    return made


@pytest.fixture(scope="module")
def read(spec: RunSpec) -> list[BatchRead]:
    return [batch(spec, step) for step in range(1, spec.plan.steps + 1)]


def test_the_batches_of_all_steps_are_those_of_training(spec: RunSpec, read: list[BatchRead]) -> None:
    loader = Loader(spec.open(), spec.facts, spec.plan)
    asked = trained = NO_BATCHES
    for step, found in enumerate(read):
        digests = loader.batch(step).digests()
        assert [row.sha256 for row in found.rows] == [digest.hex() for digest in digests]
        asked, trained = chained(asked, found.batch), chained(trained, batch_digest(digests))
    assert asked == trained
    loader.close()


def test_a_row_says_where_its_tokens_lie_and_what_they_are(spec: RunSpec, read: list[BatchRead]) -> None:
    store, partitions = spec.open(), spec.facts.partitions
    for row in read[0].rows:
        (shard,) = [s for s in partitions[row.partition].shards if s.tokens.digest == row.shard]
        docs, lists = store.table(shard.docs).to_pylist(), store.table(shard.rows).to_pylist()[row.shard_row]
        assert [piece.tokens for piece in row.pieces] == lists["doc_lens"]
        assert [piece.doc_id for piece in row.pieces] == [docs[ref]["doc_id"].hex() for ref in lists["doc_refs"]]
        assert [piece.address for piece in row.pieces] == [docs[ref]["url"] for ref in lists["doc_refs"]]
        for piece in row.pieces:
            words = piece.text.split()
            assert len(words) in (piece.tokens, piece.tokens - 1)  # the token that ends a document has no text
            assert all(word.startswith("w") for word in words)


def test_a_trace_is_what_a_scan_of_all_steps_finds(spec: RunSpec, read: list[BatchRead]) -> None:
    scanned: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for found in read:
        for row in found.rows:
            for doc_id in dict.fromkeys(piece.doc_id for piece in row.pieces):
                scanned[doc_id].append((found.step, row.row))
    store = spec.open()
    every = {
        doc["doc_id"].hex(): name
        for name, partition in spec.facts.partitions.items()
        for shard in partition.shards
        for doc in store.table(shard.docs).to_pylist()
    }
    assert len(every) > 500
    assert {len(draws) > 0 for draws in (scanned.get(doc_id, []) for doc_id in every)} == {True, False}
    for doc_id, partition in list(every.items())[::7]:
        (one,) = trace(spec, doc_id)
        draws = [(draw.step, draw.row) for draw in one.draws]
        assert draws == scanned.get(doc_id, [])
        assert one.heldout == (partition == "heldout")
        first = draws[0][0] if draws else 99
        assert [commits.step_of(name) for name in one.seen] == [step for step in (3, 7, 9) if step >= first]
        assert one.unseen == next((f"checkpoints/{one.run}/{s:08d}" for s in (9, 7, 3) if s < first), None)
        assert one.reached == 9


def test_documents_are_found_by_address_and_by_the_first_digits_of_their_id(spec: RunSpec) -> None:
    (row, *_) = batch(spec, 1).rows
    piece = row.pieces[0]
    assert piece.address
    for name in (piece.doc_id, piece.doc_id[:8], piece.doc_id[:9], piece.doc_id.upper(), piece.address):
        assert piece.doc_id in {one.doc_id for one in trace(spec, name)}
    for name in (piece.doc_id[:7], piece.doc_id + "00", "https://elsewhere.example/", ""):
        assert trace(spec, name) == []


@pytest.mark.parametrize("step", [0, -1, 12])
def test_a_step_that_the_run_does_not_have_is_refused(spec: RunSpec, step: int) -> None:
    with pytest.raises(UsageError, match="steps 1 to 11"):
        batch(spec, step)


def test_a_recorded_run_is_the_run(spec: RunSpec) -> None:
    found = RunSpec.recorded(spec.open(), spec.run_id)
    assert (found.run_id, found.plan.digest) == (spec.run_id, spec.plan.digest)
    for unknown in ("0" * 16, "../x", ""):
        with pytest.raises(NotFound, match="not recorded"):
            RunSpec.recorded(spec.open(), unknown)


def test_a_branch_is_traced_with_the_run_that_it_began_from(spec: RunSpec) -> None:
    store = spec.open()
    branch = RunSpec(spec.store, spec.dataset, spec.manifest, spec.config, commits.folder_of(spec.run_id, 7))
    branch.record(store)
    assert [one.run_id for one in runs_on(store, branch.run_id)] == [branch.run_id, spec.run_id]
    assert {branch.run_id, spec.run_id} <= {one.run_id for one in runs_on(store)}


def test_the_verbs_show_it(toy: Toy, spec: RunSpec, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["batch", "toy", "--config", str(CONFIG), "--step", "2", "--store", toy.uri, "--set", 'name="asked"']
    ask += [word for setting in SETTINGS for word in ("--set", setting)]
    assert cli.run([*ask, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["run"] == spec.run_id
    assert document["batch"] == batch(spec, 2).batch
    assert len(document["rows"]) == spec.plan.global_batch
    assert cli.run([*ask, "--row", "1"]) == 0
    said = capsys.readouterr().out
    piece = document["rows"][1]["pieces"][0]
    assert piece["address"] in said
    assert piece["text"] in said
    assert cli.run([*ask, "--row", "99"]) == UsageError.exit_code
    capsys.readouterr()

    assert cli.run(["trace", piece["address"], "--run", spec.run_id, "--store", toy.uri]) == 0
    said = capsys.readouterr().out
    assert "step 2, row 1" in said
    assert "last checkpoint that has not" in said
    assert cli.run(["trace", "https://elsewhere.example/", "--store", toy.uri]) == NotFound.exit_code


def test_questions_need_no_torch() -> None:
    program = "import sys, training.questions, mill.questions; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_store_without_runs_says_so(tmp_path: Path) -> None:
    from corpusmill.store import open_store

    store: Store = open_store(tmp_path / "empty", create=True)
    with pytest.raises(NotFound, match="no run is recorded"):
        runs_on(store)
