"""Small files are put together into units: the cost of a unit follows bytes, not files.

Files of one source stand in the order of their locators, and a group ends behind each whose locator's hash is 0 modulo
512. So a file that is added, removed or changed re-runs its own group, and the one behind it if it ends a group. What
is still too much for a unit is cut behind the file with the smallest hash, again and again: so a file more moves no
other cut. Large files and archives are units of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasks.acquire.units import SourceUnit, stamp_of_all

ONE_IN = 512
ALONE_BYTES = 4 * 2**20
"""A file from here on is worth a unit: what a unit costs by itself is then some percent of what its text costs."""
MOST_BYTES, MOST_FILES = 256 * 2**20, 10_000
ARCHIVES = ("warc", "wet")


def together(units: Sequence[SourceUnit]) -> list[SourceUnit]:
    """The units with small files put together; the others as they are.

    Args:
        units: one for each file or block, with sizes where they are known.
    """
    small: dict[tuple[str, str, str], list[SourceUnit]] = {}
    found = []
    for unit in units:
        if _is_small(unit):
            small.setdefault((unit.source, unit.snapshot, unit.kind), []).append(unit)
        else:
            found.append(unit)
    for files in small.values():
        for run in _runs(sorted(files, key=lambda unit: unit.locator)):
            found += [_one(group) for group in _groups(run)]
    return found


def _is_small(unit: SourceUnit) -> bool:
    return unit.size is not None and unit.size < ALONE_BYTES and unit.blocks == 1 and unit.kind not in ARCHIVES


def _runs(files: Sequence[SourceUnit]) -> Iterator[list[SourceUnit]]:
    run: list[SourceUnit] = []
    for file in files:
        run.append(file)
        if _hash(file) % ONE_IN == 0:
            yield run
            run = []
    if run:
        yield run


def _groups(files: list[SourceUnit]) -> Iterator[list[SourceUnit]]:
    if len(files) <= MOST_FILES and sum(file.size or 0 for file in files) <= MOST_BYTES:
        yield files
        return
    cut = min(range(len(files) - 1), key=lambda i: _hash(files[i])) + 1
    yield from _groups(files[:cut])
    yield from _groups(files[cut:])


def _one(files: list[SourceUnit]) -> SourceUnit:
    if len(files) == 1:
        return files[0]
    return replace(
        files[0],
        members=tuple(file.locator for file in files),
        size=sum(file.size or 0 for file in files),
        stamp=stamp_of_all([file.stamp for file in files]),
    )


def _hash(file: SourceUnit) -> int:
    digest = hashlib.blake2b(file.locator.encode("utf-8"), digest_size=8, person=b"together1").digest()
    return int.from_bytes(digest, "big")
