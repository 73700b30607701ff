"""Identity of a document: where in which file it was read, whatever root, host or scheme the file came from."""

from __future__ import annotations

import hashlib

from corpusmill.canonical import canonical_json


def doc_id(source: str, snapshot: str, locator: str, offset: int, index: int = 0) -> bytes:
    """First 16 bytes of sha256 over the canonical JSON of ["doc1", source, snapshot, locator, offset, index].

    Args:
        source: name of the source in the recipe.
        snapshot: the crawl, or the name of a folder's state.
        locator: path of the file relative to the source's root, "/"-separated.
        offset: byte offset of the record in its file (of its gzip member where compressed).
        index: which record of that member it is; 0 where every record has a member of its own.
    """
    return hashlib.sha256(canonical_json(["doc1", source, snapshot, locator, offset, index])).digest()[:16]
