"""The process that extracts or parses: pages from its standard input, texts to its standard output; it may be killed.

Started by sandbox.py as `python -m corpusmill.extractor.sandbox.worker MODE MAX_DEPTH MEMORY_MB TIMEOUT_S SHARED`, the
last a file descriptor. It ends when its input does, and on Linux dies with its parent.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from corpusmill.extractor.extraction import MODES, Extraction
from corpusmill.extractor.sandbox.frames import AT_WORK, LOT_BYTES, READY, RequestBuffer, reply

FAULTS_VARIABLE = "CORPUSMILL_TEST_FAULTS"
"""Set to 1 by tests; then a page with `corpusmill-fault:NAME` (hang, spin, crash, memory) makes the worker do so."""

WARM_UP = (
    f"<html><body><article><h1>Lamps</h1><p>{'A sentence, so that all is loaded. ' * 10}</p></article></body></html>"
)
"""A page that `auto` asks nobody else about."""

PATIENT_S = 10.0
"""With less time for a page, `auto` loads trafilatura before the first page, else with the first that asks it."""

TRAFILATURA_MB = 64
"""Address space that it takes when it is loaded later."""


def main() -> int:
    """Serve until the input ends."""
    mode, max_depth, memory_mb = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _die_with_parent()
    replies = os.dup(1)
    os.dup2(2, 1)  # what a library prints does not belong into the protocol
    later = mode == "auto" and float(sys.argv[4]) >= PATIENT_S
    work = _function(mode) if ":" in mode else _extractor(mode, max_depth, later)
    at_work = mmap.mmap(int(sys.argv[5]), AT_WORK.size)
    _limit_memory(memory_mb + TRAFILATURA_MB * later)
    _serve(replies, at_work, work)
    return 0


Work = Callable[[bytes], Extraction]


def _extractor(mode: str, max_depth: int, later: bool) -> Work:
    """Extraction in a mode, with all that it needs loaded; trafilatura takes 0.4 CPU s, so `auto` may load it later."""
    if mode not in MODES:
        raise SystemExit(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
    from corpusmill.extractor.modes import extract

    if mode in ("auto", "trafilatura", "union") and not later:
        extract(WARM_UP, "trafilatura")
    extract(WARM_UP, mode)
    return lambda page: extract(page, mode, max_depth)


def _function(name: str) -> Work:
    """A function `package.module:name` of texts."""
    module, _, function = name.partition(":")
    parse: Callable[[str], Extraction] = getattr(importlib.import_module(module), function)
    return lambda page: parse(page.decode("utf-8"))


def _serve(replies: int, at_work: mmap.mmap, work: Work) -> None:
    with_faults = os.environ.get(FAULTS_VARIABLE) == "1"
    requests = RequestBuffer()
    _write(replies, reply(READY, Extraction(None, reason="no_text")))
    while data := os.read(0, LOT_BYTES):
        answers = []
        for number, page in requests.feed(data):
            AT_WORK.pack_into(at_work, 0, number)
            answers.append(reply(number, _result(page, work, with_faults)))
        _write(replies, b"".join(answers))


def _result(page: bytes, work: Work, with_faults: bool) -> Extraction:
    try:
        if with_faults and b"corpusmill-fault:" in page:
            _fail(page)
        return work(page)
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
