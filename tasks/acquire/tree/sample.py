"""Drawing files by the recipe's seed: the locators alone decide, and larger samples hold smaller."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

SPAN = 2.0**64


def sampled(locators: Iterable[str], seed: int, fraction: float | None, max_files: int | None) -> list[str]:
    """The locators drawn, in order, each once.

    Args:
        locators: of one snapshot.
        seed: of the recipe.
        fraction: each is drawn with this probability; None for all.
        max_files: at most this number of those.
    """
    drawn = set(locators)
    if fraction is not None:
        drawn = {name for name in drawn if int.from_bytes(_draw(name, seed)[:8], "big") < fraction * SPAN}
    if max_files is not None:
        drawn = set(sorted(drawn, key=lambda name: _draw(name, seed))[:max_files])
    return sorted(drawn)


def _draw(locator: str, seed: int) -> bytes:
    return hashlib.blake2b(locator.encode("utf-8"), key=f"files|{seed}".encode()).digest()
