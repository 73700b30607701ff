"""Real runs under torchrun: the same batches and losses in every mode, whatever happens; nothing is trained twice.

A launch costs about ten seconds, so runs are shared between tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from corpusmill.errors import Incomplete, Refused, Unavailable, UsageError
from corpusmill.processes import descendants, identify
from tests.training.packed import publish_dataset
from tests.training.toy import CONFIG, Toy
from training import launch
from training.checkpoints import claims, commits
from training.launch import Result, train_ref
from training.run import RunSpec, resuming

STEPS = 40


@dataclass
class Attempt:
    """One launch: its result and the metrics that rank 0 wrote, by step."""

    spec: RunSpec
    result: Result
    steps: dict[int, dict[str, Any]]

    def column(self, name: str) -> list[Any]:
        return [self.steps[step][name] for step in sorted(self.steps)]


def metrics(folder: Path) -> dict[int, dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {line["step"]: line for line in map(json.loads, lines)}


def train(spec: RunSpec, logs: Path, nproc: int = 2, claim: int = 1) -> Attempt:
    result = launch.launch(spec, nproc=nproc, log_dir=logs)
    return Attempt(spec, result, metrics(logs / f"{spec.run_id}.{claim}"))


@contextmanager
def at_step(folder: Path, step: int, act: Callable[[int], None], rank: int = 1) -> Iterator[None]:
    """While the body runs, call `act(pid of the rank)` once it has done `step` steps; fail if that never came."""
    acted, over = threading.Event(), threading.Event()

    def wait() -> None:
        while not over.wait(0.005):
            path = folder / f"heartbeat.{rank}"
            beat = json.loads(path.read_text()) if path.exists() else {"step": 0}
            if beat["step"] >= step:
                act(beat["pid"])
                acted.set()
                return

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert acted.is_set()


@contextmanager
def torchrun_stopped_at(folder: Path, step: int) -> Iterator[None]:
    """SIGTERM to torchrun, as a cluster sends it, once rank 0 has done `step` steps."""

    def parent_of(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])

    with at_step(folder, step, lambda pid: os.kill(parent_of(pid), signal.SIGTERM), rank=0):
        yield


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


LONG = {"long": 96}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """Datasets with a partition `long` besides, and a config whose second stage has its length, over several epochs."""
    folder = tmp_path_factory.mktemp("runs")
    config, uri = folder / "lengths.toml", folder / "store"
    tiny = CONFIG.read_text()
    config.write_text(tiny.replace("rope_base = 20_000", "rope_base = 20_000\nseq_len = 96"))
    assert config.read_text() != tiny
    made = [publish_dataset(uri, folder / name, name, seed, more=LONG) for name, seed in (("toy", 0), ("other", 50))]
    return Toy(str(uri), made[0], made[1], config)


@pytest.fixture(scope="module")
def unbroken(toy: Toy, logs: Path) -> Attempt:
    """Two ranks, DDP, from start to end."""
    return train(toy.spec(), logs)


def test_training_learns_and_says_what_it_did(unbroken: Attempt, toy: Toy) -> None:
    facts = unbroken.result.facts
    assert unbroken.result.outcome == "finished"
    assert (facts["step"], facts["steps"], facts["manifest"]) == (STEPS, STEPS, toy.manifest)
    assert facts["loss_last"] < facts["loss_first"] - 1
    assert facts["heldout_after"] < facts["heldout_before"] * 0.7
    assert facts["loss_first"] == unbroken.column("loss")[0]
    assert len(unbroken.steps) == STEPS
    assert facts["timing"]["bottleneck"] in ("none", "input", "straggler", "communication")
    assert [line["lr"] for line in (unbroken.steps[1], unbroken.steps[30])] == [0.005, 0.01]
    assert unbroken.steps[STEPS]["lr"] == pytest.approx(0.01 * 0.19)


def test_checkpoints_name_data_mixture_and_model(unbroken: Attempt, toy: Toy) -> None:
    store = toy.open()
    commit = commits.latest(store, unbroken.spec.run_id)
    assert commit
    assert commit.name == unbroken.result.facts["checkpoint"] == f"checkpoints/{unbroken.spec.run_id}/00000040"
    assert commit.facts["manifest_sha256"] == toy.manifest
    assert commit.facts["plan_sha256"] == unbroken.spec.plan.digest
    assert (commit.facts["next_sample"], commit.facts["global_batch"]) == (STEPS * 8, 8)
    assert (commit.facts["world_size"], commit.facts["mode"], commit.facts["reason"]) == (2, "ddp", "final")
    assert {file["file"] for file in commit.facts["files"]} == {".metadata", "__0_0.distcp", "__1_0.distcp"}
    assert commit.facts["parent"] == f"checkpoints/{unbroken.spec.run_id}/00000030"
    stored = store.list(f"runs/{unbroken.spec.run_id}/")
    assert [name.split("/")[-1] for name in stored if "metrics" in name] == [
        f"metrics.1.{step:08d}.jsonl" for step in (10, 20, 30, 40)
    ]
    assert {"claim.1", "released.1", "result.json", "log.1.txt"} <= {name.split("/")[-1] for name in stored}


def test_sharded_training_sees_the_same_batches_and_losses(unbroken: Attempt, toy: Toy, logs: Path) -> None:
    sharded = train(toy.spec('name="sharded"', 'run.mode="fsdp2"'), logs)
    assert sharded.result.facts["batch_chain"] == unbroken.result.facts["batch_chain"]
    assert sharded.column("batch") == unbroken.column("batch")
    assert sharded.column("loss") == pytest.approx(unbroken.column("loss"), rel=1e-5)
    assert sharded.column("loss")[:3] == unbroken.column("loss")[:3]  # to the bit, until gradient norms round apart
    assert sharded.result.facts["heldout_after"] == pytest.approx(unbroken.result.facts["heldout_after"], rel=1e-5)


def test_killed_run_resumes_with_the_same_batches_and_losses(unbroken: Attempt, toy: Toy, logs: Path) -> None:
    spec = toy.spec('name="killed"')
    folder, before = logs / f"{spec.run_id}.1", descendants([os.getpid()])
    with (
        at_step(folder, 33, lambda pid: os.kill(pid, signal.SIGKILL)),
        pytest.raises(Unavailable, match="killed by SIGKILL"),
    ):
        launch.launch(spec, nproc=2, log_dir=logs)
    broken = metrics(folder)
    assert 33 <= max(broken) < STEPS
    assert descendants([os.getpid()]) <= before
    # Left-overs of a save that was cut off: without COMMIT.json there is no checkpoint.
    toy.open().create(f"checkpoints/{spec.run_id}/00000039/{'0' * 64}", b"half")
    kept = commits.latest(toy.open(), spec.run_id)
    assert kept
    assert kept.step == max(broken) // 10 * 10

    resumed = train(spec, logs, claim=2)
    assert min(resumed.steps) == kept.step + 1
    for steps in (broken, resumed.steps):
        for step, line in steps.items():
            for column in ("batch", "loss", "grad_norm", "lr"):
                assert line[column] == unbroken.steps[step][column], (step, column)
    for same in ("batch_chain", "tokens", "loss_first", "loss_last", "heldout_before", "heldout_after"):
        assert resumed.result.facts[same] == unbroken.result.facts[same]


def test_other_numbers_of_ranks_and_modes_go_on_with_the_same_batches_on_s3(
    unbroken: Attempt, toy: Toy, s3_uri: str, logs: Path
) -> None:
    """Two ranks, asked to stop; one with shards, asked to stop in the stage of another length; two to the end."""
    toy = replace(toy, uri=s3_uri, manifest=publish_dataset(s3_uri, logs / "s3", more=LONG), other="")
    assert toy.manifest == unbroken.spec.manifest
    spec = toy.spec('name="elastic"')
    script = (
        "import sys; from pathlib import Path; from corpusmill.store import open_store; "
        "from training.launch import train_ref; "
        "train_ref(open_store(sys.argv[1]), 'toy', sys.argv[2], ['name=\"elastic\"'], log_dir=Path(sys.argv[3]))"
    )
    # As a flow does it: the launching process is cancelled, the ranks save and end with it.
    launcher = subprocess.Popen([sys.executable, "-c", script, toy.uri, str(toy.config), str(logs)])
    ranks: list[Any] = []

    def cancel(pid: int) -> None:
        ranks.extend([*descendants([launcher.pid]), identify(pid)])
        launcher.terminate()

    with at_step(logs / f"{spec.run_id}.1", 7, cancel):
        assert launcher.wait(120) == 128 + signal.SIGTERM
    assert len(ranks) >= 3  # torchrun and two ranks
    assert not [proc for proc in ranks if proc and identify(proc.pid) == proc]
    first = metrics(logs / f"{spec.run_id}.1")
    stopped = commits.latest(toy.open(), spec.run_id)
    assert stopped
    assert (stopped.step, stopped.facts["reason"]) == (max(first), "sigterm")

    assert list((logs / f"{spec.run_id}.cache").rglob("*")), "the next attempt need not fetch the shards again"
    one = ['name="elastic"', 'run.mode="fsdp2"', "run.nproc=1"]
    assert toy.spec(*one).run_id == spec.run_id
    with (
        torchrun_stopped_at(logs / f"{spec.run_id}.2", max(first) + 25),
        pytest.raises(Incomplete, match=rf"was stopped at step \d+ of {STEPS}") as incomplete,
    ):
        train_ref(toy.open(), "toy", toy.config, one, log_dir=logs)
    assert incomplete.value.exit_code == 6
    second = metrics(logs / f"{spec.run_id}.2")
    third = train(spec, logs, claim=3)
    assert not (logs / f"{spec.run_id}.cache").exists()

    seen = first | second | third.steps
    assert len(first) + len(second) + len(third.steps) == len(seen) == STEPS  # no step twice
    assert [seen[step]["batch"] for step in sorted(seen)] == unbroken.column("batch")
    assert [seen[step]["loss"] for step in sorted(seen)] == pytest.approx(unbroken.column("loss"), rel=1e-4)
    assert third.result.facts["batch_chain"] == unbroken.result.facts["batch_chain"]
    assert third.result.facts["loss_first"] == unbroken.result.facts["loss_first"]


def test_finished_run_is_not_trained_again(unbroken: Attempt, toy: Toy, logs: Path) -> None:
    began = time.monotonic()
    again = train_ref(toy.open(), "toy", toy.config, log_dir=logs)
    assert time.monotonic() - began < 5
    assert again["outcome"] == "finished before"
    assert again["loss_last"] == unbroken.result.facts["loss_last"]
    assert again["tags"] == [f"manifest:{toy.manifest[:16]}", f"run:{unbroken.spec.run_id}"]


def test_run_that_somebody_trains_is_left_to_him(toy: Toy, logs: Path) -> None:
    spec = toy.spec('name="claimed"')
    assert claims.claim(toy.open(), spec.run_id) == 1  # this process lives
    assert launch.launch(spec, nproc=2, log_dir=logs) == Result(spec.run_id, "running elsewhere", {})


@pytest.mark.parametrize(
    ("overrides", "dataset", "noun"),
    [
        ([], "other", "manifest"),
        (["mixture.seed=5"], "toy", "mixture"),
        (["model.hidden=96"], "toy", "model"),
    ],
)
def test_resume_refuses_what_the_checkpoint_was_not_made_of(
    unbroken: Attempt, toy: Toy, logs: Path, overrides: list[str], dataset: str, noun: str
) -> None:
    with pytest.raises(Refused) as refused:
        train_ref(toy.open(), dataset, toy.config, overrides, unbroken.spec.run_id, log_dir=logs)
    spec = toy.spec(*overrides, manifest=toy.other if dataset == "other" else None)
    ours = {"manifest": spec.manifest, "mixture": spec.plan.digest, "model": spec.identities["model_sha256"]}[noun]
    commit = commits.find(toy.open(), unbroken.spec.run_id)
    theirs = commit.facts[{"manifest": "manifest", "mixture": "plan", "model": "model"}[noun] + "_sha256"]
    assert refused.value.what == (
        f"checkpoint {commit.name} was trained on {noun} {theirs[:8]}, but this run's is {ours[:8]}."
    )
    assert theirs in refused.value.why
    assert ours in refused.value.why
    assert "without --resume" in refused.value.do


def test_resume_from_another_run_of_the_same_data_is_a_run_of_its_own(unbroken: Attempt, toy: Toy) -> None:
    spec = toy.spec("optim.lr=0.005")
    onward = resuming(spec, f"{unbroken.spec.run_id}/20")
    assert onward.parent == f"checkpoints/{unbroken.spec.run_id}/00000020"
    assert onward.run_id != spec.run_id
    assert resuming(unbroken.spec, f"{unbroken.spec.run_id}/20") == unbroken.spec


def test_ranks_that_cannot_share_the_batch_start_nothing(toy: Toy, logs: Path) -> None:
    spec = toy.spec('name="three"')
    with pytest.raises(UsageError, match="cannot be divided among 3 ranks"):
        launch.launch(spec, nproc=3, log_dir=logs)
    assert not toy.open().list(f"runs/{spec.run_id}/")


def test_rank_that_stands_still_is_a_failure(toy: Toy, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "SHUTDOWN_S", 1)
    spec, before = toy.spec('name="stalled"'), descendants([os.getpid()])
    with (
        at_step(logs / f"{spec.run_id}.1", 2, lambda pid: os.kill(pid, signal.SIGSTOP)),
        pytest.raises(Unavailable, match="makes no progress"),
    ):
        launch.launch(spec, nproc=2, log_dir=logs, stall_s=3)
    assert descendants([os.getpid()]) <= before
