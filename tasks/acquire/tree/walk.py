"""Walking a folder: what lies below it, links followed, the same on every version of Python.

`Path.glob` follows links to folders in some versions and not in others, and is silent about links to nothing and
folders that may not be listed. Here both are errors.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpusmill.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder.

    Attributes:
        path: below the root, "/"-separated.
        size: in bytes; of folders None.
        loop: whether it is a link to a folder that it lies in: then it is not entered.
        special: whether it is neither (a pipe, a device).
    """

    path: str
    size: int | None
    loop: bool = False
    special: bool = False

    @property
    def name(self) -> str:
        """Its last part."""
        return self.path.rpartition("/")[2]


def walk(root: Path, enter: Callable[[Entry], bool], wanted: Callable[[str, str], bool]) -> Iterator[Entry]:
    """Everything below a folder, files and folders, in the order of names.

    Args:
        root: the folder.
        enter: whether a folder is walked too.
        wanted: whether a link of this path and name matters, if it leads to nothing.

    Raises:
        Unavailable: a wanted link leads to nothing, or a folder cannot be listed.
    """
    yield from _walk(root, "", frozenset((_identity(root.stat()),)), enter, wanted)


def _walk(
    folder: Path,
    below: str,
    above: frozenset[tuple[int, int]],
    enter: Callable[[Entry], bool],
    wanted: Callable[[str, str], bool],
) -> Iterator[Entry]:
    try:
        files = sorted(folder.iterdir())
    except OSError as err:
        raise Unavailable(f"folder {below or folder} cannot be listed", f"{folder}: {err.strerror}") from err
    for file in files:
        path = f"{below}{file.name}"
        try:
            status = file.stat()
        except OSError as err:
            if file.is_symlink() and wanted(path, file.name):
                raise _leads_nowhere(file, path, err) from err
            continue  # removed since the folder was listed, or a link that nobody asked for
        if not stat.S_ISDIR(status.st_mode):
            yield Entry(path, status.st_size, special=not stat.S_ISREG(status.st_mode))
            continue
        loop = _identity(status) in above
        entry = Entry(path, None, loop=loop)
        yield entry
        if not loop and enter(entry):
            yield from _walk(file, f"{path}/", above | {_identity(status)}, enter, wanted)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _leads_nowhere(link: Path, path: str, err: OSError) -> Unavailable:
    target = str(link.readlink())
    how = "Restore what it leads to, or remove the link."
    if ".git/annex/" in target:
        how = "Fetch the file (git annex get), or remove the link."
    return Unavailable(f"{path} is a link to nothing", f"{target}: {err.strerror}", how)
