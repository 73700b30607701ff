"""Killed anywhere, resumed, and to the bit the same as the unbroken run: loss, norm, batches, weights, stored metrics.

Quick tier: one rank, at every point inside a save. Long tier: two ranks and shards there too; 20 kills of rank,
torchrun or launcher at random steps, with 1 and with 2 ranks. Each prints its seed; KILL_SEED=N runs it again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpusmill.processes import children
from tests.training.kills import POINTS, attempt, last, stored
from tests.training.packed import publish_dataset
from tests.training.test_runs import at_step
from tests.training.toy import CONFIG, Toy
from training.checkpoints import commits
from training.ledger import losses
from training.run import RunSpec

SEED = int(os.environ.get("KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.fixture
def own(tmp_path: Path) -> Toy:
    """A store of the test's own."""
    uri = tmp_path / "store"
    return Toy(str(uri), publish_dataset(uri, tmp_path / "made", count=200), "")


def spec_of(toy: Toy, name: str, steps: int, every: int, *more: str) -> RunSpec:
    """Two stages, several passes over the data; saved every few steps."""
    stages = f"mixture.stage=[{{steps={steps // 2}}}, {{steps={steps - steps // 2}, lr=[1.0, 0.1]}}]"
    settings = (
        f'name="{name}"',
        stages,
        f"run.checkpoint_every={every}",
        "run.micro_batch=8",
        "heldout_sequences=2",
        "mixture.max_epochs=99",
    )
    return toy.spec(*settings, *more)


def equal(toy: Toy, broken: RunSpec, unbroken: RunSpec, steps: int) -> None:
    """What both runs left is the same."""
    store = toy.open()
    found = stored(store, broken.run_id)
    assert sorted(found) == list(range(1, steps + 1)), "stored metrics have a gap"
    assert found == stored(store, unbroken.run_id)
    ours, theirs = (losses(store, spec.run_id) for spec in (broken, unbroken))
    assert sorted(ours) == list(range(1, steps + 1)), "the ledger has a gap"
    assert all(one.tobytes() == other.tobytes() for s in ours for one, other in zip(ours[s], theirs[s], strict=True))
    for step, (nll, labels) in ours.items():
        assert nll.sum() / labels.sum() == pytest.approx(found[step]["loss"], rel=1e-5)
    assert last(store, broken.run_id) == last(store, unbroken.run_id)


def killed_at_all_points(toy: Toy, logs: Path, world: int, mode: str, names: list[str], steps: int) -> None:
    chance = random.Random(SEED)
    print(f"KILL_SEED={SEED}")
    how = (f'run.mode="{mode}"',)
    unbroken = spec_of(toy, "unbroken", steps, 2, "run.async_save=false", *how)
    assert attempt(unbroken, 1, logs, world) == [0] * world
    spec = spec_of(toy, "broken", steps, 2, "run.keep_last=1", *how)
    for number, name in enumerate(names):
        rank = 0 if POINTS[name].first_rank else chance.randrange(world)
        save = 2 if "removed" in name or number % 3 == 2 else 1  # two of three die before anything new is saved
        codes = attempt(spec, number + 1, logs, world, (rank, name, save))
        assert codes[rank] == -signal.SIGKILL, f"{name}: {codes}, see {logs}"
        newest = commits.latest(toy.open(), spec.run_id)
        assert newest is None or newest.step < steps, "no steps are left to be killed in"
    assert attempt(spec, len(names) + 1, logs, world) == [0] * world
    equal(toy, spec, unbroken, steps)
    assert len(commits.names(toy.open(), spec.run_id)) == 1, "removals that were killed were ended"


def test_one_rank_killed_at_every_point_inside_a_save(own: Toy, tmp_path: Path) -> None:
    killed_at_all_points(own, tmp_path / "logs", 1, "ddp", list(POINTS), 20)


def test_a_signal_to_one_of_two_ranks_saves_that_step_on_both(own: Toy, tmp_path: Path) -> None:
    unbroken, spec = (spec_of(own, name, 24, 6) for name in ("unbroken", "signalled"))
    assert attempt(unbroken, 1, tmp_path, 2) == [0, 0]
    chance = random.Random(SEED)
    print(f"KILL_SEED={SEED}")
    folder = tmp_path / f"{spec.run_id}.1"
    with at_step(folder, chance.randint(1, 17), lambda pid: os.kill(pid, signal.SIGTERM), rank=1):
        assert attempt(spec, 1, tmp_path, 2) == [0, 0]
    result = json.loads((folder / "result.json").read_text())
    assert (result["outcome"], result["checkpoint"]) == ("stopped", commits.folder_of(spec.run_id, result["step"]))
    assert sorted(stored(own.open(), spec.run_id)) == list(range(1, result["step"] + 1))
    assert attempt(spec, 2, tmp_path, 2) == [0, 0]
    equal(own, spec, unbroken, 24)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("world", "mode"), [(2, "ddp"), (2, "fsdp2"), (1, "fsdp2")])
def test_ranks_killed_at_every_point_inside_a_save(own: Toy, tmp_path: Path, world: int, mode: str) -> None:
    names = [name for name in POINTS if mode == "ddp" or "compared" not in name] * 2
    random.Random(SEED).shuffle(names)
    killed_at_all_points(own, tmp_path / "logs", world, mode, names, 80)


LAUNCHER = (
    "import sys; from pathlib import Path; from corpusmill.store import open_store; "
    "from training.launch import train_ref; "
    "train_ref(open_store(sys.argv[1]), 'toy', sys.argv[2], sys.argv[4:], log_dir=Path(sys.argv[3]))"
)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("world", [1, 2])
def test_rank_torchrun_and_launcher_killed_at_random_steps(own: Toy, tmp_path: Path, world: int) -> None:
    """20 kills of one run. What a killed launcher leaves running goes on beside the next attempt, for a while."""
    steps, chance, store = 160, random.Random(SEED + world), own.open()
    print(f"KILL_SEED={SEED}")
    unbroken = spec_of(own, "unbroken", steps, 4)
    assert attempt(unbroken, 1, tmp_path / "logs", world) == [0] * world
    spec = spec_of(own, "broken", steps, 4)
    settings = ['name="broken"', *_settings(spec), f"run.nproc={world}"]
    argv = [sys.executable, "-c", LAUNCHER, own.uri, str(CONFIG), str(tmp_path / "launched"), *settings]
    for claim in range(1, 21):
        newest = commits.latest(store, spec.run_id)
        step = min(steps - 2, (newest.step if newest else 0) + chance.randint(1, 9))
        victim = chance.choice(("rank", "torchrun", "launcher"))
        with (tmp_path / f"launcher.{claim}.log").open("wb") as log:
            launcher = subprocess.Popen(argv, stdout=log, stderr=log)

        def kill(pid: int, launcher: Any = launcher, victim: str = victim) -> None:
            torchrun = next(proc for proc in children(launcher.pid))
            os.kill({"rank": pid, "torchrun": torchrun.pid, "launcher": launcher.pid}[victim], signal.SIGKILL)

        rank = chance.randrange(world)
        print(f"{claim}: {victim} (rank {rank}) at step {step}, see {log.name}", flush=True)
        with at_step(tmp_path / "launched" / f"{spec.run_id}.{claim}", step, kill, rank=rank):
            code = launcher.wait(240)
        assert code != 0
    assert subprocess.run(argv, check=False, timeout=240, stdout=subprocess.DEVNULL).returncode == 0
    equal(own, spec, unbroken, steps)


def _settings(spec: RunSpec) -> list[str]:
    """The overrides that make this spec of the config file."""
    stages = ", ".join(
        f"{{steps={stage.steps}, lr=[{stage.lr[0]}, {stage.lr[1]}]}}" for stage in spec.config.mixture.stage
    )
    run = spec.config.run
    rest = ("run.micro_batch=8", "heldout_sequences=2", "mixture.max_epochs=99")
    return [f"mixture.stage=[{stages}]", f"run.checkpoint_every={run.checkpoint_every}", *rest]
