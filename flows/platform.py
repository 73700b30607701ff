"""Commands of the platform: `mill up`, `mill down`, `mill status`, `mill demo`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from corpusmill.config import REPOSITORY as ROOT
from flows import supervisor
from flows.defaults import may_create, store_uri
from flows.server import is_healthy

HOME = ROOT / ".corpusmill"
"""Where a project keeps its server's database, logs and state."""


def up(*, host: str = "127.0.0.1", port: int | None = None, store: str | None = None, home: Path = HOME) -> None:
    """Start the Prefect server, pools, deployments and workers, and leave them running.

    With PREFECT_API_URL set, that server is used and only workers are started.

    Args:
        host: address the server listens on; any other than this machine's own gets a random password.
        port: its port; else 4200 if it is free, else any.
        store: store of flow runs that name none; else CORPUSMILL_STORE, else ./.corpusmill/store.
        home: folder of the server's database, logs and state.
    """
    console = Console(stderr=True)
    home = home.resolve()
    found = supervisor.find(home)
    if found and found.complete and is_healthy(found.api_url):
        console.print(f"already up: {found.ui_url}")
        return
    if found:
        supervisor.stop_platform(found)  # what is left of it: half a platform runs nothing
    uri = store_uri(store)
    if may_create(uri):
        from corpusmill.store import open_store

        open_store(uri, create=True)  # flow runs have another working directory and would not know it as the default
    with progress(console) as say:
        platform = supervisor.start(home, host, port, uri, say, lambda: sample_crawl(home))
    written = home == HOME and supervisor.write_env_file(platform)
    print(describe(platform, env_file=written))


def down(*, home: Path = HOME) -> None:
    """Stop what `mill up` started: workers first, then the server.

    Args:
        home: folder given to `mill up`.
    """
    found = supervisor.find(home.resolve())
    if not found:
        print("nothing runs")
        return
    with progress(Console(stderr=True)) as say:
        say("stopping: flow runs get 20 s to store what they have")
        supervisor.stop_platform(found)
    print("stopped")


def status(*, home: Path = HOME) -> None:
    """Say what runs.

    Args:
        home: folder given to `mill up`.
    """
    found = supervisor.find(home.resolve())
    if not found:
        print("nothing runs; `mill up` starts it")
        return
    server = "healthy" if is_healthy(found.api_url) else "does not answer"
    who = f"pid {found.server.pid}" if found.server else "not ours" if not found.owned else "ended"
    print(f"server   {server} ({who}), {found.ui_url}")
    print(f"workers  {f'pid {found.workers.pid}' if found.workers else 'ended'}")
    print(f"store    {found.store}\nlogs     {found.home / 'logs'}")


def demo(*, no_server: bool = False, store: str | None = None, keep: bool = False, home: Path = HOME) -> None:
    """Make a sample crawl, build a dataset from it, train on it, and show where everything came from.

    Args:
        no_server: run everything in this process, without Prefect.
        store: where the dataset goes; else CORPUSMILL_STORE, else ./.corpusmill/store.
        keep: leave the platform running at the end.
        home: folder of the sample crawl and of the server's database, logs and state.
    """
    from flows import demo as steps

    if no_server:
        steps.plain(store_uri(store), home.resolve())
    else:
        steps.on_platform(store_uri(store), home.resolve(), keep=keep)


def sample_crawl(home: Path) -> Path:
    """The crawl of `build-dataset/demo`, made once (5 s)."""
    from tasks import democrawl

    return democrawl.make(home / "demo")


def describe(platform: supervisor.Platform, *, env_file: bool) -> str:
    """What a user needs to know once the platform is up."""
    from flows.deploy import POOLS, deployments

    lines = [f"UI           {platform.ui_url}"]
    if "PREFECT_API_AUTH_STRING" in platform.env:
        lines.append(
            f"password     {platform.env['PREFECT_API_AUTH_STRING']}  (also in {platform.home / 'platform.json'})"
        )
    lines += [
        f"pools        {', '.join(POOLS)}",
        f"store        {platform.store}",
        f"logs         {platform.home / 'logs'}",
    ]
    if not env_file:
        lines += [f"environment  export {name}={value}" for name, value in platform.env.items()]
    else:
        lines.append(f"environment  {supervisor.ENV_FILE} (Prefect reads it in {ROOT})")
    wanted = {"train": " -p manifest=NAME"}
    lines += [
        f"run          prefect deployment run '{name}' --watch{wanted.get(name.partition('/')[0], '')}"
        for name in deployments()
    ]
    return "\n".join([*lines, "stop         mill down"])


@contextlib.contextmanager
def progress(console: Console) -> Iterator[Callable[[str], None]]:
    """A function that shows what is going on: one changing line on a terminal; elsewhere a line for each new thing."""
    if console.is_terminal:
        with console.status("") as line:
            yield lambda text: line.update(text)
    else:
        said: list[str] = []

        def say(text: str) -> None:
            what = text.partition(":")[0]
            if [what] != said:
                said[:] = [what]
                print(text, file=sys.stderr, flush=True)

        yield say
