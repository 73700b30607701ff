"""The unit of acquisition: one file of a source, or one block of a large one."""

from __future__ import annotations

from dataclasses import dataclass, field

BLOCK_BYTES = 256 * 2**20
"""Large files are cut into blocks of this many bytes; a record belongs to the block in which it begins. A constant:
moving it moves which shard a document is in."""


@dataclass(frozen=True)
class SourceUnit:
    """One file, or one block of it. `locator` is its path below the source's root, "/"-separated.

    Attributes:
        kind: what the file is, for its source: warc, wet, cdx, jsonl, parquet, ...
        block: which block; files that cannot be cut have one.
        blocks: how many the file has.
        ranges: of the file only these (first byte, byte behind the last), as the recipe's selection led to them; none
            means all. What selects is part of the identity, so they are not.
        stamp: of the file when it was listed (fetch/stamps.py); no part of the identity.
    """

    source: str
    snapshot: str
    locator: str
    kind: str = "warc"
    block: int = 0
    blocks: int = 1
    ranges: tuple[tuple[int, int], ...] = ()
    stamp: str | None = field(default=None, compare=False)

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
        return {**named, "block": self.block, "blocks": self.blocks} if self.blocks > 1 else named


def blocks_of(size: int) -> int:
    """How many blocks a file of a kind that can be cut has."""
    return max(1, -(-size // BLOCK_BYTES))
