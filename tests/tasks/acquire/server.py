"""A web server over a folder that answers ranges, and fails on demand."""

from __future__ import annotations

import email.utils
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

Fault = Callable[[int, str], str | None]
"""(number of the request for this path, path) -> "503", "cut", "reset", "wrong-range", "redirect:URL" or None."""


class FolderServer(ThreadingHTTPServer):
    """Files below `root`; `requests` counts GETs by path, `ranges` those with a range.

    `sizes` counts, apart from them, questions for one byte: how large a file is."""

    daemon_threads = True

    def __init__(self, root: Path, fault: Fault) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root, self.fault = root, fault
        self.requests: Counter[str] = Counter()
        self.ranges: Counter[str] = Counter()
        self.sizes: Counter[str] = Counter()
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that were reset are no news."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FolderServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are sent apart: the body would wait 40 ms

    def do_GET(self) -> None:
        path = unquote(self.path).lstrip("/")
        with self.server.lock:
            counter = self.server.sizes if self.headers.get("Range") == "bytes=0-0" else self.server.requests
            counter[path] += 1
            number = counter[path]
        fault = self.server.fault(number, path) or ""
        file = self.server.root / path
        if fault == "reset":
            self.connection.close()
            self.close_connection = True
        elif fault.startswith("redirect:"):
            self._answer(302, b"", Location=fault.partition(":")[2])
        elif fault.isdigit():
            self._answer(int(fault), b"busy", **({"Retry-After": "0"} if fault == "429" else {}))
        elif not file.is_file():
            self._answer(404, b"none")
        else:
            self._send(path, file.read_bytes(), fault)

    def _send(self, path: str, data: bytes, fault: str) -> None:
        etag = f'"{hashlib.md5(data).hexdigest()}"'
        asked = self.headers.get("Range", "")
        headers = {"ETag": etag, "Last-Modified": email.utils.formatdate(0, usegmt=True)}
        if asked and self.headers.get("If-Range", etag) == etag and fault != "no-ranges":
            self.server.ranges[path] += asked != "bytes=0-0"
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or len(data)) + 1, len(data))
            if begin >= len(data):
                self._answer(416, b"")
                return
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
            self._answer(206, data[begin:end], cut=fault == "cut", **headers)
        else:
            self._answer(200, data, cut=fault == "cut", **headers)

    def _answer(self, status: int, data: bytes, *, cut: bool = False, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.wfile.flush()
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serve(root: Path, fault: Fault = lambda number, path: None) -> Iterator[FolderServer]:
    """A running server."""
    server = FolderServer(root, fault)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def answering(status: int, headers: Mapping[str, str], body: Iterable[bytes] = (b"h",)) -> Iterator[str]:
    """URL of a server that gives one answer to all, its body as long as the reader stays; headers in Latin-1."""
    head = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Connection": "close"}.items())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                self.wfile.write(f"HTTP/1.1 {status} x\r\n{head}\r\n".encode("latin-1"))
                for piece in body:
                    self.wfile.write(piece)
            except OSError:
                pass  # the reader has left

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/x"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
