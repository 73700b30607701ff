"""Small files are put together into units: the cost of a unit follows bytes, not files.

The files of one source are a group if they are few. More than a unit may have are dealt into two by the first bit of
their locators' hashes, each again by the next bit while it is too much. So a file that is added or changed re-runs its
own group, or the two that this becomes; one that is removed re-runs its group, or the one that it becomes with its
other half. No other group moves (that a half is still too much has a chance of 2**-57). Within a group, and by their
first files, they stand in the order of locators. Large files and archives are units of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasks.acquire.units import SourceUnit, stamp_of_all

ALONE_BYTES = 4 * 2**20
"""A file from here on is worth a unit: what a unit costs by itself is then some percent of what its text costs."""
MOST_BYTES, MOST_FILES = 256 * 2**20, 1024
"""A group that is one of many has half of this and more."""
BITS = 64
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
        parts = _groups([(_hash(file), file) for file in sorted(files, key=lambda unit: unit.locator)])
        found += [_one(group) for group in sorted(parts, key=lambda group: group[0].locator)]
    return found


def _is_small(unit: SourceUnit) -> bool:
    return unit.size is not None and unit.size < ALONE_BYTES and unit.blocks == 1 and unit.kind not in ARCHIVES


def _groups(files: list[tuple[int, SourceUnit]], bit: int = 0) -> Iterator[list[SourceUnit]]:
    """Groups of files, which come with their hashes: all of them, or those of each half by a bit of these."""
    if bit == BITS or (len(files) <= MOST_FILES and sum(file.size or 0 for _, file in files) <= MOST_BYTES):
        yield [file for _, file in files]
        return
    halves: tuple[list[tuple[int, SourceUnit]], ...] = ([], [])
    for pair in files:
        halves[pair[0] >> bit & 1].append(pair)
    for half in halves:
        if half:
            yield from _groups(half, bit + 1)


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
