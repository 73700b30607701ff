"""Copies of a model on several ranks (DDP) must be equal to the bit: compared before each checkpoint.

Costs one sha256 of weights and moments a rank. Shards of FSDP2 have no copies, so there is nothing to compare.
"""

from __future__ import annotations

import hashlib

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from corpusmill.errors import CheckFailed
from training import parallel


def check(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    """Compare the copies of all ranks.

    Raises:
        CheckFailed: on every rank alike, naming those that differ from rank 0.
    """
    if not isinstance(model, DistributedDataParallel):
        return
    parts = parallel.gathered(digest(model, optimizer))
    if other := [rank for rank, part in enumerate(parts) if part != parts[0]]:
        raise CheckFailed(
            f"step {step}: the copies of the model differ on rank {', '.join(map(str, other))}",
            f"sha256 of weights and moments: {parts[other[0]].hex()[:16]} there, {parts[0].hex()[:16]} on rank 0;"
            " no checkpoint was saved",
            "Run again to resume from the latest checkpoint, which was checked. If it comes again, test that machine's"
            " memory and device.",
        )


def digest(model: nn.Module, optimizer: Optimizer) -> bytes:
    """sha256 of all parameters and what the optimizer keeps of each."""
    sha = hashlib.sha256()
    for parameter in model.parameters():
        state = optimizer.state.get(parameter, {})
        for tensor in (parameter, *(state[name] for name in sorted(state) if isinstance(state[name], torch.Tensor))):
            sha.update(tensor.detach().cpu().contiguous().numpy().data)
    return sha.digest()
