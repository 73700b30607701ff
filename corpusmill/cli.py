"""The command `mill`."""

from __future__ import annotations


def main() -> None:
    """Entry point."""
    raise SystemExit("not built yet")
