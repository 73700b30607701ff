"""Wikitext as the text that a reader sees: without tables, references, links to files and categories, and templates but
those whose values are part of the sentence (templates.py).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from corpusmill.extractor.extraction import Extraction
from corpusmill.readers.parsers.templates import FUNCTIONS, MAX_NAME, Call, is_shown, shown

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

    Returns:
        {name: times} of the templates that were dropped as JSON, a newline, and the text.
    """
    hidden, _, wikitext = request.partition("\n")
    dropped: Counter[str] = Counter()
    try:
        text = plain(wikitext, frozenset(json.loads(hidden)), dropped)
        return Extraction(f"{json.dumps(dropped)}\n{text}")
    except (RecursionError, TooDeep):
        return Extraction(None, reason="too_deep")


class TooDeep(Exception):
    """More than MAX_OPEN marks are open at once."""


def plain(wikitext: str, hidden: frozenset[str], dropped: Counter[str] | None = None) -> str:
    """The text of an article: without tables, references, comments, links to files and categories, other templates.

    Args:
        wikitext: the source of the page.
        hidden: lower-case names of the namespaces whose links go.
        dropped: counts the templates that give no text, by name.

    Raises:
        TooDeep: too many marks are open for the parser.
    """
    import mwparserfromhell

    if most_open(wikitext) > MAX_OPEN:
        raise TooDeep
    code = mwparserfromhell.parse(wikitext, skip_style_tags=False)
    code.nodes = [node for node in code.nodes if not _is_hidden(node, hidden)]
    _show_templates(code, Counter() if dropped is None else dropped)
    text = code.strip_code(normalize=True, collapse=True)
    lines = (re.sub(r" {2,}", " ", line.strip()) for line in re.sub(r"__[A-Z]{3,20}__", "", text).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _is_hidden(node: Any, hidden: frozenset[str]) -> bool:
    kind = type(node).__name__
    if kind == "Wikilink":
        return str(node.title).strip().partition(":")[0].strip().lower() in hidden
    return kind == "Tag" and str(node.tag).strip().lower() in ("ref", "references", "table", "gallery", "timeline")


def _show_templates(code: Any, dropped: Counter[str]) -> None:
    """Put what templates show in their places, and take the others out."""
    from mwparserfromhell.nodes import Template, Text

    nodes = []
    for node in code.nodes:
        if isinstance(node, Template):
            call = _call(node, dropped)
            text = shown(call)
            if text is None:
                dropped[call.name[:MAX_NAME]] += 1
                continue
            node = Text(text)
        for inner in ("text", "contents", "title"):  # of links, tags, headings and addresses
            if getattr(node, inner, None) is not None and hasattr(getattr(node, inner), "nodes"):
                _show_templates(getattr(node, inner), dropped)
        nodes.append(node)
    code.nodes = nodes


def _call(node: Any, dropped: Counter[str]) -> Call:
    name = " ".join(str(node.name).replace("_", " ").lower().removeprefix("template:").split())
    function, colon, _ = name.partition(":")
    if colon and function in FUNCTIONS:
        return Call(function, [_words(node.name, dropped).partition(":")[2].strip()], {})
    if not is_shown(name):
        return Call(function if name.startswith("#") else name, (), {})
    values: list[str] = []
    named: dict[str, str] = {}
    for param in node.params:
        value, key = _words(param.value, dropped), str(param.name).strip()
        if not param.showkey or key.isdecimal():
            values += [value] if value else []
        else:
            named[key.lower()] = value
    return Call(name, values, named)


def _words(code: Any, dropped: Counter[str]) -> str:
    """The text of a part of a template."""
    _show_templates(code, dropped)
    return str(code.strip_code(normalize=True, collapse=True)).strip()


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
