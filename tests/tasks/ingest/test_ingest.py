"""What one ingestion after another reads, publishes and asks of the server."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpusmill.dataset import funnel
from corpusmill.dataset.manifest import FORMAT
from corpusmill.errors import NotFound, Refused, Unavailable
from corpusmill.store import Store, open_store
from mill import cli
from tasks.acquire import plan
from tasks.acquire.notices import heard
from tasks.chain import build
from tasks.extract import extract_file
from tasks.ingest import Ingested, ingest
from tests.datasets import publish
from tests.tasks.acquire.server import FolderServer, serve
from tests.tasks.ingest.crawls import FILES, NEW, OLD, PAGES, add_crawl, locator, recipe, run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with one crawl."""
    add_crawl(tmp_path / "tree", OLD)
    return tmp_path / "tree"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def bodies(server: FolderServer) -> Counter[str]:
    """Requests for WARC files since the last question."""
    asked = Counter({path: n for path, n in server.requests.items() if path.endswith(".warc.gz")})
    server.requests.clear()
    return asked


def files_of(crawl: str) -> Counter[str]:
    return Counter(locator(crawl, number) for number in range(FILES))


def test_a_crawl_is_fetched_once_and_the_next_one_when_it_comes(root: Path, store: Store) -> None:
    with serve(root) as server:
        wanted = recipe(server.url)
        first = run(wanted, store)
        assert bodies(server) == files_of(OLD)
        assert (len(first.published), first.units_run) == (1, FILES)

        again = run(wanted, store)
        assert bodies(server) == Counter()
        assert (again.digest, again.published, again.units_run) == (first.digest, (), 0)

        add_crawl(root, NEW)
        second = run(wanted, store)
        assert bodies(server) == files_of(NEW)
        (_, manifest) = second.published[0]
        assert manifest.parents == (first.digest,)
        assert manifest.snapshots == {"crawl": (OLD, NEW)}

        assert run(wanted, store).published == ()
        assert bodies(server) == Counter()
    assert [entry["why"] for entry in store.history("web-documents")] == [f"ingest crawl {OLD}", f"ingest crawl {NEW}"]


def test_a_manifest_holds_the_documents_of_one_snapshot_and_the_fate_of_every_record(
    root: Path, store: Store, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    ((digest, manifest),) = run(recipe(root), store).published
    assert (manifest.format, manifest.kind, manifest.parents) == (FORMAT, "documents", ())
    assert [row.stage for row in manifest.funnel] == ["acquire", "extract"]
    assert funnel.faults(manifest.funnel) == []
    acquired, extracted = manifest.funnel
    assert acquired.reasons["redirect"].docs == FILES
    assert extracted.docs_out == FILES * PAGES
    assert [item.locator for item in manifest.inputs] == [locator(OLD, number) for number in range(FILES)]
    rows = store.table(manifest.table("lineage")).to_pylist()
    assert Counter(row["kind"] for row in rows) == {"documents": FILES, "records": FILES}
    assert sum(row["rows"] for row in rows if row["kind"] == "documents") == extracted.docs_out

    at = ("web-documents", "--store", store.uri, "--json")
    for verb, key in (("verify", "ok"), ("funnel", "stages"), ("lineage", "inputs")):
        assert cli.run((verb, *at)) == 0
        assert json.loads(capsys.readouterr().out)[key]
    assert cli.run(("rejects", *at)) == 3
    assert "its documents were not judged yet" in capsys.readouterr().err
    assert cli.run(("export", *at, "--all", "-o", str(tmp_path / "out"))) == 0
    lines = [json.loads(line) for line in (tmp_path / "out/records.jsonl").read_text().split("\n") if line]
    assert Counter(line["reason"] for line in lines) == {None: FILES * PAGES, "redirect": FILES}
    assert all(bool(line["text"]) == (line["reason"] is None) for line in lines)
    assert digest in store.get(f"datasets/web-documents/{digest}.md").decode()


def test_a_server_that_fails_often_changes_no_digest_and_no_file_is_read_twice(root: Path, tmp_path: Path) -> None:
    def fault(number: int, path: str) -> str | None:
        return {1: "503", 2: "cut", 3: "reset"}.get(number) if path.endswith("1.warc.gz") else None

    calm = run(recipe(root), open_store(tmp_path / "calm", create=True))
    with serve(root, fault) as server:
        stormy = run(recipe(server.url), open_store(tmp_path / "stormy", create=True))
    assert stormy.digest == calm.digest
    assert stormy.units_run == FILES


def test_a_crawl_that_was_broken_off_goes_on_where_it_was(root: Path, store: Store) -> None:
    gone = root / locator(OLD, 1)
    data = gone.read_bytes()
    gone.unlink()
    with serve(root) as server:
        with pytest.raises(Unavailable):
            run(recipe(server.url), store)
        bodies(server)
        assert store.history("web-documents") == []
        gone.write_bytes(data)
        resumed = run(recipe(server.url), store)
        assert bodies(server) == Counter([locator(OLD, 1)])
    assert (resumed.units_run, resumed.units_reused, len(resumed.published)) == (1, FILES - 1, 1)


def test_crawls_that_came_while_nobody_looked_are_all_ingested_oldest_first(root: Path, store: Store) -> None:
    run(recipe(root), store)
    for crawl in ("CC-MAIN-2026-39", NEW):  # collinfo.json need not be in order
        add_crawl(root, crawl)
    done = run(recipe(root), store)
    assert [manifest.snapshot.id for _, manifest in done.published] == [NEW, "CC-MAIN-2026-39"]
    assert [manifest.inputs[0].snapshot for _, manifest in done.published] == [NEW, "CC-MAIN-2026-39"]


def test_a_failing_crawl_keeps_what_was_finished_before_it(root: Path, store: Store) -> None:
    add_crawl(root, NEW)
    (root / locator(NEW, 0)).unlink()
    with pytest.raises(Unavailable):
        run(recipe(root, OLD, NEW), store)
    assert [entry["why"] for entry in store.history("web-documents")] == [f"ingest crawl {OLD}"]


def test_a_range_of_crawls_has_a_watermark_too(root: Path, store: Store) -> None:
    add_crawl(root, NEW)
    assert [m.snapshot.id for _, m in run(recipe(root, f"{OLD}.."), store).published] == [OLD, NEW]
    assert run(recipe(root, f"{OLD}.."), store).published == ()


def test_new_files_of_a_folder_are_ingested_and_old_ones_are_left(root: Path, store: Store) -> None:
    from corpusmill.config import parse_recipe

    source = {"kind": "files", "root": str(root), "pattern": "crawl-data/**/*.warc.gz", "snapshot": "ours"}
    wanted = parse_recipe({"name": "web", "source": {"folder": source}}, "test")
    assert run(wanted, store).units_run == FILES
    assert run(wanted, store).published == ()
    add_crawl(root, NEW)
    ((_, manifest),) = run(wanted, store).published
    assert {item.locator for item in manifest.inputs} == set(files_of(NEW))
    assert manifest.snapshots == {"folder": ("ours",)}
    assert run(wanted, store).published == ()


def test_two_ingestions_at_once_publish_one_manifest(root: Path, store: Store) -> None:
    inner: list[Ingested] = []

    def run_both(stage: str, fn: Any, units: Any) -> list[Any]:
        if not inner:
            inner.append(ingest(recipe(root), open_store(store.uri), lambda _, f, items: [f(item) for item in items]))
        return [fn(unit) for unit in units]

    outer = ingest(recipe(root), store, run_both)
    assert outer.digest == inner[0].digest
    assert len(store.history("web-documents")) == 1


def test_a_build_finds_the_files_read(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run(recipe(root), store)
    wanted = recipe(root)
    seen = []

    def stop(stage: str, fn: Any, units: Any) -> list[Any]:
        seen.extend(extract_file(job.item, job.recipe, open_store(store.uri)) for job in units)
        raise KeyboardInterrupt

    monkeypatch.setattr("tasks.judge.groups.digest_of_model", lambda _: "0" * 64)
    with pytest.raises(KeyboardInterrupt):
        build(wanted, store, stop)
    assert len(seen) == FILES
    assert all(done.reused for pair in seen for done in pair)


def test_a_name_that_a_built_dataset_has_is_refused(root: Path, tmp_path: Path) -> None:
    built, _ = publish(tmp_path / "other", "web-documents")
    with pytest.raises(Refused, match="was built, not ingested"):
        run(recipe(root), built)


def test_a_crawl_that_lists_no_file_is_a_fault(root: Path, store: Store) -> None:
    add_crawl(root, NEW, files=0)
    with pytest.raises(NotFound, match=f"{NEW} of source 'crawl' lists no file"):
        run(recipe(root), store)


def test_url_rules_end_pages_and_are_part_of_the_identity_by_their_entries(
    root: Path, store: Store, tmp_path: Path
) -> None:
    def rules(name: str, text: str) -> str:
        (tmp_path / f"{name}.txt").write_text(text)
        (tmp_path / f"{name}.toml").write_text(f'version = 1\nwords = ["{name}.txt"]\n')
        return str(tmp_path / f"{name}.toml")

    ((_, manifest),) = run(recipe(root, urls=rules("one", "river\n")), store).published
    acquired = manifest.funnel[0]
    assert acquired.reasons["url_word"].docs == FILES
    assert manifest.urls.version == 1
    assert str(tmp_path) not in json.dumps(manifest.to_json())

    def units_run(wanted: Any) -> int:
        return sum(not extract_file(unit, wanted, store)[1].reused for unit in plan(wanted))

    assert units_run(recipe(root, urls=rules("same", "# another file\nRIVER\n"))) == 0
    assert units_run(recipe(root, urls=rules("more", "river\ngarden\n"))) == FILES
    with pytest.raises(NotFound, match="no URL rules"):
        run(recipe(root, urls="nowhere"), store)


def announce(root: Path, crawl: str) -> None:
    """An entry of collinfo.json, as it comes before the lists of a crawl's files."""
    known = json.loads((root / "collinfo.json").read_text())
    (root / "collinfo.json").write_text(json.dumps([{"id": crawl}, *known]))


def forget(root: Path, crawl: str) -> None:
    known = json.loads((root / "collinfo.json").read_text())
    (root / "collinfo.json").write_text(json.dumps([entry for entry in known if entry["id"] != crawl]))


@pytest.mark.parametrize("crawls", [("newest",), (f"{OLD}..",)])
def test_a_crawl_that_is_announced_only_is_left_out_said_and_taken_another_time(
    root: Path, store: Store, crawls: tuple[str, ...]
) -> None:
    latest = "CC-MAIN-2026-39"
    with serve(root) as server:
        wanted = recipe(server.url, *crawls)
        first = run(wanted, store)
        announce(root, NEW)
        with heard() as said:
            nothing = run(wanted, store)
        assert (nothing.published, nothing.digest) == ((), first.digest)
        assert all(NEW in sentence and "announced but not available yet" in sentence for sentence in said)
        assert len(said) == 1

        add_crawl(root, latest)  # a newer one is there before it
        with heard() as said:
            ((_, manifest),) = run(wanted, store).published
        assert (manifest.snapshot.id, manifest.awaited) == (latest, {"crawl": (NEW,)})
        assert manifest.snapshots == {"crawl": (OLD, latest)}
        assert len(said) == 1

        forget(root, NEW)
        add_crawl(root, NEW)
        bodies(server)
        with heard() as said:
            ((_, manifest),) = run(wanted, store).published
        assert (manifest.snapshot.id, manifest.awaited) == (NEW, None)
        assert manifest.snapshots == {"crawl": (OLD, NEW, latest)}
        assert bodies(server) == files_of(NEW)
        assert said == []
        assert run(wanted, store).published == ()


def test_a_crawl_asked_for_by_its_name_must_be_there(root: Path, store: Store) -> None:
    announce(root, NEW)
    with pytest.raises(NotFound, match=rf"no crawl-data/{NEW}/warc\.paths\.gz"):
        run(recipe(root, NEW), store)


def test_a_build_of_an_announced_crawl_says_why_there_is_nothing(root: Path, store: Store) -> None:
    announce(root, NEW)
    assert {unit.snapshot for unit in plan(recipe(root, f"{OLD}.."))} == {OLD}
    with pytest.raises(NotFound, match=rf"note: {NEW} of source 'crawl' is announced"), heard():
        build(recipe(root), store, lambda stage, fn, units: [fn(one) for one in units])
