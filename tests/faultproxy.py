"""A server on this machine that fails as real ones do, the same way every time.

Over a folder it is a web server with byte ranges; over another server (an S3 one, say) it passes requests on as they
are, signatures included. What happens to the n-th request for a path is drawn from seed, path and n, so neither the
order of requests nor the number of clients changes anything: a busy answer (503, as S3 words it, with Retry-After), a
connection that is reset, a body cut short, a bit flipped in it.
"""

from __future__ import annotations

import email.utils
import hashlib
import http.client
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

SLOW_DOWN = (
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'
)
NO_CHECKSUMS = b'<?xml version="1.0"?><Error><Code>InvalidArgument</Code><Message>Unknown checksum.</Message></Error>'
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "proxy-connection"}


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Shares of requests that fail, by kind; the kinds exclude each other."""

    busy: float = 0.0
    cut: float = 0.0
    flip: float = 0.0
    reset: float = 0.0
    seed: int = 1
    retry_after: str | None = "0"
    """What a busy answer says; None: nothing."""

    def draw(self, path: str, number: int) -> tuple[str, float]:
        """(kind of fault or "", place in the body between 0 and 1) of the number-th request for a path."""
        digest = hashlib.blake2b(f"{self.seed}|{path}|{number}".encode(), digest_size=16).digest()
        chance, place = (int.from_bytes(half, "big") / 2**64 for half in (digest[:8], digest[8:]))
        for kind in ("busy", "cut", "flip", "reset"):
            chance -= getattr(self, kind)
            if chance < 0:
                return kind, place
        return "", place


class FaultProxy(ThreadingHTTPServer):
    """`requests` counts by path, `faults` by kind; `checksums` are those of S3, or none at all."""

    daemon_threads = True

    def __init__(self, upstream: Path | str, faults: Faults, checksums: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream, self.plan, self.checksums = upstream, faults, checksums
        self.requests: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that were reset are no news."""

    def refuses(self, headers: dict[str, str]) -> bool:
        """Whether a request is refused for its headers (names in lower case): answered 400, and counted."""
        return False

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FaultProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are sent apart: the body would wait 40 ms

    def _handle(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        with self.server.lock:
            self.server.requests[path] += 1
            kind, place = self.server.plan.draw(path, self.server.requests[path])
        if self.server.refuses({name.lower(): value for name, value in self.headers.items()}):
            self._count("refused")
            self._send(400, {}, NO_CHECKSUMS)
        elif kind == "busy":
            self._count(kind)
            after = self.server.plan.retry_after
            self._send(503, {"Retry-After": after} if after is not None else {}, SLOW_DOWN)
        elif kind == "reset":
            self._count(kind)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        else:
            upstream = self.server.upstream
            answer = self._from_folder(upstream, path) if isinstance(upstream, Path) else self._forward(upstream, data)
            self._send(*answer, kind=kind, place=place)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

    def _count(self, kind: str) -> None:
        with self.server.lock:
            self.server.faults[kind] += 1

    def _from_folder(self, root: Path, path: str) -> tuple[int, dict[str, str], bytes]:
        file = root / path.lstrip("/")
        if not file.is_file():
            return 404, {}, b"none"
        data = file.read_bytes()
        headers = {"Last-Modified": email.utils.formatdate(0, usegmt=True)}
        if self.server.checksums:
            headers["ETag"] = f'"{hashlib.md5(data).hexdigest()}"'
        asked = self.headers.get("Range", "")
        if not asked or self.headers.get("If-Range") not in (None, headers.get("ETag"), headers["Last-Modified"]):
            return 200, headers, data
        first, _, last = asked.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or len(data) - 1), len(data) - 1)
        if begin >= len(data):
            return 416, {}, b""
        return 206, {**headers, "Content-Range": f"bytes {begin}-{end}/{len(data)}"}, data[begin : end + 1]

    def _forward(self, upstream: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    connection.putheader(name, value)
            connection.endheaders(data)
            response = connection.getresponse()
            headers = {name: value for name, value in response.getheaders() if name.lower() not in HOP_BY_HOP}
            return response.status, headers, response.read()
        finally:
            connection.close()

    def _send(self, status: int, headers: dict[str, str], body: bytes, kind: str = "", place: float = 0.0) -> None:
        self.send_response(status)
        length = next((value for name, value in headers.items() if name.lower() == "content-length"), str(len(body)))
        own = ("content-length", "date", "server")
        for name, value in {
            **{n: v for n, v in headers.items() if n.lower() not in own},
            "Content-Length": length,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if not body or self.command == "HEAD":
            return
        unseen = kind == "flip" and len(body) == 1  # the byte that tells a size: nobody looks at its value
        if kind and not unseen and self.command == "GET" and status < 300:
            self._count(kind)
            at = int(place * len(body))
            if kind == "flip":
                body = body[:at] + bytes([body[at] ^ 1 << int(place * 8192) % 8]) + body[at + 1 :]
            elif kind == "cut":
                body, self.close_connection = body[:at], True
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def faulty(
    upstream: Path | str, faults: Faults | None = None, *, checksums: bool = True, kind: type[FaultProxy] = FaultProxy
) -> Iterator[FaultProxy]:
    """A running server over a folder, or before another server.

    Args:
        upstream: a folder, or the address of a server.
        faults: how often what goes wrong; nothing, if None.
        checksums: over a folder: whether an ETag is the MD5 of the file, as with S3, or missing.
        kind: of server, where it differs in what it refuses.
    """
    server = kind(upstream, faults or Faults(), checksums)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
