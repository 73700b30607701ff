"""Records whose lengths lie, by one byte or by much: at most the record concerned is lost."""

from __future__ import annotations

import io

import pytest

from corpusmill.readers.warc import FileFacts, read_records
from tests.corpusmill.readers.archives import CONTAINERS, page, pages, record, true_length

LIES = (*range(-12, 0), *range(1, 40), -100, 150, 400, 900, 5_000, 10**6, 10**12)


def liar(kind: str, lie: int) -> bytes:
    true = true_length(record("http://example.org/1", page(1), kind=kind))
    return record("http://example.org/1", page(1), kind=kind, length=max(0, true + lie))


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("kind", ["response", "request"])
def test_a_lying_length_costs_its_record_at_most(name: str, kind: str) -> None:
    parts = pages(6)
    for lie in LIES:
        facts = FileFacts()
        data = CONTAINERS[name]([parts[0], liar(kind, lie), *parts[2:]])
        found = {one.url: one for one in read_records(io.BytesIO(data), facts=facts) if not one.fault}
        for number in (0, 2, 3, 4, 5):
            assert found[f"http://example.org/{number}"].payload == page(number), (lie, number)
        if kind == "response" and "http://example.org/1" in found:
            payload = found["http://example.org/1"].payload
            assert payload.startswith(page(1)[:40]), lie
            if lie > 4:
                assert payload == page(1), lie


@pytest.mark.parametrize("name", CONTAINERS)
def test_all_lengths_lie(name: str) -> None:
    for lie in (-30, -1, 1, 3, 9, 200):
        parts = [record(f"http://example.org/{i}", page(i), length=true_length(pages(9)[i]) + lie) for i in range(9)]
        found = [one for one in read_records(io.BytesIO(CONTAINERS[name](parts))) if not one.fault]
        assert [one.url for one in found][:8] == [f"http://example.org/{i}" for i in range(8)], lie


def test_a_length_that_swallows_more_than_is_held_gives_back_what_it_can() -> None:
    parts = pages(400)
    lying = record("http://example.org/1", page(1), length=200_000)
    for name in ("plain", "one-member", "one-frame"):
        data = CONTAINERS[name]([parts[0], lying, *parts[2:]])
        found = [one.url for one in read_records(io.BytesIO(data), max_payload_bytes=10_000) if not one.fault]
        assert len(set(found) | {"http://example.org/1"}) == 400


@pytest.mark.parametrize("length", ["", "x", "-5", "9" * 30, "1.5"])
@pytest.mark.parametrize("name", CONTAINERS)
def test_a_length_that_cannot_be_read_goes_to_the_next_record(name: str, length: str) -> None:
    parts = [pages(1)[0], record("http://example.org/1", page(1), length=length), *pages(4)[2:]]
    facts = FileFacts()
    found = list(read_records(io.BytesIO(CONTAINERS[name](parts)), facts=facts))
    assert [one.payload for one in found] == [page(i) for i in range(4)]
    assert facts.counts == {"wrong_length": 1}


@pytest.mark.parametrize("name", ["plain", "gzip", "zstd"])
def test_heads_of_any_length_up_to_the_bound_are_read(name: str) -> None:
    long = record("http://example.org/1", page(1), more=["X-Odd: " + "v" * 40_000])
    longer = record("http://example.org/2", page(2), more=[f"X-Odd-{i}: {'v' * 900}" for i in range(100)])
    wide = record("http://example.org/3", page(3), head="HTTP/1.1 200 OK\r\n" + "\r\n".join(["A: " + "b" * 90] * 4000))
    found = list(read_records(io.BytesIO(CONTAINERS[name]([pages(1)[0], long, longer, wide, *pages(5)[4:]]))))
    assert [one.url for one in found if not one.fault] == [f"http://example.org/{i}" for i in (0, 1, 3, 4)]
    assert [one.fault for one in found if one.fault] == ["damaged"]
    assert found[3].payload == page(3)


def test_lines_may_end_in_any_way() -> None:
    for end in (b"\n", b"\r\n", b"\r\r\n"):
        data = b"".join(one.replace(b"\r\n", end) for one in pages(3))
        shorter = b"Content-Length: %d" % (true_length(pages(3)[0]) + 3 * (len(end) - 2))
        data = data.replace(b"Content-Length: %d" % true_length(pages(3)[0]), shorter)
        found = [one for one in read_records(io.BytesIO(data)) if not one.fault]
        assert [one.payload for one in found] == [page(0), page(1), page(2)], end
