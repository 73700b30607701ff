"""Sources in buckets, on a real S3 server: listed, read through faults, without a signature; and stores beside them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.errors import NotFound, Unavailable, UsageError
from corpusmill.store import doctor, objects, open_store
from tasks import acquire
from tasks.acquire import notices
from tasks.acquire.fetch import http
from tasks.acquire.fetch.rate_limit import watched
from tasks.acquire.fetch.retries import Retries
from tasks.acquire.fetch.transport import exists, fetch, tree_files
from tasks.acquire.tree.names import fits
from tests.faultproxy import FaultProxy, Faults, faulty
from tests.servers import S3Server
from tests.tasks.acquire.reading import by_unit, outcomes, recipe
from tests.tasks.ingest.crawls import FILES, NEW, OLD, add_crawl, run
from tests.tasks.ingest.crawls import recipe as crawl_recipe

pytestmark = pytest.mark.usefixtures("brief_waits")

QUIET = Retries(attempts=25, sleep=lambda seconds: None)


@pytest.fixture
def upload(s3_uri: str, s3_server: S3Server) -> Callable[[Path], str]:
    """`upload(folder)`: everything in it under a prefix of its own; the root."""
    client = s3_server.client()
    bucket, _, prefix = s3_uri.removeprefix("s3://").partition("/")

    def put(folder: Path) -> str:
        for name, file in tree_files(folder):
            client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=file.read_bytes())
        return s3_uri

    return put


@pytest.fixture
def anonymous(s3_server: S3Server, s3_uri: str) -> str:
    """The root of a bucket that anybody may read, and that holds one page of JSON lines."""
    client = s3_server.client()
    bucket = s3_uri.removeprefix("s3://").split("/")[0]
    allow = {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:ListBucket"]}
    places = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    policy = {"Version": "2012-10-17", "Statement": [{**allow, "Resource": places}]}
    client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    prefix = s3_uri.split("/", 3)[3]
    client.put_object(Bucket=bucket, Key=f"{prefix}/a.jsonl", Body=b'{"text": "one"}\n')
    return f"s3://anonymous@{bucket}/{prefix}"


def everything(folder: Path) -> None:
    """Files of several kinds, some of them nobody asks for."""
    add_crawl(folder, OLD)
    rows = "".join(json.dumps({"text": f"row {i}"}) + "\n" for i in range(20))
    (folder / "rows").mkdir()
    (folder / "rows/a.jsonl").write_text(rows)
    (folder / "rows/b b+ü.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    (folder / "rows/deep").mkdir()
    (folder / "rows/deep/.c.jsonl").write_text(rows)
    (folder / "notes.txt").write_text("a note")


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("files", {}),
        ("files", {"max_files": 2}),
        ("jsonl", {}),
        ("jsonl", {"pattern": "rows/*.jsonl"}),
        ("text", {"pattern": "*.txt"}),
        ("common-crawl", {"crawls": ["newest"]}),
    ],
)
def test_a_bucket_is_what_a_folder_is(
    tmp_path: Path, upload: Callable[[Path], str], kind: str, keys: dict[str, object]
) -> None:
    everything(tmp_path)
    root = upload(tmp_path)
    here, there = by_unit(recipe(kind, tmp_path, **keys)), by_unit(recipe(kind, root, **keys))
    assert there == here
    assert sum(len(found) for _, found in here) > 0
    assert [acquire.identity(unit, recipe(kind, root, **keys)) for unit, _ in there] == [
        acquire.identity(unit, recipe(kind, tmp_path, **keys)) for unit, _ in here
    ]


def test_a_crawl_is_ingested_from_a_bucket_once_and_with_the_same_digest(
    tmp_path: Path, upload: Callable[[Path], str]
) -> None:
    add_crawl(tmp_path / "tree", OLD)
    root = upload(tmp_path / "tree")
    want = run(crawl_recipe(tmp_path / "tree"), open_store(tmp_path / "here", create=True))
    store = open_store(tmp_path / "there", create=True)
    with watched() as traffic:
        done = run(crawl_recipe(root), store)
    assert (done.digest, done.units_run) == (want.digest, FILES)
    assert traffic.requests == 2 + 2 * FILES
    with watched() as traffic:
        assert run(crawl_recipe(root), store).published == ()
    assert traffic.requests == 1
    add_crawl(tmp_path / "tree", NEW)
    upload(tmp_path / "tree")
    assert run(crawl_recipe(root), store).units_run == FILES


def test_more_than_a_page_is_listed(tmp_path: Path, upload: Callable[[Path], str]) -> None:
    """B72: 1,001 small files under one prefix."""
    for number in range(1001):
        (tmp_path / f"{number:04d}.jsonl").write_text(json.dumps({"text": f"document {number}"}))
    root = upload(tmp_path)
    assert acquire.plan(recipe("jsonl", root)) == acquire.plan(recipe("jsonl", tmp_path))
    assert len(acquire.single(recipe("jsonl", root))) == 1001


@pytest.mark.parametrize("checksums", [True, False])
def test_a_bucket_is_read_through_faults(
    tmp_path: Path, upload: Callable[[Path], str], s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, checksums: bool
) -> None:
    """B69: 503 SlowDown, resets, cuts, flipped bits."""
    data = random.Random(1).randbytes(300_000)
    (tmp_path / "x.bin").write_bytes(data)
    root = upload(tmp_path)
    hard = Faults(busy=0.3, cut=0.1, flip=0.1 if checksums else 0, reset=0.05, seed=4)
    with faulty(s3_server.endpoint, hard) as proxy, watched() as traffic:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        for _ in range(40):
            assert http.get(f"{root}/x.bin", QUIET) == data
            assert http.get_range(f"{root}/x.bin", 1000, 5, QUIET) in (data[1000:1005], *_flipped(data[1000:1005]))
        assert proxy.faults["busy"] > 5
        assert proxy.faults["cut"] > 0
    assert traffic.requests == proxy.requests.total()
    assert traffic.retries >= proxy.faults["busy"]


def _flipped(data: bytes) -> list[bytes]:
    """Of a part, no checksum speaks."""
    return [bytes([*data[:i], data[i] ^ 1 << bit, *data[i + 1 :]]) for i in range(len(data)) for bit in range(8)]


class Old(FaultProxy):
    """A server from before the checksums that SDKs add of their own accord: it refuses requests that carry them."""

    def refuses(self, headers: dict[str, str]) -> bool:
        return "x-amz-trailer" in headers or any("crc32" in f"{name} {value}" for name, value in headers.items())


def test_a_server_that_refuses_the_new_checksums_will_do(
    tmp_path: Path, upload: Callable[[Path], str], s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, s3_uri: str
) -> None:
    """B70: for a source and for a store; the doctor finds nothing missing."""
    add_crawl(tmp_path / "tree", OLD)
    root = upload(tmp_path / "tree")
    want = run(crawl_recipe(tmp_path / "tree"), open_store(tmp_path / "here", create=True))
    with faulty(s3_server.endpoint, kind=Old) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        client = objects._client_of(root)
        store = open_store(f"{s3_uri}-store", create=True)
        done = run(crawl_recipe(root), store)
        assert (done.digest, done.units_run) == (want.digest, FILES)
        assert [
            check.name for check in doctor.probe_backend(store.backend, writers=4, rounds=2, keys=10) if not check.ok
        ] == []
        assert proxy.faults["refused"] == 0
        client.meta.config.request_checksum_calculation = "when_supported"
        with pytest.raises(client.exceptions.ClientError):
            client.put_object(Bucket=s3_uri.split("/")[2], Key="new", Body=b"x")
        assert proxy.faults["refused"] == 1
    objects._client.cache_clear()


def test_the_doctor_retries_a_busy_server(s3_uri: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with faulty(s3_server.endpoint, Faults(busy=0.3, seed=2, retry_after=None)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        store = open_store(s3_uri, create=True)
        checks = doctor.probe_backend(store.backend, writers=4, rounds=2, keys=30)
        assert [(check.name, check.says) for check in checks if not check.ok] == []
        assert proxy.faults["busy"] > 20


def test_without_a_signature(anonymous: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert [o.text for o in outcomes("jsonl", anonymous)] == ["one"]
    with pytest.raises(Unavailable, match="read without a signature") as raised:
        outcomes("jsonl", anonymous.replace("anonymous@", ""))
    assert "AWS_ACCESS_KEY_ID" in raised.value.do


def test_what_is_not_there_or_not_allowed_says_so(
    s3_uri: str, upload: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    root = upload(tmp_path)
    assert exists(root, "a.jsonl")
    assert not exists(root, "b.jsonl")
    with pytest.raises(Unavailable, match=r"b\.jsonl is missing"), fetch(root, "b.jsonl"):
        pass
    with pytest.raises(NotFound, match="s3://no-such-bucket-here cannot be listed"):
        outcomes("jsonl", "s3://no-such-bucket-here")
    assert outcomes("jsonl", f"{root}/nothing") == []
    for wrong in ("s3://", "s3:///x", "s3://key:secret@bucket/x"):
        with pytest.raises(UsageError, match="not a bucket URL"):
            outcomes("jsonl", wrong)
    for pattern in ("", "/x", "a/../b", "x/**"):
        with pytest.raises(UsageError, match="pattern"):
            outcomes("jsonl", root, pattern=pattern)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(Unavailable, match="no permission to read") as raised:
        outcomes("jsonl", root)
    assert "wrong" not in str(raised.value)


def test_names_that_could_not_be_files_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["good.jsonl", "back\\slash.jsonl", "a//b.jsonl", "../up.jsonl", "./here.jsonl", "other.txt"]
    monkeypatch.setattr("tasks.acquire.fetch.s3.listing", lambda root: ((name, 5, '"e"') for name in names))
    with notices.heard() as said:
        assert [unit.locator for unit in acquire.single(recipe("jsonl", "s3://bucket/prefix"))] == ["good.jsonl"]
    assert said == ["source 's': 4 objects are skipped, because their names cannot be file names"]


NAMES = st.sampled_from(["a", "b.txt", ".c", "a[1]", "x y"])
PATTERNS = st.sampled_from(["*", "**", "a", "*.txt", ".*", "[ab]*", "[!a]*", "?", "a[[]1]"])


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=8), st.lists(PATTERNS, min_size=1, max_size=4))
def test_patterns_fit_the_names_that_a_glob_finds(
    tmp_path_factory: pytest.TempPathFactory, paths: list[list[str]], pattern: list[str]
) -> None:
    if pattern[-1] == "**":
        pattern = [*pattern, "*"]
    root = tmp_path_factory.mktemp("glob")
    for path in paths:
        file = root.joinpath(*path[:-1], path[-1] + "f")
        if any(parent.is_file() for parent in file.parents) or file.is_dir():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    files = {name for name, _ in tree_files(root)}
    glob = "/".join(pattern)
    found = {path.relative_to(root).as_posix() for path in root.glob(glob) if path.is_file()}
    assert {name for name in files if fits(name, glob)} == found
