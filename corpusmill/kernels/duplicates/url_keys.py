"""URLs that name the same page: normalised for comparison, never shown or fetched. In doubt two URLs are two pages."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

_CAMPAIGN = ("source", "medium", "campaign", "term", "content", "id", "name", "reader", "referrer", "source_platform")
_TRACKING = frozenset(
    ("fbclid", "gclid", "dclid", "msclkid", "yclid", "igshid", "mc_cid", "mc_eid", "phpsessid", "jsessionid")
) | {f"utm_{name}" for name in (*_CAMPAIGN, "creative_format", "marketing_tactic")}
"""Parameters that tell who came from where, or whose session it is. Not all of `utm_*`: `utm_zone` is a place."""
_SESSION = re.compile(r"(?=\w*\d)\w{16,}", re.ASCII)
"""A value of parameter `sid` that names a session; a short one is a story, a shop, a section."""
_SESSION_IN_PATH = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DIVIDES = re.compile("%(2f|3f|23|25|3b)", re.IGNORECASE)
"""Escapes that stand for what would divide a path, or begin an escape: they are not the same as the character."""
_ASCII = "".join(map(chr, range(0x21, 0x7F)))


def normalised(url: str) -> str:
    """The URL without what does not choose the page.

    Schemes http and https, "www.", the scheme's own port, user, tracking and session parameters, "index.html" and the
    last slash go; so does the fragment, unless it is a path of its own (`#!` or `#/`). Host in lower case, with
    Unicode for Punycode; percent escapes in one form, those of `/`, `?`, `#`, `%` and `;` as escapes; parameters in
    order of their names. A text that is no URL with a host stays as it is, stripped.
    """
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = _host(parts.hostname or ""), parts.port
    except ValueError:
        return text
    if not host:
        return text
    scheme = "" if parts.scheme in _DEFAULT_PORTS else f"{parts.scheme}://"
    host = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host += f":{port}"
    query, fragment = _query(parts.query), parts.fragment if parts.fragment.startswith(("!", "/")) else ""
    rest = (f"?{query}" if query else "") + (f"#{_escaped(fragment)}" if fragment else "")
    return scheme + host + _path(parts) + rest


def _host(name: str) -> str:
    """Host without "www." and the root's dot, in Unicode: `xn--mnchen-3ya.de` is `münchen.de`."""
    dotted = unicodedata.normalize("NFKC", name).replace("\u3002", ".")
    labels = dotted.rstrip(".").removeprefix("www.").split(".")
    return ".".join(unicodedata.normalize("NFC", _unicode(label).lower()) for label in labels)


def _unicode(label: str) -> str:
    if not label.startswith("xn--") or len(label) > 63:
        return label
    try:
        found = label[4:].encode("ascii").decode("punycode")
        return found.encode().decode()  # not a surrogate
    except UnicodeError:
        return label


def _path(parts: SplitResult) -> str:
    path = _escaped(_SESSION_IN_PATH.sub("", parts.path))
    for name in ("index.html", "index.htm", "index.php"):
        if path.endswith("/" + name):
            path = path.removesuffix(name)
    return path.rstrip("/")


def _query(query: str) -> str:
    pairs = parse_qsl(_as_ascii(query), keep_blank_values=True, encoding="latin-1")
    kept = sorted(((key, value) for key, value in pairs if not _tells_visitor(key.lower(), value)), key=lambda p: p[0])
    return "&".join("=".join(quote(part, safe="", encoding="latin-1") for part in pair) for pair in kept)


def _tells_visitor(key: str, value: str) -> bool:
    return key in _TRACKING or (key == "sid" and _SESSION.fullmatch(value) is not None)


def _escaped(path: str) -> str:
    """A path with escapes in one form. They stand for bytes, which need not be UTF-8."""
    kept = _DIVIDES.sub(lambda match: f"%25{match[1].upper()}", _as_ascii(path))
    return quote(unquote(kept, encoding="latin-1"), safe="/~!$&'()*+,;=:@-._%", encoding="latin-1")


def _as_ascii(text: str) -> str:
    """With escapes for the bytes of other characters."""
    return quote(text, safe=_ASCII)
