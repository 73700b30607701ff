"""Text fit to be stored: valid Unicode without NUL or other C0 controls but tab and newline.

Meaning-bearing invisible characters (joiners, marks, direction, soft hyphens) stay. Nothing is normalised: comparison
uses keys of its own, never altered text.
"""

from __future__ import annotations

import html
import re

from corpusmill.readers.scan import CONTROLS, survey

BOM = "\ufeff"

_LONG_NUMBER = re.compile(r"&#[0-9]{1000,}")
_DROPPED = [*range(0x00, 0x09), *range(0x0E, 0x20)]
_TABLE: dict[int, str | None] = {**dict.fromkeys(_DROPPED), 0x0B: "\n", 0x0C: "\n"}


def has_controls(data: bytes) -> bool:
    """Whether UTF-8 bytes hold C0 controls other than tab, newline and carriage return."""
    return bool(survey(data) & CONTROLS)


def clean_text(text: str) -> tuple[str, int]:
    """Text without what may not be stored, and how many characters were repaired.

    Line ends become a newline, form feeds and vertical tabs too; other C0 controls and a byte order mark at the
    beginning are dropped; a pair of surrogates becomes its character, a lone one U+FFFD. Line ends do not count as
    repairs.
    """
    if text.isascii() and text.isprintable():  # a URL, a date
        return text, 0
    cleaned, repairs, _ = clean_utf8(text)
    return cleaned, repairs


def clean_utf8(text: str) -> tuple[str, int, bytes]:
    """As `clean_text`, and the UTF-8 of the clean text."""
    repairs = 0
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        text, repairs = _without_surrogates(text)
        data = text.encode("utf-8")
    cleaned = text
    if has_controls(data):
        cleaned = text.translate(_TABLE)
        repairs += len(text) - len(cleaned)
    cleaned = tidy_ends(cleaned)
    return cleaned, repairs, data if cleaned is text else cleaned.encode("utf-8")


def unescaped(text: str) -> str:
    """Text with its character references as characters; a number that is none, however long, is U+FFFD."""
    try:
        return html.unescape(text)
    except ValueError:  # `int` refuses more than 4,300 digits
        return html.unescape(_LONG_NUMBER.sub("&#1114112", text))


def tidy_ends(text: str) -> str:
    """Line ends as newlines, no byte order mark at the beginning."""
    if text.startswith(BOM):
        text = text[1:]
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _without_surrogates(text: str) -> tuple[str, int]:
    repaired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    pairs = len(text) - len(repaired)
    return repaired, repaired.count("\ufffd") - text.count("\ufffd") + pairs
