"""`mill mixture check`: what a config draws, all its faults at once, and that it agrees with the plan of training."""

from __future__ import annotations

import json

import pytest

from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import NotFound
from mill import cli
from tests import manifests
from tests.training.toy import CONFIG, Toy, config
from training.config import plan_of
from training.mixture import check


def dataset(**sequences: int) -> Manifest:
    return manifests.made(partitions={name: manifests.partition(size) for name, size in sequences.items()})


def test_the_report_has_the_figures_of_the_plan() -> None:
    data, wish = dataset(crawl=500, books=100, rest=7, heldout=9), config("run.nproc=4", "run.micro_batch=4")
    found, plan = check(wish, data), plan_of(wish, data)
    assert (found.faults, found.plan, found.steps) == ((), plan.digest, plan.steps)
    assert {p.partition: p.epochs for p in found.partitions} == pytest.approx({"rest": 0.0} | plan.epochs())
    assert sum(p.drawn for p in found.partitions) == plan.total
    assert sum(p.share for p in found.partitions) == pytest.approx(1)
    assert found.stages[0].shares == {"crawl": 0.75, "books": 0.25}
    assert [s.tokens for s in found.stages] == [30 * 8 * 64, 10 * 8 * 64]
    assert (found.micro_batch, found.accumulation, found.ranks) == (2, 1, 4), "a share is smaller than a micro-batch"
    assert check(config("run.nproc=2", "run.micro_batch=3"), data).accumulation == 2


def test_all_faults_of_a_mixture_are_told_at_once() -> None:
    stages = (
        "mixture.stage=[{steps=900, weights={a=1, nowhere=1, heldout=1}}, {tokens=9}, "
        "{epochs=1, weights={a=5000, b=1}}, {epochs=40}]"
    )
    found = check(config(stages, "run.nproc=3"), dataset(a=800, b=100, heldout=50))
    for part in (
        "stage 1: no partition 'heldout'",
        "stage 1: no partition 'nowhere'",
        "stage 2: tokens = 9 does not reach one step",
        "stage 3: the smallest of",
        "partition a: drawn 50.1 times, more than mixture.max_epochs = 4",
        "partition b: drawn 40.0 times",
        "run.nproc = 3 ranks cannot share",
    ):
        assert part in "\n".join(found.faults), found.faults
    assert len(found.faults) == 7
    assert found.plan is None


@pytest.mark.parametrize("partitions", [1, 100, 10_000])
def test_a_mixture_of_many_partitions_is_checked(partitions: int) -> None:
    found = check(config("mixture.stage=[{epochs=1}]"), dataset(**{f"p{i}": 8 for i in range(partitions)}))
    assert not found.faults
    assert {p.epochs for p in found.partitions} == {1.0}
    assert found.steps == partitions


def test_nothing_to_train_on_is_no_sound_mixture() -> None:
    with pytest.raises(NotFound, match="no training sequences"):
        check(config(), dataset(heldout=5))


def test_the_verb_prints_the_table_and_ends_with_its_code(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["mixture", "check", "toy", "--config", str(CONFIG), "--store", toy.uri]
    assert cli.run(argv) == 0
    shown = capsys.readouterr().out
    assert "optimizer steps 40, each of 8 sequences: 2 micro x 2 accumulation x 2 ranks" in shown
    assert plan_of(config(), toy.spec().facts).digest in shown
    assert cli.run([*argv, "--set", "mixture.stage=[{steps=9, weights={no=1}}]", "--json"]) == 2
    said = capsys.readouterr()
    assert len(json.loads(said.out)["faults"]) == 1
    assert json.loads(said.err)["exit_code"] == 2
