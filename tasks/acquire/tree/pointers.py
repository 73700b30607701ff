"""Pointers: what Git LFS and git-annex leave where a large file was not fetched. They are nobody's text."""

from __future__ import annotations

import re
from pathlib import Path

MOST_BYTES = 1024
"""Git LFS takes nothing longer for a pointer."""

_LFS = re.compile(
    rb"\A(\xef\xbb\xbf)?version https?://(git-lfs\.github\.com/spec|hawser\.github\.com/spec|git-media\.io)/v\d+\r?\n"
    rb"[\s\S]*\boid sha256:[0-9a-f]{64}\b"
)
_ANNEX = re.compile(rb"\A/?(\.\./)*(\.git/)?annex/objects/\S+\s*\Z")


def is_pointer(data: bytes) -> bool:
    """Whether the bytes of a whole file are a pointer to what it should be."""
    return len(data) <= MOST_BYTES and bool(_LFS.match(data) or _ANNEX.match(data))


def leads_elsewhere(path: Path) -> bool:
    """Whether a file is a pointer, whatever it is called.

    Raises:
        OSError: it cannot be read.
    """
    if path.is_dir() or path.stat().st_size > MOST_BYTES:
        return False
    return is_pointer(path.read_bytes())
