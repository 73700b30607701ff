"""The process that extracts: pages from its standard input, texts to its standard output; it may be killed.

Started by sandbox.py as `python -m corpusmill.extractor.sandbox.worker MODE MAX_DEPTH MEMORY_MB SHARED`, the last a
file descriptor. It ends when its input does, and on Linux dies with its parent.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import sys
import time
from pathlib import Path

from corpusmill.extractor.modes import MODES, Extraction, Mode, extract
from corpusmill.extractor.sandbox.frames import AT_WORK, LOT_BYTES, READY, RequestBuffer, reply

FAULTS_VARIABLE = "CORPUSMILL_TEST_FAULTS"
"""Set to 1 by tests; then a page with `corpusmill-fault:NAME` (hang, spin, crash, memory) makes the worker do so."""

WARM_UP = f"<html><body><article><p>{'A sentence, so that all is loaded. ' * 30}</p></article></body></html>"


def main() -> int:
    """Serve until the input ends."""
    mode, max_depth, memory_mb = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if mode not in MODES:
        raise SystemExit(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
    _die_with_parent()
    replies = os.dup(1)
    os.dup2(2, 1)  # what a library prints does not belong into the protocol
    if mode in ("auto", "trafilatura", "union"):
        extract(WARM_UP, "trafilatura")
    extract(WARM_UP, mode)
    at_work = mmap.mmap(int(sys.argv[4]), AT_WORK.size)
    _limit_memory(memory_mb)
    _serve(replies, at_work, mode, max_depth)
    return 0


def _serve(replies: int, at_work: mmap.mmap, mode: Mode, max_depth: int) -> None:
    with_faults = os.environ.get(FAULTS_VARIABLE) == "1"
    requests = RequestBuffer()
    _write(replies, reply(READY, Extraction(None, reason="no_text")))
    while data := os.read(0, LOT_BYTES):
        answers = []
        for number, page in requests.feed(data):
            AT_WORK.pack_into(at_work, 0, number)
            answers.append(reply(number, _extract(page, mode, max_depth, with_faults)))
        _write(replies, b"".join(answers))


def _extract(page: bytes, mode: Mode, max_depth: int, with_faults: bool) -> Extraction:
    try:
        if with_faults and b"corpusmill-fault:" in page:
            _fail(page)
        return extract(page, mode, max_depth)
    except MemoryError:
        os._exit(os.EX_OSERR)  # the heap is full of half-built trees: only a new process is clean
    except Exception:  # whatever a parser raises on a page is that page's fault, and a counted reason
        return Extraction(None, reason="crashed")


def _write(stream: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]


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
