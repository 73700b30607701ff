"""Which parts of a crawl's index speak of some hosts: by `cluster.idx`, the index of the index, without reading either.

An index is sorted by key, the URL with its host turned round (`org,example,shop)/path`, without a leading www), and
cut into gzip members of some thousand lines. `cluster.idx` has a line for each: key and time of its first line, file,
offset, length (pywb's ZipNum format). So a binary search by a few small reads finds the members that a host is in.
"""

from __future__ import annotations

import ipaddress
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from corpusmill.readers.numbers import whole_number
from tasks.acquire.fetch import http
from tasks.acquire.fetch.ranged import Ranged
from tasks.acquire.fetch.transport import folder_of, is_remote, url_of

NAME = "cluster.idx"
MAX_LINE = 2**16
STEP = 2**14
SEARCHED = 64
"""Domains that are searched for; for more of them the file of some 150 MB is read once."""
Ranges = tuple[tuple[int, int], ...]

_WWW = re.compile(r"www\d*\.")


class BadCluster(Exception):
    """A line is not what it should be."""


class Reader(Protocol):
    """What is searched: `seek` from the beginning, and `read`."""

    def seek(self, offset: int, /) -> int: ...
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file: where it begins and the next one does, and what it says of a member."""

    begin: int
    end: int
    key: bytes
    file: str
    first: int
    last: int


def key_ranges(domain: str) -> list[tuple[bytes, bytes]]:
    """[first, last) of the keys that a host and all below it can have."""
    host = domain.lower().strip(".")
    bare = _WWW.sub("", host, count=1) if _WWW.match(host) else host
    # Behind a host comes "," for those below it, or ")" at its end, or ":" before a port; "-" and letters sort behind.
    found = [(f"{name})", f"{name}-") for name in _turned(host)] + [(f"{name}:", f"{name};") for name in _turned(host)]
    if bare != host:  # the key of the host itself, but not of others below what is left of it
        found += [(f"{name})", f"{name}*") for name in _turned(bare)]
        found += [(f"{name}:", f"{name};") for name in _turned(bare)]
    return [(first.encode(), last.encode()) for first, last in found]


def _turned(host: str) -> list[str]:
    """A host as keys have it; numeric addresses stand in either order."""
    turned = ",".join(reversed(host.split(".")))
    return [turned, host.replace(".", ",")] if _is_ip(host) else [turned]


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def members_of(file: Reader, size: int, domains: Iterable[str]) -> dict[str, Ranges]:
    """file of the index -> ranges of its bytes in which lines about the domains may stand; never none at all.

    Args:
        file: the opened `cluster.idx`.
        size: its length.
        domains: hosts, with all below them.

    Raises:
        BadCluster: a line that was read is damaged.
    """
    found: set[tuple[str, int, int]] = set()
    for first, last in sorted({keys for domain in domains for keys in key_ranges(domain)}):
        at = _lower_bound(file, size, first)
        begin = _line_before(file, at)  # its member may hold the first such lines
        for number, line in enumerate(_lines(file, size, begin)):
            if number and line.key >= last:
                break
            found.add((line.file, line.first, line.last))
    ranges: dict[str, list[tuple[int, int]]] = {}
    for name, begin, end in sorted(found):
        known = ranges.setdefault(name, [])
        if known and known[-1][1] == begin:
            known[-1] = (known[-1][0], end)
        else:
            known.append((begin, end))
    return {name: tuple(known) for name, known in ranges.items()}


def _lower_bound(file: Reader, size: int, key: bytes) -> int:
    """Where the first line of that key or a later one begins."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        line = next(_lines(file, size, _line_from(file, size, middle)), None)
        if line is None or line.key >= key:
            high = middle
        else:
            low = line.end
    return low


def _lines(file: Reader, size: int, begin: int) -> Iterator[Line]:
    """Lines from one that begins here on."""
    while begin < size:
        text = _to_newline(file, begin)
        yield _parsed(text, begin)
        begin += len(text) + 1


def _line_from(file: Reader, size: int, position: int) -> int:
    """Where the first line at or behind a position begins."""
    return 0 if position == 0 else min(size, position + len(_to_newline(file, position - 1)))


def _line_before(file: Reader, position: int) -> int:
    """Where the line before the one that begins here begins; the first has none but itself."""
    begin = max(0, position - MAX_LINE)
    file.seek(begin)
    found = file.read(position - begin)[:-1].rfind(b"\n")
    return begin + found + 1 if found >= 0 else 0


def _to_newline(file: Reader, begin: int) -> bytes:
    text = b""
    while len(text) < MAX_LINE:
        file.seek(begin + len(text))
        data = file.read(STEP)
        found = data.find(b"\n")
        if found >= 0 or not data:
            return text + data[: max(found, 0)]
        text += data
    raise BadCluster(f"no line ends within {MAX_LINE} bytes of {begin}")


def _parsed(text: bytes, begin: int) -> Line:
    key, *rest = text.split(b"\t")
    try:
        name, *numbers = (value.decode("ascii") for value in rest[:3])
        offset, length = map(whole_number, numbers)
    except ValueError as err:
        raise BadCluster(f"the line at {begin} is no key, file, offset and length") from err
    if offset is None or not length or "/" in name:
        raise BadCluster(f"the line at {begin} names no part of a file beside it")
    return Line(begin, begin + len(text) + 1, key, name, offset, offset + length)


@contextmanager
def opened(root: str, locator: str, domains: int) -> Iterator[tuple[Reader, int]]:
    """A `cluster.idx` to be searched for a number of domains, and its size.

    Raises:
        NotFound: there is none. Unavailable: the server does not answer.
    """
    with tempfile.TemporaryFile() as copy:
        if not is_remote(root):
            with (folder_of(root) / locator).open("rb") as file:
                yield file, file.seek(0, 2)
            return
        url = url_of(root, locator)
        size = http.length(url)
        if domains > SEARCHED or size is None:
            size = http.download(url, copy).size
            yield copy, size
            return
        try:
            searched: Reader | BinaryIO = Ranged(url)
            searched.seek(0)
            searched.read(1)
        except http.NoRanges:
            size, searched = http.download(url, copy).size, copy
        yield searched, size
