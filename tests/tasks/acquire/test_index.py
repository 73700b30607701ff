"""Pages of a crawl by its index, ranges of crawls, samples."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from corpusmill.errors import NotFound, Unavailable
from corpusmill.readers.warc import FileFacts
from tasks import acquire
from tasks.acquire import common_crawl
from tasks.acquire.index import cdx
from tasks.acquire.index.cdx import Place, groups
from tasks.acquire.tree.sample import sampled
from tests.tasks.acquire.reading import by_unit, reasons, recipe
from tests.tasks.acquire.server import serve

CRAWLS = ["CC-MAIN-2026-30", "CC-MAIN-2026-34"]


def index(data_dir: Path, crawl: str) -> list[dict[str, str]]:
    data = gzip.decompress((data_dir / f"mini-crawl/cc-index/collections/{crawl}/indexes/cdx-00000.gz").read_bytes())
    return [json.loads(line[line.index(b"{") :]) for line in data.split(b"\n") if line]


def test_selected_pages_are_those_of_the_whole_files(data_dir: Path) -> None:
    """Same outcome, same identity as when the WARC files are read whole, for every page that the index names."""
    root = data_dir / "mini-crawl"
    whole = {
        (unit.locator, o.offset): o
        for unit, found in by_unit(recipe("common-crawl", root, crawls=CRAWLS[:1]))
        for o in found
    }
    facts = FileFacts()
    select = {"languages": ["deu", "fra"], "statuses": [200], "mimes": ["text/html"]}
    ((unit, found),) = by_unit(recipe("common-crawl", root, crawls=CRAWLS[:1], select=select), facts)
    assert unit.kind == "cdx"
    assert unit.locator == "cc-index/collections/CC-MAIN-2026-30/indexes/cdx-00000.gz"
    lines = index(data_dir, CRAWLS[0])
    wanted = [
        (e["filename"], int(e["offset"]))
        for e in lines
        if e["status"] == "200" and e["mime-detected"] == "text/html" and e.get("languages", "")[:3] in ("deu", "fra")
    ]
    assert len(wanted) > 100
    assert [(o.file, o.offset) for o in found] == sorted(wanted)
    assert facts.not_content["not_selected"] == len(lines) - len(wanted)
    for outcome in found:
        other = whole[str(outcome.file), outcome.offset]
        assert (outcome.html, outcome.text, outcome.reason, outcome.url) == (
            *(other.html, other.text, other.reason),
            other.url,
        )
        assert outcome.source_id == f"{outcome.file}:{outcome.offset}"


def test_domains_are_hosts_and_all_below_them(data_dir: Path) -> None:
    root = data_dir / "mini-crawl"
    hosts = Counter(e["url"].split("/")[2] for crawl in CRAWLS for e in index(data_dir, crawl))
    domain = max((host for host in hosts if host.startswith("www.")), key=lambda host: hosts[host])[4:]
    want = sum(n for host, n in hosts.items() if host == domain or host.endswith(f".{domain}"))
    with serve(root) as server:
        found = by_unit(recipe("common-crawl", server.url, crawls=CRAWLS, select={"domains": [domain]}))
        assert sum(len(outcomes) for _, outcomes in found) == want
        read = {path: n for path, n in server.requests.items() if path.endswith(".warc.gz")}
    assert read
    assert sum(read.values()) <= want
    assert server.ranges.total() >= sum(read.values())


def tree(root: Path, lines: list[bytes]) -> Path:
    folder = root / "cc-index/collections/CC-MAIN-2026-30/indexes"
    folder.mkdir(parents=True)
    (folder / "cdx-00000.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    return root


def line(**fields: str) -> bytes:
    known = {"url": "https://a.example/", "status": "200", "length": "40", "offset": "0", "filename": "w.warc.gz"}
    return b"example,a)/ 20260715000000 " + json.dumps({**known, **fields}).encode()


def test_bad_lines_and_empty_places_are_counted(tmp_path: Path) -> None:
    (tmp_path / "w.warc.gz").write_bytes(b"nothing like a record, but long enough for the place given")
    lines = [
        line(),
        line(),
        line(offset="900"),
        line(offset="-1"),
        line(filename="../../etc/passwd"),
        line(length="99999999999999"),
        b"no json",
        b"key 2026 {broken",
        b"key 2026 [1]",
        line(status="404"),
    ]
    facts = FileFacts()
    made = recipe("common-crawl", tree(tmp_path, lines), crawls=CRAWLS[:1], select={"statuses": [200]})
    ((_, found),) = by_unit(made, facts)
    assert reasons(found) == {"damaged": 1, "truncated": 1, "bad_row": 6}
    assert dict(facts.not_content) == {"listed_twice": 1, "not_selected": 1}


def test_a_file_that_the_index_names_must_be_there(tmp_path: Path) -> None:
    made = recipe("common-crawl", tree(tmp_path, [line()]), crawls=CRAWLS[:1], select={})
    with pytest.raises(Unavailable, match=r"w\.warc\.gz cannot be read"):
        by_unit(made)


def test_near_places_are_read_at_once() -> None:
    places = [Place("a", 0, 10, None, None), Place("a", 10, 10, None, None), Place("a", 10**9, 10, None, None)]
    places += [Place("b", 20, cdx.SPAN_BYTES, None, None), Place("b", 30, cdx.SPAN_BYTES, None, None)]
    assert [[p.offset for p in group] for group in groups(places)] == [[0, 10], [10**9], [20], [30]]


def test_what_selects_is_part_of_the_identity(tmp_path: Path) -> None:
    tree(tmp_path, [line()])
    made = [
        recipe("common-crawl", tmp_path, crawls=CRAWLS[:1], select=select)
        for select in ({"domains": ["a"]}, {"domains": ["b"]})
    ]
    (unit,) = acquire.plan(made[0])
    assert acquire.identity(unit, made[0]) != acquire.identity(unit, made[1])
    assert "reading" not in acquire.identity(unit, recipe("common-crawl", tmp_path, crawls=CRAWLS[:1]))


@pytest.mark.parametrize(
    ("named", "want"),
    [
        (["newest"], ["50"]),
        (["CC-MAIN-2026-34..CC-MAIN-2026-46"], ["34", "38", "42", "46"]),
        (["CC-MAIN-2026-42.."], ["42", "46", "50"]),
        (["..CC-MAIN-2026-34"], ["30", "34"]),
        (["CC-MAIN-2026-38", "CC-MAIN-2026-34..CC-MAIN-2026-38", "newest"], ["38", "34", "50"]),
    ],
)
def test_crawls_by_range(tmp_path: Path, named: list[str], want: list[str]) -> None:
    ids = [{"id": f"CC-MAIN-2026-{week}"} for week in (50, 30, 34, 38, 42, 46)]
    (tmp_path / "collinfo.json").write_text(json.dumps(ids))
    config = recipe("common-crawl", tmp_path, crawls=named).source["s"]
    assert [crawl[-2:] for crawl in common_crawl.crawls(config)] == want
    with pytest.raises(NotFound, match=r"no crawl in 'CC-MAIN-2027\.\.'"):
        common_crawl.crawls(recipe("common-crawl", tmp_path, crawls=["CC-MAIN-2027.."]).source["s"])


def test_fractions_are_drawn_by_the_seed_and_grow_by_addition() -> None:
    names = [f"f{i}" for i in range(2000)]
    tenth, fifth = (set(sampled(names, 17, share, None)) for share in (0.1, 0.2))
    assert tenth < fifth
    assert 150 < len(tenth) < 250
    assert set(sampled(names, 18, 0.1, None)) != tenth
    assert set(sampled(names, 17, 0.1, 5)) < tenth
    assert sampled(names, 17, 1.0, None) == sorted(names)
