"""Create-if-absent under lost responses and racing writers.

A conditional write that is repeated blindly reports "exists" for its own success (boto3 and obstore both do). So:
one attempt; whatever is not a plain success is settled by reading back and comparing the bytes, never by believing
the answer.
"""

from __future__ import annotations

import hashlib

from corpusmill.errors import Unavailable
from corpusmill.store.backend import Absent, Backend, Backoff, Exists, Source, Transient

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
    """Hex sha256 of the bytes as they are read now, piece by piece; None where nothing has the name."""
    state = hashlib.sha256()

    def restart() -> None:
        nonlocal state
        state = hashlib.sha256()

    try:
        backend.stream_to(name, lambda chunk: state.update(chunk), restart)
    except Absent:
        return None
    return state.hexdigest()
