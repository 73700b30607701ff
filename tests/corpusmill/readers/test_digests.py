"""Digests that records carry, verified on request."""

from __future__ import annotations

import base64
import hashlib
import io
from pathlib import Path

import pytest

from corpusmill.config import load_recipe
from corpusmill.readers.outcomes import ReadOptions, outcomes
from corpusmill.readers.warc import FileFacts, read_records
from tasks import acquire
from tasks.extract import units_of
from tests.corpusmill.readers.archives import PAGE, members, record

CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(PAGE), PAGE)


def b32(algorithm: str, data: bytes) -> str:
    return base64.b32encode(hashlib.new(algorithm, data).digest()).decode()


def wrong(data: bytes) -> list[bool]:
    return [one.wrong_digest for one in read_records(io.BytesIO(data), verify_digests=True)]


@pytest.mark.parametrize(
    ("value", "is_wrong"),
    [
        (f"sha1:{b32('sha1', PAGE)}", False),
        (f"SHA1:{b32('sha1', PAGE).lower()}", False),
        (f"sha-256:{hashlib.sha256(PAGE).hexdigest()}", False),
        (f"md5:{hashlib.md5(PAGE).hexdigest()}", False),
        (f"sha256:{b32('sha256', PAGE).rstrip('=')}", False),
        ("sha1:AAAA", True),
        (f"sha1:{b32('sha1', PAGE[1:])}", True),
        ("xxh3:1234", False),
        ("nothing", False),
    ],
)
def test_payload_digests(value: str, is_wrong: bool) -> None:
    assert wrong(members([record(more=[f"WARC-Payload-Digest: {value}"])] * 2)) == [is_wrong] * 2


def test_a_chunked_payload_may_be_digested_either_way() -> None:
    head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"
    for data in (PAGE, CHUNKED):
        one = record(payload=CHUNKED, head=head, more=[f"WARC-Payload-Digest: sha1:{b32('sha1', data)}"])
        assert wrong(members([one])) == [False]


def test_block_digests_are_of_the_whole_content() -> None:
    content = record().partition(b"\r\n\r\n")[2][:-4]
    assert wrong(members([record(more=[f"WARC-Block-Digest: sha1:{b32('sha1', content)}"])])) == [False]
    assert wrong(members([record(more=[f"WARC-Block-Digest: sha1:{b32('sha1', PAGE)}"])])) == [True]


def test_a_wrong_digest_is_reported_and_the_page_kept(data_dir: Path) -> None:
    path = data_dir / "warc-samples" / "synthetic" / "s14-digest-mismatch.warc.gz"
    facts = FileFacts()
    found = list(read_records(path, verify_digests=True, facts=facts))
    assert [(one.url, one.wrong_digest) for one in found] == [(f"http://s14.example/p{i}", i == 2) for i in range(5)]
    assert facts.counts == {"wrong_digest": 1}
    assert [fault["reason"] for fault in facts.faults] == ["wrong_digest"]
    for verify in (False, True):
        facts = FileFacts()
        assert len([one for one in outcomes(path, ReadOptions(verify_digests=verify), facts) if one.html]) == 5
        assert facts.counts["wrong_digest"] == verify


def test_verifying_is_part_of_the_identity_only_when_on(data_dir: Path) -> None:
    root = data_dir / "mini-crawl"
    keys = [f"source.crawl.root={root}"]
    plain, same, verified = (
        load_recipe("crawl", [*keys, *more])
        for more in ([], ["extract.verify_digests=false"], ["extract.verify_digests=true"])
    )
    source = acquire.plan(plain)[0]
    ids = [units_of(source, "0" * 64, recipe)[0].key for recipe in (plain, same, verified)]
    assert ids[0] == ids[1] != ids[2]


def test_sound_crawls_have_right_digests(data_dir: Path) -> None:
    facts = FileFacts()
    for path in sorted((data_dir / "mini-crawl" / "crawl-data").rglob("warc/*.warc.gz"))[:2]:
        assert not any(one.wrong_digest for one in read_records(path, verify_digests=True, facts=facts))
