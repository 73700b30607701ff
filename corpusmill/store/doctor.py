"""What a storage must be able to do, tried out on it: by `mill doctor store`, and before a store is made in a bucket.

Many servers that speak S3 accept conditional writes and ignore them, or race: a race among writers shows it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from corpusmill.errors import MillError
from corpusmill.store.backend import Absent, Backend, Backoff, Exists, Source, Transient

if TYPE_CHECKING:
    from corpusmill.store.store import Store

WRONG_TRIES = 6  # a busy server's answer is no refusal: at 30 % of them, six in a row are one in 1,400
MAX_SKEW_S = 300  # S3 refuses requests whose clock is 15 minutes off


@dataclass(frozen=True)
class Check:
    """One thing tried: its name, whether it holds, and one sentence with the figures."""

    name: str
    ok: bool
    says: str


def probe(store: Store) -> list[Check]:
    """Try everything that a store relies on, in full size."""
    return probe_backend(store.backend, writers=16, rounds=10, keys=1_001)


def probe_backend(
    backend: Backend, *, writers: int, rounds: int, keys: int, clock: Callable[[], float] = time.time
) -> list[Check]:
    """Try everything under `doctor/<random>/`, and remove what was written.

    Args:
        writers, rounds: size of the create race.
        keys: names to create, list and delete; S3 lists 1,000 a page.
    """
    place = f"doctor/{uuid.uuid4().hex}"
    trials: list[tuple[str, Callable[[], str]]] = [
        ("create_race", lambda: _race(backend, place, writers, rounds)),
        ("wrong_digest_refused", lambda: _wrong_digest(backend, place)),
        ("stored_digest", lambda: _stored_digest(backend, place)),
        ("read_after_write", lambda: _read_after_write(backend, place)),
        ("list_pages", lambda: _list_pages(backend, place, keys, writers)),
        ("gone_after_delete", lambda: _gone_after_delete(backend, place)),
        ("clock", lambda: _clock(backend, clock)),
    ]
    try:
        return [_check(name, trial) for name, trial in trials]
    finally:
        _sweep(backend, place, writers)


class _Fails(Exception):
    """The trial's finding, where it is bad."""


def _check(name: str, trial: Callable[[], str]) -> Check:
    try:
        return Check(name, True, trial())
    except _Fails as err:
        return Check(name, False, str(err))
    except Transient as err:
        return Check(name, False, f"The server did not answer: {err}")
    except MillError as err:
        return Check(name, False, " ".join(str(err).split("\n")[:2]))


def _wins(backend: Backend, name: str, data: bytes) -> bool:
    backoff = Backoff(20.0)
    while True:
        try:
            backend.attempt(name, Source.of(data))
            return True
        except Exists:
            return False
        except Transient:  # among racing writers S3 may answer 409: come again
            if not backoff.pause():
                raise


def _race(backend: Backend, place: str, writers: int, rounds: int) -> str:
    with ThreadPoolExecutor(writers) as pool:
        for turn in range(rounds):
            name = f"{place}/race-{turn}"
            bodies = [f"writer {writer}".encode() for writer in range(writers)]
            won = list(pool.map(lambda body, name=name: _wins(backend, name, body), bodies))
            if sum(won) > 1:  # none is possible after a lost response; create.py reads back for that reason
                raise _Fails(f"Of {writers} writers creating one name, {sum(won)} got the answer that they won.")
            if backend.read(name) not in [body for body, win in zip(bodies, won, strict=True) if win or not any(won)]:
                raise _Fails("The writer that got the answer it won is not the one whose bytes were kept.")
    return f"In {rounds} races of {writers} writers one won each, and its bytes were kept."


def _wrong_digest(backend: Backend, place: str) -> str:
    name = f"{place}/wrong"
    for _ in range(WRONG_TRIES):
        try:
            backend.attempt(name, Source(Source.of(b"other").digest, 5, data=b"bytes"))
        except Transient:
            continue  # refused, or busy
        except MillError:
            break
        raise _Fails("Bytes that do not fit their SHA-256 were stored.")
    if backend.stat(name) is None:
        return "Bytes that do not fit their SHA-256 were refused."
    raise _Fails("Bytes that do not fit their SHA-256 were refused, yet something was stored.")


def _stored_digest(backend: Backend, place: str) -> str:
    name, source = f"{place}/digest", Source.of(b"digest")
    _wins(backend, name, b"digest")
    stat = backend.stat(name)
    if backend.local(name):
        return "A folder keeps no digests; files are hashed when they are first read."
    if stat is None or stat.digest != source.digest:
        raise _Fails("The server does not return the SHA-256 that it was given.")
    return "The server keeps the SHA-256 of what it stores."


def _read_after_write(backend: Backend, place: str) -> str:
    for turn in range(10):
        name, data = f"{place}/written-{turn}", str(turn).encode()
        _wins(backend, name, data)
        if backend.read(name) != data or backend.stat(name) is None or name not in _names(backend, name):
            raise _Fails("What was just written is not yet read or listed.")
    return "What was written is read and listed at once."


def _list_pages(backend: Backend, place: str, keys: int, writers: int) -> str:
    wanted = sorted(f"{place}/page/{number:05d}" for number in range(keys))
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(lambda name: _wins(backend, name, b"."), wanted))
    found = _names(backend, f"{place}/page/")
    if found != wanted:
        raise _Fails(f"Of {keys} names {len(set(found) & set(wanted))} were listed.")
    return f"All of {keys} names were listed, in order."


def _gone_after_delete(backend: Backend, place: str) -> str:
    name = f"{place}/deleted"
    _wins(backend, name, b"deleted")
    try:
        backend.delete(name)
    except MillError:
        return "These credentials may not delete, which writers need not; what the doctor wrote stays under doctor/."
    try:
        backend.read(name)
    except Absent:
        if backend.stat(name) is None and name not in _names(backend, name):
            return "What was deleted is gone at once."
    raise _Fails("What was just deleted is still read or listed.")


def _clock(backend: Backend, clock: Callable[[], float]) -> str:
    date = backend.server_date()
    if date is None:
        return "A folder has the clock of this machine."
    skew = abs(parsedate_to_datetime(date).timestamp() - clock())
    if skew > MAX_SKEW_S:
        raise _Fails(f"Our clock and the server's differ by {skew:.0f} s; beyond 900 s requests are refused.")
    return f"Our clock and the server's differ by {skew:.0f} s."


def _names(backend: Backend, prefix: str) -> list[str]:
    return [name for name, _ in backend.list(prefix)]


def _sweep(backend: Backend, place: str, writers: int) -> None:
    try:
        with ThreadPoolExecutor(writers) as pool:
            list(pool.map(backend.delete, _names(backend, f"{place}/")))
    except MillError:
        pass  # without the right to delete, the probes stay; nothing refers to them
