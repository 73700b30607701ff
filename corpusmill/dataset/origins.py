"""Where the files of a dataset were and what their listing left out: under `runs/`, since no digest may depend on it.

`runs/origins/<manifest>.<n>.json`; the highest n is that of the newest run which published the dataset from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusmill.errors import CheckFailed
from corpusmill.store import Store
from corpusmill.store.receipts import seal, unseal

FOLDER = "runs/origins/"


def keep(digest: str, said: Mapping[str, Any], store: Store) -> None:
    """Note it, unless the newest note of the dataset says the same."""
    names = _notes(digest, store)
    number = len(names)
    if not names or _read(names[-1], store) != said:
        while not store.create(f"{FOLDER}{digest}.{(number := number + 1)}.json", seal({"origin": said})):
            pass  # another run took the number


def newest(digest: str, store: Store) -> dict[str, Any] | None:
    """The newest note of a dataset; None where there is none."""
    names = _notes(digest, store)
    return _read(names[-1], store) if names else None


def _notes(digest: str, store: Store) -> list[str]:
    """The notes of a dataset, oldest first."""
    return sorted(store.list(f"{FOLDER}{digest}."), key=lambda name: int(name.split(".")[-2]))


def _read(name: str, store: Store) -> dict[str, Any] | None:
    try:
        said: dict[str, Any] = unseal(store.get(name), name)["origin"]
    except CheckFailed:  # a damaged note is none
        return None
    return said


def lines(listings: list[dict[str, Any]]) -> list[str]:
    """What was matched and left out at each source, by suffix, as sentences."""
    found = []
    for listing in listings:
        matched = ", ".join(f"{count:,} {suffix}" for suffix, count in listing["matched"].items()) or "nothing"
        found.append(f"matched     {listing['source']}: {matched}")
        left = [f"{n:,} {suffix} ({why})" for why, by in listing["left_out"].items() for suffix, n in by.items()]
        if left:
            found.append(f"left out    {listing['source']}: {', '.join(left)}")
    return found
