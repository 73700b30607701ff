"""The bound on depth equals plain Python on tags of all kinds."""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.extractor.scan import depth
from corpusmill.extractor.scan.depth import deeper_than
from tests.corpusmill.extractor import samples

TAG = re.compile(rb"<(/?[a-zA-Z][a-zA-Z0-9:_-]*)")
FLAT = set(depth._WITHOUT_DEPTH.split())


def level(tag: bytes) -> int:
    name = tag.decode().lower()
    if name.startswith("/"):
        return -level(tag[1:])
    return 0 if name in FLAT else depth._LEVELS.get(name, 1)


def plain_bound(html: bytes) -> int:
    """The greatest balance of start and end tags, and the end tags that match nothing."""
    tags = TAG.findall(html)
    opened: Counter[bytes] = Counter()
    for tag in tags:
        opened[tag.lower().lstrip(b"/")] += level(tag)
    unmatched = -sum(balance for balance in opened.values() if balance < 0)
    return max(accumulate(map(level, tags)), default=0) + unmatched


def plain(html: bytes, limit: int) -> bool:
    return html.count(b"<") - html.count(b"</") > limit and plain_bound(html) > limit


PIECES = (
    "<", "</", "<!", "<div>", "</div>", "</DIV", "<ul>", "</ul>", "<table", "<p>", "<b:c-_1>", "</b:c-_1>", "<A></a>",
    "<br/>", "x>", "/", ">", "<é",
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=80), st.integers(0, 6))
def test_the_bound_equals_plain_python(pieces: list[str], limit: int) -> None:
    page = "".join(pieces).encode()
    assert deeper_than(page, limit) is plain(page, limit)


@pytest.mark.parametrize("tag", ["<x{}>", "</x{}>", "<x{0}></x{0}>", "<X{}></y{}>"])
def test_names_beyond_number_are_told_apart(tag: str) -> None:
    page = "".join(tag.format(i, i) for i in range(5000)).encode()
    bound = plain_bound(page)
    starts = page.count(b"<") - page.count(b"</")
    assert deeper_than(page, bound) is False
    assert deeper_than(page, bound - 1) is (starts > bound - 1)


def test_on_pages_of_every_archive(data_dir: Path) -> None:
    for name, page in samples.pages(data_dir, per_archive=20, max_chars=10**7):
        for limit in (5, 12, 30, 250, 2000):
            assert deeper_than(page, limit) is plain(page, limit), name
