"""Runs of one rank in this process, to the end or to a step at which somebody asks to stop."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import torch

from training.loop import _trainer
from training.parallel import Ranks
from training.run import RunSpec


def attempt(spec: RunSpec, folder: Path, ranks: Ranks, until: int | None = None) -> tuple[Any, dict[int, Any]]:
    """Train in this process until a step, where somebody asks to stop, or to the end: result and metrics by step."""
    folder.mkdir(parents=True)
    trainer = _trainer(spec, 1, folder, folder, ranks)
    step = trainer._step

    def asked() -> bool:
        trainer.stopping = until is not None and trainer.progress.step >= until
        return step()

    trainer._step = asked  # type: ignore[method-assign]
    torch.set_num_threads(1)
    before = signal.getsignal(signal.SIGTERM)
    try:
        result = trainer.run()
    finally:
        signal.signal(signal.SIGTERM, before)
        trainer.loader.close()
    path = folder / "metrics.jsonl"
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else []
    return result, {line["step"]: line for line in lines}
