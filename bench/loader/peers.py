"""The loader beside loaders of others, on the same rows: MosaicML Streaming, litdata, Grain, torch's DataLoader.

Each reads its own format with as many files as we have shards, in a venv of its own, and gives every row once,
shuffled, as int64 rows and labels in batches of the same size, in one process. What differs is in our disfavour: labels
that stop at documents, document pieces, and checksums of all that is read are ours alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import interleaved, note
from bench.peer import Peer
from corpusmill.dataset.manifest import Partition
from corpusmill.errors import CheckFailed, MillError
from corpusmill.plain_text import table
from corpusmill.store import Store
from corpusmill.tokens.opened import mapped_rows

PEERS = ("torch", "grain", "litdata", "mosaicml")
FLOORS_AT = 256
"""Shards at which floors.toml has bounds."""
AT_ONCE = 4096

Seconds = dict[str, float | None]


def beside(
    store: Store, partition: Partition, batch: int, scratch: Path, ours: Callable[[], float], repeats: int
) -> Seconds:
    """CPU seconds of an epoch of ours ("loader") and of each peer, the least of the repeats; None where one fails.

    Raises:
        MillError: a peer fails with the number of shards at which it has a floor. CheckFailed: it serves other rows.
    """
    shards, width, raw = len(partition.shards), partition.seq_len + 1, scratch / "rows"
    expected = {"rows": partition.sequences, "first_tokens": _write(store, partition, raw)}
    with Peer("token_loaders", scratch / "peers.log", venv="loaders") as peer:
        arms, failed = {"loader": ours}, {}
        for name in PEERS:
            note(f"{name}: writing {partition.sequences:,} rows into {shards:,} files")
            request = {"loader": name, "folder": str(scratch / f"of-{name}"), "width": width, "batch": batch}
            try:
                peer.ask({**request, "raw": str(raw), "shards": shards})
                _epoch(peer, {**request, "batches": 1}, None)
            except MillError as err:
                if shards == FLOORS_AT:
                    raise
                note(f"{name} fails with {shards:,} files: {err.why.strip().splitlines()[-1]}")
                failed[name] = None
            else:
                arms[name] = partial(_epoch, peer, request, expected)
        found = interleaved(arms, repeats, note)
    for path in (*(scratch / f"of-{name}" for name in PEERS), raw):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    least: Seconds = {**{name: min(seconds) for name, seconds in found.items()}, **failed}
    note(shown({shards: least}, partition.sequences * width))  # not lost by what comes after it
    return least


def ratios(found: Seconds) -> dict[str, float]:
    """How many times more CPU than ours each peer takes."""
    return {name: theirs / (found["loader"] or 1) for name, theirs in found.items() if theirs and name != "loader"}


def shown(others: Mapping[int, Seconds], tokens: int) -> str:
    """Tokens a CPU second of all, by number of shards, and how many times more we read."""
    lines = []
    for shards, found in others.items():
        more = ratios(found)
        for name, seconds in found.items():
            speed = f"{tokens / seconds / 1e6:.0f}" if seconds else "fails"
            lines.append((f"{shards:,}", name, speed, f"{more[name]:.1f}" if name in more else ""))
    return table(("shards", "loader", "M tokens a CPU s", "ours is times faster"), lines, numbers=(2, 3))


def _write(store: Store, partition: Partition, path: Path) -> int:
    """The partition's rows as one file, uint16[rows, seq_len + 1]; the sum of their first tokens."""
    rows, total = mapped_rows(store, partition), 0
    with path.open("wb") as out:
        for begin in range(0, len(rows), AT_ONCE):
            part = rows.rows(np.arange(begin, min(begin + AT_ONCE, len(rows))))
            part.astype("<u2").tofile(out)
            total += int(part[:, 0].sum())
    return total


def _epoch(peer: Peer, request: dict[str, Any], expected: dict[str, int] | None) -> float:
    answer = peer.ask(request)
    if expected is not None and (served := {key: answer[key] for key in expected}) != expected:
        raise CheckFailed(f"{request['loader']} serves other rows", f"expected {expected}, it gave {served}")
    return float(answer["cpu_seconds"])
