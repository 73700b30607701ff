"""Named ways from HTML to main text, with fixed settings.

`auto`         our line model (linemodel.py); trafilatura where the chooser (chooser.py) expects a gain and, with both
               texts at hand, still does.
`fast`         the line model alone; Resiliparse where it finds nothing.
`trafilatura`  the reference; comparable with data sets of the FineWeb class.
`resiliparse`  main content only, all extras off; DCLM class, 15 times faster than trafilatura.
`plain`        all visible text.
`union`        the lines that the line model or trafilatura keep: for when tokens are short.

Figures: docs/notes/extractor-model.md.
"""

from __future__ import annotations

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from corpusmill.extractor.extraction import DEFAULT_MAX_DEPTH, EXTRACTORS, MODES, Extraction, Mode
from corpusmill.extractor.model.agreement import union
from corpusmill.extractor.model.chooser import better, gate_features, verdict_features, worth_asking
from corpusmill.extractor.model.lines import by_lines, judge
from corpusmill.extractor.model.load import load_model
from corpusmill.extractor.page import Page
from corpusmill.extractor.scan.depth import deeper_than
from corpusmill.readers.text import clean_text, tidy_ends

__all__ = ["DEFAULT_MAX_DEPTH", "EXTRACTORS", "MODEL_MODES", "MODES", "Extraction", "Mode", "extract", "markdown"]

MODEL_MODES = frozenset({"auto", "fast", "union"})
"""Modes whose text depends on the shipped model."""

LIBXML2_MAX_DEPTH = 250  # about where it stops and trafilatura returns nothing, without a word

MAX_SECOND_TRY = 2_000_000  # characters of HTML; trafilatura needs seconds for a megabyte of lists or tables


def extract(page: str | bytes, mode: Mode, max_depth: int = DEFAULT_MAX_DEPTH) -> Extraction:
    """Main text of a page.

    Args:
        page: decoded, or in UTF-8.
        mode: one of MODES.
        max_depth: pages that nest deeper end as `too_deep` before they are parsed.
    """
    held = Page(page)
    if deeper_than(held.data, max_depth):
        return Extraction(None, reason="too_deep")
    if mode in MODEL_MODES:
        return _by_model(held, mode) or _by_rules(held)
    if mode == "trafilatura":
        found = _extraction(_by_trafilatura(held.text), "trafilatura")
        too_deep = not found.text and deeper_than(held.data, LIBXML2_MAX_DEPTH)
        return Extraction(None, reason="too_deep") if too_deep else found
    return _extraction(_by_resiliparse(HTMLTree.parse(held.text), main=mode == "resiliparse"), mode)


def _by_model(page: Page, mode: Mode) -> Extraction | None:
    """Text by the line model, or by what `mode` has beside it; None where it finds nothing."""
    text, lines = by_lines(page)
    if mode != "fast" and len(lines.page) and page.length_within(MAX_SECOND_TRY):
        model = load_model()
        gate = gate_features(lines)
        if mode == "union":
            return _extraction(union(lines, _by_trafilatura(page.text)) or text, "fusion")
        other = _by_trafilatura(page.text) if worth_asking(model, gate) else ""
        if other and better(model, verdict_features(lines, other, gate)):
            return _extraction(other, "trafilatura")
    return _found(tidy_ends(text).strip(), "lines") if text else None


def _by_rules(page: Page) -> Extraction:
    """Text of a page in which the line model finds nothing."""
    tree = HTMLTree.parse(page.text)
    if main := _by_resiliparse(tree, main=True):
        return _extraction(main, "resiliparse")
    return _extraction(_by_resiliparse(tree, main=False), "plain")


def markdown(page: str | bytes, mode: Mode) -> str | None:
    """Main text as Markdown; None in modes that have none."""
    held = Page(page)
    if mode == "trafilatura":
        return _by_trafilatura(held.text, "markdown")
    if mode in ("auto", "fast"):
        return judge(held).text(markdown=True)
    return None


def _extraction(text: str, extractor: str) -> Extraction:
    return _found(clean_text(text)[0].strip(), extractor)


def _found(text: str, extractor: str) -> Extraction:
    return Extraction(text, extractor) if text else Extraction(None, reason="no_text")


def _by_resiliparse(tree: HTMLTree, main: bool) -> str:
    return extract_plain_text(
        tree,
        main_content=main,
        preserve_formatting=True,
        alt_texts=False,
        links=False,
        list_bullets=False,
        comments=False,
        post_meta=False,
        form_fields=False,
        noscript=False,
    ).strip()


def _by_trafilatura(html: str, output_format: str = "txt") -> str:
    import trafilatura  # 0.5 s and 30 MB that the other modes need not pay

    text = trafilatura.extract(
        html,
        include_comments=False,
        include_tables=True,
        favor_precision=False,
        favor_recall=False,
        fast=False,
        deduplicate=False,
        with_metadata=False,
        output_format=output_format,
    )
    return (text or "").strip()
