"""Text that a page holds in its scripts: JSON-LD, and the state that an application is built from.

Looked at where the visible page is as good as empty. State is what stands in a script of type application/json
(`__NEXT_DATA__` and others), or is assigned to a name in capitals with underscores (`window.__INITIAL_STATE__ = {…}`).
Only JSON is read, nothing is run; all is bounded.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corpusmill.readers.text import unescaped

MAX_JSON_CHARS = 2_000_000
MAX_LEVELS = 24
MAX_NODES = 200_000
MIN_WORDS, MIN_WIDE = 12, 40
"""Words, or letters in all, that make a string prose: the second for scripts without blanks."""
MIN_TEXT_WORDS = 40
"""Prose of a page that may come from its state."""

_LD_LEVELS = 4
_BREAK = re.compile(r"<br\b[^>]*>|</(?:p|div|li|tr|h\d)\s*>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>")
_STATE = re.compile(r"<script\b[^<>]{0,500}?application/json[^<>]{0,200}+>", re.IGNORECASE)
_ASSIGNED = re.compile(r"__[A-Z][A-Z_]{2,40}__\s{0,9}=\s{0,9}(?=[{\[])")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\uac00-\ud7af]")
_CODE = re.compile(r"[{};]\s*[}\n]|function\s*\(|=>|https?://\S{1,300}\s{1,9}https?://")
_SENTENCE = re.compile(r"[.!?。！？؟।][\s\"'”’)<]|[.!?。！？؟।]$")


def article_body(page: str) -> str:
    """The longest `articleBody` (or text of a posting, or review) in the page's JSON-LD; empty without one."""
    bodies = [
        value
        for node in json_ld(page)
        for key in ("articleBody", "text", "reviewBody")
        if isinstance(value := node.get(key), str)
    ]
    return plain(max(bodies, key=len, default=""))


def state_text(page: str) -> str:
    """The prose that stands in one place of the page's state, the place with most of it; empty where it is little.

    A place is a path of keys, numbers of list items left out: the paragraphs of an article share one.
    """
    places: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for held in _states(page):
        for place, value in _strings(held):
            if text := _prose(value):
                places[place].setdefault(text)
    best = max(places.values(), key=lambda texts: sum(map(len, texts)), default={})
    text = "\n\n".join(best)
    return text if _words(text) >= MIN_TEXT_WORDS else ""


def embedded_text(page: str) -> str:
    """The article in JSON-LD, else the prose of the page's state."""
    body = article_body(page) if "application/ld+json" in page else ""
    return body if _words(body) >= MIN_TEXT_WORDS else max(body, state_text(page), key=len)


def json_ld(page: str) -> Iterator[Mapping[str, Any]]:
    """All objects of the page's JSON-LD, to a bounded depth, the outer before the inner."""
    at, left = 0, MAX_JSON_CHARS
    while left > 0 and (at := page.find("application/ld+json", at)) >= 0:
        start = page.find(">", at, at + 1000) + 1
        at += 1
        if not start or page.rfind("<script", max(0, at - 1000), at) < 0:
            continue
        held, left = _script(page, start, left, _whole)
        todo: list[tuple[Any, int]] = [(held, 0)]
        for node, depth in todo:  # grows as it is walked
            if isinstance(node, dict):
                yield node
            inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
            if depth < _LD_LEVELS and len(todo) < MAX_NODES:
                todo.extend((item, depth + 1) for item in inner if isinstance(item, (dict, list)))


def _script(page: str, start: int, left: int, parse: Callable[[str], Any]) -> tuple[Any, int]:
    """The JSON of the script that begins at `start`, None where it is none; and how many characters may still be
    looked at on this page: none where the script does not end within `left`."""
    end = page.find("</script", start, start + left)
    if end < 0:
        return None, 0
    try:
        return parse(page[start:end].strip()), left - (end - start)
    except (ValueError, RecursionError):
        return None, left - (end - start)


def _states(page: str) -> Iterator[Any]:
    left = MAX_JSON_CHARS
    for pattern, parse in ((_STATE, _whole), (_ASSIGNED, _leading)):
        for found in pattern.finditer(page):
            if left <= 0:
                return
            held, left = _script(page, found.end(), left, parse)
            yield held


def _whole(text: str) -> Any:
    return json.loads(text, strict=False)


def _leading(text: str) -> Any:
    """The JSON value that a text begins with."""
    return json.JSONDecoder(strict=False).raw_decode(text)[0]


def _strings(held: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Strings of a JSON value with their paths, in their order."""
    todo: list[tuple[tuple[str, ...], Any]] = [((), held)]
    for _ in range(MAX_NODES):
        if not todo:
            return
        place, node = todo.pop()
        if isinstance(node, str):
            yield place, node
        elif len(place) < MAX_LEVELS and isinstance(node, dict):
            todo.extend(((*place, key), node[key]) for key in reversed(node))
        elif len(place) < MAX_LEVELS and isinstance(node, list):
            todo.extend(((*place, ""), item) for item in reversed(node))


def _prose(value: str) -> str:
    """A string as text if it is prose, else nothing."""
    if len(value) < MIN_WIDE or not _SENTENCE.search(value):
        return ""
    text = plain(value)
    return text if _words(text) >= MIN_WORDS and not _CODE.search(text) else ""


def _words(text: str) -> int:
    return len(text.split()) + len(_WIDE.findall(text)) // 3


def plain(text: str) -> str:
    """Text without markup and entities."""
    if "<" in text:
        text = _MARKUP.sub("", _BREAK.sub("\n", text))
    return unescaped(text).strip()
