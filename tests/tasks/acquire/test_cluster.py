"""An index searched by cluster.idx: the same pages as from the whole index, by a few small reads."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.acquire import notices
from tasks.acquire.index import cluster
from tasks.acquire.index.cdx import _host_is_in
from tests import golden
from tests.tasks.acquire.reading import by_unit, recipe
from tests.tasks.acquire.server import serve

CRAWL = "CC-MAIN-2026-30"
FOLDER = f"cc-index/collections/{CRAWL}/indexes"
LINES = 7
"""Lines of a member; 3,000 in a real index."""


def key_of(url: str) -> str:
    """The key of a URL, as pywb makes it: written down here once more, independently."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    labels = host.split(".")
    if labels[0].startswith("www") and labels[0][3:].isdigit() | (labels[0] == "www"):
        labels = labels[1:]
    port = f":{parts.port}" if parts.port else ""
    return f"{','.join(reversed(labels))}{port}){parts.path or '/'}"


def hosts(count: int, seed: int) -> Iterator[str]:
    draw = random.Random(seed)
    tops = ["com", "org", "example", "co.uk"]
    names = ["shop", "shop-a", "shopa", "a", "ab", "news", "www2", "www", "x"]
    for _ in range(count):
        labels = [draw.choice(names) for _ in range(draw.randrange(1, 4))]
        yield ".".join([*labels, draw.choice(tops)]) + draw.choice(["", "", "", ":8080"])


def write_index(root: Path, urls: list[str], files: int = 3) -> None:
    """An index of pages that all lie in one WARC file, in several files of several members, with its cluster.idx."""
    (root / FOLDER).mkdir(parents=True)
    warc, entries = b"", []
    for url in urls:
        record = golden.record(url, golden.page(golden.SUBJECTS[0], 1))
        facts = {
            "url": url,
            "status": "200",
            "filename": "w.warc.gz",
            "offset": str(len(warc)),
            "length": str(len(record)),
        }
        entries.append((f"{key_of(url)} 20260715000000".encode(), json.dumps(facts).encode()))
        warc += record
    (root / "w.warc.gz").write_bytes(warc)
    entries.sort()
    members = [entries[i : i + LINES] for i in range(0, len(entries), LINES)]
    lines, names = [], []
    for number in range(files):
        name, data = f"cdx-{number:05d}.gz", b""
        for member in members[len(members) * number // files : len(members) * (number + 1) // files]:
            packed = gzip.compress(b"".join(key + b" " + facts + b"\n" for key, facts in member))
            lines.append(
                b"\t".join([member[0][0], name.encode(), b"%d" % len(data), b"%d" % len(packed), b"%d" % len(lines)])
            )
            data += packed
        (root / FOLDER / name).write_bytes(data)
        names.append(f"{FOLDER}/{name}")
    (root / FOLDER / cluster.NAME).write_bytes(b"\n".join(lines) + b"\n")
    (root / f"crawl-data/{CRAWL}").mkdir(parents=True)
    listed = [*names, f"{FOLDER}/{cluster.NAME}", f"{FOLDER}/metadata.yaml"]
    (root / f"crawl-data/{CRAWL}/cc-index.paths.gz").write_bytes(gzip.compress("\n".join(listed).encode()))


def selected(root: str | Path, domains: list[str]) -> tuple[list[str], set[str]]:
    """Addresses of the pages read, and kinds of the units."""
    found = by_unit(recipe("common-crawl", root, crawls=[CRAWL], select={"domains": domains}))
    return sorted(str(o.url) for _, outcomes in found for o in outcomes), {unit.kind for unit, _ in found}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    root = tmp_path_factory.mktemp("index")
    urls = sorted({f"https://{host}/{i % 3}" for i, host in enumerate(hosts(500, 7))})
    write_index(root, urls)
    return root, urls


DOMAINS = [
    "shop.com",
    "org",
    "a.example",
    "www.shop.co.uk",
    "www2.news.com",
    "www.com",
    "nowhere.net",
    "aaa",
    "zzz",
    "x.shop-a.org",
]


@pytest.mark.parametrize("domains", [[domain] for domain in DOMAINS] + [["shop.com", "a.example", "nowhere.net"]])
def test_the_pages_of_domains_are_those_that_the_whole_index_has(
    tree: tuple[Path, list[str]], domains: list[str]
) -> None:
    root, urls = tree
    want = [url for url in urls if _host_is_in(url, domains)]
    assert selected(root, domains) == (want, {"cdx-parts"})


def test_some_domains_have_pages(tree: tuple[Path, list[str]]) -> None:
    """So that the test above can fail."""
    counts = [sum(_host_is_in(url, [domain]) for url in tree[1]) for domain in DOMAINS]
    assert sum(count > 0 for count in counts) >= 6


def test_only_parts_of_the_index_are_fetched_and_over_http_they_are_the_same(tree: tuple[Path, list[str]]) -> None:
    root, _ = tree
    sizes = sum(file.stat().st_size for file in (root / FOLDER).glob("cdx-*"))
    from tasks.acquire.fetch.rate_limit import watched

    with serve(root) as server:
        with watched() as traffic:
            over_http = selected(server.url, ["x.shop-a.org"])
        asked = Counter(server.requests)
        assert over_http == selected(root, ["x.shop-a.org"])
        index = {path: n for path, n in asked.items() if "/cdx-" in path}
        assert index
        assert all(server.ranges[path] == n for path, n in index.items())
        assert traffic.received_bytes < sizes // 2


def test_without_cluster_idx_the_whole_index_is_read(tree: tuple[Path, list[str]], tmp_path: Path) -> None:
    _, urls = tree
    write_index(tmp_path, urls[:60])
    want = [url for url in urls[:60] if _host_is_in(url, ["com"])]
    (tmp_path / FOLDER / cluster.NAME).unlink()
    with serve(tmp_path) as server:
        for root in (tmp_path, server.url):
            assert selected(root, ["com"]) == (want, {"cdx"})


@pytest.mark.parametrize(
    "damage", [b"no tabs\n", b"k\tcdx-00000.gz\tx\t5\t1\n", b"k\t../../x\t0\t5\t1\n", b"x" * 100_000]
)
def test_a_damaged_cluster_idx_is_said_and_the_whole_index_read(
    tree: tuple[Path, list[str]], tmp_path: Path, damage: bytes
) -> None:
    _, urls = tree
    write_index(tmp_path, urls[:60])
    (tmp_path / FOLDER / cluster.NAME).write_bytes(damage)
    with notices.heard() as said:
        found, kinds = selected(tmp_path, ["com"])
    assert (found, kinds) == ([url for url in urls[:60] if _host_is_in(url, ["com"])], {"cdx"})
    assert len(said) == 1
    assert "the whole index is read instead" in said[0]


class Counting(BytesIO):
    """Counts reads."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


def test_a_search_takes_few_reads_of_a_large_file() -> None:
    lines = [
        b"com,host%06d)/ 2026\tcdx-%05d.gz\t%d\t100\t%d" % (i, i // 1000, i % 1000 * 100, i) for i in range(100_000)
    ]
    data = b"\n".join(lines) + b"\n"
    file = Counting(data)
    found = cluster.members_of(file, len(data), ["host050500.com"])
    assert found == {"cdx-00050.gz": ((499 * 100, 501 * 100),)}
    assert file.reads < 150
    assert set(cluster.members_of(file, len(data), ["host099999.com"])) == {"cdx-00099.gz"}
    assert cluster.members_of(file, len(data), ["aaa"]) == {"cdx-00000.gz": ((0, 100),)}


@given(
    st.lists(st.text("abz,)-:", min_size=1, max_size=6), min_size=1, max_size=60),
    st.sampled_from(["a", "ab", "b.a", "z"]),
)
def test_every_line_that_may_be_meant_is_in_a_member_that_is_read(keys: list[str], domain: str) -> None:
    keys = sorted(keys, key=str.encode)
    members = [keys[i : i + 3] for i in range(0, len(keys), 3)]
    data = b"".join(f"{m[0]} 2026\tcdx-00000.gz\t{i * 10}\t10\t{i}\n".encode() for i, m in enumerate(members))
    ranges = cluster.members_of(BytesIO(data), len(data), [domain]).get("cdx-00000.gz", ())
    read = [key for i, m in enumerate(members) if any(a <= i * 10 < b for a, b in ranges) for key in m]
    for first, last in cluster.key_ranges(domain):
        meant = [key for key in keys if first <= key.encode() < last]
        assert Counter(meant) - Counter(read) == Counter()


def test_urls_of_hosts_are_searched_in_both_orders() -> None:
    assert {first for first, _ in cluster.key_ranges("1.2.3.4")} == {b"4,3,2,1)", b"4,3,2,1:", b"1,2,3,4)", b"1,2,3,4:"}
