"""Screens by URL alone: hosts and words that the user lists, before a body is decoded.

The idea of three kinds of words (strict, soft, substring) is RefinedWeb's (arXiv:2306.01116, appendix G.1). Words are
found by one Aho-Corasick pass over the URL, whatever the length of the lists; hosts are looked up, host by host
upwards. A set of URL rules is known by the digest of its entries: comments, order and file names do not count.
"""

from __future__ import annotations

import gzip
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import ahocorasick_rs

from corpusmill.canonical import digest_of, sha256
from corpusmill.config import find_file
from corpusmill.errors import NotFound, UsageError

KINDS = ("domains", "words", "soft_words", "substrings")
SOFT_WORDS = 2
"""So many different soft words end a page."""

_PLAIN_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII).fullmatch

Reason = Literal["url_domain", "url_word", "url_soft_words"]


@dataclass(frozen=True)
class UrlRules:
    """Lists of one rule file, in the form they are compared in: lower case, hosts as they go over the wire.

    Attributes:
        name: of the file.
        version: as the file says; for people.
        domains: hosts, each with all below it; "host/path" is everything whose path begins so.
    """

    name: str
    version: int
    domains: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    soft_words: frozenset[str] = frozenset()
    substrings: frozenset[str] = frozenset()
    digest: str = field(init=False)
    _has_paths: bool = field(init=False, repr=False)
    _patterns: tuple[str, ...] = field(init=False, repr=False)
    _automaton: ahocorasick_rs.AhoCorasick = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        patterns = tuple(sorted(self.words | self.soft_words | self.substrings))
        automaton = ahocorasick_rs.AhoCorasick(patterns, store_patterns=False)
        for name, value in (
            ("digest", digest_of({kind: _digest(getattr(self, kind)) for kind in KINDS})),
            ("_has_paths", any("/" in domain for domain in self.domains)),
            ("_patterns", patterns),
            ("_automaton", automaton),
        ):
            object.__setattr__(self, name, value)

    def reason(self, url: str | None) -> Reason | None:
        """Why a page of this URL ends, or None."""
        if not url:
            return None
        host, path = _parts(url)
        if self.domains and self._listed(host, path):
            return "url_domain"
        return self._worded(unquote(f"{host}{path}", errors="replace").lower()) if self._patterns else None

    def _listed(self, host: str, path: str) -> bool:
        labels = host.split(".")
        for i in range(len(labels)):
            here = ".".join(labels[i:])
            if here in self.domains or (self._has_paths and any(here + p in self.domains for p in _beginnings(path))):
                return True
        return False

    def _worded(self, text: str) -> Reason | None:
        soft: set[str] = set()
        for number, begin, end in self._automaton.find_matches_as_indexes(text, overlapping=True):
            pattern = self._patterns[number]
            if pattern in self.substrings:
                return "url_word"
            if not text[begin - 1 : begin].isalnum() and not text[end : end + 1].isalnum():
                if pattern in self.words:
                    return "url_word"
                soft.add(pattern)
        return "url_soft_words" if len(soft) >= SOFT_WORDS else None


def load_url_rules(name: str) -> UrlRules:
    """URL rules by path, or by the name of a file in rules/urls/; read once in a process.

    Raises:
        NotFound: the file, or a list that it names, is not there.
        UsageError: it is not what it should be.
    """
    return _load(find_file(name, "rules/urls", ".toml", "URL rules"))


@lru_cache(maxsize=4)
def _load(file: Path) -> UrlRules:
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"{file}: not a TOML file", str(err)) from err
    faults = [f"unknown key {key!r}" for key in sorted(data.keys() - {"version", *KINDS})]
    if not isinstance(data.get("version"), int):
        faults.append("version is not a whole number")
    for kind in KINDS:
        named = data.get(kind, [])
        if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
            faults.append(f"{kind} is not a list of file names")
    if faults:
        raise UsageError(f"{file}: faults in the URL rules", "\n".join(faults), f"Keys: version, {', '.join(KINDS)}.")
    lists = {kind: frozenset(_entries(file, data.get(kind, []), kind)) for kind in KINDS}
    return UrlRules(file.stem, data["version"], **lists)


def _entries(file: Path, named: Iterable[str], kind: str) -> Iterator[str]:
    for name in named:
        path = file.parent / name
        try:
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        except FileNotFoundError as err:
            raise NotFound(f"no list {path}", f"{file.name} names it in {kind}") from err
        except (OSError, EOFError, UnicodeDecodeError) as err:
            raise UsageError(
                f"{path}: not a list",
                str(err),
                "Expected one entry per line in UTF-8; lists that end in .gz are compressed.",
            ) from err
        for line in text.split("\n"):
            entry = line.partition("#")[0].strip().lower()
            if kind == "domains":
                entry = _domain(entry)
            if entry:
                yield entry


def _digest(entries: Iterable[str]) -> str:
    """Of entries, which hold no line ends; lists of millions are known, so not of their JSON."""
    return sha256("\n".join(sorted(entries)).encode("utf-8"))


def _domain(entry: str) -> str:
    if _PLAIN_HOST(entry):
        return entry
    host, path = _parts(entry.removeprefix("*.").removeprefix("."))
    return host + path.rstrip("/")


def _parts(url: str) -> tuple[str, str]:
    """Host (lower case, ASCII, without user and port) and path with query of a URL, with or without scheme."""
    _, separator, rest = url.partition("://")
    rest = (rest if separator else url).removeprefix("//")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority, path = rest[:end].rpartition("@")[2], rest[end:].partition("#")[0]
    host = authority if authority.endswith("]") else authority.partition(":")[0]
    return _ascii(host.lower().rstrip(".")), path


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _beginnings(path: str) -> Iterator[str]:
    """/a/b?c -> /a, /a/b"""
    path = path.partition("?")[0].lower().rstrip("/")
    at = path.find("/", 1)
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    if path:
        yield path
