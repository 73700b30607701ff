"""Whether a page's owner objects to its use, and whether the page only sends its visitor elsewhere.

Objections: X-Robots-Tag and `<meta name="robots">` with noindex, none or noai; tdm-reservation: 1 as a header or meta
element (W3C TDM Reservation Protocol). Directives for other crawlers by name do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpusmill.readers.headers import HttpHead
from corpusmill.readers.scan import CONTROLS, HEAD_SEARCHED, OBJECTION, REFRESH, RESERVATION, ROBOTS, survey

OBJECTS, SENDS = 1, 2
"""Answers of `may_say_so`."""

MAX_REFRESH_S = 5  # longer ones reload a page that is meant to be read
MAX_REFRESH_PAGE = 4096  # characters; a longer page has something to say besides

_OBJECTIONS = frozenset(("noindex", "none", "noai"))
_WITH_VALUE = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")

_META = re.compile(r"<meta\s([^>]{1,2000})>")
_HEAD_ENDS = re.compile("</head", re.IGNORECASE | re.ASCII)
_ATTRIBUTE = re.compile(r"([a-z:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|noscript)\b.*?(?:</\1|\Z)", re.DOTALL)
_REFRESH = re.compile(r"\s*(\d{1,9})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?\S")


def may_say_so(payload: bytes, signs: int | None = None) -> int:
    """Whether the beginning of a page holds the words of an objection or a refresh: else its head need not be read.

    Args:
        payload: the page.
        signs: what `survey` says of it, where that is known.

    Returns:
        The sum of OBJECTS and SENDS; a page that is neither may be called so, never the other way round.
    """
    signs = survey(payload) if signs is None else signs
    if signs & CONTROLS:
        return OBJECTS | SENDS  # UTF-16, or words with controls in them that the text is without
    objects = signs & RESERVATION or (signs & ROBOTS and signs & OBJECTION)
    return (OBJECTS if objects else 0) | (SENDS if signs & REFRESH else 0)


def objects_by_header(http: HttpHead) -> bool:
    """Whether the response's headers object."""
    if http.plain:
        return False
    if (http.get("tdm-reservation") or "").strip() == "1":
        return True
    return any(_objects(value.lower()) for value in http.all("x-robots-tag"))


def objects_by_meta(html: str) -> bool:
    """Whether the page's head objects."""
    return any(
        (meta.get("name") == "robots" and _objects(meta.get("content", "")))
        or (meta.get("name") == "tdm-reservation" and meta.get("content", "").strip() == "1")
        for meta in _metas(html)
    )


def sends_on(html: str) -> bool:
    """Whether a short page sends its visitor elsewhere within seconds by `<meta http-equiv="refresh">`."""
    if len(html) > MAX_REFRESH_PAGE:
        return False
    for meta in _metas(html):
        if meta.get("http-equiv") == "refresh":
            refresh = _REFRESH.match(meta.get("content", ""))
            if refresh and int(refresh[1]) <= MAX_REFRESH_S:
                return True
    return False


def _objects(directives: str) -> bool:
    """Whether a list of directives, lower case, objects; `name: directive` speaks to one crawler only."""
    for directive in directives.split(","):
        name, colon, _ = directive.partition(":")
        if colon and name.strip() not in _WITH_VALUE:
            return False  # what follows on this line is for that crawler too
        if directive.strip() in _OBJECTIONS:
            return True
    return False


def _metas(html: str) -> Iterator[dict[str, str]]:
    """Attributes, lower case, of the head's meta elements."""
    end = _HEAD_ENDS.search(html, 0, HEAD_SEARCHED)
    head = html[: end.start() if end else HEAD_SEARCHED]
    head = head.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")  # ASCII is what matters
    for tag in _META.finditer(_HIDDEN.sub(" ", head)):
        yield {m[1]: m[2] or m[3] or m[4] or "" for m in _ATTRIBUTE.finditer(tag[1])}
