"""Work of all ranks that succeeds on all of them or fails on all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch.distributed as dist

from corpusmill.errors import MillError, Unavailable

T = TypeVar("T")


def together(group: dist.ProcessGroup | None, work: Callable[[], T]) -> list[T]:
    """Do this rank's part; what every rank's part returned, in rank order.

    Args:
        group: the ranks that take part; None: all, as the main thread does.

    Raises:
        what `work` raised here, or, where it failed on another rank only, what it raised there.
    """
    result: T | None = None
    fault: Exception | None = None
    try:
        result = work()
    except Exception as err:
        fault = err
    parts: list[tuple[T | None, MillError | None]] = [(None, None)] * dist.get_world_size(group)
    dist.all_gather_object(parts, (result, _told(fault)), group=group)
    if fault is not None:
        raise fault
    for _, other in parts:
        if other is not None:
            raise other
    return [part for part, _ in parts]  # type: ignore[misc]  # where none has failed, all have a result


def _told(fault: Exception | None) -> MillError | None:
    """What the other ranks are told of a fault."""
    if fault is None or isinstance(fault, MillError):
        return fault
    return Unavailable(f"rank {dist.get_rank()} failed", f"{type(fault).__name__}: {fault}")
