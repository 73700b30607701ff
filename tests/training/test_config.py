"""Training configs, the mixture made from them, and the identity of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import NotFound, UsageError
from corpusmill.places import SHIPPED
from tests import manifests
from tests.training.toy import CONFIG, Toy, config
from training.config import load_train_config, plan_of


@pytest.mark.parametrize("path", sorted((SHIPPED / "recipes").glob("train-*.toml")), ids=lambda p: p.stem)
def test_shipped_configs_are_valid(path: Path) -> None:
    assert load_train_config(path).mixture.stage


def test_all_faults_of_a_config_are_told_at_once() -> None:
    with pytest.raises(UsageError) as told:
        load_train_config(CONFIG, ["model.heds=3", "optim.lr=-1", "run.mode=zero9"])
    for part in ("model.heds: unknown key", '"heads"', "optim.lr", "run.mode", "3 faults in the training config"):
        assert part in str(told.value)


def test_heads_must_fit_the_width() -> None:
    with pytest.raises(UsageError, match="not an even number"):
        config("model.heads=3")


def dataset(**sequences: int) -> Manifest:
    """Partitions of these sizes."""
    return manifests.made(partitions={name: manifests.partition(size) for name, size in sequences.items()})


def test_a_stage_without_weights_draws_partitions_by_size() -> None:
    sizes = {"a": 900, "b": 90, "c": 1}
    plan = plan_of(config("mixture.stage=[{steps=100}]"), dataset(**sizes, heldout=50))
    assert plan.partitions == ("a", "b", "c")
    assert plan.stages[0].weights == sizes
    assert plan.total == 800


@pytest.mark.parametrize(
    "sizes",
    [
        {"large": 10_000, "small": 1},
        {f"p{i:03}": 7 for i in range(600)},
        {"a": 4_999, "b": 2_500, "c": 501},
        {"a": 5_000, "b": 1, "c": 50, "d": 40_000, "e": 5_000},  # a floor at the end of a block can go back by one
        {"a": 2, "b": 10_000, "c": 50, "d": 1, "e": 1, "f": 3},
    ],
)
def test_a_pass_by_size_draws_every_sequence_once(sizes: dict[str, int]) -> None:
    total = sum(sizes.values())
    plan = plan_of(config(f"mixture.stage=[{{steps={total}}}]", "mixture.global_batch=1"), dataset(**sizes))
    rows = plan.at(np.arange(total))
    assert len(np.unique(np.stack([rows.partition, rows.row]), axis=1).T) == total
    assert set(plan.epochs().values()) == {1.0}


def test_partitions_of_very_different_sizes_are_drawn_exactly() -> None:
    sizes = {"a": 2**39, "b": 1_000, "c": 10_000_000}
    plan = plan_of(config(f"mixture.stage=[{{steps={2**39}}}]", "mixture.global_batch=1"), dataset(**sizes))
    assert plan.epochs()["b"] == pytest.approx(1, abs=0.002)
    last = plan.at(np.arange(2**39 - 5_000, 2**39))
    assert last.row.min() >= 0
    assert all((last.row[last.partition == k] < sizes[name]).all() for k, name in enumerate(plan.partitions))


def test_decimal_weights_are_exact_and_the_same_mixture_as_whole_ones() -> None:
    data = dataset(a=50_000, b=50_000, c=50_000)

    def made(weights: str) -> str:
        return plan_of(config(f"mixture.stage=[{{steps=100, weights={{{weights}}}}}]"), data).digest

    assert made("a=0.7, b=0.2, c=0.1") == made("a=7, b=2, c=1") == made('a="0.70", b=2e-1, c="0.1"')
    assert made("a=14, b=4, c=2") != made("a=7, b=2, c=1"), "whole numbers are hashed as they are written"
    stage = config("mixture.stage=[{steps=100, weights={a=0.333333, b=0.666667}}]").mixture.stage[0]
    assert stage.what()["weights"] == {"a": 333_333, "b": 666_667}


def test_the_plan_of_an_older_config_keeps_its_digest() -> None:
    plan = plan_of(config(), dataset(crawl=500, books=300))
    assert plan.digest == "8ce7edd5253bab0ca9a28b7b975b2ad1eec5c36c9d5c0c3cce5f0f88cc414c82"
    assert "tokens" not in config().what()["mixture"]["stage"][0]


def test_a_stage_is_as_long_as_its_steps_tokens_or_epochs() -> None:
    data = dataset(a=900, b=100)
    seq_len = data.partitions["a"].seq_len

    def steps(stage: str) -> int:
        return plan_of(config(f"mixture.stage=[{{{stage}}}]"), data).steps

    assert steps("steps=7") == 7
    assert [steps(f"tokens={n * 8 * seq_len + more}") for n, more in ((7, 0), (7, 1), (8, -1))] == [7, 7, 7]
    assert [steps(f"epochs={n}") for n in ("1", "4", "0.5", '"2.008"')] == [125, 500, 62, 251]
    assert steps("epochs=2, weights={b=1}") == 25
    with pytest.raises(UsageError, match=r"longer than stage 1: epochs = 0\.001"):
        steps("epochs=0.001")


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("steps=1, tokens=9", "given steps and tokens"),
        ("rope_base=5", "given none"),
        ("epochs=-1.5", "decimal above 0"),
        ('epochs="many"', "decimal above 0"),
        ("epochs=0", "decimal above 0"),
        ("steps=1, weights={a=0.5, b=-0.5}", "above 0 for b"),
        ("steps=1, weights={a=0.5, b=nan}", "above 0 for b"),
        ("steps=1, weights={a=0.5, b=true}", "above 0 for b"),
    ],
)
def test_lengths_and_weights_that_mean_nothing_are_refused(stage: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        config(f"mixture.stage=[{{{stage}}}]")


def test_held_out_text_cannot_be_drawn() -> None:
    with pytest.raises(UsageError, match="draws from heldout"):
        plan_of(config("mixture.stage=[{steps=1, weights={heldout=1}}]"), dataset(crawl=500, heldout=500))
    with pytest.raises(NotFound, match="no training sequences"):
        plan_of(config(), dataset(heldout=500))


def test_run_id_is_decided_by_what_and_not_by_where(toy: Toy) -> None:
    run_id = toy.spec().run_id
    for same in (
        "run.nproc=1",
        'run.mode="fsdp2"',
        "run.micro_batch=1",
        "run.checkpoint_every=3",
        "mixture.max_epochs=9",
    ):
        assert toy.spec(same).run_id == run_id
    for other in ("seed=1", "optim.lr=0.1", "model.dim=64", "mixture.seed=2", 'name="b"', 'dtype="bfloat16"'):
        assert toy.spec(other).run_id != run_id
    assert toy.spec(manifest=toy.other).run_id != run_id


def test_run_file_says_it_all(toy: Toy, tmp_path: Path) -> None:
    spec = toy.spec('run.mode="fsdp2"', "optim.lr=0.3")
    spec.write(tmp_path / "run.json", 7, tmp_path)
    read, claim, scratch = type(spec).read(tmp_path / "run.json")
    assert (read, claim, scratch) == (spec, 7, tmp_path)
    assert read.run_id == spec.run_id
