"""Pages of products: the description that JSON-LD gives tells which lines are it, and that the others rarely count.

What else such a page says (reviews, deliveries, other products) reads like content, and people leave it out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.embedded import json_ld, plain
from corpusmill.extractor.overlap import shared
from corpusmill.extractor.scan import Line, Scan

TYPES = frozenset({"Product", "ProductGroup", "ProductModel", "IndividualProduct"})
ODDS = 4.4816890703380645
"""e**1.5: by so much the odds of a line rise where it is of the description, and fall where it is not."""
MIN_LINE_WORDS = 4
MIN_FOUND_WORDS = 20
"""Words of the description that must stand on the page, for it to say anything."""


def described(html: bytes) -> str:
    """The longest description of a product in a page's JSON-LD; empty without one."""
    if b"application/ld+json" not in html or b"Product" not in html:
        return ""
    found = [
        description
        for node in json_ld(html.decode("utf-8", "replace"))
        if TYPES.intersection(map(str, _listed(node.get("@type"))))
        and isinstance(description := node.get("description"), str)
    ]
    return plain(max(found, key=len, default=""))


def told(page: Scan, probability: NDArray[np.float64], description: str) -> NDArray[np.float64]:
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
