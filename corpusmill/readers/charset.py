"""Bytes of a page to text: which charset, and who says so.

In order: byte order mark; valid UTF-8, whatever is claimed; the HTTP header and the page's own meta element, where
the bytes bear them out; detection by Resiliparse. A claim is believed only if every byte decodes, and claims of a
Latin charset, which decode anything, only if the text looks Latin. Labels mean what browsers mean by them
(encoding.spec.whatwg.org).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from corpusmill.readers.headers import charset_of
from corpusmill.readers.scan import CONTROLS, HIGH, RETURNS, high_bytes, high_runs, mostly_utf8, survey
from corpusmill.readers.text import BOM, clean_text, tidy_ends

Origin = Literal["bom", "header", "meta", "detected", "default"]

META_BYTES = 16 * 1024  # browsers look at 1,024; real pages have it later
DETECT_BYTES = 128 * 1024

_META = re.compile(  # the literal beginning is searched for fast, which a flag for any case would prevent
    rb"<(?:[mM][eE][tT][aA][\s/][^>]{0,1000}?[cC][hH][aA][rR][sS][eE][tT]\s*=\s*[\"']?\s*([\w.:-]{2,40})"
    rb"|\?[xX][mM][lL]\s[^>]{0,200}?[eE][nN][cC][oO][dD][iI][nN][gG]\s*=\s*[\"']([\w.:-]{2,40}))"
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)

# What browsers read under a label, in Python's codecs; all others are the codec of their own name.
_CODECS = {
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
    "iso-2022-jp": "iso2022_jp_ext",
    "iso-8859-9": "cp1254",
    "windows-874": "cp874",
    "macintosh": "mac-roman",
    "ibm866": "cp866",
    "iso-8859-8": "iso8859-8",
}
_NAMES = {
    "cp949": "euc-kr",
    "uhc": "euc-kr",
    "iso8859-11": "windows-874",
    "mac-roman": "macintosh",
    "cp866": "ibm866",
    "iso8859-1": "windows-1252",
    "hz": "gb18030",
}
_LATIN = ("windows-1252", "iso-8859-15")
_COMMON = ("windows-1250", "iso-8859-2", "windows-1254", "iso-8859-9", "windows-1257", "iso-8859-13", "iso-8859-4")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text of a payload.

    Attributes:
        charset: WHATWG name of what it was decoded with.
        origin: who named the charset.
        repairs: bytes that did not decode, and characters that may not be stored.
    """

    text: str
    charset: str
    origin: Origin
    repairs: int = 0


def decode(data: bytes, content_type: str | None = None, *, markup: bool = True, signs: int | None = None) -> Decoded:
    """Text of a payload, cleaned for storage.

    Args:
        data: the decoded body.
        content_type: the HTTP header, for its charset parameter.
        markup: look for a meta element or an XML declaration.
        signs: what `survey` says of the data, where that is known.
    """
    signs = survey(data) if signs is None else signs
    text, charset, origin, broken = _decode(data, content_type, markup, signs)
    if signs & CONTROLS:
        text, repairs = clean_text(text)
        return Decoded(text, charset, origin, broken + repairs)
    # in all charsets a control character has a control byte, so there are none
    return Decoded(tidy_ends(text) if signs & RETURNS or text[:1] == BOM else text, charset, origin, broken)


def _decode(data: bytes, content_type: str | None, markup: bool, signs: int) -> tuple[str, str, Origin, int]:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        charset = "utf-16le" if data[0] == 0xFF else "utf-16be"
        text = data[2:].decode(charset, "replace")
        return text, charset, "bom", text.count("\ufffd")
    if signs & CONTROLS and (wide := _wide(data)) is not None:
        text = data.decode(wide, "replace")
        return text, wide, _who(wide, content_type, data, markup), text.count("\ufffd")
    if signs & CONTROLS and b"\x1b" in data and not signs & HIGH:
        text = _strict(data, "iso-2022-jp") or ""
        if not text.isascii():
            return text, "iso-2022-jp", _who("iso-2022-jp", content_type, data, markup), 0
    bom = data.startswith(b"\xef\xbb\xbf")
    data = data[3:] if bom else data
    try:
        text = data.decode("utf-8")
        return text, "utf-8", "bom" if bom else _who("utf-8", content_type, data, markup), 0
    except UnicodeDecodeError:
        pass
    if mostly_utf8(data):  # a few bytes are broken
        text = data.decode("utf-8", "replace")
        return text, "utf-8", "bom" if bom else _who("utf-8", content_type, data, markup), text.count("\ufffd")
    texts = _Texts(data)
    charset, origin = _legacy_charset(data, content_type, markup, texts)
    if (strict := texts[charset]) is not None:
        return strict, charset, origin, 0
    text = data.decode(_codec(charset), "replace")
    return text, charset, origin, text.count("\ufffd")


class _Texts(dict[str, str | None]):
    """The text of some bytes in each charset asked for, decoded once; None where they are not in it."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __missing__(self, charset: str) -> str | None:
        self[charset] = text = _strict(self.data, charset)
        return text


def _legacy_charset(data: bytes, content_type: str | None, markup: bool, texts: _Texts) -> tuple[str, Origin]:
    """The charset of bytes that are not UTF-8."""
    claims: list[tuple[str, Origin]] = []
    for label, origin in _claims(data, content_type, markup):
        name = canonical_name(label)
        if name and not name.startswith("utf-") and texts[name] is not None:
            claims.append((name, origin))
    agreed = claims and all(name == claims[0][0] for name, _ in claims)
    if agreed and not (claims[0][0] in _LATIN and _looks_foreign(data)):
        return claims[0]
    detected = _detect(data, texts)
    if detected is None:
        return claims[0] if claims else ("windows-1252", "default")
    for claim in claims:
        if claim[0] == detected:
            return claim
    if claims and claims[0][0] not in _LATIN:
        return claims[0]
    return detected, "detected"


def _claims(data: bytes, content_type: str | None, markup: bool) -> Iterator[tuple[str, Origin]]:
    if label := charset_of(content_type):
        yield label, "header"
    if markup:
        match = _META.search(data, 0, META_BYTES)
        if match and data.find(b"<!--", 0, match.start()) >= 0:
            match = _META.search(_COMMENT.sub(b"", data[:META_BYTES]))
        if match:
            yield (match[1] or match[2]).decode("ascii", "ignore"), "meta"


def _who(charset: str, content_type: str | None, data: bytes, markup: bool) -> Origin:
    """Who named the charset that the bytes turned out to be in."""
    for label, origin in _claims(data, content_type, markup):
        name = canonical_name(label)
        if name == charset or ((name or "").startswith("utf-16") and charset.startswith("utf-16")):
            return origin
    return "default" if charset == "utf-8" and data.isascii() else "detected"


def _detect(data: bytes, texts: _Texts) -> str | None:
    """Resiliparse's guess, put right where sister charsets differ by bytes that only one of them uses."""
    guess = detect_encoding(data[:DETECT_BYTES], html5_compatible=False)
    name = canonical_name(guess) if guess else None
    if name is None or name.startswith("utf-") or texts[name] is None:
        return None
    used = frozenset((np.flatnonzero(high_bytes(data)) + 0x80).tolist())
    windows_only = any(byte in used for byte in range(0x80, 0xA0))
    if name == "iso-8859-15":
        return name if 0xA4 in used and not windows_only else "windows-1252"
    if name in ("windows-1250", "iso-8859-2"):
        name = "windows-1250" if windows_only else "iso-8859-2"
    if name in ("windows-1253", "iso-8859-7"):
        return "windows-1253" if windows_only or (0xA2 in used and not used & {0xA1, 0xB6}) else "iso-8859-7"
    latin = (name.startswith("iso-8859-") and name[9:] in ("3", "10", "14", "16")) or name in _COMMON
    if latin and sum(byte >= 0xC0 for byte in used) < 3:
        return "windows-1252"  # too little to tell; the likelier by far
    return name


def _looks_foreign(data: bytes) -> bool:
    """High bytes of Latin text stand alone or in pairs; those of other scripts form runs."""
    high, in_runs = high_runs(data)
    return in_runs > 0.5 * high


def _wide(data: bytes) -> str | None:
    """UTF-16 without a byte order mark: every other byte of ASCII markup is zero."""
    head = data[:512]
    if head.count(0) * 3 < len(head) or len(head) < 8:
        return None
    even, odd = head[::2].count(0), head[1::2].count(0)
    return "utf-16be" if even > 3 * odd else "utf-16le" if odd > 3 * even else None


@lru_cache(maxsize=256)
def canonical_name(label: str) -> str | None:
    """WHATWG name of a charset label, lower case; None where no browser knows it."""
    label = label.strip().lower()
    found = _NAMES.get(label) or map_encoding_to_html5(label, fallback_utf8=False)
    if found is None:
        return None
    if found.startswith("utf-16"):
        return found.replace("utf-16-", "utf-16")
    name = _NAMES.get(found, found).replace("iso8859-", "iso-8859-").replace("iso2022_jp", "iso-2022-jp")
    name = name.replace("euc_", "euc-")
    return f"windows-{name[2:]}" if re.fullmatch(r"cp125\d|cp874", name) else name


def _codec(charset: str) -> str:
    return _CODECS.get(charset, charset)


def _strict(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(_codec(charset))
    except (UnicodeDecodeError, LookupError):
        return None
