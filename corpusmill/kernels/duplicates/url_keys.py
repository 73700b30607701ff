"""URLs that name the same page: normalised for comparison, never shown or fetched."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote, urlsplit

_TRACKING = frozenset(
    ("fbclid", "gclid", "dclid", "msclkid", "yclid", "igshid", "mc_cid", "mc_eid", "phpsessid", "jsessionid", "sid")
)
"""Parameters that tell who came from where, or whose session it is."""


def normalised(url: str) -> str:
    """The URL without what does not choose the page.

    Scheme, "www.", port, user, fragment, tracking and session parameters, "index.html" and the last slash go; host in
    lower case, percent escapes in one form, parameters in order of their names. A text that is no URL with a host
    stays as it is, stripped.
    """
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    except ValueError:
        return text
    if not host:
        return text
    path = quote(unquote(parts.path.partition(";jsessionid=")[0], errors="replace"), safe="/~!$&'()*+,;=:@-._")
    for name in ("index.html", "index.htm", "index.php"):
        if path.endswith("/" + name):
            path = path.removesuffix(name)
    pairs = sorted(
        (key, value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
        if key.lower() not in _TRACKING and not key.lower().startswith("utm_")
    )
    query = "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in pairs)
    return host + path.rstrip("/") + (f"?{query}" if query else "")
