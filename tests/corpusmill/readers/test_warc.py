"""Reading records: what is sound, what is broken, and where reading goes on."""

from __future__ import annotations

import gzip
import io
import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.readers.careful import careful_records
from corpusmill.readers.containers.files import open_file
from corpusmill.readers.containers.members import archive_of
from corpusmill.readers.dialects import MAX_HEAD
from corpusmill.readers.records import Reading
from corpusmill.readers.warc import FileFacts, RawRecord, read_records
from tests.corpusmill.readers.archives import PAGE, members, pages, record


def read(data: bytes, **options: int) -> tuple[list[RawRecord], FileFacts]:
    facts = FileFacts()
    return list(read_records(io.BytesIO(data), facts=facts, **options)), facts


def sound(records: list[RawRecord]) -> list[str | None]:
    return [one.url for one in records if not one.fault]


def urls(*numbers: int) -> list[str]:
    return [f"http://example.org/{i}" for i in numbers]


def test_every_record_comes_back_with_the_offset_of_its_member() -> None:
    parts = [gzip.compress(one) for one in pages(5)]
    records, facts = read(b"".join(parts))
    assert [one.offset for one in records] == [sum(map(len, parts[:i])) for i in range(5)]
    assert [one.index for one in records] == [0] * 5
    assert sound(records) == urls(0, 1, 2, 3, 4)
    assert facts.as_dict() == {
        "bytes": sum(map(len, parts)),
        "not_content": {},
        "faults": [],
        "counts": {},
        "columns": {},
    }


def test_plain_files_have_offsets_of_records() -> None:
    parts = pages(4)
    records, _ = read(b"".join(parts))
    assert [one.offset for one in records] == [sum(map(len, parts[:i])) for i in range(4)]


def test_records_in_one_member_share_its_offset_and_are_numbered() -> None:
    records, _ = read(gzip.compress(b"".join(pages(3))) + gzip.compress(pages(4)[3]))
    assert [one.index for one in records] == [0, 1, 2, 0]
    assert sound(records) == urls(0, 1, 2, 3)


def test_a_record_may_go_on_in_the_next_member() -> None:
    whole = b"".join(pages(4))
    cuts = [0, 300, 700, 1100, len(whole)]
    records, _ = read(b"".join(gzip.compress(whole[a:b]) for a, b in pairwise(cuts)))
    assert sound(records) == urls(0, 1, 2, 3)


def test_other_records_are_counted_not_given() -> None:
    others = [record(kind=kind, head="") for kind in ("warcinfo", "request", "metadata", "request")]
    records, facts = read(members([others[0], *pages(2), *others[1:]]))
    assert sound(records) == urls(0, 1)
    assert facts.not_content == {"warcinfo": 1, "request": 2, "metadata": 1}


def test_an_empty_file_is_a_fault_of_the_file() -> None:
    records, facts = read(b"")
    assert records == []
    assert facts.faults == [{"offset": 0, "reason": "empty_file"}]


@pytest.mark.parametrize(
    "data", [b"not an archive at all\n" * 50, gzip.compress(b"crawl-data/a\n" * 50, mtime=0), b"\x00" * 999 + b"x"]
)
def test_a_file_that_is_no_archive_is_damaged_once(data: bytes) -> None:
    records, facts = read(data)
    assert [(one.type, one.fault) for one in records] == [("unknown", "damaged")]
    assert facts.counts["damaged"] == 1


@pytest.mark.parametrize("cut", [1, 9, 40, 200])
def test_what_stands_before_a_cut_is_given_and_the_cut_record_is_truncated(cut: int) -> None:
    data = members(pages(4))
    records, facts = read(data[:-cut])
    assert sound(records) == urls(0, 1, 2)
    assert [(one.fault, one.offset) for one in records[3:]] == [("truncated", len(members(pages(3))))]
    assert facts.faults == [{"offset": records[3].offset, "reason": "truncated"}]


def test_a_cut_plain_file_truncates_its_last_record() -> None:
    records, _ = read(b"".join(pages(3))[:-100])
    assert sound(records) == urls(0, 1)
    assert records[2].fault == "truncated"
    assert records[2].url == "http://example.org/2"


@pytest.mark.parametrize("where", [0.05, 0.4, 0.9])
def test_a_flipped_bit_costs_one_record(where: float) -> None:
    parts = [gzip.compress(one) for one in pages(5)]
    hit = bytearray(parts[2])
    hit[int(len(hit) * where)] ^= 0x10
    records, _ = read(b"".join([*parts[:2], bytes(hit), *parts[3:]]))
    assert sound(records) == urls(0, 1, 3, 4)
    assert [one.fault for one in records if one.fault] == ["damaged"]


def test_garbage_between_members_is_counted_and_passed_over() -> None:
    records, facts = read(members(pages(2)) + b"#" * 52 + members(pages(4)[2:]))
    assert sound(records) == urls(0, 1, 2, 3)
    assert facts.faults == [{"offset": len(members(pages(2))), "reason": "damaged"}]


def test_damage_inside_one_large_member_gives_back_what_came_before() -> None:
    data = bytearray(gzip.compress(b"".join(pages(2000)), 1))
    data[len(data) * 3 // 4] ^= 0xFF
    records, _ = read(bytes(data))
    assert sound(records)[:1400] == urls(*range(1400))
    assert any(one.fault == "damaged" for one in records)


@pytest.mark.parametrize("head", [b"WARC/1.0\r\nWARC-Type: response\r\n\r\n", b"WARC/1.0\r\n" + b"x" * 200_000])
def test_a_head_that_cannot_be_read_is_one_damaged_record(head: bytes) -> None:
    records, _ = read(members([pages(1)[0], head, pages(2)[1]]))
    assert sound(records) == urls(0, 1)
    assert [one.fault for one in records] == [None, "damaged", None]


def test_content_over_the_limit_is_not_held() -> None:
    big = record("http://example.org/big", b"<p>" + b"a" * 3_000_000)
    records, _ = read(members([big, *pages(2)]), max_payload_bytes=100_000)
    assert [one.fault for one in records] == ["too_large", None, None]
    assert records[0].payload == b""


def test_a_bomb_costs_its_cap_and_one_record() -> None:
    bomb = gzip.compress(record("http://example.org/bomb", bytes(200 * 2**20)), 1)
    begin = time.process_time()
    records, _ = read(members(pages(1)) + bomb + members(pages(2)[1:]), max_payload_bytes=2**20)
    assert [one.fault for one in records] == [None, "too_large", None]
    assert time.process_time() - begin < 20


def test_streams_that_cannot_seek_are_read_too() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = io.BytesIO(members(pages(3)))

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            return self.data.readinto(buffer)

    assert len(list(read_records(io.BufferedReader(Pipe())))) == 3  # type: ignore[type-var]


def careful(path: Path) -> tuple[list[RawRecord], FileFacts]:
    facts = FileFacts()
    with open_file(path) as file:
        facts.bytes = file.size
        reading = Reading(16 * 2**20 + MAX_HEAD, False, facts)
        return list(careful_records(archive_of(file), 0, 0, reading)), facts


def test_both_readers_agree_on_every_record(data_dir: Path) -> None:
    archives = [
        *(p for p in (data_dir / "warc-samples").rglob("*") if p.suffix not in (".jsonl", ".md")),
        *(data_dir / "hostile").glob("*.warc.gz"),
        *(data_dir / "mini-crawl" / "crawl-data").rglob("*0000*.gz"),
    ]
    for path in filter(Path.is_file, archives):
        facts = FileFacts()
        assert (list(read_records(path, facts=facts)), facts) == careful(path), path


def test_every_sample_archive_is_read_or_counted(data_dir: Path) -> None:
    truth = [
        json.loads(line) for line in (data_dir / "warc-samples" / "synthetic-truth.jsonl").read_bytes().splitlines()
    ]
    assert len(truth) == 17
    for want in truth:
        got = {one.url for one in read_records(data_dir / "warc-samples" / want["file"]) if not one.fault}
        assert got >= {*want["sure"], *want["resync"]}, want["file"]


def test_samples_give_at_least_what_either_library_gives(data_dir: Path) -> None:
    """Against counts observed with FastWARC and warcio."""
    observed = [json.loads(line) for line in (data_dir / "warc-samples" / "observed.jsonl").read_bytes().splitlines()]
    for seen in observed:
        path = data_dir / "warc-samples" / seen["file"]
        facts = FileFacts()
        ours = sum(1 for one in read_records(path, facts=facts)) + sum(facts.not_content.values())
        assert ours >= max(seen["fastwarc"]["records"], seen["warcio"]["records"]), seen["file"]


@settings(max_examples=150)
@given(
    st.integers(1, 6),
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(("flip", "cut", "drop", "insert", "double")), st.floats(0, 1), st.integers(1, 255)),
        max_size=4,
    ),
)
def test_no_mutation_raises_or_invents_a_record(
    count: int, plain: bool, mutations: list[tuple[str, float, int]]
) -> None:
    data = bytearray(b"".join(pages(count)) if plain else members(pages(count)))
    for kind, place, amount in mutations:
        at = int(place * max(0, len(data) - 1))
        if kind == "flip" and data:
            data[at] ^= amount
        elif kind == "cut":
            del data[at:]
        elif kind == "drop":
            del data[at : at + amount]
        elif kind == "insert":
            data[at:at] = bytes([amount]) * amount
        else:
            data[at:at] = data[at : at + 10 * amount]
    records, facts = read(bytes(data))
    assert facts.bytes == len(data)
    assert len({(one.offset, one.index) for one in records}) == len(records)
    if not plain:  # gzip's checksum vouches for what is given; only a doubled member gives a page twice
        known = {PAGE.replace(b"sentence", b"sentence number %d, long enough" % i) for i in range(count)}
        assert {one.payload for one in records if not one.fault} <= known
    if not mutations:
        assert sound(records) == urls(*range(count))
