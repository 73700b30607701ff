"""Extraction in a worker process that is killed from outside when a page hangs, crashes it or eats memory.

A page that ends its worker is tried once more, alone, with four times the time; then it is counted `timeout` or
`crashed`. All other pages of the batch are unharmed. Parsers of other sources run likewise, by the name of their
function, but their time is final. The worker is a plain subprocess (daemonic workers of engines may not have
multiprocessing children) and is replaced after a number of pages or an amount of memory.
"""

from __future__ import annotations

import atexit
import fcntl
import mmap
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from corpusmill.errors import MillError
from corpusmill.extractor.extraction import DEFAULT_MAX_DEPTH, Extraction, Mode
from corpusmill.extractor.sandbox.frames import AT_WORK, LOT_BYTES, READY, Reply, ReplyBuffer, request
from corpusmill.places import python_environment

RETRY_FACTOR = 4
START_TIMEOUT_S = 600.0  # as a page's; the first worker of an installation compiles the scanner: 20 to 60 CPU seconds
PIPE_BYTES = 2**20
REQUESTS_BYTES = 2**18  # requests are written in lots of about this size
TICK_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one document and of one worker."""

    timeout_s: float = 30.0
    """CPU seconds a document; also the seconds a worker may sit idle over it."""
    memory_mb: int = 1536
    """Address space of a worker above its start."""
    max_depth: int = DEFAULT_MAX_DEPTH
    """Elements nested deeper end the document before it is parsed."""
    recycle_documents: int = 10_000
    """A worker is replaced after this number of documents."""
    recycle_rss_mb: int = 512
    """A worker is replaced when it holds so much memory between documents."""


class _Failed(Exception):
    """The worker ended, or had to be ended, over one document."""

    def __init__(self, number: int, reason: Literal["timeout", "crashed"]) -> None:
        super().__init__(number, reason)
        self.number, self.reason = number, reason


class Sandbox:
    """One worker and the discipline around it. Use as a context manager; not for several threads at once.

    Args:
        mode: extraction mode; or `package.module:function`, which takes a text and gives an Extraction.
        limits: bounds.
    """

    def __init__(self, mode: Mode | str, limits: Limits | None = None) -> None:
        self.mode, self.limits = mode, limits or Limits()
        self.restarts = 0
        self._worker: _Worker | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker."""
        if self._worker:
            self._worker.close()
            self._worker = None

    def extract(self, pages: Sequence[str]) -> list[Extraction]:
        """Text of each page, in order.

        Raises:
            MillError: no worker can be started.
        """
        results: list[Extraction | None] = [None] * len(pages)
        todo = deque(range(len(pages)))
        while todo:
            try:
                self._ready().run(pages, todo, results, self.limits.timeout_s)
            except _Failed as failure:
                self._replace()
                final = ":" in self.mode and failure.reason == "timeout"
                ended = Extraction(None, reason=failure.reason)
                results[failure.number] = ended if final else self._alone(pages[failure.number])
            except BaseException:  # interrupted in the middle of a conversation
                self.close()
                raise
        return [result for result in results if result is not None]

    def _alone(self, page: str) -> Extraction:
        results: list[Extraction | None] = [None]
        try:
            self._ready().run([page], deque([0]), results, self.limits.timeout_s * RETRY_FACTOR)
        except _Failed as failure:
            self._replace()
            return Extraction(None, reason=failure.reason)
        assert results[0] is not None
        return results[0]

    def _ready(self) -> _Worker:
        if self._worker and self._worker.spent():
            self.close()
        if self._worker is None:
            self._worker = _Worker(self.mode, self.limits)
        return self._worker

    def _replace(self) -> None:
        self.restarts += 1
        self.close()


class _Worker:
    """The process and both ends of the conversation with it."""

    def __init__(self, mode: str, limits: Limits) -> None:
        self._limits = limits
        self._served, self._fat, self._ended = 0, False, False
        self._replies = ReplyBuffer()
        self._asked = 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        with tempfile.TemporaryFile() as shared:
            shared.truncate(AT_WORK.size)
            self._at_work = mmap.mmap(shared.fileno(), AT_WORK.size)
            bounds = str(limits.max_depth), str(limits.memory_mb), str(limits.timeout_s)
            settings = mode, *bounds, str(shared.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "corpusmill.extractor.sandbox.worker", *settings],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env=_environment(),
                pass_fds=(shared.fileno(),),
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        for end in (self._in, self._out):
            os.set_blocking(end, False)
            _widen(end)
        self._poll = select.poll()  # unlike select, it knows file descriptors beyond 1,023
        self._poll.register(self._out, select.POLLIN)
        self._writing = False
        self._await_ready()

    def close(self) -> None:
        """Kill the process; it holds nothing that could be lost."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()
        self._at_work.close()

    def spent(self) -> bool:
        """Whether it is time for a new one: dead, old or fat."""
        self._fat = self._fat or _rss_mb(self._process.pid) > self._limits.recycle_rss_mb
        return self._fat or self._served >= self._limits.recycle_documents or self._process.poll() is not None

    def run(self, pages: Sequence[str], todo: deque[int], results: list[Extraction | None], timeout_s: float) -> None:
        """Feed pages and collect texts until nothing is left to do or the worker is spent.

        Args:
            pages: the batch.
            todo: numbers of the pages to do; those with a result are taken out.
            results: filled at those numbers.
            timeout_s: for each page.

        Raises:
            _Failed: the worker is lost over a page; that one is taken out of `todo` too.
        """
        sent: deque[int] = deque()  # handed over and not answered, in the order of the worker
        clock = _Clock(self._process.pid, timeout_s)
        rest = memoryview(b"")
        try:
            while todo or sent:
                rest = rest or self._lot(pages, todo, sent)
                if not sent:
                    return
                readable, writable = self._wait(clock.tick_s, to_write=bool(rest))
                if writable:
                    rest = self._write(rest)
                replies = self._read() if readable else []
                for reply in replies:
                    assert reply.number == self._asked - len(sent), "the worker answers out of order"
                    results[sent.popleft()] = reply.extraction
                self._count(len(replies))
                at_work = self._place(sent)
                clock.watch(self._asked - len(sent) + at_work)
                if readable and self._ended:
                    raise _Failed(_taken(sent, at_work), "crashed")
                if clock.overdue():
                    raise _Failed(_taken(sent, at_work), "timeout")
        finally:
            todo.extendleft(reversed(sent))

    def _place(self, sent: deque[int]) -> int:
        """Which of the pages that are not answered is at work: those before it are done, and the answers lost if the
        worker ends here."""
        place = int(AT_WORK.unpack_from(self._at_work)[0]) - (self._asked - len(sent))
        return place if 0 <= place < len(sent) else 0

    def _lot(self, pages: Sequence[str], todo: deque[int], sent: deque[int]) -> memoryview:
        """Requests for the next pages, as many as make a lot and as this worker may serve."""
        lot: list[bytes] = []
        size = 0
        while todo and size < REQUESTS_BYTES and not self._full(len(sent)):
            number = todo.popleft()
            sent.append(number)
            lot += request(self._asked, pages[number].encode("utf-8", "replace"))
            self._asked += 1
            size += len(lot[-1])
        return memoryview(b"".join(lot))

    def _wait(self, seconds: float, to_write: bool = False) -> tuple[bool, bool]:
        """Whether replies can be read, and whether a request can be written; as soon as either."""
        if to_write != self._writing:
            self._poll.register(self._in, select.POLLOUT) if to_write else self._poll.unregister(self._in)
            self._writing = to_write
        ready = [end for end, _ in self._poll.poll(seconds * 1000)]
        return self._out in ready, self._in in ready

    def _write(self, data: memoryview) -> memoryview:
        try:
            return data[os.write(self._in, data) :]
        except BlockingIOError:
            return data
        except BrokenPipeError:
            return memoryview(b"")  # the end of its output will say the rest

    def _read(self) -> list[Reply]:
        try:
            data = os.read(self._out, LOT_BYTES)
        except BlockingIOError:
            return []
        self._ended = not data
        return self._replies.feed(data)

    def _full(self, in_flight: int) -> bool:
        return self._fat or self._served + in_flight >= self._limits.recycle_documents

    def _count(self, replies: int) -> None:
        self._served += replies
        if self._served // 64 != (self._served - replies) // 64:
            self._fat = _rss_mb(self._process.pid) > self._limits.recycle_rss_mb

    def _await_ready(self) -> None:
        clock = _Clock(self._process.pid, START_TIMEOUT_S)
        while not self._ended and not clock.overdue():
            if self._wait(1.0)[0] and any(r.number == READY for r in self._read()):
                return
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode("utf-8", "replace").strip()
        self.close()
        raise MillError("the extraction worker does not start", said or f"no answer in {START_TIMEOUT_S:.0f} s")


def _taken(sent: deque[int], place: int) -> int:
    number = sent[place]
    del sent[place]
    return number


class _Clock:
    """How long the page at hand has taken: CPU seconds of the worker, or seconds in which it did nothing.

    On a busy machine a worker may wait for a core; that is not the page's fault, up to RETRY_FACTOR times the limit.
    """

    def __init__(self, pid: int, timeout_s: float) -> None:
        self._pid, self._timeout_s = pid, timeout_s
        self.tick_s = min(TICK_S, timeout_s / 4)
        self._page = -1
        self._restart()

    def watch(self, page: int) -> None:
        """Say which page is at work."""
        if page != self._page:
            self._page = page
            self._restart()

    def _restart(self) -> None:
        self._start = time.monotonic()
        self._cpu_start: float | None = None

    def overdue(self) -> bool:
        """Whether the page has had its time."""
        passed = time.monotonic() - self._start
        if passed < self.tick_s:
            return False
        usage = _cpu_seconds(self._pid)
        if usage is None:
            return passed >= self._timeout_s
        cpu, runnable = usage
        if self._cpu_start is None:
            self._cpu_start = cpu - passed  # not read at the start, to spare quick pages the cost
        if cpu - self._cpu_start >= self._timeout_s:
            return True
        return passed >= self._timeout_s * (RETRY_FACTOR if runnable else 1)


def _cpu_seconds(pid: int) -> tuple[float, bool] | None:
    """CPU seconds of a process and whether it would run (or waits for memory, or ends); None where none can be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0] in "RDZX"


def _rss_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _widen(pipe: int) -> None:
    """A larger pipe means fewer switches between the two processes; the default does too."""
    set_size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if set_size is not None:
        try:
            fcntl.fcntl(pipe, set_size, PIPE_BYTES)
        except OSError:  # above this user's allowance
            pass


def _environment() -> dict[str, str]:
    """The worker finds this very package, and no module of the user's working directory; its sets have one order."""
    return {**python_environment(), "PYTHONHASHSEED": "0"}


_shared: dict[tuple[str, Limits], Sandbox] = {}


def shared_sandbox(mode: Mode | str, limits: Limits | None = None) -> Sandbox:
    """The sandbox of this process for a mode, made once: starting a worker takes as long as hundreds of pages."""
    key = mode, limits or Limits()
    if key not in _shared:
        _shared[key] = Sandbox(*key)
        if len(_shared) == 1:
            atexit.register(_close_shared)
    return _shared[key]


def _close_shared() -> None:
    while _shared:
        _shared.popitem()[1].close()
