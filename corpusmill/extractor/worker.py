"""The process that extracts: pages from its standard input, texts to its standard output; it may be killed.

Started by extractor/sandbox.py as `python -m corpusmill.extractor.worker MODE MAX_DEPTH MEMORY_MB`. It ends when its
input does, and on Linux dies with its parent.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO

from corpusmill.extractor.frames import READY, REQUEST, reply
from corpusmill.extractor.modes import MODES, Extraction, Mode, extract

FAULTS_VARIABLE = "CORPUSMILL_TEST_FAULTS"
"""Set to 1 by tests; then a page with `corpusmill-fault:NAME` (hang, spin, crash, memory) makes the worker do so."""

WARM_UP = f"<html><body><article><p>{'A sentence, so that all is loaded. ' * 30}</p></article></body></html>"


def main() -> int:
    """Serve until the input ends."""
    mode, max_depth, memory_mb = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if mode not in MODES:
        raise SystemExit(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
    _die_with_parent()
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints does not belong into the protocol
    if mode in ("auto", "trafilatura", "union"):
        extract(WARM_UP, "trafilatura")
    extract(WARM_UP, mode)
    _limit_memory(memory_mb)
    _serve(os.fdopen(0, "rb", buffering=2**18), replies, mode, max_depth)
    return 0


def _serve(requests: BinaryIO, replies: BinaryIO, mode: Mode, max_depth: int) -> None:
    with_faults = os.environ.get(FAULTS_VARIABLE) == "1"
    _write(replies, reply(READY, Extraction(None, reason="no_text")))
    while head := requests.read(REQUEST.size):
        number, size = REQUEST.unpack(head)
        page = requests.read(size)
        if with_faults and b"corpusmill-fault:" in page:
            _fail(page)
        _write(replies, reply(number, _extract(page, mode, max_depth)))


def _extract(page: bytes, mode: Mode, max_depth: int) -> Extraction:
    try:
        return extract(page, mode, max_depth)
    except MemoryError:
        os._exit(os.EX_OSERR)  # the heap is full of half-built trees: only a new process is clean
    except Exception:  # whatever a parser raises on a page is that page's fault, and a counted reason
        return Extraction(None, reason="crashed")


def _write(stream: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def _die_with_parent() -> None:
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _limit_memory(memory_mb: int) -> None:
    """Let the address space grow by `memory_mb` MiB from here."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _fail(page: bytes) -> None:
    name = page.partition(b"corpusmill-fault:")[2].partition(b" ")[0].decode("utf-8", "replace")
    if name == "hang":
        time.sleep(3600)
    if name == "spin":
        while True:
            pass
    if name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "memory":
        hoard = []
        while True:
            hoard.append(bytearray(16 * 2**20))


if __name__ == "__main__":
    raise SystemExit(main())
