"""Commands of the platform: `mill up`, `mill down`, `mill status`, `mill demo`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from corpusmill import extras
from corpusmill.plain_text import visible
from corpusmill.redact import redacted
from flows.platform import supervisor
from flows.platform.server import is_healthy
from flows.run.defaults import may_create, store_uri
from mill.common import Output, note
from mill.paths import folder

HOME = Path(".corpusmill")
"""Of the working folder: the server's database, logs and state."""
Home = Annotated[Path, Parameter(validator=folder)]


def up(
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    store: str | None = None,
    home: Home = HOME,
    options: Output = Output(),
) -> None:
    """Start the Prefect server, pools, deployments and workers, and leave them running.

    If PREFECT_API_URL is set, that server is used and only workers are started.

    Args:
        host: IP address that the server listens on; any but this machine's own loopback gets a random password.
        port: port of the server; default: 4200 if it is free, else any.
        store: store of flow runs that name none; default: CORPUSMILL_STORE, then ./.corpusmill/store.
        home: folder of the server's database, logs and state.
    """
    extras.need("flows")
    console = Console(stderr=True)
    home = home.resolve()
    platform = supervisor.find(home)
    if platform and not (platform.complete and is_healthy(platform.api_url)):
        supervisor.stop_platform(platform)  # the rest of it: half a platform runs nothing
        platform = None
    if platform:
        supervisor.point_prefect_at(platform.env)
        console.print("already up")
    else:
        uri = store_uri(store)
        if may_create(uri):
            from corpusmill.store import open_store

            open_store(
                uri, create=True
            )  # flow runs have another working directory and would not know it as the default
        with progress(console) as say:
            platform = supervisor.start(home, host, port, uri, say, lambda: sample_crawl(home))
        if home == HOME.resolve() and not supervisor.write_env_file(platform):
            console.print(f"{visible(str(supervisor.env_file(home)))} was not written by mill and is left unchanged")
    options.answer(document(platform), describe(platform))


def down(*, home: Home = HOME, options: Output = Output()) -> None:
    """Stop what `mill up` started: workers first, then the server.

    Args:
        home: the --home of `mill up`.
    """
    found = supervisor.find(home.resolve())
    if found:
        with progress(Console(stderr=True)) as say:
            say("stopping; flow runs get 30 s to store finished work")
            supervisor.stop_platform(found)
    options.answer({"stopped": found is not None}, "stopped" if found else "nothing is running")


def status(*, home: Home = HOME, options: Output = Output()) -> None:
    """Show what is running, and where.

    Args:
        home: the --home of `mill up`.
    """
    found = supervisor.find(home.resolve())
    if not found:
        options.answer({"up": False}, "nothing is running; start it with `mill up`")
        return
    healthy = is_healthy(found.api_url)
    who = f"pid {found.server.pid}" if found.server else "ended" if found.owned else "not ours"
    lines = [
        f"server   {'healthy' if healthy else 'does not answer'} ({who}), {found.ui_url}",
        f"workers  {f'pid {found.workers.pid}' if found.workers else 'ended'}",
        f"store    {found.store}",
        f"logs     {found.home / 'logs'}",
    ]
    options.answer({"up": healthy and found.complete, **document(found)}, "\n".join(lines))


def demo(
    *,
    no_server: Annotated[bool, Parameter(negative=())] = False,
    store: str | None = None,
    keep: Annotated[bool, Parameter(negative=())] = False,
    home: Home = HOME,
    options: Output = Output(),
) -> None:
    """Make a sample crawl, build a dataset from it, train on it, and show where everything came from.

    Args:
        no_server: run everything in this process, without Prefect.
        store: store of the dataset; default: CORPUSMILL_STORE, then ./.corpusmill/store.
        keep: leave the platform running at the end.
        home: folder of the sample crawl and of the server's database, logs and state.
    """
    extras.need(*([] if no_server else ["flows"]), "train")
    from mill.demo import run as steps

    home, uri = home.resolve(), store_uri(store)
    made = steps.plain(uri, home) if no_server else steps.on_platform(uri, home, keep=keep)
    options.answer(*steps.report(uri, made))


def document(platform: supervisor.Platform) -> dict[str, object]:
    """A platform as a JSON document."""
    return {
        "api_url": redacted(platform.api_url),
        "ui_url": platform.ui_url,
        "store": platform.store,
        "logs": str(platform.home / "logs"),
        "server": platform.server.pid if platform.server else None,
        "workers": platform.workers.pid if platform.workers else None,
    }


def sample_crawl(home: Path) -> Path:
    """The crawl of `build-dataset/demo`, made once (5 s)."""
    from mill.demo import crawl

    return crawl.make(home / "demo")


def describe(platform: supervisor.Platform) -> str:
    """What users need to know once the platform is up, as text."""
    from flows.platform.deploy import POOLS, deployments, load

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
    if supervisor.env_file_is_for(platform):
        lines.append(f"environment  {supervisor.env_file(platform.home)}, which Prefect reads in that folder")
    else:
        own = platform.owned  # what was given by the environment may hold a password, and is there already
        lines += [
            f"environment  export {name}={value if own else redacted(value)}" for name, value in platform.env.items()
        ]
    for name, spec in deployments().items():
        needed = [key for key in load(spec["entrypoint"]).parameters.required if key not in spec["parameters"]]
        asked = "".join(f" -p {key}={'NAME' if key == 'manifest' else 'FILE'}" for key in needed)
        lines.append(f"run          prefect deployment run '{name}'{asked} --watch")
    return "\n".join([*lines, "stop         mill down"])


@contextlib.contextmanager
def progress(console: Console) -> Iterator[Callable[[str], None]]:
    """A function that shows progress: one changing line on a terminal; elsewhere one line for each new step."""
    if console.is_terminal:
        with console.status("") as line:
            yield lambda text: line.update(text)
    else:
        said: list[str] = []

        def say(text: str) -> None:
            what = text.partition(":")[0]
            if [what] != said:
                said[:] = [what]
                note(text)

        yield say
