"""What a source lists: the files below its root, a folder or bucket, that it reads; large ones in blocks.

Without a pattern those are all files whose names the kind of source reads. What is left out is reported with the
reason, by suffix (`reported`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Protocol

from corpusmill.errors import UsageError
from tasks.acquire import notices
from tasks.acquire.fetch import s3, stamps
from tasks.acquire.fetch.transport import folder_of, is_remote
from tasks.acquire.tree import names
from tasks.acquire.tree.sample import sampled
from tasks.acquire.tree.walk import Entry, walk
from tasks.acquire.units import SourceUnit, blocks_of

FOLDER = "folder"
"""In a report, where files have a suffix."""


class FolderConfig(Protocol):
    """The section of a source that reads a folder."""

    @property
    def root(self) -> str: ...
    @property
    def pattern(self) -> str | None: ...
    @property
    def snapshot(self) -> str: ...
    @property
    def fraction(self) -> float | None: ...
    @property
    def max_files(self) -> int | None: ...


@dataclass
class Listing:
    """What lies below the root of a source.

    Attributes:
        sizes: locator -> bytes of the files (trees) that are read.
        stamps: of those in a bucket.
        trees: those that are folders, whose size is not known.
        left_out: (why, suffix) -> how many.
    """

    source: str
    sizes: dict[str, int] = field(default_factory=dict)
    stamps: dict[str, str | None] = field(default_factory=dict)
    trees: set[str] = field(default_factory=set)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """How many files were matched and left out, by suffix."""
        out: dict[str, dict[str, int]] = {}
        for (why, suffix), count in sorted(self.left_out.items()):
            out.setdefault(why, {})[suffix] = count
        matched = dict(sorted(Counter(map(names.suffix, self.sizes)).items()))
        return {"source": self.source, "matched": matched, "left_out": out}


_reports: ContextVar[list[Listing] | None] = ContextVar("reports", default=None)


@contextmanager
def reported() -> Iterator[list[Listing]]:
    """Collect the listings that are made within the block."""
    made: list[Listing] = []
    token = _reports.set(made)
    try:
        yield made
    finally:
        _reports.reset(token)


def listed(
    name: str,
    config: FolderConfig,
    seed: int,
    kind: str,
    *,
    reads: re.Pattern[str] | None = None,
    always: bool = False,
    cut: re.Pattern[str] | str | None = None,
    folders: bool = False,
) -> list[SourceUnit]:
    """Every file below the root that is read and drawn.

    Args:
        name: of the source.
        config: its section.
        seed: of the recipe.
        kind: of the units.
        reads: names of files that the kind reads; None for all. With a pattern, the pattern decides.
        always: whether files have such a name with a pattern too.
        cut: regular expression of file names that can be cut into blocks.
        folders: whether folders count as files (trees); a bucket has none.

    Raises:
        NotFound: the root is no folder, or no bucket that may be listed.
        Unavailable: a link leads to nothing, or a folder cannot be listed.
        UsageError: the root is a URL, or the pattern is no glob.
    """
    wants = _Wants(None if config.pattern is None else _checked(name, config.pattern), reads, always, folders)
    if s3.is_bucket(config.root):
        found = _in_bucket(name, config, wants)
    elif is_remote(config.root):
        raise UsageError(
            f"source {name!r}: {config.root} cannot be listed",
            "this kind reads folders and buckets (s3://)",
            'Use kind "common-crawl", whose files are named in lists.',
        )
    else:
        found = _in_folder(name, config, wants)
    if (reports := _reports.get()) is not None:
        reports.append(found)
    units: list[SourceUnit] = []
    for locator in sampled(found.sizes, seed, config.fraction, config.max_files):
        count = blocks_of(found.sizes[locator]) if cut and re.search(cut, locator) else 1
        size, stamp = None if locator in found.trees else found.sizes[locator], found.stamps.get(locator)
        unit = SourceUnit(name, config.snapshot, locator, kind, blocks=count, stamp=stamp, size=size)
        units += [replace(unit, block=block) for block in range(count)]
    return units


@dataclass(frozen=True)
class _Wants:
    """What a source reads, by name."""

    pattern: str | None
    reads: re.Pattern[str] | None
    always: bool
    folders: bool

    def refuses(self, path: str) -> str | None:
        """Why a file is left out, by its name; None if it is read."""
        name = path.rpartition("/")[2]
        if why := names.not_data(name, self.pattern):
            return why
        if self.pattern is not None and not names.fits(path, self.pattern):
            return "other"
        named = self.pattern is None or self.always
        return "other" if named and self.reads and not self.reads.search(name) else None

    def is_tree(self, path: str) -> bool:
        """Whether a folder is read as one file."""
        return self.folders and names.fits(path, self.pattern or "**/*")

    def may_hold(self, folder: str) -> bool:
        """Whether anything below a folder may fit the pattern."""
        return names.may_hold(folder, self.pattern or "**/*")

    def may_be(self, path: str, name: str) -> bool:
        """Whether a link to nothing may have led to a file or folder that is read."""
        if names.not_data(name, self.pattern):
            return False
        return self.refuses(path) is None or (names.suffix(name) == "(none)" and self.may_hold(path))


def _in_folder(name: str, config: FolderConfig, wants: _Wants) -> Listing:
    root, found = folder_of(config.root), Listing(name)
    if wants.pattern == ".":
        found.sizes["."] = 0
        found.trees.add(".")
        return found

    def enter(entry: Entry) -> bool:
        return (
            names.no_folder_of_data(entry.name, wants.pattern) is None
            and not wants.is_tree(entry.path)
            and wants.may_hold(entry.path)
        )

    for entry in walk(root, enter, wants.may_be):
        if entry.size is None:
            _folder(entry, wants, found)
        elif why := _unreadable(entry) or wants.refuses(entry.path):
            found.left_out[why, names.suffix(entry.name)] += 1
        else:
            found.sizes[entry.path] = entry.size
    return found


def _unreadable(entry: Entry) -> str | None:
    """Why nobody can read a file, whatever it is called."""
    return "special" if entry.special else "odd name" if _is_odd(entry.path) else None


def _is_odd(locator: str) -> bool:
    """Whether a name cannot be that of a file everywhere."""
    whole = locator == str(PurePosixPath(locator)) and ".." not in locator.split("/")
    return not whole or "\\" in locator or "\0" in locator or (not locator.isprintable() and _is_no_text(locator))


def _is_no_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _folder(entry: Entry, wants: _Wants, found: Listing) -> None:
    if why := names.no_folder_of_data(entry.name, wants.pattern):
        found.left_out[why, FOLDER] += 1
    elif entry.loop:
        found.left_out["loop", FOLDER] += 1
    elif wants.is_tree(entry.path):
        found.sizes[entry.path] = 0
        found.trees.add(entry.path)


def _in_bucket(name: str, config: FolderConfig, wants: _Wants) -> Listing:
    found, odd = Listing(name), 0
    for locator, size, etag in s3.listing(config.root):
        if _is_odd(locator):
            odd += wants.pattern is None or names.fits(locator, wants.pattern)  # no file of a folder has this name
            continue
        *above, _ = locator.split("/")
        skipped = next(filter(None, (names.no_folder_of_data(part, wants.pattern) for part in above)), None)
        if why := skipped or wants.refuses(locator):
            found.left_out[why, names.suffix(locator)] += 1
        else:
            found.sizes[locator] = size
            found.stamps[locator] = stamps.on_server(size, etag)
    if odd:
        notices.say(f"source {name!r}: {odd} objects are skipped, because their names cannot be file names")
    return found


def _checked(name: str, pattern: str) -> str:
    """The pattern without empty and `.` parts; `.` is the root itself.

    Raises:
        UsageError: it is no glob of names below the root.
    """
    parts = PurePosixPath(pattern).parts
    if not pattern or pattern.startswith("/") or ".." in parts or (parts and parts[-1] == "**"):
        raise UsageError(
            f"source {name!r}: pattern {pattern!r}",
            "expected a glob of names below the root",
            "Give a glob, such as **/*.warc.gz.",
        )
    return "/".join(parts) or "."
