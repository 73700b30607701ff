"""Start torchrun, watch it, and end it in every case: used by `mill train` and by the flow.

Rules, each with a test: an argument list, no shell; output to a file; ranks known by descent, since torchrun gives each
a session of its own; SIGTERM, 20 s to save, SIGKILL; a rank that stands still is a failure; what counts is the result
file. A finished run is never trained again, and a run that another process is training is left to it.

Needs no torch.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corpusmill import errors, extras
from corpusmill.dataset import overlap
from corpusmill.dataset.manifest import HELDOUT
from corpusmill.errors import Incomplete, MillError, Unavailable, UsageError
from corpusmill.places import python_environment
from corpusmill.processes import supervise
from corpusmill.redact import redacted
from corpusmill.store import Store
from corpusmill.store.scratch import Scratch
from training.checkpoints import claims, commits
from training.checkpoints.retention import hold
from training.config import load_train_config
from training.datasets import pinned
from training.excluded import kept_list
from training.run import RunSpec, resuming, starting_from
from training.use.seen import trained_on

GRACE_S = 20.0
"""From SIGTERM to SIGKILL: less than the 30 s that a Prefect worker waits for a cancelled flow."""
SHUTDOWN_S = 15
"""What torchrun gives its ranks of it, to save."""
START_S = 300.0
"""A longer limit before the first sign of life: imports, and the digests of all shards."""
STALL_S = 900.0
"""Longest silence of a rank: a step, a save, or a micro-batch of the evaluation."""
LOG_KEPT_BYTES = 2**20


@dataclass(frozen=True)
class Result:
    """How a launch ended.

    Args:
        outcome: `finished` (now), `finished before`, `running elsewhere`, or `stopped` (asked to, and saved).
        facts: what the result file says; empty if the run is elsewhere.
    """

    run_id: str
    outcome: str
    facts: Mapping[str, Any]


def launch(
    run: RunSpec,
    *,
    nproc: int,
    log_dir: Path,
    on_line: Callable[[str], None] | None = None,
    timeout_s: float | None = None,
    stall_s: float = STALL_S,
) -> Result:
    """Train a run on this machine, going on from its latest checkpoint.

    Args:
        nproc: ranks; must divide the global batch.
        log_dir: where a folder for this attempt is made: run file, log, metrics, heartbeats.
        on_line: gets the lines of the log as they come, about one a second.
        timeout_s: stop (and save) after this time.
        stall_s: kill ranks that give no sign of life for this long.

    Raises:
        UsageError: the ranks cannot share the batch. Refused, CheckFailed, …: what a rank says.
        Unavailable: a rank was killed; running again goes on from the latest checkpoint.
        Incomplete: out of time.
    """
    run.plan.rows(0, 0, nproc)
    store = run.open()
    if done := claims.finished(store, run.run_id):
        return Result(run.run_id, "finished before", done)
    run.require_shards(store)
    number = claims.claim(store, run.run_id)
    if number is None:
        return Result(run.run_id, "running elsewhere", {})
    folder, cache = log_dir.absolute() / f"{run.run_id}.{number}", log_dir.absolute() / f"{run.run_id}.cache"
    scratch = Scratch(log_dir.absolute())
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for begin in (run.parent, run.origin.checkpoint if run.origin else None):
            if begin:
                hold(store, begin, run.run_id)
        run.record(store)
        run.write(folder / "run.json", number, scratch.folder)
        say = on_line or (lambda line: None)
        with claims.beating(store, run.run_id, number), _terminable(), _hashed(run, store) as damage:
            _screened(run, store, say)
            result = _supervised(run, nproc, folder, cache, damage, say, timeout_s, stall_s)
        if result["outcome"] == "finished":
            claims.finish(store, run.run_id, result)
            shutil.rmtree(cache, ignore_errors=True)
        return Result(run.run_id, result["outcome"], result)
    finally:
        try:
            _keep_log(store, run.run_id, number, folder / "train.log")
        finally:
            claims.release(store, run.run_id, number, (_result(folder) or {"outcome": "failed"})["outcome"])
            scratch.close()


def _screened(run: RunSpec, store: Store, say: Callable[[str], None]) -> None:
    """See which held-out documents share a 13-gram with what is trained on: once a dataset, for all its runs."""
    held = run.facts.partitions.get(HELDOUT)
    if not held or not held.sequences:
        return
    seen = trained_on(store, run.manifests, run.beginning)
    if overlap.found(store, run.facts, seen) is None:
        say("searching text to train on for what is held out, once for this dataset")
        overlap.shared(store, run.facts, seen)


def _supervised(
    run: RunSpec,
    nproc: int,
    folder: Path,
    cache: Path,
    damage: Sequence[MillError],
    on_line: Callable[[str], None],
    timeout_s: float | None,
    stall_s: float,
) -> dict[str, Any]:
    began = time.time()

    def watch() -> None:
        if damage:
            raise damage[0]
        signs = [path for path in folder.glob("heartbeat.[0-9]*") if path.suffix != ".new"]
        oldest = min((path.stat().st_mtime for path in signs), default=began + START_S)
        if time.time() - oldest > stall_s:
            raise Unavailable(
                f"training of run {run.run_id} makes no progress",
                f"a rank reported nothing for {stall_s:.0f} s; training was stopped",
                f"Run again to resume from the latest checkpoint. Log: {folder / 'train.log'}",
            )
        if timeout_s is not None and time.time() - began > timeout_s:
            raise Incomplete(
                f"training of run {run.run_id} did not end within {timeout_s:.0f} s",
                "it got the signal to save and stop",
                "Run again to resume from the latest checkpoint.",
            )

    code = supervise(
        _torchrun(nproc, folder),
        log=folder / "train.log",
        on_line=on_line,
        env=_environment(cache, run.config.run.threads),
        watch=watch,
        grace_s=GRACE_S,
        poll_s=0.2,
    )
    result = _result(folder)
    if result is None:
        raise _fault(run, folder, code)
    return result


def _result(folder: Path) -> dict[str, Any] | None:
    """The result file that rank 0 wrote, if it came so far."""
    path = folder / "result.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def _torchrun(nproc: int, folder: Path) -> list[str]:
    """The command; rendezvous on the loopback interface, on a free port."""
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nnodes=1",
        f"--nproc-per-node={nproc}",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=127.0.0.1:0",
        "--local-addr=127.0.0.1",
        f"--shutdown-timeout={SHUTDOWN_S}",
        "-m",
        "training.loop",
        str(folder / "run.json"),
    ]


def _environment(cache: Path, threads: int) -> dict[str, str]:
    """Ours, and: this code and no `training` of the working directory; one copy of remote shards for all ranks.

    The copies stay until the run is finished: the next attempt finds them.
    """
    return {
        "CORPUSMILL_CACHE": str(cache),
        **python_environment(),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(threads),
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }


def _fault(run: RunSpec, folder: Path, code: int) -> MillError:
    """Why there is no result: what a rank said, that one was killed, or the end of the log."""
    for path in sorted(folder.glob("error.*.json")):
        said = json.loads(path.read_text(encoding="utf-8"))
        kind = {c.id: c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, MillError)}[said["id"]]
        return kind(said["what"], said["why"], said["do"])
    log = (folder / "train.log").read_text(encoding="utf-8", errors="replace")
    again = f"Run again to resume from the latest checkpoint. Log: {folder / 'train.log'}"
    killed = sorted({int(found) for found in re.findall(r"exitcode\s*:\s*-(\d+)", log)} - {signal.SIGTERM})
    if killed:
        return Unavailable(
            f"training of run {run.run_id} ended without a result",
            f"a rank was killed by {signal.Signals(killed[0]).name} (SIGKILL often means out of memory)",
            again,
        )
    last = [line for line in log.splitlines() if re.match(r"(\[rank\d+\]: )?\w*(Error|Exception)\b", line)]
    return MillError(
        f"training of run {run.run_id} ended without a result, torchrun's exit code {code}",
        last[0] if last else "no error in the log",
        again,
    )


@contextmanager
def _hashed(run: RunSpec, store: Store) -> Iterator[Sequence[MillError]]:
    """While the ranks train, hash every file of tokens that lies in a folder store, once; what is wrong with the first.

    Ranks verify the row groups that they read by crc32; files from servers are hashed when they are fetched.
    """
    over, damage = threading.Event(), list[MillError]()

    def hash_all() -> None:
        for output in (shard.tokens for shard in run.shards):
            if over.is_set() or not store.is_local(output):
                return
            try:
                store.local_path(output)
            except MillError as fault:
                damage.append(fault)
                return

    thread = threading.Thread(target=hash_all, daemon=True)
    thread.start()
    try:
        yield damage
    finally:
        over.set()
        thread.join()


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends this process by an exception, unless somebody (Prefect) has seen to that already."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    if ours:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _keep_log(store: Store, run_id: str, number: int, log: Path) -> None:
    if not log.exists():
        return
    end = log.read_bytes()[-LOG_KEPT_BYTES:]
    store.put(f"runs/{run_id}/log.{number}.txt", redacted(end.decode("utf-8", "replace")).encode())


def train_ref(
    store: Store,
    ref: str,
    config_path: str | Path,
    overrides: Sequence[str] = (),
    resume: str | None = None,
    *,
    origin: str | None = None,
    moments: bool = False,
    log_dir: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    timeout_s: float | None = None,
) -> dict[str, Any]:
    """Train on a published dataset: what `mill train REF --config FILE` and the flow `train` do.

    Args:
        ref: name, name@digest or digest of the dataset.
        config_path: a training config, or the name of one in `recipes/`.
        overrides: `key.path=value`.
        resume: another run's checkpoint to go on from (`RUN` or `RUN/STEP`). A run's own are always found.
        origin: the checkpoint of another run whose weights this one starts with (`RUN` or `RUN/STEP`); dataset and
            mixture may be others.
        moments: take the state of its optimizer too.
        log_dir: default `.corpusmill/runs`.

    Returns:
        plain JSON: run_id, name, manifest, outcome, steps, step, loss_first, loss_last, heldout_before, heldout_after
        (bits per byte), tokens, batch_chain, checkpoint, damaged, timing, manifests, tags; origin, if it has one.

    Raises:
        Incomplete: a signal to torchrun or a rank stopped it; it has saved. And what `launch` raises.
    """
    if origin is None and moments:
        raise UsageError("--moments without --from", "there is no checkpoint whose moments could be taken")
    if origin is not None and resume is not None:
        raise UsageError(
            "--from and --resume exclude each other",
            "--resume goes on with another run's order at its step, --from starts a new order at step 0",
        )
    extras.need("train")
    name, digest = store.resolve(ref)
    config = pinned(store, load_train_config(config_path, overrides), digest)
    spec = RunSpec(store.uri, name, digest, config)
    if config.exclude is not None:
        listed, number, elsewhere = kept_list(store, Path(config.exclude), spec.facts)
        spec = replace(spec, excluded=listed)
        said = f"; {elsewhere:,} of the list are not in the data" if elsewhere else ""
        (on_line or (lambda line: None))(f"{number:,} documents excluded: {listed[:16]}{said}")
    if resume is not None:
        spec = resuming(spec, resume)
    if origin is not None:
        spec = starting_from(spec, origin, moments)
    result = launch(
        spec,
        nproc=config.run.nproc,
        log_dir=log_dir or Path(".corpusmill/runs"),
        on_line=on_line,
        timeout_s=timeout_s,
    )
    if result.outcome == "stopped":
        raise Incomplete(
            f"training of run {result.run_id} was stopped at step {result.facts['step']} of {result.facts['steps']}",
            f"a signal told torchrun or a rank to end; checkpoint {result.facts['checkpoint']} was saved",
            "Run again to resume from it.",
        )
    named = next(iter(commits.names(store, spec.run_id)), None)
    return {
        **result.facts,
        "name": name,
        "manifest": digest,
        "run_id": result.run_id,
        "outcome": result.outcome,
        "checkpoint": result.facts.get("checkpoint") or named,
        **spec.start,
        "manifests": spec.manifests,
        "tags": spec.tags,
    }
