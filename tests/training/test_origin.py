"""`mill train --from`: a branch starts with another run's weights, says so everywhere, and resumes as any run does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpusmill.dataset import lineage
from corpusmill.dataset.manifest import open_manifest
from corpusmill.errors import CheckFailed, NotFound, Refused, UsageError
from tests.training.attempts import attempt
from tests.training.packed import publish_dataset
from tests.training.toy import CONFIG, Toy
from training.checkpoints import commits
from training.launch import train_ref
from training.loop import _trainer
from training.parallel import Ranks
from training.run import RunSpec, starting_from
from training.use.seen import trained_on

SHORT = ("mixture.stage=[{steps=4, weights={crawl=1}}]", "run.checkpoint_every=2", "heldout_sequences=4")
ANNEAL = ("mixture.stage=[{steps=3, weights={crawl=0.2, books=0.8}, lr=[1.0, 0.0]}]", "heldout_sequences=4")


@pytest.fixture(scope="module")
def base(ranks: Ranks, tmp_path_factory: pytest.TempPathFactory) -> tuple[Toy, RunSpec, dict[str, Any]]:
    """A finished run of four steps in a store of its own, with a dataset of another tokenizer beside it."""
    folder = tmp_path_factory.mktemp("base")
    uri = folder / "store"
    manifest, other = (
        publish_dataset(uri, folder / name, name, seed=k, count=100) for k, name in enumerate(["toy", "other"])
    )
    publish_dataset(uri, folder / "strange", "strange", count=100, tokenizer=b"{ }")
    toy = Toy(str(uri), manifest, other)
    spec = toy.spec(*SHORT)
    return toy, spec, attempt(spec, folder / "run", ranks)[0]


Base = tuple[Toy, RunSpec, dict[str, Any]]


def test_a_branch_into_another_mixture_shows_where_it_comes_from(base: Base, ranks: Ranks, tmp_path: Path) -> None:
    toy, parent, result = base
    spec = starting_from(toy.spec(*ANNEAL), parent.run_id, moments=False)
    branch, lines = attempt(spec, tmp_path / "branch", ranks)
    assert branch["heldout_before"] == result["heldout_after"], "it starts where the other ended"
    assert [line["step"] for line in lines.values()] == [1, 2, 3]
    commit = commits.latest(toy.open(), spec.run_id)
    assert commit
    assert commit.facts["parent"] == f"checkpoints/{parent.run_id}/00000004"
    origin = commit.facts["origin"]
    assert (origin["run"], origin["step"], origin["manifest"]) == (parent.run_id, 4, toy.manifest)
    assert branch["origin"] == origin
    spec.write(tmp_path / "run.json", 1, tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["origin"] == origin
    assert RunSpec.read(tmp_path / "run.json")[0] == spec
    nothing: dict[str, Any] = {"name": "toy", "manifest": toy.manifest, "parents": [], "shards": [], "units": []}
    found = lineage.checkpoints(toy.open(), toy.manifest)
    shown = lineage.written_out({**nothing, "inputs": [], "checkpoints": list(found)})
    assert f"checkpoint {spec.run_id} step 3, from {parent.run_id} step 4" in shown.splitlines()


def test_a_branch_onto_another_dataset_resumes_as_any_run_does(base: Base, ranks: Ranks, tmp_path: Path) -> None:
    toy, parent, _ = base
    wish = [toy.spec(*ANNEAL, f'name="{name}"', manifest=toy.other) for name in ("whole", "broken")]
    whole, broken = (starting_from(spec, f"{parent.run_id}/2", moments=True) for spec in wish)
    _, expected = attempt(whole, tmp_path / "whole", ranks)
    seen: dict[int, Any] = {}
    for until in (1, 2, None):
        seen |= attempt(broken, tmp_path / f"{until}", ranks, until)[1]
    for step, line in expected.items():
        assert {key: seen[step][key] for key in ("loss", "grad_norm", "batch")} == {
            key: line[key] for key in ("loss", "grad_norm", "batch")
        }
    commit = commits.latest(toy.open(), broken.run_id)
    assert commit
    assert commit.facts["manifest_sha256"] == toy.other
    assert commit.facts["origin"]["step"] == 2

    onward = starting_from(toy.spec(*ANNEAL, 'name="onward"'), f"{broken.run_id}/3", moments=False)
    attempt(onward, tmp_path / "onward", ranks)
    found = [one for one in lineage.checkpoints(toy.open(), toy.manifest) if one["run"] == onward.run_id]
    goes_back = [(one["run"], one["step"], one["manifests"]) for one in found[-1]["ancestors"]]
    assert goes_back == [(broken.run_id, 3, (toy.other,)), (parent.run_id, 2, (toy.manifest,))]
    seen_by = trained_on(toy.open(), onward.manifests, onward.beginning)
    assert seen_by == [open_manifest(toy.open(), digest) for digest in (toy.manifest, toy.other)]


def test_moments_are_taken_only_when_asked_for_and_settings_never(base: Base, ranks: Ranks, tmp_path: Path) -> None:
    toy, parent, _ = base
    for moments in (False, True):
        spec = starting_from(toy.spec(*ANNEAL, "optim.betas=[0.8, 0.9]"), parent.run_id, moments)
        trainer = _trainer(spec, 1, tmp_path, tmp_path, ranks)
        trainer._restore()
        states = [trainer.optimizer.state[p] for p in trainer.model.parameters() if p in trainer.optimizer.state]
        assert [int(state["step"]) for state in states] == ([4] * len(states) if moments else [])
        assert bool(states) == moments
        assert all(state["exp_avg"].abs().sum() > 0 for state in states)
        assert {group["betas"] for group in trainer.optimizer.param_groups} == {(0.8, 0.9)}
        assert trainer.progress.step == 0


def test_the_origin_is_part_of_the_run(base: Base) -> None:
    toy, parent, _ = base
    spec = toy.spec(*ANNEAL)
    refs = [(f"{parent.run_id}/4", False), (f"{parent.run_id}/2", False), (f"{parent.run_id}/4", True)]
    ids = {starting_from(spec, ref, moments).run_id for ref, moments in refs}
    assert len({spec.run_id, *ids}) == 4
    assert starting_from(spec, parent.run_id, False).run_id == starting_from(spec, *refs[0]).run_id


def test_another_tokenizer_or_model_is_refused_with_both_named(base: Base) -> None:
    toy, parent, _ = base
    with pytest.raises(Refused, match=r"has tokenizer [0-9a-f]{8}, but this run's is [0-9a-f]{8}") as strange:
        train_ref(toy.open(), "strange", CONFIG, ANNEAL, origin=parent.run_id)
    assert "is not" in strange.value.why
    with pytest.raises(Refused, match="has model") as shape:
        train_ref(toy.open(), "toy", CONFIG, [*ANNEAL, "model.layers=1"], origin=parent.run_id)
    assert shape.value.exit_code == 5
    with pytest.raises(NotFound, match="no committed checkpoint"):
        train_ref(toy.open(), "toy", CONFIG, ANNEAL, origin=f"{parent.run_id}/3")
    with pytest.raises(UsageError, match="exclude each other"):
        train_ref(toy.open(), "toy", CONFIG, ANNEAL, resume=parent.run_id, origin=parent.run_id)
    with pytest.raises(UsageError, match="--moments without --from"):
        train_ref(toy.open(), "toy", CONFIG, ANNEAL, moments=True)


def test_an_origin_that_was_replaced_is_found(base: Base) -> None:
    toy, parent, _ = base
    origin = starting_from(toy.spec(*ANNEAL), f"{parent.run_id}/2", moments=False).origin
    assert origin
    path = Path(toy.uri) / origin.checkpoint / "COMMIT.json"
    kept = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(kept + b" ")
    with pytest.raises(CheckFailed, match="is not the one that this run started from"):
        origin.commit(toy.open())
    path.write_bytes(kept)
