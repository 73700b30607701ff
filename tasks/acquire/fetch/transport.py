"""Getting at files below a root: a folder, file://, http(s):// or s3://bucket/prefix.

A locator is a path below the root and cannot leave it. Downloads go to scratch and are removed after use.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast
from urllib.parse import quote, unquote, urlsplit

from corpusmill.errors import NotFound, Unavailable, UsageError
from corpusmill.readers.containers.parts import Part
from corpusmill.store.scratch import temporary_folder
from tasks.acquire.fetch import http, s3, stamps
from tasks.acquire.fetch.ranged import Ranged

CHUNK_BYTES = 2**20


Cut = Callable[[BinaryIO, int], int]
"""Where the first record at or behind a position of a file begins; the file's size if nowhere."""


@dataclass(frozen=True)
class Fetched:
    """A local file or folder with the bytes that were asked for.

    Attributes:
        path: the whole file, or those bytes of it alone.
        sha256: of those bytes.
        size: how many they are.
        begin: where they begin in the source's file.
        start: where they begin in `path`.
        stamp: of the source's file when it was read; None where the server gives none.
        settled: whether every file with this stamp has these bytes (fetch/stamps.py).
        copied: whether `path` is a copy of our own, which nobody else writes to.
        parts: of a group its files, in order; the rest is said of all of them.
    """

    path: Path
    sha256: str
    size: int
    begin: int = 0
    start: int = 0
    stamp: str | None = None
    settled: bool = True
    copied: bool = False
    parts: tuple[Fetched, ...] = ()

    def unchanged(self) -> bool:
        """Whether the file is still as it was when it was hashed."""
        if self.parts:
            return all(part.unchanged() for part in self.parts)
        return self.copied or stamp_of(self.path).text == self.stamp

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Those bytes as a stream of their own."""
        with self.path.open("rb") as file:
            whole = self.start == 0 and file.seek(0, io.SEEK_END) == self.size
            file.seek(0)
            yield file if whole else cast(BinaryIO, Part(file, self.start, self.start + self.size))


@contextmanager
def fetch(
    root: str,
    locator: str,
    begin: int = 0,
    end: int | None = None,
    *,
    cut: Cut | None = None,
    ranges: Sequence[tuple[int, int]] = (),
) -> Iterator[Fetched]:
    """A file below root as a local file; a downloaded one is removed at the end. A folder is one too (a tree).

    Args:
        root: folder, file://, http(s):// or s3:// URL.
        locator: path below it.
        begin: first byte of the part whose digest is wanted.
        end: byte behind it; None for the end of the file.
        cut: moves both to where a record begins; then only that part is downloaded, if the server allows it.
        ranges: instead of a part, these (first byte, byte behind the last), one behind the other.

    Raises:
        Unavailable: it is missing, cannot be read, or the server does not answer.
    """
    with temporary_folder() as scratch:
        path = scratch / "file"
        try:
            if ranges:
                file = _joined(root, locator, ranges, path)
            elif is_remote(root):
                file = _downloaded(url_of(root, locator), begin, end, cut, path)
            else:
                file = _local(folder_of(root) / _safe(locator), begin, end, cut)
        except NotFound as err:  # a list names it, so it should be there
            raise Unavailable(
                f"file {locator} is missing at {root}", err.why, "Restore the file, or remove it from the list."
            ) from err
        except OSError as err:
            raise _disk_fault(err, locator, root, str(scratch)) from err
        yield file


def _local(path: Path, begin: int, end: int | None, cut: Cut | None) -> Fetched:
    now, stamp = time.time_ns(), stamp_of(path)
    if path.is_dir():
        found = _measured_tree(path)
    else:
        found = _measured(path, *_part(path, begin, end, cut))
    return replace(found, stamp=stamp.text, settled=stamp.settled(now))


def _part(path: Path, begin: int, end: int | None, cut: Cut | None) -> tuple[int, int | None]:
    if cut is None:
        return begin, end
    with path.open("rb") as file:
        return cut(file, begin), None if end is None else cut(file, end)


def stamp_of(path: Path) -> stamps.Stamp:
    """The state of a local file or tree (fetch/stamps.py).

    Raises:
        OSError: it is not there.
    """
    return stamps.of_tree(tree_files(path)) if path.is_dir() else stamps.of_status(path.stat())


def _downloaded(url: str, begin: int, end: int | None, cut: Cut | None, path: Path) -> Fetched:
    with path.open("wb") as out:
        if cut is not None:
            try:
                file = cast(BinaryIO, Ranged(url))
                first = cut(file, begin)
                last = None if end is None else cut(file, end)
                stamp = None
                if last is None or last > first:
                    stamp = http.download(url, out, begin=first, end=last).stamp
                out.flush()
                return replace(_measured(path, 0, None), begin=first, stamp=stamp, copied=True)
            except http.NoRanges:
                out.seek(0)
                out.truncate()
        stamp = http.download(url, out).stamp
    return replace(_measured(path, *_part(path, begin, end, cut)), stamp=stamp, copied=True)


def _joined(root: str, locator: str, ranges: Sequence[tuple[int, int]], path: Path) -> Fetched:
    now, stamp = time.time_ns(), None if is_remote(root) else stamp_of(folder_of(root) / _safe(locator))
    with path.open("wb") as out:
        for begin, end in ranges:
            if is_remote(root):
                with tempfile.TemporaryFile(dir=path.parent) as one:
                    http.download(url_of(root, locator), one, begin=begin, end=end)
                    one.seek(0)
                    shutil.copyfileobj(one, out, CHUNK_BYTES)
            else:
                out.write(read_range(root, locator, begin, end - begin))
    found = replace(_measured(path, 0, None), copied=True)
    return replace(found, stamp=stamp.text, settled=stamp.settled(now)) if stamp else found


def _disk_fault(err: OSError, locator: str, root: str, scratch: str) -> Unavailable:
    if is_remote(root):
        what = f"file {locator} cannot be written to {scratch}"
        return Unavailable(what, str(err), "Free some space, or set TMPDIR to a larger disk.")
    why = f"{err.filename or root}: {err.strerror}"
    return Unavailable(f"file {locator} cannot be read", why, "Restore the file, or remove it from the list.")


def read(root: str, locator: str, most: int = http.MOST_BYTES) -> bytes:
    """A small file below root, whole.

    Args:
        most: bytes that are read of it.

    Raises:
        NotFound: there is no such file.
        Unavailable: the server does not answer, or the file is larger.
    """
    if is_remote(root):
        return http.get(url_of(root, locator), most=most)
    try:
        with (folder_of(root) / _safe(locator)).open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise http.too_large(f"{locator} in {root}", most)
        return data
    except FileNotFoundError as err:
        raise NotFound(f"no {locator} in {root}", "", "Check source.*.root and the crawl's id.") from err
    except OSError as err:
        raise Unavailable(f"{locator} in {root} cannot be read", str(err)) from err


def exists(root: str, locator: str) -> bool:
    """Whether there is a file of this name below root.

    Raises:
        Unavailable: the server does not answer.
    """
    if not is_remote(root):
        return (folder_of(root) / _safe(locator)).is_file()
    try:
        http.length(url_of(root, locator))
    except NotFound:
        return False
    return True


def read_range(root: str, locator: str, begin: int, size: int) -> bytes:
    """Some bytes of a file below root; fewer where the file ends.

    Raises:
        Unavailable: it is missing, cannot be read, or the server does not answer.
    """
    try:
        if is_remote(root):
            return http.get_range(url_of(root, locator), begin, size)
        with (folder_of(root) / _safe(locator)).open("rb") as file:
            file.seek(begin)
            return file.read(size)
    except (NotFound, OSError) as err:
        raise Unavailable(
            f"file {locator} cannot be read at {root}", str(err), "Restore the file: the index names it."
        ) from err


def is_remote(root: str) -> bool:
    """Whether a root is on a server: a URL, or a bucket."""
    scheme = urlsplit(root).scheme if "://" in root else ""
    if scheme not in ("", "file", "http", "https", "s3"):
        known = "known are a folder, file://, http://, https:// and s3://"
        raise UsageError(f"source root {root!r}", known, "Check source.*.root.")
    return scheme in ("http", "https", "s3")


DEMO = ".corpusmill/demo"
"""Where `recipes/demo.toml` expects the sample crawl."""


def folder_of(root: str) -> Path:
    """The folder that a root names.

    Raises:
        NotFound: there is none.
    """
    folder = Path(unquote(urlsplit(root).path) if root.startswith("file://") else root)
    if not folder.is_dir():
        where = f"looked for {folder.absolute()}"
        made = "`mill demo` makes it, and so does the tutorial (docs/tutorial.md)." if root == DEMO else ""
        raise NotFound(f"source root {root!r} is not a folder", where, made or "Check source.*.root.")
    return folder


def _safe(locator: str) -> PurePosixPath:
    """A locator that stays below its root.

    Raises:
        UsageError: it does not.
    """
    path = PurePosixPath(locator)
    if path.is_absolute() or ".." in path.parts or "\\" in locator or "\0" in locator:
        raise UsageError(f"locator {locator!r}", "expected a path below the root, without ..")
    return path


def url_of(root: str, locator: str) -> str:
    """The URL of a file below a root on a server."""
    path = _safe(locator)
    return f"{root.rstrip('/')}/{locator if s3.is_bucket(root) else quote(str(path))}"


def _measured(path: Path, begin: int, end: int | None) -> Fetched:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        file.seek(begin)
        while chunk := file.read(CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - begin - size)):
            digest.update(chunk)
            size += len(chunk)
    return Fetched(path, digest.hexdigest(), size, begin, begin)


def _measured_tree(path: Path) -> Fetched:
    digest, size = hashlib.sha256(), 0
    for name, file in tree_files(path):
        found = _measured(file, 0, None)
        digest.update(f"{name}\0{found.sha256}\n".encode("utf-8", "surrogateescape"))
        size += found.size
    return Fetched(path, digest.hexdigest(), size)


def tree_files(folder: Path) -> list[tuple[str, Path]]:
    """(path below the folder, file) of every regular file, in the order of paths; without links and `.git`."""
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (Path(here) / name for name in names if name != ".git"):
            if path.is_file() and not path.is_symlink():
                found.append((path.relative_to(folder).as_posix(), path))
    return sorted(found)
