"""Notes on the files that were read: sha256 by stamp, so that only what was written to is hashed again.

A note is `runs/sources/<2 hex>/<digest of unit and stamp>.json`: no key, receipt or manifest knows of it, and without
it the bytes are hashed again. It is written only where the stamp vouches for the bytes (fetch/stamps.py). Files that
lists of a crawl name have no stamp when they are planned: there the name vouches, and nothing is requested twice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from corpusmill.canonical import digest_of
from corpusmill.errors import CheckFailed, NotFound
from corpusmill.store.receipts import seal, unseal
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.units import SourceUnit, sha256_of_all

if TYPE_CHECKING:
    from corpusmill.store import Store

FOLDER = "runs/sources/"


@dataclass(frozen=True)
class Bytes:
    """What was read of a unit: the sha256 of each of its files (or of its block), in order, and their stamp then."""

    digests: tuple[str, ...]
    stamp: str | None = None

    @property
    def sha256(self) -> str:
        """Of all of them (units.py)."""
        return sha256_of_all(self.digests)


def known(unit: SourceUnit, store: Store) -> Bytes | None:
    """What is known of the unit's bytes without reading them; None: they have to be hashed."""
    name = _name(unit, unit.stamp)
    try:
        said = unseal(store.get(name), name)["bytes"]
    except (NotFound, CheckFailed):  # a damaged note is none
        return None
    return Bytes(tuple(said["digests"]), said["stamp"])


def keep(unit: SourceUnit, file: Fetched, store: Store) -> bool:
    """Note the bytes that were read, if whoever finds their file in this state again may believe it.

    Returns:
        whether they are noted. A damaged note stays where it is: then the bytes are hashed each time.
    """
    by_name = unit.stamp is None
    if not file.settled or (file.stamp is None and not by_name):
        return False
    noted = Bytes(tuple(part.sha256 for part in file.parts or (file,)), file.stamp)
    data = seal({"unit": unit.identity(), "bytes": asdict(noted)})
    return store.create(_name(unit, None if by_name else file.stamp), data)


def _name(unit: SourceUnit, stamp: str | None) -> str:
    digest = digest_of({"unit": unit.identity(), "ranges": unit.ranges, "stamp": stamp})
    return f"{FOLDER}{digest[:2]}/{digest}.json"
