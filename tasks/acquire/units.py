"""The unit of acquisition: one file of a source, one block of a large one, or a group of small ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from corpusmill.canonical import digest_of

BLOCK_BYTES = 256 * 2**20
"""Large files are cut into blocks of this many bytes; a record belongs to the block in which it begins. A constant:
moving it moves which shard a document is in."""


@dataclass(frozen=True)
class SourceUnit:
    """One file, one block of it, or several small files. `locator` is its path below the source's root, "/"-separated.

    Attributes:
        kind: what the file is, for its source: warc, wet, cdx, jsonl, parquet, ...
        block: which block; files that cannot be cut have one.
        blocks: how many the file has.
        ranges: of the file only these (first byte, byte behind the last), as the recipe's selection led to them; none
            means all. What selects is part of the identity, so they are not.
        members: locators of the files of a group, in order; `locator` is the first. Empty where it is one file.
        stamp: of the file when it was listed (fetch/stamps.py); no part of the identity.
        size: bytes of the file (of all files of a group) when it was listed; None where that is not known.
    """

    source: str
    snapshot: str
    locator: str
    kind: str = "warc"
    block: int = 0
    blocks: int = 1
    ranges: tuple[tuple[int, int], ...] = ()
    members: tuple[str, ...] = ()
    stamp: str | None = field(default=None, compare=False)
    size: int | None = field(default=None, compare=False)

    @property
    def places(self) -> tuple[str, ...]:
        """How a manifest names the files (or the block) of the unit."""
        return self.members or (self.place,)

    def files(self) -> tuple[SourceUnit, ...]:
        """A unit for each file of a group; the unit itself where it is one file."""
        one = replace(self, members=(), stamp=None, size=None)
        return tuple(replace(one, locator=locator) for locator in self.members) or (self,)

    @property
    def begin(self) -> int:
        """First byte of the block."""
        return self.block * BLOCK_BYTES

    @property
    def end(self) -> int | None:
        """Byte behind the block; None for the last, which ends with the file."""
        return self.begin + BLOCK_BYTES if self.block + 1 < self.blocks else None

    @property
    def place(self) -> str:
        """The locator, with the number of the block for all but the first: the name of the unit's shard."""
        return f"{self.locator}#{self.block}" if self.block else self.locator

    def identity(self) -> dict[str, object]:
        """What names it in unit keys: no root, scheme or host."""
        named: dict[str, object] = {
            "source": self.source,
            "snapshot": self.snapshot,
            "locator": self.locator,
            "kind": self.kind,
        }
        if self.members:
            return {**named, "files": len(self.members), "members": digest_of(self.members)}
        return {**named, "block": self.block, "blocks": self.blocks} if self.blocks > 1 else named


def sha256_of_all(digests: Sequence[str]) -> str:
    """The digest of the bytes of several files, by theirs; that of a single one as it is."""
    return digests[0] if len(digests) == 1 else digest_of(list(digests))


def stamp_of_all(stamps: Sequence[str | None]) -> str | None:
    """The stamp of several files, by theirs; that of a single one as it is."""
    return stamps[0] if len(stamps) == 1 else digest_of(list(stamps))


def blocks_of(size: int) -> int:
    """How many blocks a file of a kind that can be cut has."""
    return max(1, -(-size // BLOCK_BYTES))
