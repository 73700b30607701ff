"""The training loop of one rank: `torchrun -m training.loop RUN.json`.

One positional path only: torchrun would take any option that resembles one of its own. Success is the result file, not
the exit code: some launches abort at teardown after all work is done, so a rank ends with os._exit once all is on disk.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

import corpusmill
from corpusmill.dataset import overlap
from corpusmill.errors import CheckFailed, MillError
from corpusmill.kernels.gather import IGNORED
from corpusmill.redact import guard_logs, redacted
from corpusmill.store import Store
from corpusmill.store.scratch import process_scratch
from training import ledger, parallel
from training.checkpoints import checkpoint, commits
from training.checkpoints.retention import Retention
from training.checkpoints.saver import Saver
from training.data import NO_BATCHES, Batch, Loader, batch_digest, chained
from training.evaluate import Bits, Heldout, has_heldout, nll
from training.excluded import Excluded
from training.origin import Origin
from training.parallel import Ranks
from training.rates import rate
from training.run import RunSpec
from training.timers import StepTimes, Stopwatch, verdict
from training.use.seen import trained_on

LINE_EVERY_S = 1.0


@dataclass(frozen=True)
class Progress:
    """How far a run is: all of it but weights and moments. It stands in COMMIT.json."""

    step: int = 0
    batch_chain: str = NO_BATCHES
    tokens: int = 0
    loss_first: float | None = None
    loss_last: float | None = None
    heldout_before: float | None = None


@dataclass
class Trainer:
    """One rank at work."""

    spec: RunSpec
    claim: int
    folder: Path
    scratch: Path
    ranks: Ranks
    store: Store
    model: nn.Module
    optimizer: torch.optim.Optimizer
    loader: Loader
    heldout: Heldout | None
    excluded: Excluded | None = None
    progress: Progress = Progress()
    saved: str | None = None
    saved_step: int = 0
    damaged: set[str] = field(default_factory=set)
    stopping: bool = False
    watch: Stopwatch = field(default_factory=Stopwatch)
    times: list[list[StepTimes]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _ledger: ledger.Ledger = field(default_factory=ledger.Ledger)
    _printed: float = 0.0

    @cached_property
    def saver(self) -> Saver:
        """Stores its checkpoints."""
        run = self.spec.config.run
        keep = Retention(run.keep_last, run.keep_every)
        parts = (self.store, self.spec.run_id, self.model, self.optimizer, self.ranks, self.scratch)
        return Saver(*parts, keep, run.async_save, partial(self._say, now=True))

    def run(self) -> dict[str, Any]:
        """Train to the end of the plan, or until somebody asks to stop; the result."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        with self.saver:  # whatever ends the run, a save that has begun is finished
            return self._run()

    def _run(self) -> dict[str, Any]:
        plan, config = self.spec.plan, self.spec.config
        self.watch.hooked = parallel.on_gradients(self.model, self.watch.ready)
        self._restore()
        if self.progress.step == 0:
            before = self._evaluate()
            self.progress = replace(self.progress, heldout_before=before.all if before else None)
        outcome = "finished"
        while self.progress.step < plan.steps:
            if not self._step():
                outcome = "stopped"
                break
            if self.progress.step % config.run.checkpoint_every == 0 and self.progress.step < plan.steps:
                self._save("interval")
        if self.progress.step > self.saved_step:
            self._save("final" if outcome == "finished" else "sigterm")
        after = self._evaluate() if outcome == "finished" else None
        self.saver.wait()
        return {
            "run_id": self.spec.run_id,
            "manifest": self.spec.manifest,
            "plan": plan.digest,
            "outcome": outcome,
            **self.spec.start,
            "steps": plan.steps,
            **asdict(self.progress),
            "heldout_after": after.all if after else None,
            "heldout_clean_after": after.clean if after else None,
            "checkpoint": self.saved,
            "damaged": sorted(self.damaged),
            "world_size": self.ranks.world_size,
            "mode": config.run.mode,
            "timing": verdict(self.times[1:] or self.times),  # the first step warms up
        }

    def _on_sigterm(self, number: int, frame: object) -> None:
        self.stopping = True  # only a flag: the ranks agree on it at the next step

    def _restore(self) -> None:
        """Go on from the newest sound checkpoint of this run, its parent's, its origin; else with new weights."""
        for name in commits.names(self.store, self.spec.run_id):
            try:
                self._load(commits.read(self.store, name))
            except CheckFailed as fault:
                self.damaged.add(name)
                self._say(f"WARNING: {name} is passed over, it cannot be loaded: {fault.what}", now=True)
            else:
                return
        if self.spec.parent is not None:
            self._load(commits.find(self.store, self.spec.parent))
            return
        if self.damaged:
            self._say("WARNING: no checkpoint of this run can be loaded; it starts from the beginning", now=True)
        if self.spec.origin is not None:
            self._begin(self.spec.origin)

    def _begin(self, origin: Origin) -> None:
        """Take the weights of another run's checkpoint (and its moments, if that is wanted) to step 0 of this one."""
        taken = self.optimizer if origin.moments else None
        checkpoint.load(self.store, origin.commit(self.store), self.model, taken, self.ranks, self.scratch)
        self.saved = origin.checkpoint
        self._say(f"starting with the weights{' and moments' if taken else ''} of {origin.checkpoint}", now=True)

    def _load(self, commit: commits.Commit) -> None:
        commits.check(commit, self.spec.identities)
        checkpoint.load(self.store, commit, self.model, self.optimizer, self.ranks, self.scratch)
        self.progress = Progress(**{name: commit.facts[name] for name in asdict(self.progress)})
        self.saved, self.saved_step = commit.name, commit.step
        self._say(f"resuming from {commit.name}", now=True)

    def _step(self) -> bool:
        """One global batch; False if the ranks agree to stop instead."""
        watch, step, world = self.watch, self.progress.step, self.ranks.world_size
        watch.start()
        batch = self.loader.batch(step, self.ranks.rank, world)
        if self.excluded:
            batch = self.excluded.taken_out(batch, step, self.ranks.rank, world)
        watch.input_done()
        counted, stopping, failed = parallel.sums(batch.counted, self.stopping, self.saver.failed)
        if failed:
            self.saver.wait()
        if stopping:
            return False
        stage, _ = self.spec.plan.stage_at(step)
        watch.work()
        loss, rows = self._gradients(batch, stage.rope_base, world / max(counted, 1))
        watch.work_done()
        optim = self.spec.config.optim
        norm = parallel.clip(self.model, optim.max_grad_norm)
        lr = rate(optim, self.spec.plan, step)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        self.optimizer.zero_grad()
        self._account(batch, loss, rows, int(counted), lr, norm)
        return True

    def _gradients(self, batch: Batch, rope_base: int, scale: float) -> tuple[float, bytes]:
        """Gradients of the mean loss over the global batch, accumulated in micro-batches; this rank's summed loss, and
        its rows for the ledger."""
        size, total = self.spec.config.run.micro_batch, 0.0
        rows: list[torch.Tensor] = []
        for start in range(0, len(batch), size):
            part = batch.part(start, start + size)
            with parallel.accumulating(self.model, last=start + size >= len(batch)):
                each = nll(self.model, part, rope_base, self.spec.config, self.ranks, "none")
                loss = each.sum()
                (loss * scale).backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
            rows.append(each.detach().sum(dim=1))
        labels = (batch.labels != IGNORED).sum(axis=1, dtype=np.int32)
        return total, ledger.packed(torch.cat(rows).cpu().numpy(), labels)

    def _account(self, batch: Batch, loss: float, rows: bytes, counted: int, lr: float, norm: float) -> None:
        """Gather the step's figures from all ranks; rank 0 writes them down."""
        mine = self.watch.done()
        parts = parallel.gathered(struct.pack("<d", loss) + mine.pack() + rows + b"".join(batch.digests()))
        times, end = [StepTimes.unpack(p[8:48]) for p in parts], 48 + len(rows)
        rows_of_ranks = [p[48:end] for p in parts]
        self.times = [*self.times[-199:], times]
        mean = sum(struct.unpack("<d", p[:8])[0] for p in parts) / max(counted, 1)  # 0 for a batch without labels
        digest = batch_digest([p[end:] for p in parts])
        old = self.progress
        self.progress = replace(
            old,
            step=old.step + 1,
            batch_chain=chained(old.batch_chain, digest),
            tokens=old.tokens + counted,
            loss_first=mean if old.loss_first is None else old.loss_first,
            loss_last=mean,
        )
        if not (math.isfinite(mean) and math.isfinite(norm)):
            found = ledger.faulty(rows_of_ranks)
            raise CheckFailed(
                f"step {self.progress.step}: loss {mean}, gradient norm {norm}",
                f"no finite loss in {found}" if found else "the loss of each row is finite, their gradients are not",
                f"`mill batch {self.spec.dataset} --config CONFIG --step {self.progress.step}` shows the rows; "
                "where nothing is wrong with them, lower optim.lr or raise optim.warmup_steps.",
            )
        self._beat()
        every = self.spec.config.run.evaluate_every
        bits = self._evaluate() if every and self.progress.step % every == 0 else None
        if self.ranks.rank:
            return
        line: dict[str, object] = {
            "step": self.progress.step,
            "loss": mean,
            "lr": lr,
            "grad_norm": norm,
            "tokens": counted,
            "batch": digest,
        }
        if bits is not None:
            line |= {"heldout": bits.all, "heldout_clean": bits.clean}
        self._lines.append(json.dumps(line | {"ranks": [asdict(t) for t in times]}))
        self._ledger.add(self.progress.step, rows_of_ranks)
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(self._lines[-1] + "\n")
        rate = counted / max(t.total for t in times)
        last = self.progress.step == self.spec.plan.steps
        self._say(
            f"step {self.progress.step}/{self.spec.plan.steps}  loss {mean:.4f}  lr {lr:.2e}  {rate:,.0f} tokens/s",
            now=last or self.progress.step == 1,
        )

    def _save(self, reason: str) -> None:
        stage, _ = self.spec.plan.stage_at(max(0, self.progress.step - 1))
        facts = {
            **asdict(self.progress),
            **self.spec.identities,
            "run_id": self.spec.run_id,
            "dataset": self.spec.dataset,
            "manifests": self.spec.manifests,
            "next_sample": self.progress.step * self.spec.plan.global_batch,
            "global_batch": self.spec.plan.global_batch,
            "seq_len": self.loader.seq_len(max(0, self.progress.step - 1)),
            "config": self.spec.config.name,
            "model": self.spec.config.model.model_dump(mode="json"),
            "rope_base": stage.rope_base,
            "world_size": self.ranks.world_size,
            "mode": self.spec.config.run.mode,
            "parent": self.saved,
            **self.spec.start,
            "tokenizer_sha256": self.spec.facts.vocabulary.output.digest,
            "reason": reason,
            "code_version": corpusmill.__version__,
            "torch_version": str(torch.__version__),
        }
        self._beat()
        extra: dict[str, bytes] = {}  # stored before the commit: what a checkpoint has seen has its metrics
        if self.ranks.rank == 0 and self._lines:
            name = f"runs/{self.spec.run_id}/metrics.{self.claim}.{self.progress.step:08d}.jsonl"
            extra[name] = "".join(f"{line}\n" for line in self._lines).encode()
            self._lines = []
            extra |= self._ledger.take(self.spec.run_id, self.claim)
        self.saved = self.saver.save(facts, extra, self.damaged)
        self.saved_step = self.progress.step
        self._beat()

    def _evaluate(self) -> Bits | None:
        if self.heldout is None:
            return None
        stage, _ = self.spec.plan.stage_at(max(0, self.progress.step - 1))
        bits = self.heldout.bits_per_byte(self.model, stage.rope_base, self.ranks, self._beat)
        self._say(f"held-out {bits} after step {self.progress.step}", now=True)
        return bits

    def _beat(self) -> None:
        """A sign of life for the launcher: this rank's process and step, in its heartbeat file."""
        path = self.folder / f"heartbeat.{self.ranks.rank}"
        fresh = path.with_suffix(f".{self.ranks.rank}.new")
        fresh.write_text(json.dumps({"pid": os.getpid(), "step": self.progress.step}), encoding="utf-8")
        fresh.replace(path)

    def _say(self, text: str, now: bool) -> None:
        if self.ranks.rank == 0 and (now or time.monotonic() - self._printed >= LINE_EVERY_S):
            self._printed = time.monotonic()
            print(f"{text}\n", end="", flush=True)  # in one piece: the thread that saves has news too


def _trainer(spec: RunSpec, claim: int, folder: Path, scratch: Path, ranks: Ranks) -> Trainer:
    store, manifest = spec.open(), spec.facts
    model = parallel.build(spec.config, spec.vocab_size, ranks)
    return Trainer(
        spec,
        claim,
        folder,
        scratch,
        ranks,
        store,
        model,
        parallel.optimizer_of(model, spec.config),
        Loader(store, manifest, spec.plan),
        _heldout(spec, store) if has_heldout(manifest) else None,
        Excluded.read(store, spec.excluded, manifest, spec.plan) if spec.excluded else None,
    )


def _heldout(spec: RunSpec, store: Store) -> Heldout:
    """What is held out; which of it is clean the launcher has found out before."""
    seen = trained_on(store, spec.manifests, spec.beginning)
    known = overlap.found(store, spec.facts, seen)
    return Heldout(store, spec.facts, spec.config, overlap.shared(store, spec.facts, seen) if known else None)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)


def main(path: Path) -> int:
    """Train as the run file says; leaves result.json, or error.<rank>.json beside it. Returns the exit code."""
    guard_logs()
    folder = path.parent
    try:
        spec, claim, scratch = RunSpec.read(path)
        ranks = parallel.start(spec.config.run.threads)
        result = _trainer(spec, claim, folder, scratch, ranks).run()
        if ranks.rank == 0:
            _write(folder / "result.json", result)
        dist.barrier()
    except MillError as err:
        error = {"id": err.id, "what": err.what, "why": err.why, "do": err.do}
        _write(folder / f"error.{os.environ.get('RANK', '0')}.json", error)
        return err.exit_code
    except Exception:
        print(redacted(traceback.format_exc()), end="", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    process_scratch(Path(tempfile.gettempdir())).close()  # nothing that runs at an exit will run
    os._exit(code)
