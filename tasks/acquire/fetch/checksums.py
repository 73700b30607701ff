"""Whether a downloaded body is intact: by the checksums that the server states, else by those within gzip members.

Stated: Content-MD5, Digest and Repr-Digest, x-amz-checksum-*, x-goog-hash, an ETag that looks like an MD5. An ETag may
be something else, and an object may be stored damaged; so a mismatch only means: fetch it again. The same bytes
twice are accepted as what the server has.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Mapping
from typing import Any

GZIP_MAGIC = b"\x1f\x8b\x08"
PIECE = 2**20
MAX_RATIO, MAX_FREE = 500, 256 * 2**20  # a bomb is not decompressed any further

_MD5_ETAG = re.compile(r'"([0-9a-fA-F]{32})"\Z')
_ALGORITHMS = {"md5": "md5", "sha": "sha1", "sha1": "sha1", "sha256": "sha256", "sha512": "sha512", "crc32": "crc32"}


class Checksums:
    """Checks a body as it passes; continues over the fragments of an interrupted download.

    Args:
        headers: of the response.
        ends_anywhere: the body may end within a gzip member.
    """

    def __init__(self, headers: Mapping[str, str], *, ends_anywhere: bool = False) -> None:
        self._ends_anywhere = ends_anywhere
        self._stated = stated_checksums(headers)
        self._hashes = {name: _hasher(name) for name in self._stated}
        self._members = None if self._stated else _Members()
        self._crc32, self._size = 0, 0

    def update(self, data: bytes) -> None:
        """The next bytes."""
        self._crc32, self._size = zlib.crc32(data, self._crc32), self._size + len(data)
        for hasher in self._hashes.values():
            hasher.update(data)
        if self._members is not None:
            self._members.update(data)

    @property
    def same(self) -> tuple[int, int]:
        """A fingerprint that is equal for equal bodies."""
        return self._crc32, self._size

    def contradicts(self) -> bool:
        """Whether a checksum contradicts the body."""
        if any(self._hashes[name].digest() not in values for name, values in self._stated.items()):
            return True
        if self._members is None:
            return False
        return self._members.broken or (self._members.cut and not self._ends_anywhere)


def stated_checksums(headers: Mapping[str, str]) -> dict[str, set[bytes]]:
    """Checksums of a whole body by algorithm, as its response's headers state them; several count as alternatives."""
    found: dict[str, set[bytes]] = {}

    def add(name: str, value: str) -> None:
        algorithm = _ALGORITHMS.get(name.strip().lower().replace("-", ""))
        try:
            digest = base64.b64decode(value.strip().strip(":"), validate=True)
        except (ValueError, binascii.Error):
            return  # also those of parts: "…-3"
        if algorithm and len(digest) == len(_hasher(algorithm).digest()):
            found.setdefault(algorithm, set()).add(digest)

    lower = {name.lower(): value for name, value in headers.items()}
    add("md5", lower.get("content-md5", ""))
    if lower.get("x-amz-checksum-type", "").upper() != "COMPOSITE":
        for name, value in lower.items():
            if name.startswith("x-amz-checksum-"):
                add(name.removeprefix("x-amz-checksum-"), value)
    for listed in ("digest", "repr-digest", "x-goog-hash"):
        for entry in lower.get(listed, "").split(","):
            name, _, value = entry.partition("=")
            add(name, value)
    if not found and (match := _MD5_ETAG.match(lower.get("etag", ""))):
        found["md5"] = {bytes.fromhex(match[1])}
    return found


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes) -> None:
        self._value = zlib.crc32(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


def _hasher(algorithm: str) -> Any:
    return _Crc32() if algorithm == "crc32" else hashlib.new(algorithm, usedforsecurity=False)


class _Members:
    """Consecutive gzip members, by their own checksums; other data is not checked.

    Attributes:
        broken: a member is damaged, or is followed by something else than a member.
        cut: the body ends within a member.
    """

    def __init__(self) -> None:
        self.broken = self.cut = False
        self._inflate: Any = None
        self._left = b""
        self._given_up = False
        self._in = self._out = 0

    def update(self, data: bytes) -> None:
        if self.broken or self._given_up:
            return
        first = self._in == 0
        self._in += len(data)
        data = self._left + data
        if first and not GZIP_MAGIC.startswith(data[:3]):
            self._given_up = True
            return
        self._left = b""
        while data:
            if self._inflate is None:
                data = data.lstrip(b"\x00")
                if len(data) < len(GZIP_MAGIC):
                    self._left, self.cut = data, bool(data)
                    return
                if not data.startswith(GZIP_MAGIC):
                    self.broken = True
                    return
                self._inflate = zlib.decompressobj(31)
            data = self._step(data)
            if self.broken or self._given_up:
                return

    def _step(self, data: bytes) -> bytes:
        self.cut = True
        try:
            size = len(self._inflate.decompress(data, PIECE))
            self._out += size
            while size == PIECE and not self._inflate.unconsumed_tail and not self._inflate.eof:
                size = len(self._inflate.decompress(b"", PIECE))  # all is taken in, but not yet given out
                self._out += size
        except zlib.error:
            self.broken, self.cut = True, False
            return b""
        if self._inflate.eof:
            data, self._inflate, self.cut = self._inflate.unused_data, None, False
            return data
        if self._out > MAX_FREE and self._out > MAX_RATIO * self._in:
            self._given_up, self.cut = True, False
        return bytes(self._inflate.unconsumed_tail)
