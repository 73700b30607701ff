"""How a file is recognised without reading it: by size, times and inode in a folder, by size and ETag on a server.

Bytes may change behind an equal stamp if they are written within one tick of the file system's clock, as git's index
knows too ("racy git"). So a stamp vouches for bytes only if the tick of the last change had ended before they were
read (`Stamp.settled`). The time of the last change is that of the inode, which nobody can set back.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SECOND = 10**9
COARSE_NS = 2 * SECOND
"""Where times are whole seconds: FAT counts every other one."""
FINE_NS = SECOND // 10
"""Where they are not: a kernel's tick is 1 to 10 ms, exFAT counts in 10 ms."""


@dataclass(frozen=True)
class Stamp:
    """The state of a local file or tree.

    Attributes:
        text: equal as long as nothing was written.
        last_ns: when it was last changed.
    """

    text: str
    last_ns: int

    def settled(self, now_ns: int) -> bool:
        """Whether bytes read from `now_ns` on are those of every file with this stamp."""
        tick = FINE_NS if self.last_ns % SECOND else COARSE_NS
        return self.last_ns + tick < now_ns


def of_status(status: os.stat_result) -> Stamp:
    """The stamp of one file."""
    text = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"
    return Stamp(text, max(status.st_mtime_ns, status.st_ctime_ns))


def of_tree(files: Iterable[tuple[str, Path]]) -> Stamp:
    """The stamp of a tree, by (path below it, file) of all its files."""
    stamps = [(name, of_status(file.stat())) for name, file in files]
    lines = (f"{name}\0{stamp.text}\n".encode("utf-8", "surrogateescape") for name, stamp in stamps)
    return Stamp(hashlib.sha256(b"".join(lines)).hexdigest(), max((stamp.last_ns for _, stamp in stamps), default=0))


def on_server(size: int | None, etag: str | None) -> str | None:
    """The stamp of an object on a server; None where the server gives no ETag."""
    return f"{size}-{etag}" if etag else None
