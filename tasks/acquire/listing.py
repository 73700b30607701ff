"""What a folder source lists: the files below its root that fit the pattern, large ones in blocks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from corpusmill.errors import UsageError
from tasks.acquire.sample import sampled
from tasks.acquire.transport import folder_of, is_http
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
    name: str, config: FolderConfig, seed: int, kind: str, *, cut: str | None = None, folders: bool = False
) -> list[SourceUnit]:
    """Every file below the root that fits the pattern and is drawn.

    Args:
        name: of the source.
        config: its section.
        seed: of the recipe.
        kind: of the units.
        cut: regular expression of file names that can be cut into blocks.
        folders: whether folders count as files (trees).

    Raises:
        NotFound: the root is not a folder.
        UsageError: the root is a web address, or the pattern is no glob.
    """
    if is_http(config.root):
        raise UsageError(
            f"source {name!r}: {config.root} cannot be listed", "this kind reads folders", 'See "common-crawl".'
        )
    root = folder_of(config.root)
    try:
        found = [root] if config.pattern == "." else list(root.glob(config.pattern))
    except (ValueError, NotImplementedError) as err:
        raise UsageError(f"source {name!r}: pattern {config.pattern!r}", str(err)) from err
    paths = {path.relative_to(root).as_posix(): path for path in found if path.is_file() or (folders and path.is_dir())}
    units: list[SourceUnit] = []
    for locator in sampled(paths, seed, config.fraction, config.max_files):
        count = blocks_of(_size(paths[locator])) if cut and re.search(cut, locator) else 1
        units += [SourceUnit(name, config.snapshot, locator, kind, block, count) for block in range(count)]
    return units


def _size(path: Path) -> int:
    return path.stat().st_size
