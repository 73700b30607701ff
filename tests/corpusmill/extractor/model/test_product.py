"""Pages of products: lines of the description that JSON-LD gives are likelier, the others less."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corpusmill.extractor.model.overlap import shared, words_of
from corpusmill.extractor.model.product import MIN_FOUND_WORDS, by_description, described
from corpusmill.extractor.page import Page
from corpusmill.extractor.scan.scan import scan

ABOUT = "A kettle of brass for two litres of water, which boils them in four minutes and keeps them warm for an hour."
REVIEW = "I bought it for my mother and she says that it is the best present she was ever given by me."


def page_of(said: object) -> bytes:
    script = f'<script type="application/ld+json">{json.dumps(said)}</script>'
    return f"<html><body>{script}<p>{ABOUT}</p><p>{REVIEW}</p><p>Buy</p></body></html>".encode()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"@type": "Product", "description": f"<p>{ABOUT}</p>"}, ABOUT),
        ([{"@type": ["Product", "Thing"], "description": "short"}, {"@type": "Product", "description": ABOUT}], ABOUT),
        ({"@type": "Article", "about": "Product", "description": ABOUT}, ""),
        ({"@type": "Product", "description": [ABOUT]}, ""),
        ({"@type": [{}], "description": "Product"}, ""),
    ],
)  # fmt: skip
def test_the_description_of_a_product(said: object, expected: str) -> None:
    assert described(Page(page_of(said))) == expected


def test_no_description_without_json_ld() -> None:
    for page in (b"<p>Product</p>", b"", b"\xffapplication/ld+json Product"):
        assert described(Page(page)) == ""


@pytest.mark.parametrize("at", [*range(3980, 4120, 7), 8150, 8192])
def test_what_tells_a_product_is_seen_wherever_it_stands(at: int) -> None:
    page = page_of({"@type": "Product", "description": ABOUT})
    blanks = b" " * at + b"P+ +j application/ld+jso "
    assert described(Page(blanks + page)) == ABOUT
    assert described(Page(blanks + page.replace(b"ld+json", b"ld-json"))) == ""
    assert described(Page(blanks + page.replace(b"Product", b"Produc-"))) == ""


def test_odds_rise_in_the_description_and_fall_elsewhere() -> None:
    page = scan(page_of({}))
    given = np.array([0.5, 0.5, 0.5])
    found = by_description(page, given, ABOUT)
    assert found == pytest.approx([0.8176, 0.1824, 0.1824], abs=1e-4)
    assert by_description(page, np.array([0.0, 1.0, 0.0]), ABOUT).tolist() == pytest.approx([0.0, 1.0, 0.0])


def test_a_description_that_is_not_on_the_page_says_nothing() -> None:
    page = scan(page_of({}))
    given = np.array([0.5, 0.5, 0.5])
    for description in ("", "Something else", "Buy", " ".join(ABOUT.split()[: MIN_FOUND_WORDS - 5])):
        assert by_description(page, given, description) is given
    assert len(by_description(scan(b""), np.zeros(0), ABOUT)) == 0


def test_lines_share_pairs_of_words() -> None:
    page = scan("<p>One two &amp; three</p><p>two one</p><p>four</p><p>中文字</p><p>five</p>".encode())
    assert shared(page, "one two three four 中文").tolist() == [1.0, 0.0, 0.5, 0.5, 0.0]
    assert words_of("Ab 中文") == ["ab", "中", "文"]
