"""The article extraction benchmark's published row of jusText, measured here: does our harness agree with theirs?

Published for all 181 pages at https://github.com/scrapinghub/article-extraction-benchmark (jusText 3.0.2). On a part of
the pages the measure is the same and the figure another: then the row says how many pages it is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.extraction.sets import Page, benchmark_measure

SET = "article-extraction-benchmark"
ALL_PAGES = 181
PUBLISHED = {"f1": 0.804, "precision": 0.858, "recall": 0.756}


def justext_text(page: str) -> str:
    """Text by jusText as the benchmark calls it: English stop words, paragraphs that are no boilerplate."""
    import justext
    from lxml.etree import ParserError

    try:
        paragraphs = justext.justext(page.encode("utf-8", "replace"), justext.get_stoplist("English"), encoding="utf-8")
    except ParserError:  # there is no element in it
        return ""
    return "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)


def justext_row(pages: Sequence[Page]) -> dict[str, Any]:
    """The benchmark's measure of jusText on its pages, beside the published one; `same` is None on a part of them."""
    pairs = [(justext_text(page.text()), page.truth or "") for page in pages]
    measured = dict(zip(("f1", "precision", "recall"), benchmark_measure(pairs), strict=True))
    same = all(abs(measured[key] - value) < 0.0015 for key, value in PUBLISHED.items())
    published = {**PUBLISHED, "pages": ALL_PAGES}
    return {"pages": len(pages), **measured, "published": published, "same": same if len(pages) == ALL_PAGES else None}
