"""Outcomes of sources whose documents are texts already: no HTML extraction, and `extractor` says so."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal
from typing import Any

from corpusmill.readers.charset import decode
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.text import clean_text, clean_utf8
from tasks.stages import REASONS


def document(text: str, options: ReadOptions, **known: Any) -> Outcome:
    """The outcome of a text: a document, or empty_body, too_large, or a reason of the URL rules.

    Args:
        text: any string; it is cleaned for storage.
        options: bounds.
        known: fields of Outcome: `offset`, `record_type`, `extractor` and what else is known.
    """
    cleaned, repairs, data = clean_utf8(text)
    known = {"index": 0, "url": None, "date": None, "mime": "text/plain", "payload_bytes": len(data), **known}
    known["repairs"] = known.get("repairs", 0) + repairs
    if options.urls and (reason := options.urls.reason(known["url"])):
        return ended(reason, **known)
    if len(data) > options.max_payload_bytes:
        return ended("too_large", **known)
    if not cleaned.strip():
        return ended("empty_body", **known)
    known.setdefault("payload_digest", hashlib.sha256(data).digest()[:16])
    return Outcome(text=cleaned.strip("\n"), **known)


def ended(reason: str, **known: Any) -> Outcome:
    """The outcome of a document that ends here.

    Args:
        reason: a name in stages.REASONS.
        known: fields of Outcome, of which `offset` and `record_type` are needed.
    """
    known = {"index": 0, "url": None, "date": None, **known, "extractor": None, "code_language": None}
    return Outcome(**known, stage=REASONS[reason].row, reason=reason)


def decoded(data: bytes) -> tuple[str, dict[str, Any]]:
    """Bytes of a text file as text, with what is known of them (fields of Outcome)."""
    page = decode(data, None, markup=False)
    return page.text, {
        "charset": page.charset,
        "charset_origin": page.origin,
        "repairs": page.repairs,
        "payload_bytes": len(data),
        "payload_digest": hashlib.sha256(data).digest()[:16],
    }


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: a NUL among the first 8,000, as git has it, unless a byte order mark explains it."""
    return b"\0" in data[:8000] and data[:2] not in (b"\xff\xfe", b"\xfe\xff")


def cell(value: Any) -> str | None:
    """A value beside the text as clean text; None where there is none to show."""
    if isinstance(value, str):
        return clean_text(value)[0] or None
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        try:
            return str(value)
        except ValueError:  # thousands of digits
            return None
    return str(value) if isinstance(value, float) and math.isfinite(value) else None
