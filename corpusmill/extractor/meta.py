"""What a page says about itself: title, author, date, canonical URL, language, licence.

Read from the head's meta elements and links, from JSON-LD and from links with rel=license, by bounded patterns in
linear time; the visible text is not searched. What is said twice counts as said first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urljoin, urlsplit

from corpusmill.extractor.model.embedded import json_ld
from corpusmill.readers.text import clean_text, unescaped

HEAD_CHARS = 200_000
MAX_TEXT_CHARS = 1000
MAX_URL_CHARS = 2000
MAX_LICENCE_MENTIONS = 50
_ENDS = ("</head", "<body", "</HEAD", "<BODY")
_INSIDE = r"""((?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+|[^<>]*+)>"""  # nothing passes a <: linear, whatever the quotes
_TAG = re.compile(rf"<(meta|link|html)\b{_INSIDE}", re.IGNORECASE)
_LINK = re.compile(rf"<(?:a|link)\b{_INSIDE}", re.IGNORECASE)
_TIME = re.compile(r"""<time\b([^>]{0,1000})>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-zA-Z:_-]{1,40}+)\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_TITLE = re.compile(r"<title\b[^>]{0,1000}>([^<]{0,2000})", re.IGNORECASE)
_DATE = re.compile(r"(?<!\d)(\d{4})[-/](\d{2})[-/](\d{2})(?!\d)")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{1,8}){0,4}")

_TITLES = ("og:title", "twitter:title", "dc.title", "dcterms.title", "citation_title")
_AUTHORS = ("author", "article:author", "dc.creator", "dcterms.creator", "citation_author", "parsely-author")
_DATES = (
    "article:published_time", "datepublished", "date", "dc.date", "dcterms.date", "dc.date.issued", "dcterms.created",
    "citation_publication_date", "parsely-pub-date", "pubdate", "publish-date", "og:published_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meta:
    """What a page says about itself; None where it says nothing."""

    title: str | None = None
    author: str | None = None
    """Names, with a comma between them."""
    published: str | None = None
    """YYYY-MM-DD."""
    canonical: str | None = None
    """Absolute URL."""
    declared_language: str | None = None
    """As declared, lower case: en, pt-br."""
    licence_link: str | None = None
    """Absolute target of the first rel=license."""


def meta(page: str, url: str | None = None) -> Meta:
    """Metadata of a decoded page; URLs are absolute by the page's own."""
    head = page[: _head_end(page)]
    names: dict[str, str] = {}
    canonical = language = None
    for tag, body in _TAG.findall(head):
        tag = tag.lower()
        if tag == "link" and (canonical or "anonical" not in body):
            continue
        said = _attributes(body)
        if tag == "meta":
            name = said.get("property") or said.get("name") or said.get("itemprop") or said.get("http-equiv") or ""
            if said.get("content"):
                names.setdefault(name.lower(), said["content"])
        elif tag == "html":
            language = language or said.get("lang") or said.get("xml:lang")
        elif "canonical" in said.get("rel", "").lower().split():
            canonical = said.get("href")
    title = _first(names, _TITLES) or _title(head)
    author = _name(names.get(key) for key in _AUTHORS)
    published = _day(names.get(key) for key in _DATES)
    if not (title and author and published):
        facts = _facts(page)
        title, author = title or facts.get("headline"), author or facts.get("author")
        published = published or _day([facts.get("datePublished"), _time(page)])
    return Meta(
        _text(title),
        _text(author),
        published,
        _absolute(canonical or names.get("og:url"), url),
        _language(language or names.get("content-language") or names.get("og:locale")),
        _absolute(_licence(page), url),
    )


def _head_end(page: str) -> int:
    """Where the head ends: at the first of its marks that is found; else after HEAD_CHARS."""
    return next((end for mark in _ENDS if (end := page.find(mark, 0, HEAD_CHARS)) > 0), HEAD_CHARS)


def _attributes(tag: str) -> dict[str, str]:
    said: dict[str, str] = {}
    for name, a, b, c in _ATTRIBUTE.findall(tag):
        said.setdefault(name.lower(), unescaped(a or b or c).strip())
    return said


def _title(head: str) -> str | None:
    found = _TITLE.search(head)
    return unescaped(found[1]) if found else None


def _time(page: str) -> str | None:
    """Value of the first `time` element that has one."""
    at = page.find("<time")
    found = _TIME.match(page, at) if at >= 0 else None
    return _attributes(found[1]).get("datetime") if found else None


def _licence(page: str) -> str | None:
    """Target of the first link with rel=license."""
    at = -1
    for _ in range(MAX_LICENCE_MENTIONS):
        at = page.find("license", at + 1)
        if at < 0:
            break
        start = page.rfind("<", max(0, at - MAX_URL_CHARS), at)
        found = _LINK.match(page, start) if start >= 0 else None
        said = _attributes(found[1]) if found else {}
        if "license" in said.get("rel", "").lower().split() and said.get("href"):
            return said["href"]
    return None


def _facts(page: str) -> dict[str, str]:
    """What JSON-LD says of the first thing that has it."""
    facts: dict[str, str] = {}
    for node in json_ld(page):
        for key in ("headline", "datePublished"):
            if isinstance(node.get(key), str):
                facts.setdefault(key, node[key])
        if "author" not in facts and (names := list(_authors(node.get("author")))):
            facts["author"] = ", ".join(dict.fromkeys(names))
    return facts


def _authors(said: Any) -> Iterable[str]:
    for one in (said if isinstance(said, list) else [said])[:20]:
        name = one.get("name") if isinstance(one, dict) else one
        if isinstance(name, str) and name.strip() and "://" not in name:
            yield name.strip()


def _first(names: Mapping[str, str], keys: Iterable[str]) -> str | None:
    return next((names[key] for key in keys if names.get(key)), None)


def _name(values: Iterable[str | None]) -> str | None:
    """The first that is no URL."""
    return next((value for value in values if value and "://" not in value), None)


def _text(text: str | None) -> str | None:
    return " ".join(clean_text(text)[0].split())[:MAX_TEXT_CHARS].strip() or None if text else None


def _day(values: Iterable[str | None]) -> str | None:
    """The first value that begins a day of the calendar."""
    for value in values:
        if found := _DATE.search(value or ""):
            try:
                return date(*map(int, found.groups())).isoformat()
            except ValueError:
                continue
    return None


def _absolute(target: str | None, url: str | None) -> str | None:
    if not target or len(target) > MAX_URL_CHARS:
        return None
    try:
        absolute = urljoin(url or "", clean_text(target)[0].strip())
        parts = urlsplit(absolute)
    except ValueError:
        return None
    return absolute if parts.scheme in ("http", "https") and parts.netloc else None


def _language(code: str | None) -> str | None:
    found = _LANGUAGE.fullmatch((code or "").strip().lower().replace("_", "-"))
    return found[0] if found else None
