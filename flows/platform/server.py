"""The Prefect server of a project: where it runs, with which settings, and when it is ready."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpusmill.errors import Refused, Unavailable
from corpusmill.places import SHIPPED, has_home, python_environment

DEFAULT_PORT = 4200
HEALTHY_WITHIN_S = 180


@dataclass(frozen=True)
class Address:
    """Where the server listens; `password` protects it when other machines can reach it."""

    host: str
    port: int
    password: str | None

    @property
    def api_url(self) -> str:
        """PREFECT_API_URL of clients on this machine."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/api"


def take_address(host: str, port: int | None) -> tuple[Address, socket.socket]:
    """Where the server will listen, and the socket that listens there already.

    Args:
        port: must be free; None: 4200 if it is, else any.

    Raises:
        Refused: the port is taken.
    """
    listener = _listen(host, port or DEFAULT_PORT) or (None if port else _listen(host, 0))
    if listener is None:
        raise Refused(f"port {port} is taken", "Another process listens there.", "Choose another --port, or none.")
    password = None if is_loopback(host) else secrets.token_urlsafe(18)
    return Address(host, int(listener.getsockname()[1]), password), listener


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket | None:
    """A listening socket, which reserves the port; None: another process listens there."""
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
        listener.listen(128)
    except OSError as err:
        listener.close()
        if err.errno == errno.EADDRINUSE:
            return None
        raise Unavailable(f"cannot listen on {host}:{port}", str(err), "Choose another --host.") from err
    return listener


def tuned_settings(file: Path = SHIPPED / "infra/prefect.env") -> dict[str, str]:
    """Assignments of an env file."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def client_env(address: Address, home: Path) -> dict[str, str]:
    """What clients and workers of our own server need in their environment."""
    env = {"PREFECT_API_URL": address.api_url, "PREFECT_HOME": str(home / "prefect")}
    if address.password:
        env["PREFECT_API_AUTH_STRING"] = f"mill:{address.password}"
    return env


def child_env(extra: Mapping[str, str]) -> dict[str, str]:
    """Environment of every process we start: ours, the tuned settings where nothing is set, `extra`.

    The interpreter's folder comes first on PATH (the pools' command is `python`), and a user's own `tasks.py` in the
    working directory can shadow ours.
    """
    env = python_environment({**tuned_settings(), **os.environ, **extra, "PYTHONUNBUFFERED": "1"})
    if "HOME" not in env and not has_home() and "PREFECT_HOME" in env:
        env["HOME"] = env["PREFECT_HOME"]  # Prefect does not start without a home
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    return env


def start_server(address: Address, listener: socket.socket, home: Path) -> subprocess.Popen[bytes]:
    """Start the server on a listening socket, which it takes over."""
    env = child_env(client_env(address, home))
    env["PREFECT_SERVER_API_HOST"], env["PREFECT_SERVER_API_PORT"] = address.host, str(address.port)
    # The address as the browser sees it. Listening on every interface, only the browser knows: relative to the page.
    env["PREFECT_SERVER_UI_API_URL"] = "/api" if address.host in ("0.0.0.0", "::") else address.api_url
    if address.password:
        env["PREFECT_SERVER_API_AUTH_STRING"] = f"mill:{address.password}"
        env["PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED"] = "true"
    # Only when we own it: a database that the environment names belongs to another server.
    env.pop("PREFECT_API_DATABASE_CONNECTION_URL", None)
    env.pop("PREFECT_SERVER_DATABASE_CONNECTION_URL", None)
    with listener:
        return spawn(
            ["flows.platform.serve", str(listener.fileno())], env, home / "logs/server.log", keep=[listener.fileno()]
        )


def spawn(module: list[str], env: Mapping[str, str], log: Path, keep: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start `python -m …` in the working folder, detached from this terminal; it inherits the descriptors `keep`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", *module],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=keep,
        )


def wait_healthy(
    api_url: str, running: Callable[[], bool], tick: Callable[[float], None], log: Path | None = None
) -> None:
    """Wait for the health check.

    Args:
        running: whether the server's process is still alive.
        tick: called about four times a second with the seconds waited.
        log: its output, named in the message when it does not come up.

    Raises:
        Unavailable: it ended, or is not healthy after 180 s.
    """
    began = time.monotonic()
    while not is_healthy(api_url, timeout_s=1):
        waited = time.monotonic() - began
        where = f"Its log: {log}" if log else f"Is {api_url} the right address (PREFECT_API_URL)?"
        if not running():
            raise Unavailable("the Prefect server ended while it started", last_line(log), where)
        if waited > HEALTHY_WITHIN_S:
            raise Unavailable(f"the Prefect server is not healthy after {HEALTHY_WITHIN_S} s", last_line(log), where)
        tick(waited)
        time.sleep(0.25)


def is_healthy(api_url: str, timeout_s: float = 5) -> bool:
    """Whether `/health` answers 200 (it needs no password)."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=timeout_s) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def last_line(log: Path | None) -> str:
    """The last line of a log, for a message."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log and log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
