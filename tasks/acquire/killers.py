"""Files that kill their reader: of a group, such a file costs itself and not the files beside it.

While a group is read, the number of the file at hand stands in a small file of this machine, called after the unit's
key. A reader that was killed leaves it there. Who reads the group next lets processes of their own read on from that
file first; those files that kill them are counted as `crashed`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

FOLDER = f"corpusmill-reading-{os.getuid() if hasattr(os, 'getuid') else 0}"
KEPT_S = 7 * 86400
"""Of groups that nobody read again."""


class Watch:
    """Which file of a group is being read.

    Args:
        key: of the unit.
    """

    def __init__(self, key: str) -> None:
        folder = Path(tempfile.gettempdir()) / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        _forget_old(folder)
        self._path = folder / key
        self.suspect = self._last()
        """Number of the file at which a reader was killed; None: none was."""

    def __enter__(self) -> Watch:
        self._file = self._path.open("ab", buffering=0)
        return self

    def __exit__(self, *error: object) -> None:
        """All were read, or an error was raised: nobody was killed."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def reads(self, number: int) -> None:
        """The file of this number is read from now on."""
        self._file.write(b"%d\n" % number)

    def killers(self, read_from: Callable[[int, Callable[[int], None]], None]) -> set[int]:
        """Numbers of the files that kill whoever reads them.

        Args:
            read_from: reads all files from a number on, and says each before it begins; pickled.
        """
        found: set[int] = set()
        begin = self.suspect
        while begin is not None:
            process = get_context("spawn").Process(target=_read, args=(read_from, begin, self._path))
            process.start()
            process.join()
            killed = process.exitcode is not None and process.exitcode < 0
            begin = None
            if killed and (last := self._last()) is not None:
                found.add(last)
                begin = last + 1
        return found

    def _last(self) -> int | None:
        numbers = self._path.read_bytes().split() if self._path.exists() else []
        return int(numbers[-1]) if numbers else None


def _read(read_from: Callable[[int, Callable[[int], None]], None], begin: int, path: Path) -> None:
    with path.open("ab", buffering=0) as file:

        def say(number: int) -> None:
            file.write(b"%d\n" % number)

        say(begin)
        read_from(begin, say)


def _forget_old(folder: Path) -> None:
    for file in folder.iterdir():
        try:
            if time.time() - file.stat().st_mtime > KEPT_S:
                file.unlink()
        except FileNotFoundError:
            continue  # its unit is done
