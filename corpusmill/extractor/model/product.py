"""Pages of products: the description that JSON-LD gives tells which lines are it, and that the others rarely count.

What else such a page says (reviews, deliveries, other products) reads like content, and people leave it out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.extractor.model.embedded import json_ld, plain
from corpusmill.extractor.model.overlap import shared
from corpusmill.extractor.page import Page
from corpusmill.extractor.scan.bytes import holds
from corpusmill.extractor.scan.scan import Line, Scan
from corpusmill.kernels.bytes.bytehash import U

TYPES = frozenset({"Product", "ProductGroup", "ProductModel", "IndividualProduct"})
ODDS = 4.4816890703380645
"""e**1.5: by so much the odds of a line rise where it is of the description, and fall where it is not."""
MIN_LINE_WORDS = 4
MIN_FOUND_WORDS = 20
"""Words of the description that must stand on the page, for it to say anything."""

_JSON_LD, _PRODUCT = np.frombuffer(b"application/ld+json", np.uint8), np.frombuffer(b"Product", np.uint8)
_PLUS = U(_JSON_LD.tobytes().index(b"+"))


def described(page: Page) -> str:
    """The longest description of a product in a page's JSON-LD; empty without one."""
    if not _may_describe(np.frombuffer(page.data, np.uint8), _JSON_LD, _PRODUCT):
        return ""
    found = [
        description
        for node in json_ld(page.text)
        if TYPES.intersection(map(str, _listed(node.get("@type"))))
        and isinstance(description := node.get("description"), str)
    ]
    return plain(max(found, key=len, default=""))


@kernel
def _may_describe(html, json_ld, product):  # type: ignore[no-untyped-def]
    """Whether a page has JSON-LD and says Product; several times as fast as looking for bytes in bytes."""
    begin = U(html.ctypes.data)
    end = begin + U(len(html))
    return holds(begin, end, U(json_ld.ctypes.data), U(len(json_ld)), _PLUS) and holds(
        begin, end, U(product.ctypes.data), U(len(product)), U(0)
    )


def by_description(page: Scan, probability: NDArray[np.float64], description: str) -> NDArray[np.float64]:
    """Probabilities of the lines, where the page's product is described so."""
    if not description or not len(page):
        return probability
    words = page.lines[:, Line.WORDS]
    share = np.where(words >= MIN_LINE_WORDS, shared(page, description), 0.0)
    if float((words * share).sum()) <= MIN_FOUND_WORDS:
        return probability
    factor = np.where(share > 0.5, ODDS, 1 / ODDS)
    return probability * factor / (probability * factor + 1 - probability)


def _listed(said: object) -> list[object]:
    return said if isinstance(said, list) else [said]
