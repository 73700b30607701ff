"""Papers as LaTeX in the shape of arXiv: the main file with the files it inputs, without comments, kept as LaTeX.

A file is a paper (tarball, or one .tex, compressed or not) or a tarball of papers, as arXiv's bulk data are:
`2301/2301.00001.gz` in `arXiv_src_2301_001.tar`. One paper is one document.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from corpusmill.config import Latex
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.parsers.tex import paper_text
from corpusmill.readers.warc import FileFacts
from tasks.acquire.bounded import bounded
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.streams import Damage, beginning, capped, decompressed, pieces, whole
from tasks.acquire.texts import decoded, document, ended, is_binary
from tasks.acquire.tree.archives import BLOCK, checksum_is_right, members
from tasks.acquire.tree.listing import listed
from tasks.acquire.tree.pointers import is_pointer
from tasks.acquire.units import SourceUnit

VERSION = 2
LIBRARIES: tuple[str, ...] = ()
MAX_PAPER_BYTES = 256 * 2**20  # figures and all, decompressed
MAX_PACKED_BYTES = 128 * 2**20  # of a paper in a tarball of papers; arXiv accepts 50 MB
HEAD_BYTES = 8192
SOURCES = (".tex", ".ltx", ".latex")
NAMES = re.compile(r"\.(tar|tgz|gz|tex|bz2|xz|zst)$", re.IGNORECASE)
PAPER = re.compile(r"(\.tar)?\.(gz|tgz|tar|tex|bz2|xz|zst|pdf)$", re.IGNORECASE)
ARXIV = re.compile(r"(^|/)(\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?\d{7})(v\d+)?(\.tar)?\.(gz|tgz|pdf)$")


def plan(name: str, config: Latex, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern and may hold a paper."""
    return listed(name, config, seed, "latex", reads=NAMES, always=True)


def reading(config: Latex) -> dict[str, object]:
    """Nothing but the file decides."""
    return {"version": VERSION}


def read(unit: SourceUnit, file: Fetched, config: Latex, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every paper of the file."""
    facts.bytes = file.size
    if not _holds_papers(file.path):
        yield _outcome(PurePosixPath(unit.locator).name, pieces(file.path), 0, file.size, options, facts)
        return
    end = 0
    try:
        for entry in members(pieces(file.path), MAX_PACKED_BYTES):
            end = entry.offset + 1
            if entry.kind != "file":
                facts.not_content[entry.kind] += 1
            elif entry.data is None:
                yield ended("too_large", **_place(entry.path, entry.offset, entry.size))
            else:
                stream = decompressed(io.BytesIO(entry.data))
                yield _outcome(entry.path, stream, entry.offset, entry.size, options, facts)
    except Damage as err:
        yield ended(err.note(end, facts), offset=end, record_type="unknown")


def _place(path: str, offset: int, size: int) -> dict[str, Any]:
    return {
        "offset": offset,
        "record_type": "file",
        "source_id": PurePosixPath(PAPER.sub("", path)).name,
        "mime": "application/x-tex",
        "payload_bytes": size,
    }


def _holds_papers(path: Path) -> bool:
    """Whether it is a tarball of papers: its first file is called as arXiv calls a paper."""
    try:
        first = next((e for e in members(pieces(path), 0) if e.kind == "file"), None)
    except Damage:
        return False
    return first is not None and ARXIV.search(first.path) is not None


def _outcome(
    path: str, stream: Iterator[bytes], offset: int, size: int, options: ReadOptions, facts: FileFacts
) -> Outcome:
    try:
        return _paper(path, stream, offset, size, options, facts)
    except Exception as err:
        return crashed(err, facts, **_place(path, offset, size))


def _paper(
    path: str, stream: Iterator[bytes], offset: int, size: int, options: ReadOptions, facts: FileFacts
) -> Outcome:
    """The outcome of one paper, which comes as decompressed pieces."""
    place = _place(path, offset, size)
    try:
        begin = beginning(stream, HEAD_BYTES)
        if begin.startswith(b"%PDF"):
            return ended("not_html", **place)
        files = _sources(stream, begin, options.max_payload_bytes)
    except Damage as err:
        return ended(err.note(offset, facts), **place)
    if files is None:
        other = is_binary(begin) and not checksum_is_right(begin[:BLOCK])
        return ended("not_html" if other else "too_large", **place)
    alone = files.get("", b"")
    if is_pointer(alone) or is_binary(alone):
        return ended("pointer" if is_pointer(alone) else "not_html", **place)
    here = {name: content for name, content in files.items() if not (is_binary(content) or is_pointer(content))}
    texts = {name: decoded(content) for name, content in here.items()}
    request = json.dumps([options.max_payload_bytes, {name: text for name, (text, _) in texts.items()}])
    found = bounded(paper_text, request, options)
    if found.text is None:
        return ended(str(found.reason), **place)
    main, text, reason = json.loads(found.text)
    if reason:
        return ended(reason, **place)
    how = {key: texts[main][1][key] for key in ("charset", "charset_origin", "repairs")}
    place.pop("payload_bytes")
    return document(text, options, **place, **how, extractor="latex")


def _sources(data: Iterator[bytes], begin: bytes, limit: int) -> dict[str, bytes] | None:
    """path -> bytes of a paper's TeX files, one without a name where it is no tarball; None above the limit.

    Raises:
        Damage: the tarball cannot be read, or is too large.
    """
    stream = capped(chain((begin,), data), MAX_PAPER_BYTES)
    if not checksum_is_right(begin[:BLOCK]):
        one = whole(stream, limit)
        return None if one is None else {"": one}
    files: dict[str, bytes] = {}
    total = 0
    for entry in members(stream, limit, lambda path: path.lower().endswith(SOURCES)):
        if entry.kind == "file" and entry.path.lower().endswith(SOURCES):
            total += entry.size
            if entry.data is None or total > limit:
                return None
            files[str(PurePosixPath(entry.path))] = entry.data
    return files
