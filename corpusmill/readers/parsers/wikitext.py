"""Wikitext as the text that a reader sees: without templates, tables, references and links to files and categories."""

from __future__ import annotations

import json
import re
from typing import Any

from corpusmill.extractor.extraction import Extraction

MAX_OPEN = 100
"""Marks that are open at once. mwparserfromhell tries each open one to the end of the page, again and again: 1,000
tables in 9 kB take it 6 CPU seconds, 100 of them 0.1."""

_MARK = re.compile(
    r"(?P<curly>\{\{)|(?P<curly_end>\}\})|(?P<square>\[\[|\[(?=//|[A-Za-z]+:))|(?P<square_end>\]\]?)|<!--"
    r"|(?P<table>(?m:^)[ \t:]*\{\|)|(?P<table_end>\|\}(?!\}))"
    r"|<(?P<close>/?)(?P<tag>[A-Za-z][A-Za-z0-9]*)(?P<end>[^<>]*>)?"
)
_RAW = frozenset((
    "categorytree", "ce", "chem", "gallery", "graph", "hiero", "imagemap", "inputbox", "math", "nowiki", "pre", "score",
    "section", "source", "syntaxhighlight", "templatedata", "timeline",
))  # fmt: skip
"""Tags whose content is no wikitext."""
_SINGLE = frozenset(("br", "dd", "dt", "hr", "img", "li", "meta", "td", "th", "tr", "wbr"))
"""Tags that need no end."""


def page_text(request: str) -> Extraction:
    """The text of a page, for a process of its own.

    Args:
        request: names of the namespaces whose links go as JSON, a newline, and the wikitext.
    """
    hidden, _, wikitext = request.partition("\n")
    try:
        return Extraction(plain(wikitext, frozenset(json.loads(hidden))))
    except (RecursionError, TooDeep):
        return Extraction(None, reason="too_deep")


class TooDeep(Exception):
    """More than MAX_OPEN marks are open at once."""


def plain(wikitext: str, hidden: frozenset[str]) -> str:
    """The text of an article: without templates, tables, references, comments, and links to files and categories.

    Args:
        wikitext: the source of the page.
        hidden: lower-case names of the namespaces whose links go.

    Raises:
        TooDeep: too many marks are open for the parser.
    """
    import mwparserfromhell

    if most_open(wikitext) > MAX_OPEN:
        raise TooDeep
    code = mwparserfromhell.parse(wikitext, skip_style_tags=False)
    code.nodes = [node for node in code.nodes if not _is_hidden(node, hidden)]
    text = code.strip_code(normalize=True, collapse=True)
    lines = (re.sub(r" {2,}", " ", line.strip()) for line in re.sub(r"__[A-Z]{3,20}__", "", text).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _is_hidden(node: Any, hidden: frozenset[str]) -> bool:
    kind = type(node).__name__
    if kind == "Wikilink":
        return str(node.title).strip().partition(":")[0].strip().lower() in hidden
    return kind == "Tag" and str(node.tag).strip().lower() in ("ref", "references", "table", "gallery", "timeline")


def most_open(wikitext: str) -> int:
    """How many marks are open at once, at most: those of templates, links, tables, tags and comments. One scan."""
    opened: dict[str, int] = {}
    unended: set[str] = set()
    now = most = at = 0
    while match := _MARK.search(wikitext, at):
        at = match.end()
        kind, step = _kind(match)
        if step > 0 and (ending := _ending(kind)) and kind not in unended:
            end = wikitext.find(ending, at)
            if end >= 0:
                at = end + len(ending)
                continue
            unended.add(kind)
        if step < 0 and not opened.get(kind):
            continue
        opened[kind] = opened.get(kind, 0) + step
        now += step
        most = max(most, now)
    return most


def _kind(match: re.Match[str]) -> tuple[str, int]:
    """What a mark opens (1) or closes (-1); 0 for what needs no end."""
    if match["tag"] is None:
        group = match.lastgroup or "<!--"
        return group.removesuffix("_end"), -1 if group.endswith("_end") else 1
    tag = match["tag"].lower()
    if match["end"] and (match[0].endswith("/>") or tag in _SINGLE):
        return tag, 0
    return tag, -1 if match["close"] else 1


def _ending(kind: str) -> str | None:
    """What ends a mark whose content is not looked into."""
    return "-->" if kind == "<!--" else f"</{kind}" if kind in _RAW else None
