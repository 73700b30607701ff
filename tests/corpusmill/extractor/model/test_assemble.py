"""Assembled text and Markdown equal plain Python, whichever lines are kept."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.extractor.model.assemble import assemble
from corpusmill.extractor.scan.scan import scan
from tests.corpusmill.extractor import mutations, samples
from tests.corpusmill.extractor.plain_assemble import plain_assemble


@settings(max_examples=300)
@given(mutations.pages, st.integers(0, 2**60), st.booleans())
def test_text_equals_plain_python(html: str, kept: int, markdown: bool) -> None:
    page = scan(html.encode())
    keep = np.array([bool(kept >> i % 60 & 1) for i in range(len(page))], np.bool_)
    assert assemble(page, keep, markdown=markdown) == plain_assemble(page, keep, markdown=markdown)


def test_on_pages_of_every_archive(data_dir: Path) -> None:
    random = np.random.default_rng(17)
    for name, html in samples.pages(data_dir, per_archive=8):
        page = scan(html)
        for share in (0.3, 0.8, 1.0):
            keep = random.random(len(page)) < share
            for markdown in (False, True):
                assert assemble(page, keep, markdown=markdown) == plain_assemble(page, keep, markdown=markdown), name


@pytest.mark.parametrize("blank", list("\x0b\x1c\x85\u1680\u2007\u202f\u205f\u3000\u180e\ufeff"))
def test_lines_are_stripped_as_python_strips(blank: str) -> None:
    page = scan(f"<p>{blank}x{blank}{blank}<p>{blank}<pre>{blank}y{blank}</pre>".encode())
    keep = np.ones(len(page), np.bool_)
    assert assemble(page, keep) == plain_assemble(page, keep)


def test_a_wide_table_takes_time_in_proportion(data_dir: Path) -> None:
    """Plain Python goes through all lines at each cell of a Markdown table: minutes for this one."""
    page = scan(gzip.decompress((data_dir / "hostile" / "B21-wide-table.html.gz").read_bytes()))
    keep = np.ones(len(page), np.bool_)
    start = time.process_time()
    text = assemble(page, keep, markdown=True)
    assert time.process_time() - start < 5
    assert "B21-END" in text
