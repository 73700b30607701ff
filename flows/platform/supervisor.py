"""Server and workers, started and stopped together: order, state file, what may be ended.

Start: server, health, pools and deployments and automations, workers. Stop: workers first (they report the end of
their runs), then the server. `platform.json` names each process by id and start time, so that stopping, from
whatever process, ends exactly those. A PREFECT_API_URL that is given is used and never replaced: then there is no
server of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path

from corpusmill.errors import Unavailable
from corpusmill.places import has_home
from corpusmill.processes import Proc, alive, identify, stop
from corpusmill.redact import redacted
from flows.platform.server import (
    Address,
    child_env,
    client_env,
    is_healthy,
    spawn,
    start_server,
    take_address,
    tuned_settings,
    wait_healthy,
)

WORKERS_GRACE_S = 40.0
"""Longer than workers wait for flow runs (flows/platform/workers.py)."""
SERVER_GRACE_S = 10.0
ENV_MARK = "# Written by `mill up`, removed by `mill down`: Prefect reads it in this folder.\n"

_children: list[subprocess.Popen[bytes]] = []  # of this process, kept to be reaped


@dataclass(frozen=True)
class Platform:
    """What runs.

    Args:
        home: folder of the database, logs and the state file.
        api_url: PREFECT_API_URL of clients.
        env: what clients need in their environment.
        owned: whether the server is ours; else a given one is used.
        server: its process.
        workers: the process of all pools; None: not started yet.
    """

    home: Path
    api_url: str
    env: Mapping[str, str]
    store: str
    owned: bool = True
    server: Proc | None = None
    workers: Proc | None = None

    @property
    def complete(self) -> bool:
        """Whether everything that should run is running."""
        return bool(self.workers and (self.server or not self.owned))

    @property
    def ui_url(self) -> str:
        """What to open in a browser; of a server that was given, without a password."""
        return redacted(self.api_url).removesuffix("/api")

    @property
    def processes(self) -> list[Proc]:
        """Ours, in stop order."""
        return [proc for proc in (self.workers, self.server) if proc]


def given_api_url() -> str | None:
    """PREFECT_API_URL from the environment, or from a .env of the working folder that we did not write."""
    if url := os.environ.get("PREFECT_API_URL"):
        return url.rstrip("/")
    file = Path(".env")
    if file.exists() and not _is_ours(file):
        return tuned_settings(file).get("PREFECT_API_URL")
    return None


def start(
    home: Path, host: str, port: int | None, store: str, say: Callable[[str], None], meanwhile: Callable[[], object]
) -> Platform:
    """Start everything; an error or an interrupt ends what was started.

    Args:
        store: URI that flow runs without a `store` parameter use.
        say: called with the progress, often.
        meanwhile: done in a thread while the server migrates its database, which takes 10 s the first time.

    Raises:
        Unavailable: the server does not come up or cannot be reached.
    """
    home.mkdir(parents=True, exist_ok=True)
    platform, before = Platform(home, "", {}, store), len(_children)
    try:
        if url := given_api_url():
            platform = replace(platform, api_url=url, env={"PREFECT_API_URL": url}, owned=False)
            if not is_healthy(url):
                raise Unavailable(
                    f"no Prefect server answers at {url}",
                    "PREFECT_API_URL is set, so mill starts no server.",
                    "Unset it, or correct it.",
                )
            point_prefect_at(platform.env)
            meanwhile()
        else:
            platform = _start_server(platform, *take_address(host, port), say, meanwhile)
        say("pools, deployments, automations")
        _register()
        say("workers")
        return _start_workers(platform)
    except BaseException:
        with _no_interrupt():
            for child in reversed(_children[before:]):  # workers first; also one that `platform` did not hold yet
                if child.poll() is None and (proc := identify(child.pid)):
                    stop([proc], WORKERS_GRACE_S)
            stop_platform(platform)
        raise


def _start_server(
    platform: Platform,
    address: Address,
    listener: socket.socket,
    say: Callable[[str], None],
    meanwhile: Callable[[], object],
) -> Platform:
    env = client_env(address, platform.home)
    child = start_server(address, listener, platform.home)
    platform = replace(platform, api_url=address.api_url, env=env, server=_keep(child))
    _write_state(platform)
    point_prefect_at(env)
    with ThreadPoolExecutor(1) as pool:
        imports = pool.submit(import_module, "flows.platform.deploy")
        other = pool.submit(meanwhile)
        try:
            wait_healthy(
                platform.api_url,
                lambda: child.poll() is None,
                lambda waited: say(f"Prefect server starts: {waited:.0f} s (10 to 60 s the first time)"),
                platform.home / "logs/server.log",
            )
            imports.result()
            other.result()
        except BaseException:
            stop_platform(platform)
            raise
    return platform


def _register() -> None:
    from flows.platform.deploy import apply

    apply()


def _start_workers(platform: Platform) -> Platform:
    from flows.platform.deploy import POOLS

    env = child_env({**platform.env, "CORPUSMILL_STORE": platform.store})
    workers = spawn(["flows.platform.workers", *POOLS], env, platform.home / "logs/workers.log")
    platform = replace(platform, workers=_keep(workers))
    _write_state(platform)
    return platform


def stop_platform(platform: Platform) -> None:
    """Workers, then the server; interrupts wait until it is done."""
    with _no_interrupt():
        if platform.workers:
            stop([platform.workers], WORKERS_GRACE_S)
        if platform.server:
            stop([platform.server], SERVER_GRACE_S)
        for child in _children:
            child.poll()
        _state_file(platform.home).unlink(missing_ok=True)
        if env_file_is_for(platform):
            env_file(platform.home).unlink()


def find(home: Path) -> Platform | None:
    """The platform whose state file is in `home`, with the processes that still live; None: none of them does."""
    file = _state_file(home)
    if not file.exists():
        return None
    data = json.loads(file.read_text(encoding="utf-8"))
    procs = {role: Proc(**data[role]) for role in ("server", "workers") if data[role]}
    live = {role: proc for role, proc in procs.items() if alive(proc)}
    if not live:
        file.unlink()
        return None
    return Platform(
        home, data["api_url"], data["env"], data["store"], data["owned"], live.get("server"), live.get("workers")
    )


def env_file(home: Path) -> Path:
    """`.env` of the project whose `.corpusmill` is `home`: Prefect reads it when it is called in that folder."""
    return home.with_name(".env")


def write_env_file(platform: Platform) -> bool:
    """Write the project's `.env`; False: one of the user's is there."""
    file = env_file(platform.home)
    if file.exists() and not _is_ours(file):
        return False
    lines = [f"{name}={value}\n" for name, value in platform.env.items() if name != "PREFECT_HOME"]
    file.touch(mode=0o600)
    file.write_text(ENV_MARK + "".join(lines), encoding="utf-8")
    return True


def env_file_is_for(platform: Platform) -> bool:
    """Whether the project's `.env` is the one that was written for this platform."""
    file = env_file(platform.home)
    return file.exists() and _is_ours(file) and platform.api_url in file.read_text(encoding="utf-8")


def _is_ours(file: Path) -> bool:
    return file.read_text(encoding="utf-8").startswith(ENV_MARK)


def _state_file(home: Path) -> Path:
    return home / "platform.json"


def _write_state(platform: Platform) -> None:
    data = {"api_url": platform.api_url, "env": dict(platform.env), "store": platform.store, "owned": platform.owned,
            "server": asdict(platform.server) if platform.server else None,
            "workers": asdict(platform.workers) if platform.workers else None}  # fmt: skip
    file = _state_file(platform.home)
    file.touch(mode=0o600)  # it may hold the server's password
    file.write_text(json.dumps(data, indent=1), encoding="utf-8")


def _keep(child: subprocess.Popen[bytes]) -> Proc | None:
    _children.append(child)
    return identify(child.pid)


def point_prefect_at(env: Mapping[str, str]) -> None:
    """Make this process a client of that server, for good. Prefect reads its settings when it is first imported."""
    os.environ.update(env)
    if not has_home() and "PREFECT_HOME" in env:
        os.environ["HOME"] = env["PREFECT_HOME"]
    if "prefect" in sys.modules:
        from prefect.context import refresh_global_settings_context

        refresh_global_settings_context()


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
