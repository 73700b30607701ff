"""What the store asks of a storage: one try at creating, whole reads, stat, list, delete. Folder and S3 provide it.

The rules that need care under faults and races live above it, once, in create.py.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

COPY_BYTES = 1 << 20

# Of our own, so that waiting never moves anybody's seeded global generator.
_jitter = random.Random()


class Exists(Exception):
    """The name is taken: EEXIST, 412."""


class Absent(Exception):
    """Nothing has this name."""


class Transient(Exception):
    """The outcome is unknown or the server asks to come again: time-out, reset, 409, 429, 5xx."""


@dataclass(frozen=True)
class Source:
    """Bytes to be stored: in memory (`data`) or in a local file (`path`), hashed already."""

    digest: str
    size: int
    data: bytes | None = None
    path: Path | None = None

    @classmethod
    def of(cls, data: bytes) -> Source:
        return cls(hashlib.sha256(data).hexdigest(), len(data), data=data)

    @classmethod
    def of_file(cls, path: Path) -> Source:
        with path.open("rb") as file:
            digest, size = hash_stream(file)
        return cls(digest, size, path=path)

    def chunks(self) -> Iterator[bytes]:
        """The bytes, in pieces of at most COPY_BYTES."""
        if self.data is not None:
            for start in range(0, len(self.data), COPY_BYTES):
                yield self.data[start : start + COPY_BYTES]
        elif self.path is not None:
            with self.path.open("rb") as file:
                yield from iter(lambda: file.read(COPY_BYTES), b"")


def hash_stream(stream: BinaryIO) -> tuple[str, int]:
    """(hex sha256, bytes) of the rest of a stream."""
    sha, size = hashlib.sha256(), 0
    while chunk := stream.read(COPY_BYTES):
        sha.update(chunk)
        size += len(chunk)
    return sha.hexdigest(), size


@dataclass(frozen=True)
class Stat:
    """Size, and the sha256 that the storage itself keeps (None where it keeps none)."""

    size: int
    digest: str | None


class Backend(Protocol):
    """A storage. Methods raise Absent, Exists, Transient as documented, else MillErrors (mostly Unavailable)."""

    uri: str
    retry_for_s: float
    """How long to keep trying when the outcome is unknown; a SeaweedFS server needs up to 24 s to come back."""

    def attempt(self, name: str, source: Source) -> None:
        """Create once, without any retry. Raises Exists, or Transient where it may or may not have happened."""

    def read(self, name: str) -> bytes:
        """All bytes, not yet verified. Raises Absent."""

    def stream_to(self, name: str, write: Callable[[bytes], object], restart: Callable[[], object]) -> None:
        """Feed all bytes to `write`; `restart` is called before each fresh beginning. Raises Absent."""

    def stat(self, name: str) -> Stat | None:
        """None where nothing has this name."""

    def list(self, prefix: str) -> list[tuple[str, int]]:
        """(name, size) of everything whose name starts with `prefix`, sorted by name."""

    def delete(self, name: str) -> None:
        """Remove; no fault if it is not there. Only the doctor (its own probes), `Store.remove` and a
        collector may call this."""

    def server_date(self) -> str | None:
        """The server's clock as its Date header says; None where there is no server."""

    def local(self, name: str) -> Path | None:
        """The file itself where the storage is a local folder."""


class Backoff:
    """Waits between tries, with full jitter, until the time is up."""

    def __init__(self, retry_for_s: float) -> None:
        self._deadline, self._tries = time.monotonic() + retry_for_s, 0

    def pause(self) -> bool:
        """Sleep, then True; False (at once) when the time is up."""
        if time.monotonic() >= self._deadline:
            return False
        time.sleep(_jitter.uniform(0, min(5.0, 0.05 * 2**self._tries)))
        self._tries += 1
        return True
