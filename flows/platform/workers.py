"""One process that serves several work pools: `python -m flows.platform.workers cpu crawl training`.

A worker mostly waits, and every process that imports Prefect costs about a second of CPU and 150 MB. On SIGTERM or
SIGINT the flow runs end first, in order: each gets SIGTERM and time to store finished work and to report, then
the workers stop. (Prefect's own worker kills its runs when it stops, and its command line ignores SIGTERM
once the server has ended.)
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence

from prefect.workers.process import ProcessWorker

from corpusmill.processes import Proc, alive, children, end

FLOW_RUN_GRACE_S = 30.0
"""A training run has 20 s to store a checkpoint and end (corpusmill/processes.py), and some to report."""


async def serve(pools: Sequence[str]) -> None:
    """Run one worker per pool until a signal comes."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    workers = [
        ProcessWorker(name=f"{pool}@{socket.gethostname()}", work_pool_name=pool, create_pool_if_not_found=False)
        for pool in pools
    ]
    running = [asyncio.create_task(worker.start()) for worker in workers]
    asked = asyncio.create_task(stopping.wait())
    done, _ = await asyncio.wait([*running, asked], return_when=asyncio.FIRST_COMPLETED)
    await end_flow_runs()
    for task in running:
        task.cancel()
    results = await asyncio.gather(*running, return_exceptions=True)
    faults = [result for result in results if isinstance(result, Exception)]
    if faults and asked not in done:
        raise faults[0]


async def end_flow_runs() -> None:
    """SIGTERM to every flow run, also to one that starts meanwhile, until all have ended or their time is over."""
    reported: set[Proc] = set()
    for _ in range(round(FLOW_RUN_GRACE_S / 0.2)):
        runs = {run for run in children(os.getpid()) if alive(run)}
        if not runs:
            return
        for run in runs - reported:
            end(run, signal.SIGTERM)
        reported |= runs
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
