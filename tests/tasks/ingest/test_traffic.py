"""What a run asked of servers: counted in all its processes, shown at its end, kept with the run and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpusmill.engine.local import Engine
from corpusmill.errors import NotFound
from corpusmill.store import Store, open_store
from mill import cli
from tasks.acquire import notices
from tasks.acquire.fetch import rate_limit
from tasks.acquire.fetch.rate_limit import Traffic, watched
from tasks.traffic import Counted, recorded, said_of
from tests.tasks.acquire.server import serve
from tests.tasks.ingest.crawls import FILES, OLD, add_crawl, locator


@pytest.fixture
def root(tmp_path: Path) -> Path:
    add_crawl(tmp_path / "tree", OLD)
    return tmp_path / "tree"


def ask(times: int) -> int:
    """A unit that asks a server so often, and fails at the third time."""
    rate_limit.count(requests=times, waited_s=0.25)
    if times == 3:
        raise NotFound("three")
    return times


def busy_twice(number: int, path: str) -> str | None:
    return {1: "429", 2: "reset"}.get(number) if path.endswith("1.warc.gz") else None


def kept(store: Store) -> list[dict[str, Any]]:
    return [json.loads(store.get(name)) for name in told(store)]


def told(store: Store) -> list[str]:
    """What the runs kept of themselves: the other names speak of sources."""
    return [name for name in store.list("runs/") if not name.startswith(("runs/sources/", "runs/origins/"))]


def command(verb: str, tmp_path: Path, address: str, workers: int = 1) -> tuple[str, ...]:
    file = tmp_path / "web.toml"
    file.write_text(f'name = "web"\n[source.crawl]\nkind = "common-crawl"\nroot = "{address}"\ncrawls = ["newest"]\n')
    return (verb, str(file), "--store", str(tmp_path / "store"), "--workers", str(workers))


def test_an_ingestion_says_and_keeps_what_its_processes_asked(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with serve(root, busy_twice) as server:
        asked = command("ingest", tmp_path, server.url, workers=2)
        assert cli.run((*asked, "--create-store", "--json")) == 0
        done = json.loads(capsys.readouterr().out)
        total = server.requests.total() + server.sizes.total()
        assert done["traffic"]["requests"] == total
        assert done["traffic"]["retries"] == 4  # twice the size is asked for in vain, and twice the body
        assert 0.5 <= done["traffic"]["waited_s"] < 20
        assert done["traffic"]["received_bytes"] >= sum((root / locator(OLD, n)).stat().st_size for n in range(FILES))

        store = open_store(tmp_path / "store")
        (run,) = kept(store)
        assert told(store) == [f"runs/{done['run']}/traffic.json"]
        assert run["traffic"] == done["traffic"]
        assert (run["verb"], run["recipe"], run["ended"], run["manifest"]) == (
            "ingest",
            "web",
            "finished",
            done["manifest"],
        )
        written = " ".join(store.get(name).decode() for name in store.list("receipts/") + store.list("datasets/"))
        assert "waited" not in written
        assert "retries" not in written

        server.requests.clear()
        assert cli.run(asked) == 0
        text = capsys.readouterr().out
        assert text.startswith("nothing new\n1 requests; 0.0 MB received, ")
        assert server.requests == {"collinfo.json": 1}


def test_a_run_that_fails_keeps_its_count_too(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (root / locator(OLD, 1)).unlink()
    with serve(root) as server:
        assert cli.run((*command("ingest", tmp_path, server.url), "--create-store")) == 7
        (run,) = kept(open_store(tmp_path / "store"))
        assert (run["ended"], run["manifest"]) == ("failed", None)
        assert run["traffic"]["requests"] == server.requests.total() + server.sizes.total()


def test_where_no_server_is_asked_nothing_is_kept(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert cli.run((*command("ingest", tmp_path, str(root)), "--create-store", "--json")) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["traffic"] == Traffic().as_dict()
    assert (done["run"], done["notices"]) == (None, [])
    assert told(open_store(tmp_path / "store")) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_every_unit_counts_once_in_whatever_process_and_however_it_ends(tmp_path: Path, workers: int) -> None:
    store = open_store(tmp_path / "store", create=True)
    with watched() as outside, recorded(store, "test", "web") as record, Engine(workers) as engine:
        rate_limit.count(requests=100)
        run = record.counting(lambda stage, fn, units: engine.map(fn, units))
        with pytest.raises(NotFound):
            run("ask", ask, [1, 2, 3, 4])
    assert record.traffic.requests == 110
    assert record.traffic.waited_s == 1.0
    assert outside.requests == 0
    assert kept(store)[0]["traffic"]["requests"] == 110


def test_a_line_cut_by_a_kill_is_left_out(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    with recorded(store, "test", "web") as record:
        Counted(ask, record.folder)(1)
        (Path(record.folder) / "77.jsonl").write_text('{"requests": 5, "ret')
    assert record.traffic.requests == 1


def test_a_store_that_is_away_does_not_hide_why_a_run_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "store", create=True)

    def away(self: Store, name: str, data: bytes) -> bool:
        raise NotFound("away")

    monkeypatch.setattr(Store, "put", away)
    record = None

    def fail() -> None:
        nonlocal record
        with recorded(store, "test", "web") as record:
            rate_limit.count(requests=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert record is not None
    assert record.notices == ["what was asked of servers could not be kept in the store: away"]


def test_a_count_in_words() -> None:
    assert said_of(Traffic()) == ""
    assert said_of(Traffic(1200, 30, 2, 5_250_000, 61.25)) == (
        "1,200 requests, 30 of them again, 2 bodies came damaged; 5.2 MB received, 61.2 s waited"
    )


def test_sentences_are_heard_once_and_by_the_inner_listener() -> None:
    notices.say("nobody listens")
    with notices.heard() as outer:
        notices.say("a")
        with notices.heard() as inner:
            notices.say("b")
        notices.say("a")
    assert (outer, inner) == (["a"], ["b"])
