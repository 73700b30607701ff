"""`exclude`: the labels of listed documents give no gradient, and nothing else changes."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpusmill.errors import CheckFailed, NotFound, UsageError
from corpusmill.kernels.gather import IGNORED
from tests.training.toy import CONFIG, Toy
from training import parallel
from training.data import Batch, Loader
from training.evaluate import nll
from training.excluded import Excluded, kept_list
from training.launch import train_ref
from training.loop import _trainer
from training.parallel import Ranks
from training.questions import Trace, batch, trace
from training.run import RunSpec

SETTINGS = ('name="counterfactual"', "mixture.stage=[{steps=8}]")


@pytest.fixture(scope="module")
def spec(toy: Toy) -> RunSpec:
    return toy.spec(*SETTINGS)


@pytest.fixture(scope="module")
def first_drawn_at_5(spec: RunSpec) -> Trace:
    """A document that step 5 reads, and none before."""
    return next(
        one
        for row in batch(spec, 5).rows
        for piece in row.pieces
        for one in trace(spec, piece.doc_id)
        if one.draws[0].step == 5 and piece.tokens > 4
    )


def without(spec: RunSpec, folder: Path, *ids: str) -> RunSpec:
    file = folder / "exclude.txt"
    file.write_text("# taken down\n" + "".join(f"{doc_id.upper()}  # why\n\n" for doc_id in ids))
    return replace(spec, excluded=kept_list(spec.open(), file, spec.facts)[0])


def excluded(spec: RunSpec) -> Excluded:
    assert spec.excluded
    return Excluded.read(spec.open(), spec.excluded, spec.facts, spec.plan)


def test_the_labels_of_excluded_documents_are_taken_out_and_no_others(spec: RunSpec, tmp_path: Path) -> None:
    read = [batch(spec, step) for step in range(1, 9)]
    ids = sorted({piece.doc_id for found in read for row in found.rows for piece in row.pieces})[::5]
    out, loader = excluded(without(spec, tmp_path, *ids)), Loader(spec.open(), spec.facts, spec.plan)
    taken = 0
    for step, found in enumerate(read):
        before = loader.batch(step)
        wanted = before.labels.copy()
        for row in found.rows:
            begin = 0
            for piece in row.pieces:
                if piece.doc_id in ids:
                    wanted[row.row, begin : begin + piece.tokens - 1] = IGNORED
                begin += piece.tokens
        after = out.taken_out(before, step, 0, 1)
        assert np.array_equal(after.labels, wanted)
        assert (after.counted, after.digests()) == (before.counted, before.digests())
        taken += after.withheld
        halves = [out.taken_out(loader.batch(step, rank, 2), step, rank, 2) for rank in (0, 1)]
        assert np.array_equal(np.concatenate([half.labels for half in halves]), wanted)
        assert sum(half.counted for half in halves) == before.counted
    loader.close()
    assert taken > 100


def gradients(spec: RunSpec, ranks: Ranks, read: Batch) -> tuple[float, list[torch.Tensor]]:
    torch.manual_seed(0)
    model = parallel.build(spec.config, spec.vocab_size, ranks)
    loss = nll(model, read, 10_000, spec.config, ranks)
    (loss / read.counted).backward()
    return float(loss.detach()), [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_what_an_excluded_document_says_moves_nothing(
    spec: RunSpec, first_drawn_at_5: Trace, ranks: Ranks, tmp_path: Path
) -> None:
    out = excluded(without(spec, tmp_path, first_drawn_at_5.doc_id))
    loader = Loader(spec.open(), spec.facts, spec.plan)
    before = loader.batch(4)
    loader.close()
    taken = out.taken_out(before, 4, 0, 1)
    place = first_drawn_at_5.draws[0]
    (row,) = [row for row in batch(spec, 5).rows if row.row == place.row]
    rows, begin = before.rows.copy(), 0
    for piece in row.pieces:
        if piece.doc_id == first_drawn_at_5.doc_id:
            rows[place.row, begin : begin + piece.tokens] = 1 + (rows[place.row, begin : begin + piece.tokens] + 7) % 90
        begin += piece.tokens
    assert not np.array_equal(rows, before.rows)
    loss, grads = gradients(spec, ranks, taken)
    other_loss, other_grads = gradients(spec, ranks, replace(taken, rows=rows))
    assert loss == other_loss
    assert all(torch.equal(left, right) for left, right in zip(grads, other_grads, strict=True))
    assert gradients(spec, ranks, before)[0] != loss  # where it counts, it moves something


def test_steps_before_the_first_draw_are_the_same_to_the_bit(
    spec: RunSpec, first_drawn_at_5: Trace, ranks: Ranks, tmp_path: Path
) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    lines: list[list[dict[str, Any]]] = []
    for name, one in (("with", spec), ("without", without(spec, tmp_path, first_drawn_at_5.doc_id))):
        folder = tmp_path / name
        folder.mkdir()
        torch.set_num_threads(1)
        result = _trainer(one, 1, folder, folder, ranks).run()
        assert result["run_id"] == one.run_id
        lines.append([json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()])
    signal.signal(signal.SIGTERM, handler)
    same = [
        [{key: line[key] for key in ("step", "loss", "lr", "grad_norm", "tokens", "batch")} for line in run]
        for run in lines
    ]
    assert same[0][:4] == same[1][:4]
    for kept, left in zip(same[0][4:], same[1][4:], strict=True):
        assert (kept["batch"], kept["tokens"]) == (left["batch"], left["tokens"])
        assert kept["loss"] != left["loss"]


def test_the_list_is_part_of_the_run_and_its_form_is_not(
    spec: RunSpec, first_drawn_at_5: Trace, tmp_path: Path
) -> None:
    other = batch(spec, 1).rows[0].pieces[0].doc_id
    both = without(spec, tmp_path, first_drawn_at_5.doc_id, other)
    assert both.excluded == without(spec, tmp_path, other, first_drawn_at_5.doc_id, other).excluded
    one = without(spec, tmp_path, other)
    assert len({spec.run_id, both.run_id, one.run_id}) == 3
    one.record(spec.open())
    assert RunSpec.recorded(spec.open(), one.run_id).excluded == one.excluded
    _, number, elsewhere = kept_list(spec.open(), listed(tmp_path, other, "f" * 32), spec.facts)
    assert (number, elsewhere) == (1, 1)


def listed(folder: Path, *lines: str) -> Path:
    file = folder / "list.txt"
    file.write_text("\n".join(lines))
    return file


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["f" * 32], "none of its 1 documents is trained on"),
        ([], "no line of 0 has a doc id"),
        (["# nothing"], "no line of 1 has a doc id"),
        (["https://a.example/"], "1 line of 1 is no doc id"),
        (["ab" * 15, "x"], "2 lines of 2 is no doc id"),
    ],
)
def test_a_list_that_excludes_nothing_is_refused(spec: RunSpec, lines: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        kept_list(spec.open(), listed(tmp_path, *lines), spec.facts)


def test_a_list_of_held_out_documents_is_refused(spec: RunSpec, tmp_path: Path) -> None:
    docs = spec.open().table(spec.facts.partitions["heldout"].shards[0].docs, ["doc_id"])
    with pytest.raises(UsageError, match="none of its 1 documents is trained on"):
        kept_list(spec.open(), listed(tmp_path, docs["doc_id"][0].as_py().hex()), spec.facts)


def test_a_list_that_is_gone_or_damaged_stops_the_run(toy: Toy, spec: RunSpec, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="cannot be read"):
        train_ref(toy.open(), "toy", CONFIG, [f'exclude="{tmp_path}/none"', *SETTINGS])
    one = without(spec, tmp_path, batch(spec, 2).rows[0].pieces[0].doc_id)
    file = Path(toy.uri) / "runs" / "excluded" / str(one.excluded)
    data = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(b"00" * 16 + b"\n")
    with pytest.raises(CheckFailed, match="is damaged"):
        excluded(one)
    file.write_bytes(data)
