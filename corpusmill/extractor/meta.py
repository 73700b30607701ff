"""What a page says about itself: title, author, date, canonical address, language, licences; and text in JSON-LD.

Read from meta elements, links and JSON-LD by bounded patterns in linear time, not from the visible text.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HEAD_CHARS = 400_000
MAX_JSON_CHARS = 2_000_000
_TAG = re.compile(r"<(meta|link|a|html|time)\b([^>]{0,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-zA-Z:_-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_TITLE = re.compile(r"<title\b[^>]{0,1000}>([^<]{0,2000})", re.IGNORECASE)
_JSON_LD = re.compile(r"<script\b[^>]{0,1000}?application/ld\+json[^>]{0,1000}>", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BREAK = re.compile(r"<br\b[^>]*>|</p\s*>|</div\s*>|</li\s*>|</h\d\s*>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^>]*>")

_TITLES = ("og:title", "twitter:title", "dc.title", "citation_title")
_AUTHORS = ("author", "article:author", "dc.creator", "citation_author", "parsely-author")
_DATES = ("article:published_time", "datepublished", "date", "dc.date", "citation_publication_date", "parsely-pub-date")


@dataclass(frozen=True)
class Meta:
    """What a page says about itself; None where it says nothing."""

    title: str | None = None
    author: str | None = None
    date: str | None = None
    """YYYY-MM-DD of its publication."""
    canonical: str | None = None
    language: str | None = None
    """As declared, lower case."""
    licences: tuple[str, ...] = ()
    """Targets of rel=license, in page order."""


def meta(page: str) -> Meta:
    """Metadata of a decoded page."""
    names: dict[str, str] = {}
    canonical = language = moment = None
    licences: dict[str, None] = {}
    for tag, body in _TAG.findall(page[:HEAD_CHARS]):
        tag = tag.lower()
        if tag == "a" and "license" not in body.lower():
            continue
        said = {name.lower(): html.unescape(a or b or c).strip() for name, a, b, c in _ATTRIBUTE.findall(body)}
        if tag == "meta":
            name = said.get("property") or said.get("name") or said.get("itemprop") or ""
            if said.get("content"):
                names.setdefault(name.lower(), said["content"])
        elif tag == "html":
            language = language or said.get("lang") or said.get("xml:lang")
        elif tag == "time":
            moment = moment or said.get("datetime")
        elif href := said.get("href"):
            relations = said.get("rel", "").lower().split()
            if "license" in relations:
                licences.setdefault(href)
            if tag == "link" and "canonical" in relations:
                canonical = canonical or href
    facts = _facts(page[:HEAD_CHARS])
    found = _TITLE.search(page[:HEAD_CHARS])
    title = _first(names, _TITLES) or (html.unescape(found[1]) if found else None) or facts.get("headline")
    return Meta(
        _clean(title),
        _clean(_first(names, _AUTHORS) or facts.get("author")),
        _day(_first(names, _DATES) or facts.get("datePublished") or moment),
        canonical or names.get("og:url") or None,
        (language or names.get("og:locale") or "").lower() or None,
        tuple(licences),
    )


def article_body(page: str) -> str:
    """The longest `articleBody` (or text of a posting) in the page's JSON-LD; empty without one."""
    bodies = [
        value
        for node in _nodes(page)
        for key in ("articleBody", "text", "reviewBody")
        if isinstance(value := node.get(key), str)
    ]
    body = max(bodies, key=len, default="")
    if "<" in body:
        body = _MARKUP.sub("", _BREAK.sub("\n", body))
    return html.unescape(body).strip()


def _facts(page: str) -> dict[str, str]:
    facts: dict[str, str] = {}
    for node in _nodes(page):
        for key in ("headline", "datePublished"):
            if isinstance(node.get(key), str):
                facts.setdefault(key, node[key])
        author = node.get("author")
        author = author[0] if isinstance(author, list) and author else author
        name = author.get("name") if isinstance(author, dict) else author
        if isinstance(name, str):
            facts.setdefault("author", name)
    return facts


def _nodes(page: str) -> Iterator[Mapping[str, Any]]:
    """All objects of the page's JSON-LD, to a bounded depth."""
    for start in _JSON_LD.finditer(page):
        end = page.find("</script", start.end())
        if end < 0 or end - start.end() > MAX_JSON_CHARS:
            continue
        try:
            held = json.loads(page[start.end() : end].strip(), strict=False)
        except (ValueError, RecursionError):
            continue
        todo: list[tuple[Any, int]] = [(held, 0)]
        while todo:
            node, depth = todo.pop(0)
            if isinstance(node, dict):
                yield node
            inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
            if depth < 4:
                todo.extend((item, depth + 1) for item in inner if isinstance(item, (dict, list)))


def _first(names: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((names[key] for key in keys if names.get(key)), None)


def _clean(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None


def _day(text: str | None) -> str | None:
    found = _DATE.search(text or "")
    return found[0] if found else None
