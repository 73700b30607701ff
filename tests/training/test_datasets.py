"""Mixtures of several datasets: the right rows, all digests named everywhere, one tokenizer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpusmill.dataset import lineage
from corpusmill.errors import NotFound, Refused, UsageError
from mill import cli
from tests.training.attempts import attempt
from tests.training.packed import publish_dataset
from tests.training.toy import CONFIG, Toy, config
from training.checkpoints import commits
from training.config import plan_of
from training.data import Loader, Partition
from training.datasets import joined, pinned
from training.launch import train_ref
from training.parallel import Ranks
from training.run import RunSpec


def stage(weights: str, steps: int = 3) -> str:
    return f"mixture.stage=[{{steps={steps}, weights={{{weights}}}}}]"


def mixed(toy: Toy, *overrides: str) -> RunSpec:
    spec = toy.spec(*overrides, "heldout_sequences=2")
    return replace(spec, config=pinned(toy.open(), spec.config, toy.manifest))


def test_a_mixture_of_two_datasets_draws_the_rows_of_both_and_names_both(
    toy: Toy, ranks: Ranks, tmp_path: Path
) -> None:
    spec = mixed(toy, stage('crawl=0.5, "other:crawl"=0.25, "other:books"=0.25'))
    far = f"{toy.other}:crawl"
    assert set(spec.plan.partitions) == {f"{toy.other}:books", far, "crawl"}
    rows = spec.plan.rows(0)
    mine = np.flatnonzero(rows.partition == spec.plan.partitions.index(far))
    assert len(mine)
    loader, theirs = Loader(toy.open(), spec.facts, spec.plan), toy.spec(manifest=toy.other).facts.partitions["crawl"]
    expected = Partition(toy.open(), theirs).batch(rows.row[mine])
    assert np.array_equal(loader.batch(0).rows[mine], expected.rows)
    loader.close()

    result, _ = attempt(spec, tmp_path / "run", ranks)
    commit = commits.read(toy.open(), result["checkpoint"])
    assert commit.facts["manifests"] == [toy.manifest, toy.other]
    assert commit.facts["manifest_sha256"] == toy.manifest
    assert spec.tags == [f"manifest:{toy.manifest[:16]}", f"manifest:{toy.other[:16]}", f"run:{spec.run_id}"]
    for digest in (toy.manifest, toy.other):
        assert spec.run_id in {found["run"] for found in lineage.checkpoints(toy.open(), digest)}
    spec.write(tmp_path / "run.json", 1, tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["manifests"] == [toy.manifest, toy.other]
    read = RunSpec.read(tmp_path / "run.json")[0]
    assert (read.run_id, read.plan.digest) == (spec.run_id, spec.plan.digest)


def test_a_dataset_is_pinned_by_its_digest_however_it_is_named(toy: Toy) -> None:
    refs = ("other", f"other@{toy.other[:8]}", toy.other)
    assert len({mixed(toy, stage(f'crawl=1, "{ref}:crawl"=1')).run_id for ref in refs}) == 1
    own = mixed(toy, stage('"toy:crawl"=1, books=1'))
    assert own.run_id == toy.spec(stage("crawl=1, books=1"), "heldout_sequences=2").run_id


def test_a_stage_without_weights_draws_only_from_the_dataset_of_the_run(toy: Toy) -> None:
    spec = mixed(toy, 'mixture.stage=[{steps=1, weights={"other:crawl"=1}}, {steps=1}]')
    assert set(spec.plan.stages[1].weights) == {"books", "crawl"}


def test_partitions_that_cannot_be_mixed_are_refused(toy: Toy, tmp_path: Path) -> None:
    strange = publish_dataset(toy.uri, tmp_path, "strange", count=20, tokenizer=b"{ }")
    with pytest.raises(Refused, match=r"dataset strange has tokenizer [0-9a-f]{8}, but toy has [0-9a-f]{8}"):
        train_ref(toy.open(), "toy", CONFIG, [stage('crawl=1, "strange:crawl"=1')])
    assert strange
    with pytest.raises(NotFound, match="no dataset 'nowhere'"):
        train_ref(toy.open(), "toy", CONFIG, [stage('"nowhere:crawl"=1')])
    with pytest.raises(UsageError, match="names one partition twice"):
        train_ref(toy.open(), "toy", CONFIG, [stage(f'"other:crawl"=1, "other@{toy.other[:8]}:crawl"=1')])
    for name in ("heldout", "nothing"):
        with pytest.raises(UsageError, match=f"draws from {toy.other}:{name}"):
            train_ref(toy.open(), "toy", CONFIG, [stage(f'crawl=1, "other:{name}"=1')])


def test_check_reports_partitions_of_other_datasets(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["mixture", "check", "toy", "--config", str(CONFIG), "--store", toy.uri, "--json", "--set"]
    assert cli.run([*argv, stage('crawl=3, "other:crawl"=1')]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {p["partition"]: p["share"] for p in found["partitions"] if p["drawn"]} == {
        "crawl": 0.75,
        f"{toy.other}:crawl": 0.25,
    }
    wish = pinned(toy.open(), config(stage('crawl=3, "other:crawl"=1')), toy.manifest)
    assert found["plan"] == plan_of(wish, joined(toy.open(), toy.spec().facts, wish)).digest
