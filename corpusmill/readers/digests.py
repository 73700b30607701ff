"""Digests that records carry of themselves: `WARC-Block-Digest` and `WARC-Payload-Digest`, `algorithm:value`.

Values are base32 or hexadecimal. Crawlers differ in what they call the payload: with or without its chunks. Either
satisfies a payload digest. A digest by an algorithm that is not known is no fault.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping

from corpusmill.readers.bodies import join_chunks
from corpusmill.readers.headers import HEAD_END, HttpHead

_ALGORITHMS = {"md5": "md5", "sha1": "sha1", "sha256": "sha256", "sha512": "sha512", "blake2b": "blake2b"}


def digest_is_wrong(headers: Mapping[str, str], http: HttpHead, content: bytes, payload: bytes) -> bool:
    """Whether the content contradicts a digest in its record's head.

    Args:
        headers: of the record, names in lower case.
        http: the head within the content.
        content: the whole block.
        payload: what follows the HTTP head.
    """
    if _contradicts(headers.get("warc-block-digest"), content):
        return True
    stated = headers.get("warc-payload-digest")
    if headers.get("warc-type", "").lower() == "revisit" or not _contradicts(stated, payload):
        return False  # a revisit states the digest of the payload that it left out
    chunked = "chunked" in (http.get("transfer-encoding") or "").lower()
    if chunked and not _contradicts(stated, join_chunks(payload)[0]):
        return False
    first = HEAD_END.search(content)  # of an interim answer, which some crawlers take for the whole head
    return first is None or first.end() == len(content) - len(payload) or _contradicts(stated, content[first.end() :])


def _contradicts(stated: str | None, data: bytes) -> bool:
    name, _, value = (stated or "").partition("\n")[0].strip().partition(":")
    algorithm = _ALGORITHMS.get(name.strip().lower().replace("-", ""))
    if algorithm is None:
        return False
    digest = hashlib.new(algorithm, data).digest()
    return _bytes_of(value.strip(), len(digest)) != digest


def _bytes_of(value: str, size: int) -> bytes | None:
    """The bytes of a digest's text; None where it is neither base32 nor hexadecimal."""
    try:
        if len(value) == 2 * size:
            return bytes.fromhex(value)
        padded = value.rstrip("=").upper()
        return base64.b32decode(padded + "=" * (-len(padded) % 8))
    except (ValueError, binascii.Error):
        return None
