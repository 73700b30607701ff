"""Copies of a model on several ranks (DDP) must be equal to the bit: compared before each checkpoint.

Costs one sha256 of weights and moments a rank. Shards of FSDP2 have no copies, so there is nothing to compare.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch.distributed as dist

from corpusmill.errors import CheckFailed
from training.checkpoints.agreement import together
from training.checkpoints.staging import tensors


def check(state: Any, step: int, group: dist.ProcessGroup | None = None) -> None:
    """Compare the copies of all ranks.

    Args:
        state: of model and optimizer (`checkpoint.state_of`).

    Raises:
        CheckFailed: on every rank alike, naming those that differ from rank 0.
    """
    parts = together(group, lambda: digest(state))
    if other := [rank for rank, part in enumerate(parts) if part != parts[0]]:
        raise CheckFailed(
            f"step {step}: the copies of the model differ on rank {', '.join(map(str, other))}",
            f"sha256 of weights and moments: {parts[other[0]].hex()[:16]} there, {parts[0].hex()[:16]} on rank 0;"
            " no checkpoint was saved",
            "Run again to resume from the latest checkpoint, which was checked. If it comes again, test that machine's"
            " memory and device.",
        )


def digest(state: Any) -> bytes:
    """sha256 of all tensors of a state: parameters and what the optimizer keeps of each."""
    sha = hashlib.sha256()
    for tensor in tensors(state):
        sha.update(tensor.cpu().contiguous().numpy().data)
    return sha.digest()
