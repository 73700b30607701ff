"""Create-if-absent under lost responses and racing writers.

A conditional write that is repeated blindly reports "exists" for its own success (boto3 and obstore both do). So:
one attempt; whatever is not a plain success is settled by reading back and comparing the bytes, never by believing
the answer.
"""

from __future__ import annotations

from corpusmill.errors import Unavailable
from corpusmill.store.backend import Absent, Backend, Backoff, Exists, Source, Transient, hash_stream

LOOK_FIRST_BYTES = 8 << 20  # from here on one request more is cheaper than an upload in vain


def create(backend: Backend, name: str, source: Source) -> bool:
    """Create `name` if nothing has it.

    Returns:
        True: the store holds our bytes under this name, acknowledged. False: it holds other bytes.

    Raises:
        Unavailable: the outcome stayed unknown for `backend.retry_for_s` seconds.
    """
    if source.size >= LOOK_FIRST_BYTES and holds(backend, name, source):
        return True
    backoff = Backoff(backend.retry_for_s)
    while True:
        cause: Exception
        try:
            backend.attempt(name, source)
            return True
        except Exists as err:
            cause, again = err, True
        except Transient as err:
            cause, again = err, backoff.pause()
        equal = holds(backend, name, source)
        if equal is not None:
            return equal
        if not again or (isinstance(cause, Exists) and not backoff.pause()):
            raise Unavailable(
                f"{name} could not be written to {backend.uri}.",
                f"Tried for {backend.retry_for_s:.0f} seconds; last: {cause}",
                "Finished work is kept: run the command again when the store is reachable.",
            ) from cause


def holds(backend: Backend, name: str, source: Source) -> bool | None:
    """Whether the store has exactly these bytes under the name; None where it has nothing."""
    stat = backend.stat(name)
    if stat is None:
        return None
    if stat.size != source.size:
        return False
    if stat.digest is not None:
        return stat.digest == source.digest
    return stored_digest(backend, name) == source.digest


def stored_digest(backend: Backend, name: str) -> str | None:
    """Hex sha256 of the bytes as they are read now; None where nothing has the name."""
    if path := backend.local(name):
        try:
            with path.open("rb") as file:
                return hash_stream(file)[0]
        except FileNotFoundError:
            return None
    try:
        return Source.of(backend.read(name)).digest
    except Absent:
        return None
