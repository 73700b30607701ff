"""A folder of WARC or WET files."""

from __future__ import annotations

from corpusmill.config import Files
from corpusmill.errors import UsageError
from tasks.acquire.transport import folder_of, is_http
from tasks.acquire.units import SourceUnit


def plan(name: str, config: Files) -> list[SourceUnit]:
    """Every file below the root that fits the pattern.

    Raises:
        NotFound: the root is not a folder.
        UsageError: the root is a web address, which cannot be listed.
    """
    if is_http(config.root):
        raise UsageError(
            f"source {name!r}: {config.root} cannot be listed", "kind files reads folders", 'See "common-crawl".'
        )
    folder = folder_of(config.root)
    found = [path for path in folder.glob(config.pattern) if path.is_file()]
    return [SourceUnit(name, config.snapshot, path.relative_to(folder).as_posix(), config.files) for path in found]
