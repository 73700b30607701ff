"""Objects in buckets of other people, read only: sources, never a store. One attempt each; the caller retries.

A URL is `s3://bucket/key`, or `s3://anonymous@bucket/key` for requests without a signature. Server, region and
credentials are those of the SDK's own chain, as for a store (s3.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore import exceptions as faults
from urllib3 import HTTPHeaderDict

from corpusmill.errors import MillError, Unavailable, UsageError
from corpusmill.redact import redacted
from corpusmill.store.backend import Absent, Transient
from corpusmill.store.s3 import _AGAIN, _CREDENTIALS, _WIRE, _client, _surroundings

ANONYMOUS = "anonymous@"


class Answer:
    """An answer to a GET: `status` and `headers` as HTTP has them, the body by `read` or `stream`.

    Both raise Transient where the connection breaks.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: Any = None) -> None:
        self.status, self.headers = status, HTTPHeaderDict(headers)
        self._body = body

    def read(self, amt: int | None = None) -> bytes:
        """The next bytes, or all of them."""
        try:
            return bytes(self._body.read(amt)) if self._body else b""
        except _WIRE as err:
            raise Transient(redacted(str(err))) from None

    def stream(self, amt: int | None = None) -> Iterator[bytes]:
        """The rest, piece by piece."""
        while data := self.read(amt):
            yield data

    def close(self) -> None:
        """Give the connection back, or end it."""
        if self._body:
            self._body.close()


@dataclass(frozen=True)
class Page:
    """Some entries of a listing: (name below the prefix, bytes, ETag); `next_token` asks for those behind them."""

    entries: tuple[tuple[str, int, str], ...]
    next_token: str | None


def endpoint(url: str) -> str:
    """The server's URL."""
    return str(_client_of(url).meta.endpoint_url)


def get(url: str, headers: Mapping[str, str]) -> Answer:
    """One object, or the part that a `Range` header names; `If-Range` (an ETag) lets it fail with 412 if it changed.

    Raises:
        Transient: try again. Unavailable: wrong credentials, or none.
    """
    bucket, key = split(url)
    asked: dict[str, Any] = {}
    if "Range" in headers:
        asked["Range"] = headers["Range"]
        if headers.get("If-Range", "").startswith('"'):
            asked["IfMatch"] = headers["If-Range"]
    else:
        asked["ChecksumMode"] = "ENABLED"  # of a part, a server might state the checksum of the whole
    try:
        found = _client_of(url).get_object(Bucket=bucket, Key=key, **asked)
    except faults.ClientError as err:
        return _refusal(err, url)
    except Exception as err:
        raise _fault(err, url) from None
    about = found["ResponseMetadata"]
    return Answer(about["HTTPStatusCode"], about["HTTPHeaders"], found["Body"])


def page(root: str, token: str | None) -> Page:
    """The next thousand objects below a URL.

    Raises:
        Absent: no such bucket, or it may not be listed. Transient: try again. Unavailable: wrong credentials, or none.
    """
    bucket, prefix = split(root)
    prefix = f"{prefix}/" if prefix else ""
    more = {"ContinuationToken": token} if token else {}
    try:
        found = _client_of(root).list_objects_v2(Bucket=bucket, Prefix=prefix, **more)
    except faults.ClientError as err:
        refusal = _refusal(err, root)
        if refusal.status in (403, 404):
            raise Absent(refusal.headers["x-said"]) from None
        if refusal.status == 429 or refusal.status >= 500:
            raise Transient(refusal.headers["x-said"]) from None
        raise Unavailable(f"{root} cannot be listed", refusal.headers["x-said"]) from None
    except Exception as err:
        raise _fault(err, root) from None
    entries = tuple(
        (item["Key"][len(prefix) :], item["Size"], item.get("ETag", "")) for item in found.get("Contents", ())
    )
    return Page(entries, found.get("NextContinuationToken") if found.get("IsTruncated") else None)


def split(url: str) -> tuple[str, str]:
    """(bucket, key) of a URL.

    Raises:
        UsageError: it names no bucket.
    """
    bucket, _, key = url.removeprefix("s3://").removeprefix(ANONYMOUS).partition("/")
    if not bucket or "@" in bucket or ":" in bucket:
        raise UsageError(
            f"{url!r} is not a bucket URL",
            "expected s3://bucket/prefix, or s3://anonymous@bucket/prefix",
            "Server and credentials are set in the environment: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID.",
        )
    return bucket, key.strip("/")


def _client_of(url: str) -> Any:
    anonymous = url.startswith(f"s3://{ANONYMOUS}")
    return _client(os.getpid(), *_surroundings(), anonymous=anonymous)


def _refusal(err: faults.ClientError, url: str) -> Answer:
    """What the server answers instead, with its words in the header `x-said`."""
    about, said = err.response.get("ResponseMetadata", {}), err.response.get("Error", {})
    code, status = str(said.get("Code", "")), int(about.get("HTTPStatusCode", 0))
    words = redacted(f"{code} (HTTP {status}): {said.get('Message', '')}")
    if code in _AGAIN:
        raise Transient(words) from None
    if code in _CREDENTIALS:
        raise _credentials(url, words) from None
    return Answer(status, {**about.get("HTTPHeaders", {}), "x-said": words})


def _fault(err: Exception, url: str) -> Exception:
    if isinstance(err, (faults.NoCredentialsError, faults.PartialCredentialsError, faults.CredentialRetrievalError)):
        return _credentials(url, str(err))
    if isinstance(err, _WIRE):
        return Transient(redacted(str(err)))
    if isinstance(err, faults.ParamValidationError):
        return UsageError(f"{url!r} is not a bucket URL", str(err), "Check source.*.root.")
    return err


def _credentials(url: str, said: str) -> MillError:
    return Unavailable(
        f"no permission to read {url}",
        said,
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), or read without a signature: "
        "s3://anonymous@bucket/prefix.",
    )
