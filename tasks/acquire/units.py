"""The unit of acquisition: one file of a source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceUnit:
    """One file. `locator` is its path below the source's root, "/"-separated; `kind` is warc or wet."""

    source: str
    snapshot: str
    locator: str
    kind: str = "warc"

    def identity(self) -> dict[str, object]:
        """What names it in unit keys: no root, scheme or host."""
        return {"source": self.source, "snapshot": self.snapshot, "locator": self.locator, "kind": self.kind}
