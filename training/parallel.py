"""How ranks share the work: copies of the model (DDP) or shards of it (FSDP2), on gloo and CPUs or NCCL and GPUs.

Both give the same numbers from the same batches. FSDP2 keeps 16 / world_size bytes a parameter between steps where DDP
keeps 16; at 2 ranks and a small model its peak is not lower (gather buffers).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from training.config import TrainConfig
from training.model import GPT, init_weights


@dataclass(frozen=True)
class Ranks:
    """Who we are among the ranks. Control data goes over gloo, gradients over the device's own backend."""

    rank: int
    local_rank: int
    world_size: int
    device: torch.device


def start(threads: int) -> Ranks:
    """Join the ranks that torchrun has started."""
    torch.set_num_threads(threads)
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.use_deterministic_algorithms(True, warn_only=True)
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    return Ranks(dist.get_rank(), local_rank, dist.get_world_size(), device)


def build(config: TrainConfig, vocab_size: int, ranks: Ranks) -> nn.Module:
    """The model with its initial weights, wrapped for the mode; made on the meta device, so never whole on one rank."""
    with torch.device("meta"):
        model = GPT(config.model, vocab_size, config.run.activation_checkpointing)
    if config.run.mode == "fsdp2":
        mesh = init_device_mesh(ranks.device.type, (ranks.world_size,))
        policy = MixedPrecisionPolicy()
        if config.dtype == "bfloat16":
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=ranks.device)
    init_weights(model, config.model.layers, config.seed)
    if config.run.mode == "fsdp2":
        return model
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


def optimizer_of(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices only."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.optim.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.optim.lr, betas=config.optim.betas, eps=config.optim.eps)


def precision(config: TrainConfig, ranks: Ranks) -> contextlib.AbstractContextManager[object]:
    """For the forward pass: DDP casts by autocast; FSDP2 has its own policy and needs nothing."""
    wanted = config.dtype == "bfloat16" and config.run.mode == "ddp"
    return torch.autocast(ranks.device.type, torch.bfloat16) if wanted else contextlib.nullcontext()


@contextlib.contextmanager
def accumulating(model: nn.Module, last: bool) -> Iterator[None]:
    """Around a micro-batch: gradients are exchanged after the last one of a step only."""
    if isinstance(model, DistributedDataParallel):
        with contextlib.nullcontext() if last else model.no_sync():
            yield
    else:
        assert isinstance(model, FSDPModule)
        model.set_requires_gradient_sync(last)
        yield


def on_gradients(model: nn.Module, call: Callable[[], None]) -> bool:
    """Have `call` made whenever a bucket of gradients is ready, before it is sent; False under FSDP2, which cannot."""
    if not isinstance(model, DistributedDataParallel):
        return False

    def hook(group, bucket):  # type: ignore[no-untyped-def]  # DDP refuses annotations that are strings
        call()
        return allreduce_hook(group, bucket)

    model.register_comm_hook(dist.group.WORLD, hook)
    return True


def clip(model: nn.Module, max_norm: float) -> float:
    """Scale the gradients of all ranks down to a norm; the norm before."""
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)


def sums(*values: float) -> list[float]:
    """The sums over all ranks of some numbers (float64, exact for counts below 2**53)."""
    tensor = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(tensor)
    return tensor.tolist()


def gathered(data: bytes) -> list[bytes]:
    """Equally long bytes of every rank, in rank order."""
    mine = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    return [part.numpy().tobytes() for part in parts]
