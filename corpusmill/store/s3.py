"""A store on S3 or anything that speaks its protocol with conditional writes.

Every PUT is single-part, carries `If-None-Match: *` and the SHA-256 of its bytes, which the server checks. The SDK
retries nothing: it would report "exists" for its own success after a lost response. Reads are tried again here,
bodies included; creates in create.py. Configuration is the SDK's own: AWS_ENDPOINT_URL(_S3), AWS_REGION, the usual
chain of credentials. Custom endpoints get path style.
"""

from __future__ import annotations

import base64
import builtins
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import boto3
from botocore import UNSIGNED
from botocore import exceptions as faults
from botocore.config import Config

from corpusmill.errors import CheckFailed, MillError, Unavailable, UsageError
from corpusmill.redact import redacted
from corpusmill.store.backend import COPY_BYTES, Absent, Backoff, Exists, Source, Stat, Transient

MAX_OBJECT_BYTES = 512 << 20  # the SHA-256 of a multipart object is not that of its bytes, so objects are written whole
RETRY_FOR_S = 60.0
FIRST_CONTACT_S = 2.0  # an address that never answered is more likely wrong than busy

_CREDENTIALS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
_AGAIN = {"SlowDown", "RequestTimeout", "RequestTimeTooSkewed", "ConditionalRequestConflict", "OperationAborted"}
_WIRE = (faults.HTTPClientError, faults.ConnectionError, faults.IncompleteReadError, faults.FlexibleChecksumError)

T = TypeVar("T")


class S3Backend:
    """Names are keys under `prefix` in one bucket."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self.client, self.bucket, self.prefix = client, bucket, prefix
        self.uri = f"s3://{bucket}/{prefix}".rstrip("/")
        self.retry_for_s = RETRY_FOR_S

    @classmethod
    def open(cls, address: str) -> S3Backend:
        """From `bucket/prefix`, after one request that shows that server, bucket and credentials are right."""
        bucket, _, prefix = address.partition("/")
        prefix = prefix.strip("/")
        if not bucket or "//" in prefix or "@" in bucket or ":" in bucket:
            raise UsageError(
                f"s3://{address} is not a store URI.",
                "Expected s3://bucket/prefix.",
                "Check --store; server and keys are set in the environment: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID.",
            )
        backend = cls(_client(os.getpid(), *_surroundings()), bucket, f"{prefix}/" if prefix else "")
        backend.retry_for_s = FIRST_CONTACT_S
        backend._call("list_objects_v2", Prefix=backend.prefix, MaxKeys=1)
        backend.retry_for_s = RETRY_FOR_S
        return backend

    def attempt(self, name: str, source: Source) -> None:
        if source.size > MAX_OBJECT_BYTES:
            raise UsageError(f"{name} has {source.size} bytes; at most {MAX_OBJECT_BYTES} fit.", do="Use more shards.")
        checksum = base64.b64encode(bytes.fromhex(source.digest)).decode()
        body = source.path.open("rb") if source.path is not None else source.data
        try:
            self._once("put_object", Key=self.prefix + name, Body=body, IfNoneMatch="*", ChecksumSHA256=checksum)
        except _BadDigest as err:
            if source.path is not None and Source.of_file(source.path).digest != source.digest:
                raise CheckFailed(
                    f"The local file for {name} changed after it was hashed.",
                    f"{source.path} changed on the scratch disk.",
                    "Run the command again.",
                ) from err
            raise Transient(str(err)) from err
        finally:
            if source.path is not None:
                body.close()  # type: ignore[union-attr]

    def read(self, name: str) -> bytes:
        pieces: builtins.list[bytes] = []
        self.stream_to(name, pieces.append, pieces.clear)
        return b"".join(pieces)

    def stream_to(self, name: str, write: Callable[[bytes], object], restart: Callable[[], object]) -> None:
        def fetch() -> None:
            restart()
            body = self._once("get_object", Key=self.prefix + name, ChecksumMode="ENABLED")["Body"]
            with body:
                while chunk := self._guard(lambda: body.read(COPY_BYTES)):
                    write(chunk)

        self._again(fetch)

    def stat(self, name: str) -> Stat | None:
        try:
            head = self._call("head_object", Key=self.prefix + name, ChecksumMode="ENABLED")
        except Absent:
            return None
        checksum = head.get("ChecksumSHA256")
        return Stat(head["ContentLength"], base64.b64decode(checksum).hex() if checksum else None)

    def list(self, prefix: str) -> builtins.list[tuple[str, int]]:
        return sorted(self._pages(self.prefix + prefix))

    def _pages(self, prefix: str) -> Iterator[tuple[str, int]]:
        more: dict[str, str] = {}
        while True:
            page = self._call("list_objects_v2", Prefix=prefix, **more)
            for item in page.get("Contents", ()):
                yield item["Key"][len(self.prefix) :], item["Size"]
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def delete(self, name: str) -> None:
        try:
            self._call("delete_object", Key=self.prefix + name)
        except Absent:
            return

    def server_date(self) -> str | None:
        answer = self._call("list_objects_v2", Prefix=self.prefix, MaxKeys=1)
        return str(answer["ResponseMetadata"]["HTTPHeaders"]["date"])

    def local(self, name: str) -> Path | None:
        return None

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._again(lambda: self._once(operation, **arguments))

    def _again(self, function: Callable[[], T]) -> T:
        """Try until it succeeds or the time is up. Only for what may be repeated: reads, deletes."""
        backoff = Backoff(self.retry_for_s)
        while True:
            try:
                return function()
            except Transient as err:
                if not backoff.pause():
                    raise self._away(str(err)) from err

    def _once(self, operation: str, **arguments: Any) -> Any:
        """One request; every fault becomes Absent, Exists, Transient, or a MillError."""
        return self._guard(lambda: getattr(self.client, operation)(Bucket=self.bucket, **arguments))

    def _guard(self, request: Callable[[], T]) -> T:
        try:
            return request()
        except faults.ClientError as err:
            raise self._answered(err) from None  # what the SDK says has addresses in it, with their secrets
        except (faults.NoCredentialsError, faults.PartialCredentialsError, faults.CredentialRetrievalError) as err:
            raise self._credentials(str(err)) from None
        except _WIRE as err:
            raise Transient(redacted(str(err))) from None

    def _answered(self, err: faults.ClientError) -> Exception:
        code = str(err.response.get("Error", {}).get("Code", ""))
        status = int(err.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        said = redacted(f"{code} (HTTP {status}): {err.response.get('Error', {}).get('Message', '')}")
        if status == 412:
            return Exists(said)
        if code == "NoSuchBucket":
            return Unavailable(
                f"The bucket {self.bucket!r} does not exist at {self._server()}.",
                said,
                "Create the bucket first (corpusmill never creates one), or check --store and AWS_ENDPOINT_URL.",
            )
        if status == 404:
            return Absent(said)
        if code == "BadDigest" or "checksum" in code.lower():
            return _BadDigest(said)
        if status in (409, 429) or code in _AGAIN or (status >= 500 and status != 501):
            return Transient(said)
        if code in _CREDENTIALS or status in (401, 403):
            return self._credentials(said)
        return Unavailable(
            f"{self._server()} refused {err.operation_name} on {self.uri}.",
            said,
            "Run `mill doctor store`: it shows what a store needs and this server lacks.",
        )

    def _credentials(self, said: str) -> MillError:
        return Unavailable(
            f"{self._server()} denies access to {self.uri}.",
            said,
            "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (or the profile), and their permissions for this bucket.",
        )

    def _away(self, said: str) -> MillError:
        return Unavailable(
            f"{self._server()} does not answer for {self.uri}.",
            f"Tried for {self.retry_for_s:.0f} seconds; last: {said}",
            "Check AWS_ENDPOINT_URL and that the server runs. Finished work is kept: run again when it answers.",
        )

    def _server(self) -> str:
        return urlsplit(self.client.meta.endpoint_url).netloc.rpartition("@")[2]


class _BadDigest(Transient):
    """The server received other bytes than those whose SHA-256 was sent."""


def _surroundings() -> tuple[str | None, ...]:
    """What a client is made from; tests and long-lived processes may change it."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION")
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    return tuple(os.environ.get(name) for name in names + keys)


@functools.lru_cache(maxsize=8)
def _client(pid: int, *surroundings: str | None, anonymous: bool = False) -> Any:
    """One client a process and configuration, as making one costs 0.25 s of CPU; safe for threads, not across fork.

    Args:
        anonymous: requests are not signed.
    """
    settings: dict[str, Any] = {
        "retries": {"total_max_attempts": 1},
        # Every checksum is asked for by name: some servers refuse those that the SDK adds of its own accord.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        **({"signature_version": UNSIGNED} if anonymous else {}),
        "connect_timeout": 5,
        "read_timeout": 60,
        "max_pool_connections": 32,
    }
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    try:
        session = boto3.session.Session(region_name=region)
        client = session.client("s3", config=Config(**settings))
        if not (urlsplit(client.meta.endpoint_url).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn")):
            client = session.client("s3", config=Config(**settings, s3={"addressing_style": "path"}))
    except (faults.BotoCoreError, ValueError) as err:
        raise UsageError(
            "The S3 configuration cannot be used.",
            redacted(str(err)),
            "Check AWS_ENDPOINT_URL, AWS_PROFILE and region.",
        ) from None
    return client
