"""What a source lists: the files below its root, a folder or bucket, that fit the pattern; large ones in blocks."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

from corpusmill.errors import UsageError
from tasks.acquire import notices
from tasks.acquire.fetch import s3, stamps
from tasks.acquire.fetch.transport import folder_of, is_remote
from tasks.acquire.sample import sampled
from tasks.acquire.units import SourceUnit, blocks_of


class FolderConfig(Protocol):
    """The section of a source that reads a folder."""

    @property
    def root(self) -> str: ...
    @property
    def pattern(self) -> str: ...
    @property
    def snapshot(self) -> str: ...
    @property
    def fraction(self) -> float | None: ...
    @property
    def max_files(self) -> int | None: ...


def listed(
    name: str,
    config: FolderConfig,
    seed: int,
    kind: str,
    *,
    cut: re.Pattern[str] | str | None = None,
    folders: bool = False,
) -> list[SourceUnit]:
    """Every file below the root that fits the pattern and is drawn.

    Args:
        name: of the source.
        config: its section.
        seed: of the recipe.
        kind: of the units.
        cut: regular expression of file names that can be cut into blocks.
        folders: whether folders count as files (trees); a bucket has none.

    Raises:
        NotFound: the root is no folder, or no bucket that may be listed.
        UsageError: the root is a URL, or the pattern is no glob.
    """
    marks: dict[str, str | None] = {}
    if s3.is_bucket(config.root):
        sizes = _in_bucket(name, config, marks)
    elif is_remote(config.root):
        raise UsageError(
            f"source {name!r}: {config.root} cannot be listed",
            "this kind reads folders and buckets (s3://)",
            'Use kind "common-crawl", whose files are named in lists.',
        )
    else:
        sizes = _in_folder(name, config, folders)
    units: list[SourceUnit] = []
    for locator in sampled(sizes, seed, config.fraction, config.max_files):
        count = blocks_of(sizes[locator]) if cut and re.search(cut, locator) else 1
        unit = SourceUnit(name, config.snapshot, locator, kind, blocks=count, stamp=marks.get(locator))
        units += [replace(unit, block=block) for block in range(count)]
    return units


def _in_folder(name: str, config: FolderConfig, folders: bool) -> dict[str, int]:
    root = folder_of(config.root)
    try:
        found = [root] if config.pattern == "." else list(root.glob(config.pattern))
    except (ValueError, NotImplementedError) as err:
        raise _bad_pattern(name, config, str(err)) from err
    wanted = [path for path in found if path.is_file() or (folders and path.is_dir())]
    return {path.relative_to(root).as_posix(): path.stat().st_size for path in wanted}


def _in_bucket(name: str, config: FolderConfig, marks: dict[str, str | None]) -> dict[str, int]:
    _check_pattern(name, config)
    found, odd = {}, 0
    for locator, size, etag in s3.listing(config.root):
        if not fits(locator, config.pattern):
            continue
        if locator != str(PurePosixPath(locator)) or ".." in locator.split("/") or "\\" in locator or "\0" in locator:
            odd += 1  # no file of a folder could have this name
        else:
            found[locator] = size
            marks[locator] = stamps.on_server(size, etag)
    if odd:
        notices.say(f"source {name!r}: {odd} objects are skipped, because their names cannot be file names")
    return found


def _bad_pattern(name: str, config: FolderConfig, why: str) -> UsageError:
    return UsageError(f"source {name!r}: pattern {config.pattern!r}", why, "Give a glob, such as **/*.warc.gz.")


def fits(path: str, pattern: str) -> bool:
    """Whether Path.glob would find a file of this name by this pattern, `**/` for any number of folders included."""
    return _fits(tuple(path.split("/")), tuple(pattern.split("/")))


def _fits(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns or not names:
        return not patterns and not names
    if patterns[0] == "**":
        return any(_fits(names[skip:], patterns[1:]) for skip in range(len(names)))
    return fnmatch.fnmatchcase(names[0], patterns[0]) and _fits(names[1:], patterns[1:])


def _check_pattern(name: str, config: FolderConfig) -> None:
    parts = config.pattern.split("/")
    if "" in parts or "." in parts or ".." in parts or parts[-1] == "**":
        raise _bad_pattern(name, config, "expected a glob of names below the root of a bucket")
