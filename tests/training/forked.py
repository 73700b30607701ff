"""Ranks as real processes, forked from one that has torch loaded already: some tenths of a second instead of ten."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import torch

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.training.preloaded", "tests.training.forked"])


def started(world: int, target: Callable[..., None], *args: Any) -> list[BaseProcess]:
    """`target(rank, *args)` in `world` processes that find each other as under torchrun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [_CONTEXT.Process(target=_rank, args=(rank, world, port, target, *args)) for rank in range(world)]
    for process in processes:
        process.start()
    return list(processes)


def joined(processes: list[BaseProcess], timeout_s: float = 60.0) -> list[int | None]:
    """Their exit codes; where one fails the others are killed, as torchrun does it, and count as killed."""
    alive = {process.sentinel: process for process in processes}
    while alive:
        ended = multiprocessing.connection.wait(list(alive), timeout_s)
        assert ended, "a rank stands still"
        codes = [alive.pop(int(sentinel)).exitcode for sentinel in ended]  # type: ignore[call-overload]
        if any(codes):
            for process in alive.values():
                process.kill()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def _rank(rank: int, world: int, port: int, target: Callable[..., None], *args: Any) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    torch.set_num_threads(1)
    target(rank, *args)
