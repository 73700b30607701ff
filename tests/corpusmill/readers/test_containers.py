"""The same records out of every container, sound or damaged; ARC files."""

from __future__ import annotations

import io
import time
import tracemalloc

import pytest
import zstandard

from corpusmill.readers.outcomes import ReadOptions, outcomes
from corpusmill.readers.warc import FileFacts, RawRecord, read_records
from tests.corpusmill.readers.archives import (
    CONTAINERS,
    PAGE,
    arc,
    arc_head,
    dictionary,
    frames,
    lz4,
    members,
    page,
    pages,
    record,
    with_dictionary,
)

SEPARATE = ("gzip", "zstd", "zstd-dictionary", "lz4")
ARCHIVES = {name: CONTAINERS[name] for name in SEPARATE}


def read(data: bytes, **options: int) -> tuple[list[RawRecord], FileFacts]:
    facts = FileFacts()
    return list(read_records(io.BytesIO(data), facts=facts, **options)), facts


def sound(records: list[RawRecord]) -> list[str | None]:
    return [one.url for one in records if not one.fault]


def urls(*numbers: int) -> list[str]:
    return [f"http://example.org/{i}" for i in numbers]


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_gives_the_same_records(name: str) -> None:
    records, facts = read(CONTAINERS[name](pages(20)))
    assert sound(records) == urls(*range(20))
    assert [one.payload for one in records] == [page(i) for i in range(20)]
    assert facts.counts == {}
    assert len({(one.offset, one.index) for one in records}) == 20


@pytest.mark.parametrize("name", SEPARATE)
@pytest.mark.parametrize("where", [0.02, 0.3, 0.6, 0.97])
def test_damage_costs_the_record_that_it_hits(name: str, where: float) -> None:
    parts = pages(7)
    front, hit, rest = (ARCHIVES[name](some) for some in (parts[:3], parts[3:4], parts[4:]))
    if name == "zstd-dictionary":  # each part brings its dictionary: only the first is wanted
        hit, rest = (data[8 + len(dictionary(pages(300))) :] for data in (hit, rest))
    broken = bytearray(hit)
    broken[int(len(hit) * where)] ^= 0x40
    records, facts = read(front + bytes(broken) + rest)
    assert set(urls(0, 1, 2, 4, 5, 6)) <= set(sound(records))
    if name == "lz4":
        return  # frames as FastWARC writes them have no checksum: a changed letter is not seen
    assert {one.payload for one in records if not one.fault} <= {page(i) for i in range(7)}
    assert sound(records) == urls(*range(7)) or facts.counts["damaged"] + facts.counts["truncated"] == 1


@pytest.mark.parametrize("name", SEPARATE)
@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_cut_costs_the_last_record_in_every_container(name: str, cut: int) -> None:
    records, _ = read(ARCHIVES[name](pages(5))[:-cut])
    assert sound(records) == urls(0, 1, 2, 3)
    assert [one.fault for one in records[4:]] == ["truncated"]


@pytest.mark.parametrize("name", SEPARATE)
def test_garbage_between_frames_is_passed_over(name: str) -> None:
    data = ARCHIVES[name](pages(2))
    again = ARCHIVES[name](pages(4)[2:])
    if name == "zstd-dictionary":
        again = again[8 + len(dictionary(pages(300))) :]
    records, facts = read(data + b"\x00\x01garbage" * 9 + again)
    assert sound(records) == urls(0, 1, 2, 3)
    assert facts.counts["damaged"] == 1


def test_a_compressed_dictionary_is_read_too() -> None:
    raw = dictionary(pages(300))
    packed = zstandard.ZstdCompressor().compress(raw)
    data = with_dictionary(pages(4))[8 + len(raw) :]
    records, _ = read(b"\x5d\x2a\x4d\x18" + len(packed).to_bytes(4, "little") + packed + data)
    assert sound(records) == urls(0, 1, 2, 3)


def test_without_its_dictionary_a_file_is_damaged_not_an_error() -> None:
    raw = dictionary(pages(300))
    records, facts = read(with_dictionary(pages(4))[8 + len(raw) :])
    assert sound(records) == []
    assert facts.counts["damaged"] >= 1


NOTE = b"\x5d\x2a\x4d\x18"


def large_window(log: int) -> bytes:
    """A frame of zstd that holds two records and asks for a window of 2**log bytes."""
    parameters = zstandard.ZstdCompressionParameters(window_log=log)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packed.compress(b"".join(pages(6)[4:])) + packed.flush()


@pytest.mark.parametrize(
    ("data", "kept", "needs"),
    [
        (large_window(28), [], "window of 256.0 MiB, at most 128.0 MiB"),
        (frames(pages(2)) + large_window(31), [0, 1], "window of 2.0 GiB, at most 128.0 MiB"),
        (large_window(30) + frames(pages(4)[2:]), [2, 3], "window of 1.0 GiB, at most 128.0 MiB"),
        (large_window(28) + frames(pages(1)) + large_window(29), [0], "window of 512.0 MiB, at most 128.0 MiB"),
        (NOTE + (2**25).to_bytes(4, "little") + bytes(2**25) + frames(pages(1)), [], "dictionary of 32.0 MiB"),
    ],
    ids=["alone", "behind", "before", "around", "dictionary"],
)
def test_frames_that_take_too_much_memory_say_so(data: bytes, kept: list[int], needs: str) -> None:
    records, facts = read(data)
    assert sound(records) == urls(*kept)
    assert {one.fault for one in records} <= {None, "too_large"}
    assert any(needs in name for name in facts.counts)
    assert sum(facts.counts.values()) == sum(one.fault is not None for one in records) >= 1
    assert "damaged" not in facts.counts


@pytest.mark.parametrize("pack", [members, frames, lz4], ids=["gzip", "zstd", "lz4"])
def test_a_bomb_costs_its_cap_in_every_container(pack) -> None:
    bomb = pack([record("http://example.org/bomb", bytes(96 * 2**20))])
    data = pack(pages(1)) + bomb + pack(pages(2)[1:])
    tracemalloc.start()
    begin = time.process_time()
    records, _ = read(data, max_payload_bytes=2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [one.fault for one in records] == [None, "too_large", None]
    assert peak < len(data) + 24 * 2**20
    assert time.process_time() - begin < 30


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_bomb_is_given_up_and_the_next_record_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpusmill.readers.containers.members.MAX_PASSED_OVER", 2**20)
    monkeypatch.setattr("corpusmill.readers.warc.LARGE", 2**20)
    pack = ARCHIVES[name]
    bomb = pack([record("http://example.org/bomb", bytes(96 * 2**20))])
    trailing = pack([record("http://example.org/short", PAGE) + bytes(96 * 2**20)])
    begin = time.process_time()
    records, _ = read(pack(pages(1)) + bomb + trailing + pack(pages(2)[1:]), max_payload_bytes=2**18)
    assert [one.url for one in records][:2] == ["http://example.org/0", "http://example.org/bomb"]
    assert sound(records)[-1] == "http://example.org/1"
    assert records[1].fault == "too_large"
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("version", ["1 0", "1 1", "2 0"])
@pytest.mark.parametrize("name", ["plain", "gzip", "zstd", "lz4", "one-member"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_arc_files_are_read_in_every_container(version: str, name: str, end: str) -> None:
    kind = "text/html" if version != "2 0" else "text/html 200 AAAA - 123 test.arc"
    parts = [arc_head(version, end), *(arc(url, page(i), kind=kind, end=end) for i, url in enumerate(urls(0, 1, 2)))]
    records, facts = read(CONTAINERS[name](parts))
    assert sound(records) == urls(0, 1, 2)
    assert facts.not_content == {"filedesc": 1}
    assert facts.counts == {}
    assert [(one.type, one.date, one.http.status) for one in records] == [("response", "2026-01-02T03:04:05Z", 200)] * 3
    assert [one.payload for one in records] == [page(0), page(1), page(2)]


def test_arc_records_that_are_no_responses_and_addresses_with_blanks() -> None:
    parts = [
        arc_head(),
        b"dns:example.org 192.0.2.1 20260102030405 text/dns 30\n20260102 example.org A 192.0.2\n\n"[:-1],
        arc("http://example.org/a b?c=d e"),
    ]
    records, _ = read(b"".join(parts))
    assert [(one.type, one.url) for one in records] == [
        ("resource", "dns:example.org"),
        ("response", "http://example.org/a b?c=d e"),
    ]
    kept = [one for one in outcomes(io.BytesIO(b"".join(parts)), ReadOptions()) if one.html]
    assert [one.url for one in kept] == ["http://example.org/a b?c=d e"]


@pytest.mark.parametrize("lie", [-60, -1, 1, 2, 70, 10**7])
@pytest.mark.parametrize("name", ["plain", "gzip"])
def test_a_lying_length_in_an_arc_file_costs_its_record_at_most(lie: int, name: str) -> None:
    true = len(arc(urls(1)[0]).partition(b"\n")[2]) - 1
    parts = [arc_head(), arc(urls(0)[0]), arc(urls(1)[0], length=true + lie), arc(urls(2)[0]), arc(urls(3)[0])]
    records, _ = read(CONTAINERS[name](parts))
    assert set(urls(0, 2, 3)) <= set(sound(records))


def test_a_damaged_first_record_does_not_hide_that_a_file_is_arc() -> None:
    parts = [arc_head(), *(arc(url) for url in urls(0, 1, 2))]
    data = bytearray(members(parts))
    data[14] ^= 0xFF
    assert sound(read(bytes(data))[0]) == urls(0, 1, 2)


def test_web_pages_in_a_warc_file_are_no_arc_records() -> None:
    text = arc("http://example.org/inner") * 3
    records, _ = read(b"".join([record(urls(0)[0], text, length=300), *pages(3)[1:]]))
    assert "http://example.org/inner" not in sound(records)
    assert set(urls(1, 2)) <= set(sound(records))
    assert PAGE in text
