"""Sections read from TOML files and checked; all faults are reported at once."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from corpusmill.config import faults
from corpusmill.config.faults import Fault, Found
from corpusmill.config.places import line_of
from corpusmill.config.section import Section
from corpusmill.errors import NotFound, UsageError
from corpusmill.places import SHIPPED

S = TypeVar("S", bound=Section)


@dataclass(frozen=True)
class Read(Generic[S]):
    """A file that was read as a section: what it says, and what is wrong with it."""

    origin: str
    noun: str
    kind: type[S]
    found: Found[S]
    text: str = ""
    overridden: tuple[tuple[str, ...], ...] = ()

    def lines(self, more: Sequence[Fault] = ()) -> list[str]:
        """Its faults and others, in the order of the file: line, key, what was expected and what came."""
        placed = [(self._line(fault.key), fault) for fault in (*self.found.faults, *more)]
        placed.sort(key=lambda pair: pair[0] or 0)
        lines = []
        for line, fault in placed:
            where = f"line {line}: " if line else "--set " if fault.key and self._is_overridden(fault.key) else ""
            lines.append(f"{where}{fault.place or self.noun}: {fault.says}")
        return lines

    def section(self) -> S:
        """The section.

        Raises:
            UsageError: it has faults; all of them are listed.
        """
        if self.found.faults or self.found.section is None:
            raise self.error()
        return self.found.section

    def error(self, more: Sequence[Fault] = ()) -> UsageError:
        """All faults as one error."""
        lines = self.lines(more)
        return UsageError(
            f"{self.origin}: {len(lines)} fault{'s' if len(lines) > 1 else ''} in the {self.noun}",
            "\n".join(f"  {line}" for line in lines),
            f"All keys: {self.kind.all_keys}",
        )

    def _line(self, key: faults.Key) -> int | None:
        return None if self._is_overridden(key) else line_of(self.text, key)

    def _is_overridden(self, key: faults.Key) -> bool:
        return any(key[: len(path)] == path for path in self.overridden)


def read_file(kind: type[S], path: str | Path, overrides: Sequence[str], noun: str) -> Read[S]:
    """Read a TOML file (or the name of one in `recipes/`) as a section, whatever is wrong with it.

    Args:
        kind: the section type of the whole file.
        path: the file, or its name.
        overrides: `key.path=value`, the value as TOML or a bare string.
        noun: word for the file in messages.

    Raises:
        NotFound: there is no such file. UsageError: it is not TOML, of another kind, or an override has no value.
    """
    file = find_file(path, "recipes", ".toml", noun, kind.mark)
    try:
        text = file.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(
            f"{path}: not a TOML file",
            str(err),
            "Texts stand in quotes, lists in [ ], each section under its [name]; recipes/demo.toml is an example.",
        ) from err
    other = next((word for mark, word in MARKS.items() if mark in data and mark != kind.mark), None)
    if kind.mark and kind.mark not in data and other:
        raise UsageError(f"{path} is a {other}, not a {noun}", f"expected a section [{kind.mark}]")
    for override in overrides:
        _override(data, override)
    keys = tuple(tuple(override.partition("=")[0].strip().split(".")) for override in overrides)
    return Read(str(path), noun, kind, faults.search(kind, data), text, keys)


def read_section(kind: type[S], path: str | Path, overrides: Sequence[str], noun: str) -> S:
    """Read a file as `read_file`; its faults are one error."""
    return read_file(kind, path, overrides, noun).section()


def parse_section(kind: type[S], data: Mapping[str, Any], origin: str, noun: str) -> S:
    """Check a section that is already a mapping; messages contain `origin` and `noun`."""
    return Read(origin, noun, kind, faults.search(kind, data)).section()


MARKS = {"source": "recipe", "mixture": "training config"}
"""The section that tells what a file in `recipes/` is."""


def find_file(path: str | Path, folder: str, suffix: str, noun: str, mark: str = "") -> Path:
    """A file by path, or by its name in a folder: of the working folder first, then of what ships.

    Args:
        mark: a section that files of this noun have, where the folder has files of other nouns as well.
    """
    given = Path(path)
    own, shipped = Path(folder), SHIPPED / folder
    for candidate in (given, own / f"{path}{suffix}", shipped / f"{path}{suffix}", SHIPPED / given):
        if candidate.is_file():
            return candidate
    files = [file for place in (own, shipped) for file in place.glob(f"*{suffix}")]
    known = sorted({file.stem for file in files if not mark or _has(file, mark)})
    near = difflib.get_close_matches(given.name, known, n=1)
    raise NotFound(
        f"{str(path)!r} is a folder, not a {noun}" if given.is_dir() else f"no {noun} {str(path)!r}",
        f"it is neither a file nor one of {', '.join(known)}" + (f'; did you mean "{near[0]}"?' if near else ""),
        f"Give a path, or a name in {folder}/.",
    )


def _has(file: Path, mark: str) -> bool:
    try:
        return mark in tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True  # broken: whose it is cannot be told


def _override(data: dict[str, Any], text: str) -> None:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise UsageError(f"--set {text!r}", "expected key.path=value, for example extract.mode=trafilatura")
    *parents, leaf = key.strip().split(".")
    for parent in parents:
        data = data.setdefault(parent, {})
        if not isinstance(data, dict):
            raise UsageError(f"--set {text!r}", f"{parent} is a value, not a section")
    try:
        data[leaf] = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        data[leaf] = value
