"""Bodies that come damaged: found by stated checksums or by those of gzip, fetched again, and at last believed."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.errors import Unavailable
from tasks.acquire.fetch.checksums import Checksums, stated_checksums
from tasks.acquire.fetch.http import download, get, get_range
from tasks.acquire.fetch.rate_limit import watched
from tasks.acquire.fetch.retries import Retries
from tests.corpusmill.readers.archives import members, pages
from tests.faultproxy import Faults, faulty

WARC = members(pages(60))
NOISE = random.Random(3).randbytes(50_000)
QUIET = Retries(attempts=25, sleep=lambda seconds: None)


def fetched(url: str) -> bytes:
    out = io.BytesIO()
    download(url, out, QUIET)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(40):
        (tmp_path / f"{number}.warc.gz").write_bytes(members(pages(30 + number)))
        (tmp_path / f"{number}.bin").write_bytes(NOISE[number * 100 :])
    return tmp_path


RATES = Faults(busy=0.3, cut=0.05, flip=0.01, reset=0.02)
HARD = Faults(busy=0.3, cut=0.2, flip=0.2, reset=0.1, seed=5)


@pytest.mark.parametrize("faults", [RATES, HARD], ids=["stated rates", "hard"])
@pytest.mark.parametrize("kind", ["warc.gz", "bin"])
def test_faults_do_not_change_a_byte_where_checksums_are_stated(folder: Path, faults: Faults, kind: str) -> None:
    with faulty(folder, faults) as server, watched() as traffic:
        for number in range(40):
            name = f"{number}.{kind}"
            assert fetched(f"{server.url}/{name}") == (folder / name).read_bytes()
            assert get(f"{server.url}/{name}", QUIET) == (folder / name).read_bytes()
    assert traffic.damaged == server.faults["flip"]
    assert traffic.retries == server.faults["busy"] + server.faults["cut"] + server.faults["reset"]
    assert faults is RATES or min(server.faults[kind] for kind in ("busy", "cut", "flip", "reset")) > 5


def test_gzip_tells_damage_where_nothing_is_stated(folder: Path) -> None:
    """All but the bits of a member's head that say nothing about its content: time, system, speed."""
    with faulty(folder, HARD, checksums=False) as server, watched() as traffic:
        for number in range(40):
            name = f"{number}.warc.gz"
            got = fetched(f"{server.url}/{name}")
            assert gzip.decompress(got) == gzip.decompress((folder / name).read_bytes())
    assert 0 <= server.faults["flip"] - traffic.damaged <= 2
    assert traffic.damaged > 5


def test_what_is_stored_damaged_is_fetched_twice_and_believed(tmp_path: Path) -> None:
    broken = bytearray(WARC)
    broken[len(members(pages(30))) + 40] ^= 0x10
    (tmp_path / "broken.warc.gz").write_bytes(broken)
    (tmp_path / "cut.warc.gz").write_bytes(WARC[:-9])
    for name, data in (("broken.warc.gz", bytes(broken)), ("cut.warc.gz", WARC[:-9])):
        for checksums, times in ((True, 1), (False, 2)):
            with faulty(tmp_path, checksums=checksums) as server:
                assert fetched(f"{server.url}/{name}") == data
                assert server.requests[f"/{name}"] == times


def test_damage_that_is_another_each_time_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(NOISE)
    with (
        faulty(tmp_path, Faults(flip=0.999999)) as server,
        pytest.raises(Unavailable, match="arrived damaged 3 times"),
    ):
        get(f"{server.url}/x", Retries(attempts=3))


def test_ranges_are_verified_by_the_members_in_them(folder: Path) -> None:
    parts = [members([one]) for one in pages(37)]
    begin, size = len(b"".join(parts[:5])), len(b"".join(parts[5:12]))
    with faulty(folder, HARD, checksums=False) as server:
        for _ in range(25):
            got = get_range(f"{server.url}/7.warc.gz", begin, size, QUIET)
            assert gzip.decompress(got) == b"".join(pages(12)[5:])
        assert get_range(f"{server.url}/7.warc.gz", begin + 3, 50, QUIET) == parts[5][3:53]
        assert server.faults["flip"] > 2


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("headers", "algorithm"),
    [
        ({"ETag": f'"{hashlib.md5(NOISE).hexdigest()}"'}, "md5"),
        ({"content-md5": b64(hashlib.md5(NOISE).digest())}, "md5"),
        ({"x-amz-checksum-sha256": b64(hashlib.sha256(NOISE).digest())}, "sha256"),
        ({"x-amz-checksum-sha1": b64(hashlib.sha1(NOISE).digest())}, "sha1"),
        ({"x-amz-checksum-crc32": b64(zlib.crc32(NOISE).to_bytes(4, "big"))}, "crc32"),
        ({"x-goog-hash": f"crc32c=AAAAAA==,md5={b64(hashlib.md5(NOISE).digest())}"}, "md5"),
        ({"Repr-Digest": f"sha-256=:{b64(hashlib.sha256(NOISE).digest())}:"}, "sha256"),
        ({"Digest": f"SHA-512={b64(hashlib.sha512(NOISE).digest())}"}, "sha512"),
    ],
)
def test_checksums_that_servers_state(headers: dict[str, str], algorithm: str) -> None:
    assert set(stated_checksums(headers)) == {algorithm}
    for data, wrong in ((NOISE, False), (NOISE[:-1] + b"\x00", True)):
        checksums = Checksums(headers)
        for at in range(0, len(data), 7000):
            checksums.update(data[at : at + 7000])
        assert checksums.contradicts() is wrong


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"ETag": 'W/"d41d8cd98f00b204e9800998ecf8427e"'},
        {"ETag": '"d41d8cd98f00b204e9800998ecf8427e-38"'},
        {"ETag": '"5f3c-61a"'},
        {"x-amz-checksum-sha256": "AAAA-3"},
        {"x-amz-checksum-type": "COMPOSITE", "x-amz-checksum-crc32": "AAAAAA=="},
        {"x-amz-checksum-crc64nvme": "AAAAAAAAAAA="},
        {"content-md5": "not base64"},
    ],
)
def test_what_is_no_checksum_of_the_body_says_nothing(headers: dict[str, str]) -> None:
    assert stated_checksums(headers) == {}


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    st.lists(st.integers(1, 400), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_members_are_judged_alike_however_they_arrive(contents: list[bytes], steps: list[int], padding: int) -> None:
    data = b"".join(map(gzip.compress, contents)) + bytes(padding)

    def verdict(data: bytes) -> bool:
        checksums, at, turn = Checksums({}), 0, 0
        while at < len(data):
            step = steps[turn % len(steps)]
            checksums.update(data[at : at + step])
            at, turn = at + step, turn + 1
        return checksums.contradicts()

    assert verdict(data) is False
    assert verdict(data[: len(data) - padding - 1]) is True
    assert verdict(data + b"x") is True
    assert verdict(bytes([data[0] ^ 1]) + data[1:]) is False  # then it is not gzip at all


def test_a_bomb_is_not_decompressed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.acquire.fetch.checksums.MAX_FREE", 2**20)
    checksums = Checksums({})
    checksums.update(gzip.compress(bytes(50 * 2**20)))
    assert checksums.contradicts() is False
    assert checksums._members is not None
    assert checksums._members._out < 30 * 2**20
