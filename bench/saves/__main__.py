"""How long a save keeps training waiting: in the background, and when all of it is waited for.

A model of 55 million parameters with its moments (660 MB) is saved into a folder store in turn by both ways, by 1 rank
and by 2, as copies (ddp) and as shards (fsdp2). What counts is the time until `Saver.save` returns, wall clock and CPU
of the thread that trains, least of the repeats; the first save in the background, which makes the buffers, is shown
beside it. The files of all saves are compared: both ways store the same bytes.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.common import arguments, judged, note, report, run
from bench.saves.rank import measured
from corpusmill.errors import CheckFailed
from corpusmill.plain_text import human_bytes, table

ARMS = (("1_ddp", 1, "ddp"), ("2_ddp", 2, "ddp"), ("2_fsdp2", 2, "fsdp2"))


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    options = arguments(__doc__ or "").parse_args(argv)
    ratios, lines, document = {}, [], {}
    for name, world, mode in ARMS[:1] if options.quick else ARMS:
        note(f"{world} rank{'s' * (world > 1)}, {mode}")
        with tempfile.TemporaryDirectory(prefix="bench-saves-") as scratch:
            found = _ranks(world, mode, options.repeats or (2 if options.quick else 4), Path(scratch))
        whole, (first, *later) = found["times"]["all"], found["times"]["background"]
        least = [tuple(map(min, zip(*times, strict=True))) for times in (whole, later)]
        ratios |= {f"{name}_{kind}": least[0][k] / least[1][k] for k, kind in enumerate(("wall", "cpu"))}
        shown = [f"{seconds:.2f}" for seconds in (*least[0], *least[1], *first)]
        lines.append((name, *shown, *(f"{least[1][k] / least[0][k]:.0%}" for k in (0, 1)), human_bytes(found["bytes"])))
        document[name] = found
    head = (
        "ranks, mode",
        "all: wall s",
        "CPU s",
        "background",
        "CPU s",
        "first",
        "CPU s",
        "share",
        "CPU",
        "buffers a rank",
    )
    text = f"{found['parameters'] / 1e6:.1f} M parameters\n\n{table(head, lines, numbers=range(1, 10))}"
    return report(document, text, judged("saves", ratios), options.json)


def _ranks(world: int, mode: str, repeats: int, scratch: Path) -> dict[str, Any]:
    """Saves by both ways in turn, on real ranks; what rank 0 measured."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=measured, args=(r, world, port, mode, repeats, scratch)) for r in range(world)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise CheckFailed(f"a rank ended with {[process.exitcode for process in processes]}")
    return dict(json.loads((scratch / "found.json").read_text()))


if __name__ == "__main__":
    run(main)
