"""A real PostgreSQL server for a test: the machine's own binaries, a folder of its own, gone with the block."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import die_with_parent, free_ports


def binary(name: str) -> str | None:
    """On PATH, or where Debian keeps it."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start it; the address for SQLAlchemy's asyncpg. Root may not run it: then the user postgres does."""
    initdb, postgres = binary("initdb"), binary("postgres")
    if initdb is None or postgres is None:
        pytest.skip("no PostgreSQL binaries: apt-get install postgresql")
    user = getpass.getuser()
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            pytest.skip("root may not run PostgreSQL, and there is no user postgres")
    run_as = {"user": user} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(
        prefix="corpusmill-postgres-"
    ) as name:  # pytest's own folders are closed to others
        folder = Path(name)
        shutil.chown(folder, user)
        data, port = folder / "data", free_ports(1)[0]
        command = [initdb, "-D", str(data), "-U", "mill", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **run_as)
        command = [postgres, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", "", "-F"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, preexec_fn=die_with_parent, **run_as
            )
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.2)
            yield f"postgresql+asyncpg://mill@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(timeout=30)
