"""The list of a store's runs, and two of them side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpusmill.errors import NotFound, UsageError
from corpusmill.store import open_store
from mill import cli
from tests.training.packed import publish_dataset
from tests.training.toy import Toy, config
from training.checkpoints import claims, commits
from training.run import RunSpec
from training.runs import compare, runs


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A store of its own, so that no other test's runs are in it."""
    folder = tmp_path_factory.mktemp("runs")
    uri = folder / "store"
    digest = publish_dataset(uri, folder / "toy", "toy", count=400)
    return Toy(str(uri), digest, digest)


def stored(toys: Toy, name: str, losses: list[float], *settings: str, finished: bool = False) -> RunSpec:
    """A recorded run with metrics of these losses and a checkpoint after them."""
    store = toys.open()
    spec = RunSpec(toys.uri, "toy", toys.manifest, config(f'name="{name}"', *settings))
    spec.record(store)
    for step, loss in enumerate(losses, 1):
        line = {"step": step, "loss": loss, "grad_norm": 1.0, "batch": f"{step}"}
        store.put(f"runs/{spec.run_id}/metrics.1.{step:08d}.jsonl", json.dumps(line).encode())
    if losses:
        facts = {"step": len(losses), "batch_chain": "", "loss_last": losses[-1], "heldout_before": 4.0}
        commits.write(store, commits.folder_of(spec.run_id, len(losses)), facts)
        if finished:
            claims.finish(store, spec.run_id, facts | {"heldout_after": 2.5})
    return spec


@pytest.fixture(scope="module")
def three(toys: Toy) -> list[RunSpec]:
    return [
        stored(toys, "one", [3.0, 2.5, 2.0], finished=True),
        stored(toys, "other", [3.0, 2.5, 1.5, 1.0], "optim.lr=0.25"),
        stored(toys, "new", []),
    ]


def test_every_run_is_listed_with_how_far_it_came(toys: Toy, three: list[RunSpec]) -> None:
    found = {one.run: one for one in runs(toys.open())}
    assert list(found) == sorted(spec.run_id for spec in three)
    one, other, new = (found[spec.run_id] for spec in three)
    assert (one.state, other.state, new.state) == ("finished", "checkpointed", "begun")
    assert (one.step, other.step, new.step) == (3, 4, 0)
    assert (one.loss, one.heldout_before, one.heldout_after, other.heldout_after) == (2.0, 4.0, 2.5, None)
    assert one.steps == three[0].plan.steps
    assert one.dataset == f"toy@{toys.manifest}"


def test_two_runs_differ_in_what_was_set_and_from_the_step_on_that_shows_it(toys: Toy, three: list[RunSpec]) -> None:
    found = compare(toys.open(), three[0].run_id, three[1].run_id)
    assert [key for key, _, _ in found.differ] == ["name", "optim.lr"]
    assert (found.same_until, found.common, found.loss) == (2, 3, (2.0, 1.5))
    alone = compare(toys.open(), three[0].run_id, three[2].run_id)
    assert (alone.common, alone.loss) == (0, None)
    itself = compare(toys.open(), three[0].run_id, three[0].run_id)
    assert (itself.differ, itself.same_until) == ((), 3)
    with pytest.raises(NotFound):
        compare(toys.open(), three[0].run_id, "0" * 16)


def test_a_damaged_record_hides_no_other_run(toys: Toy, three: list[RunSpec], tmp_path: Path) -> None:
    file = Path(toys.uri) / "runs" / three[2].run_id / "run.json"
    data = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(data[:20])
    found = {one.run: one for one in runs(toys.open())}
    file.write_bytes(data)
    assert len(found) == 3
    assert found[three[2].run_id].state == "damaged"
    assert found[three[2].run_id].fault
    assert runs(open_store(tmp_path / "empty", create=True)) == []


def test_the_verb_lists_and_compares(toys: Toy, three: list[RunSpec], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["runs", "--store", toys.uri]) == 0
    said = capsys.readouterr().out
    for spec in three:
        assert spec.run_id in said
    assert cli.run(["runs", three[0].run_id, three[1].run_id, "--store", toys.uri]) == 0
    said = capsys.readouterr().out
    assert "optim.lr" in said
    assert "steps 1 to 2 are equal to the bit; loss at step 3: 2.0000, 1.5000" in said
    assert cli.run(["runs", "--store", toys.uri, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 3
    assert cli.run(["runs", three[0].run_id, "--store", toys.uri]) == UsageError.exit_code
