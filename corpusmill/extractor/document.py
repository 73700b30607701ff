"""The public face of the extractor: one page in, its main text and what it says about itself out.

Runs in this process: a page that makes a parser crash or never end does so here. A build extracts in worker processes
that may be killed (`sandbox/`).
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusmill.errors import UsageError
from corpusmill.extractor.meta import Meta, meta
from corpusmill.extractor.modes import MODES, Mode
from corpusmill.extractor.modes import extract as by_mode
from corpusmill.readers.charset import decode


@dataclass(frozen=True, slots=True)
class Document:
    """A page's main text, and what the page says about itself."""

    text: str | None
    """None where nothing was found: `reason` says why."""
    extractor: str | None
    """What made the text; see `corpusmill.extractor.modes`."""
    reason: str | None
    """`no_text` or `too_deep` (docs/reference/reasons.md)."""
    meta: Meta
    """Title, author, date, canonical URL, language, licence; what the page does not say is None."""


def extract(html: str | bytes, url: str | None = None, mode: Mode = "auto") -> Document:
    """Main text and metadata of a page.

    Args:
        html: a page; of bytes the charset is found as browsers do.
        url: its own URL, which makes those in its metadata absolute.
        mode: `auto`, `fast`, `resiliparse`, `trafilatura`, `plain` or `union`; docs/how-to/choose-extraction.md.

    Raises:
        UsageError: there is no such mode.
    """
    if mode not in MODES:
        raise UsageError(f"no extraction mode {mode!r}", f"there are {', '.join(MODES)}")
    page = decode(html).text if isinstance(html, bytes) else html
    found = by_mode(page, mode)
    return Document(found.text, found.extractor, found.reason, meta(page, url))
