"""Bodies of HTTP responses as they were before transfer: chunks joined, content decompressed, size bounded.

Archives keep headers whose promise was already redeemed, so a body that plainly is not what its header says is taken
as it is. A body that breaks off keeps what came before; one that turns into garbage is `bad_encoding`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import brotli
import zstandard

from corpusmill.readers.containers.frames import window
from corpusmill.readers.headers import HttpHead, media_type

Reason = Literal["unsupported_encoding", "bad_encoding", "too_large"]

_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,4096})?\r?\n")
_MARKUP = re.compile(rb"[\s\x00\xef\xbb\xbf]*<")
_PLAIN = ("", "chunked", "identity", "none", "utf-8", "binary", "7bit", "8bit")
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SNIFFED = (_GZIP_MAGIC + b"\x08", _ZSTD_MAGIC)
MAX_LAYERS = 5
MAX_RATIO = 1000  # of decoded to encoded bytes; pages reach 100, deflate can reach 1,032, brotli any
RATIO_FREE = 2**20  # decoded bytes that are never too many
_TEXTS = ("text/html", "text/plain", "application/xhtml+xml")
_ZSTD_WINDOW = 8 * 2**20  # RFC 9659: what a browser must accept; more is refused by browsers too
_LARGE_BROTLI, _BROTLI_WINDOW_LOG = 0x11, 24
"""How a stream of "large window brotli" begins, which is not the web's (RFC 7932 has 2^24 bytes at most)."""


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, or the reason why there is none; then `data` is what could not be decoded."""

    data: bytes
    reason: Reason | None = None
    cut: bool = False
    """The stream broke off before its end."""


class _Broken(Exception):
    """The stream turns into garbage."""


class _TooMuch(_Broken):
    """Its decoder would take more memory than is given to it."""


def decode_body(payload: bytes, http: HttpHead, max_bytes: int) -> Body:
    """Undo transfer and content encodings, and those that no header admits to.

    Args:
        payload: what follows the HTTP head in the record.
        http: the head, whose Transfer-Encoding and Content-Encoding are undone.
        max_bytes: no more than this is ever held; longer bodies end as `too_large`, and so do those that grow more
            than a thousand times.
    """
    if http.plain and not payload.startswith(_SNIFFED):
        return Body(payload) if len(payload) <= max_bytes else Body(b"", "too_large")
    cut = False
    if "chunked" in (http.get("transfer-encoding") or "").lower():
        payload, cut = join_chunks(payload)
    max_bytes = min(max_bytes, max(len(payload) * MAX_RATIO, RATIO_FREE))
    names = _encodings(http) if payload else []
    if len(names) > MAX_LAYERS:
        return Body(b"", "unsupported_encoding")
    for name in reversed(names):
        body = _decode_once(payload, name, max_bytes)
        if body.reason:
            return body
        payload, cut = body.data, cut or body.cut
    for _ in range(MAX_LAYERS):
        decoder = _sniffed(payload)
        if decoder is None or media_type(http.get("content-type")) not in _TEXTS:
            break
        try:
            decoded, ended = decoder(payload, max_bytes + 1)
        except _TooMuch:
            return Body(payload, "too_large")
        except _Broken:
            break
        payload, cut = decoded, cut or not ended
    if len(payload) > max_bytes:
        return Body(b"", "too_large")
    return Body(payload, cut=cut)


def _decode_once(payload: bytes, name: str, max_bytes: int) -> Body:
    """One encoding undone; a body that plainly is not in it comes back as it is, or by the encoding it shows."""
    decoder = _DECODERS.get(name)
    if decoder is None:
        return Body(payload, None if _MARKUP.match(payload) else "unsupported_encoding")
    try:
        decoded, ended = decoder(payload, max_bytes + 1)
    except _TooMuch:
        return Body(payload, "too_large")
    except _Broken:
        if _MARKUP.match(payload):  # the crawler decoded it and left the header
            return Body(payload)
        instead = _sniffed(payload)
        if instead is None or instead is decoder:
            return Body(payload, "bad_encoding")
        try:
            decoded, ended = instead(payload, max_bytes + 1)
        except _TooMuch:
            return Body(payload, "too_large")
        except _Broken:
            return Body(payload, "bad_encoding")
    return Body(b"", "too_large") if len(decoded) > max_bytes else Body(decoded, cut=not ended)


def _sniffed(payload: bytes) -> Callable[[bytes, int], tuple[bytes, bool]] | None:
    """The decoder of a body that begins as a gzip or zstd stream does."""
    if not payload.startswith(_SNIFFED):
        return None
    return _unzstd if payload.startswith(_ZSTD_MAGIC) else _gunzip


def _encodings(http: HttpHead) -> list[str]:
    """Encodings in the order they were applied: of the content, then of the transfer (but chunks)."""
    values = [*http.all("content-encoding"), *http.all("transfer-encoding")]
    names = [name.strip().lower() for value in values for name in value.split(",")]
    return [name for name in names if name not in _PLAIN]


def join_chunks(payload: bytes) -> tuple[bytes, bool]:
    """The data of a chunked body, and whether it broke off.

    Chunk extensions and trailers are dropped. A body that does not begin with a chunk size is no longer chunked.
    """
    parts: list[bytes] = []
    position = 0
    while position < len(payload):
        line = _CHUNK_SIZE.match(payload, position)
        if not line:
            if parts:
                return b"".join(parts), True
            return _without_bad_first_line(payload), False
        size = int(line[1], 16)
        if size == 0:
            return b"".join(parts), False
        data = payload[line.end() : line.end() + size]
        if not parts and len(data) < size and not (_MARKUP.match(data) or data.startswith((_GZIP_MAGIC, _ZSTD_MAGIC))):
            return payload, False  # a text that begins with a number
        parts.append(data)
        position = line.end() + size
        position += 2 if payload.startswith(b"\r\n", position) else payload.startswith(b"\n", position)
    return b"".join(parts), bool(parts)


def _without_bad_first_line(payload: bytes) -> bytes:
    """A chunk size that cannot be read is no part of the page behind it."""
    line, newline, rest = payload[:64].partition(b"\n")
    return payload[len(line) + 1 :] if newline and not _MARKUP.match(line) and _MARKUP.match(rest) else payload


def _inflate(payload: bytes, limit: int, wbits: int) -> tuple[bytes, bool]:
    """zlib streams, one behind the other as gzip permits, up to `limit` bytes; and whether the last one ended."""
    parts: list[bytes] = []
    size = 0
    while True:
        stream, data = zlib.decompressobj(wbits), payload
        while not stream.eof and size < limit:
            try:
                part = stream.decompress(data, limit - size)
            except zlib.error as err:
                raise _Broken from err
            if not part:
                break
            parts.append(part)
            size += len(part)
            data = stream.unconsumed_tail
        payload = stream.unused_data
        if not payload.startswith(_GZIP_MAGIC):
            return b"".join(parts), stream.eof


def _gunzip(payload: bytes, limit: int) -> tuple[bytes, bool]:
    return _inflate(payload, limit, 31)


def _undeflate(payload: bytes, limit: int) -> tuple[bytes, bool]:
    """RFC 9110 means zlib by "deflate"; some servers send the bare stream."""
    try:
        return _inflate(payload, limit, 15)
    except _Broken:
        return _inflate(payload, limit, -15)


def _unbrotli(payload: bytes, limit: int) -> tuple[bytes, bool]:
    if len(payload) > 1 and payload[0] == _LARGE_BROTLI and payload[1] & 0x3F > _BROTLI_WINDOW_LOG:
        raise _TooMuch
    stream = brotli.Decompressor()
    parts: list[bytes] = []
    size, data = 0, payload
    try:
        while size < limit and not stream.is_finished():
            part = stream.process(data, output_buffer_limit=limit - size)
            if not part and stream.can_accept_more_data():
                break
            parts.append(part)
            size += len(part)
            data = b""
    except brotli.error as err:
        raise _Broken from err
    return b"".join(parts)[:limit], stream.is_finished()


def _unzstd(payload: bytes, limit: int) -> tuple[bytes, bool]:
    if not payload.startswith(_ZSTD_MAGIC):
        raise _Broken
    most = max(_ZSTD_WINDOW, limit)  # a page whose length is known has a window of that length
    if window(payload) > most:
        raise _TooMuch
    with zstandard.ZstdDecompressor(max_window_size=most).stream_reader(payload, read_across_frames=True) as stream:
        try:
            data = stream.read(limit)
            whole = zstandard.frame_content_size(payload)
        except zstandard.ZstdError as err:
            raise _Broken from err
    return data, whole < 0 or len(data) >= min(whole, limit)


_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
