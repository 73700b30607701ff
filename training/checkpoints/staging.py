"""The state of a model and its optimizer, copied to host memory: training goes on while the copy is written.

Costs one copy of the rank's part: 12 bytes a parameter (weights and two moments in float32), under FSDP2 divided by the
ranks. The buffers are made at the first copy and used again by all others, so that memory is held until the run ends.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.distributed.tensor import DTensor

Path = tuple[str | int, ...]


class Buffers:
    """Host memory for one copy of a state; a copy is valid until the next one is made."""

    def __init__(self) -> None:
        self._made: dict[Path, torch.Tensor] = {}

    @property
    def bytes(self) -> int:
        """Held by all buffers."""
        return sum(buffer.untyped_storage().nbytes() for buffer in self._made.values())

    def copied(self, state: Any) -> Any:
        """The same nested dicts and lists, with every tensor's values of now; shards (DTensor) stay shards."""
        made = self._copied(state, ())
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return made

    def _copied(self, value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            return {key: self._copied(part, (*path, key)) for key, part in value.items()}
        if isinstance(value, list):
            return [self._copied(part, (*path, number)) for number, part in enumerate(value)]
        if isinstance(value, DTensor):
            local = self._filled(value.to_local(), path)
            return DTensor(local, value._spec, requires_grad=False)  # type: ignore[no-untyped-call]
        if isinstance(value, torch.Tensor):
            return self._filled(value, path)
        return copy.deepcopy(value)

    def _filled(self, tensor: torch.Tensor, path: Path) -> torch.Tensor:
        tensor = tensor.detach()
        buffer = self._made.get(path)
        if buffer is None or (buffer.shape, buffer.dtype) != (tensor.shape, tensor.dtype):
            buffer = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
            self._made[path] = buffer
        return buffer.copy_(tensor, non_blocking=True)


def tensors(state: Any) -> list[torch.Tensor]:
    """This rank's part of all tensors of a state, in the order of their names."""
    if isinstance(state, dict):
        return [tensor for name in sorted(state, key=str) for tensor in tensors(state[name])]
    if isinstance(state, list):
        return [tensor for part in state for tensor in tensors(part)]
    if isinstance(state, DTensor):
        return [state.to_local().detach()]
    return [state.detach()] if isinstance(state, torch.Tensor) else []
