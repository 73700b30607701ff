"""Corpusmill: raw web crawls in, training-ready token shards with a verifiable history out.

>>> from corpusmill import extract
>>> document = extract(html, url)
>>> document.text, document.meta.title
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# Relative: kernels import this package, and their compiled code is named by all files that absolute imports reach.
if TYPE_CHECKING:
    from .extractor.document import Document as Document
    from .extractor.document import extract as extract

__version__ = "0.1.0"
__all__ = ["Document", "extract"]


def __getattr__(name: str) -> object:
    """What is public, imported when it is first asked for: `mill --help` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .extractor import document

    return getattr(document, name)
