"""Where the rows of a packed shard lie in its file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowGroup:
    """Where the rows of one row group lie in their file."""

    offset: int
    """Of the first row's first byte."""
    rows: int
    crc32: int
    """zlib.crc32 of the rows' bytes."""

    def to_json(self) -> dict[str, int]:
        """As receipts and manifests hold it."""
        return {"offset": self.offset, "rows": self.rows, "crc32": self.crc32}
