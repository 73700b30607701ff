"""What a source lists, and getting at it: the same from a folder, file:// and http://."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from pathlib import Path
from typing import Any, get_args

import pytest

from corpusmill.config import CommonCrawl, Files, Source
from corpusmill.errors import NotFound, Unavailable, UsageError
from corpusmill.schema import doc_id
from tasks import acquire
from tasks.acquire import SourceUnit, common_crawl, files
from tasks.acquire.fetch.transport import fetch, read
from tests.tasks.acquire import reading
from tests.tasks.acquire.server import serve


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two crawls of six files each; the list of the second is out of order and names one twice."""
    for crawl in ("CC-MAIN-2026-30", "CC-MAIN-2026-34"):
        names = [f"crawl-data/{crawl}/segments/1/warc/{i}.warc.gz" for i in range(6)]
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(name.encode())
        listed = names if crawl.endswith("30") else [*names[::-1], names[0]]
        (tmp_path / f"crawl-data/{crawl}/warc.paths.gz").write_bytes(gzip.compress("\n".join(listed).encode()))
    (tmp_path / "collinfo.json").write_text('[{"id": "CC-MAIN-2026-34"}, {"id": "CC-MAIN-2026-30"}]')
    return tmp_path


def crawl(root: str | Path, *crawls: str, max_files: int | None = None) -> CommonCrawl:
    return CommonCrawl(kind="common-crawl", root=str(root), crawls=crawls or ("newest",), max_files=max_files)


def test_a_plan_is_the_same_from_every_kind_of_root(tree: Path) -> None:
    plans = [common_crawl.plan("web", crawl(root), 17) for root in (tree, f"{tree}/", tree.as_uri())]
    with serve(tree) as server:
        plans.append(common_crawl.plan("web", crawl(server.url), 17))
    assert all(plan == plans[0] for plan in plans)
    assert [unit.locator[-9:] for unit in plans[0]] == [f"{i}.warc.gz" for i in range(6)]
    assert {unit.snapshot for unit in plans[0]} == {"CC-MAIN-2026-34"}
    assert plans[0][0].identity() == {
        "source": "web",
        "snapshot": "CC-MAIN-2026-34",
        "locator": "crawl-data/CC-MAIN-2026-34/segments/1/warc/0.warc.gz",
        "kind": "warc",
    }


def test_samples_are_drawn_by_the_seed_and_grow_by_addition(tree: Path) -> None:
    def drawn(count: int, seed: int = 17) -> set[SourceUnit]:
        config = crawl(tree, "CC-MAIN-2026-30", "CC-MAIN-2026-34", max_files=count)
        return set(common_crawl.plan("web", config, seed))

    assert len(drawn(2)) == 4  # of each crawl
    assert drawn(2) == drawn(2)
    assert drawn(2) < drawn(3) < drawn(6)
    assert len({frozenset(drawn(2, seed)) for seed in range(8)}) > 1


def test_files_are_fetched_with_their_digest(tree: Path) -> None:
    locator = "crawl-data/CC-MAIN-2026-30/segments/1/warc/3.warc.gz"
    want = hashlib.sha256(locator.encode()).hexdigest()
    with fetch(str(tree), locator) as file:
        assert (file.sha256, file.size, file.path) == (want, len(locator), tree / locator)
    with serve(tree, lambda n, path: "cut" if n == 1 else None) as server, fetch(server.url, locator) as file:
        assert (file.sha256, file.size) == (want, len(locator))
        assert file.path.read_bytes() == locator.encode()
    assert not file.path.exists()


def test_what_is_missing_says_so(tree: Path) -> None:
    with pytest.raises(NotFound, match="not a folder"):
        common_crawl.plan("web", crawl(tree / "nowhere"), 17)
    with pytest.raises(NotFound, match=r"no crawl-data/CC-MAIN-1999-01/warc\.paths\.gz"):
        common_crawl.plan("web", crawl(tree, "CC-MAIN-1999-01"), 17)
    with pytest.raises(Unavailable, match="cannot be read"), fetch(str(tree), "gone.warc.gz"):
        pass
    with serve(tree) as server:
        with pytest.raises(NotFound, match="answers 404"):
            common_crawl.plan("web", crawl(server.url, "CC-MAIN-1999-01"), 17)
        with pytest.raises(Unavailable, match="is missing"), fetch(server.url, "gone.warc.gz"):
            pass


def test_a_damaged_list_is_unavailable(tree: Path) -> None:
    (tree / "crawl-data/CC-MAIN-2026-30/warc.paths.gz").write_bytes(b"\x1f\x8b\x08 not really")
    with pytest.raises(Unavailable, match="damaged"):
        common_crawl.plan("web", crawl(tree, "CC-MAIN-2026-30"), 17)


@pytest.mark.parametrize("locator", ["../secret", "/etc/passwd", "a/../../b", "a\\b"])
def test_locators_stay_below_the_root(tree: Path, locator: str) -> None:
    with pytest.raises(UsageError, match="below the root"):
        read(str(tree), locator)
    with pytest.raises(UsageError, match="below the root"):
        read("http://127.0.0.1:9", locator)


def test_a_folder_of_files(tree: Path) -> None:
    config = Files(kind="files", root=str(tree), pattern="**/[0-2].warc.gz", snapshot="s1")
    units = sorted(files.plan("mine", config, 17), key=lambda unit: unit.locator)
    assert [unit.locator[-9:] for unit in units] == ["0.warc.gz", "1.warc.gz", "2.warc.gz"] * 2
    assert {(unit.source, unit.snapshot, unit.kind) for unit in units} == {("mine", "s1", "warc")}
    with pytest.raises(UsageError, match="cannot be listed"):
        files.plan("mine", Files(kind="files", root="http://example.org", pattern="*"), 17)
    with pytest.raises(NotFound, match="not a folder"):
        files.plan("mine", Files(kind="files", root=str(tree / "nowhere")), 17)


def test_the_mini_crawl_lists_eight_files_of_each_kind(data_dir: Path) -> None:
    crawls = ("CC-MAIN-2026-30", "CC-MAIN-2026-34")
    for kind in ("warc", "wet"):
        config = CommonCrawl(kind="common-crawl", root=str(data_dir / "mini-crawl"), crawls=crawls, files=kind)
        units = common_crawl.plan("crawl", config, 17)
        assert len(units) == 8
        assert {unit.kind for unit in units} == {kind}
        assert all((data_dir / "mini-crawl" / unit.locator).is_file() for unit in units)


def test_identity_of_a_document_is_its_place() -> None:
    ids = {
        doc_id("s", "c", "a", 0, 0),
        doc_id("s", "c", "a", 0, 1),
        doc_id("s", "c", "a", 1, 0),
        doc_id("s", "c", "b", 0, 0),
        doc_id("s", "d", "a", 0, 0),
        doc_id("t", "c", "a", 0, 0),
    }
    assert len(ids) == 6
    assert doc_id("web", "CC-MAIN-2026-30", "a/b.warc.gz", 915).hex() == "e3a3c6fce776dedeb9ceb4753b9f23a2"


@pytest.mark.parametrize("section", get_args(get_args(Source)[0]), ids=lambda section: section.__name__)
def test_every_kind_of_source_has_the_module_that_is_named_after_it(section: Any) -> None:
    (kind,) = get_args(section.model_fields["kind"].annotation)
    module = acquire.module_of(kind)
    assert isinstance(module.LIBRARIES, tuple)
    assert all(callable(getattr(module, name)) for name in ("plan", "reading", "read"))


LISTS = {
    "bomb": gzip.compress(b"a" * 2**24) * 8,
    "lines": gzip.compress(b"a\n" * (10**6 + 2)),
    "plain": b"crawl-data/a.warc.gz\n",
    "cut": gzip.compress(b"crawl-data/a.warc.gz\n" * 99)[:-9],
    "long": bytes(17 * 2**20),
    "bytes": gzip.compress(b"\xff\xfe"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_files_that_is_none_is_refused_in_words_and_not_held(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "crawl-data" / "CC-MAIN-2026-30"
    folder.mkdir(parents=True)
    (folder / "warc.paths.gz").write_bytes(LISTS[name])
    made = reading.recipe("common-crawl", tmp_path, crawls=["CC-MAIN-2026-30"])
    tracemalloc.start()
    with pytest.raises(Unavailable, match=r"damaged or no list|larger than 16.0 MiB"):
        acquire.plan(made)
    assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("text", ["[" * 10**5, "[{}]", '"a"', "1" * 5000, " " * (5 * 2**20)])
def test_a_list_of_crawls_that_is_none_is_refused_in_words(text: str, tmp_path: Path) -> None:
    (tmp_path / "collinfo.json").write_text(text)
    with pytest.raises(Unavailable, match=r"not a list of crawls|larger than 4.0 MiB"):
        acquire.plan(reading.recipe("common-crawl", tmp_path, crawls=["newest"]))
