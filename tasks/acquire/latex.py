"""Papers as LaTeX in the shape of arXiv: the main file with the files it inputs, without comments, kept as LaTeX.

A file is a paper (tarball, or one .tex, compressed or not) or a tarball of papers, as arXiv's bulk data are:
`2301/2301.00001.gz` in `arXiv_src_2301_001.tar`. One paper is one document.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from corpusmill.config import Latex
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.warc import FileFacts
from tasks.acquire.archives import members
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.listing import listed
from tasks.acquire.pointers import is_pointer
from tasks.acquire.streams import Damage, decompressed, pieces, whole
from tasks.acquire.texts import decoded, document, ended, is_binary
from tasks.acquire.units import SourceUnit

VERSION = 2
LIBRARIES: tuple[str, ...] = ()
MAX_PAPER_BYTES = 256 * 2**20  # figures and all, decompressed
MAX_INPUTS, MAX_DEPTH = 1000, 50
SOURCES = (".tex", ".ltx", ".latex")
LIKELY = ("main", "ms", "paper", "article")
NAMES = re.compile(r"\.(tar|tgz|gz|tex|bz2|xz|zst)$", re.IGNORECASE)
PAPER = re.compile(r"(\.tar)?\.(gz|tgz|tar|tex|bz2|xz|zst|pdf)$", re.IGNORECASE)
ARXIV = re.compile(r"(^|/)(\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?\d{7})(v\d+)?(\.tar)?\.(gz|tgz|pdf)$")

_MAIN = re.compile(r"\\document(?:class|style)\b")
_BODY = re.compile(r"\\begin\s*\{document\}")
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}\n]{1,300})\}|\\input\s+([^\s\\{}%]{1,300})")
_COMMENT = re.compile(
    r"(?P<kept>\\begin\{(?P<as>verbatim\*?|Verbatim|lstlisting|minted|filecontents\*?)\}.*?\\end\{(?P=as)\}"
    r"|\\verb\*?(?P<mark>[^\sa-zA-Z*{])[^\n]*?(?P=mark)|\\(?:url|href|path)\s*\{[^{}\n]*\})"
    r"|(?P<block>\\begin\{comment\}.*?\\end\{comment\}[ \t]*\n?)"
    r"|(?P<escaped>\\.)|(?P<line>(?m:^)[ \t]*%[^\n]*(?:\n|\Z))|(?P<rest>%[^\n]+)",
    re.DOTALL,
)


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
        for entry in members(pieces(file.path), MAX_PAPER_BYTES):
            end = entry.offset + 1
            if entry.kind != "file":
                facts.not_content[entry.kind] += 1
            elif entry.data is None:
                yield ended("too_large", **_place(entry.path, entry.offset, entry.size))
            else:
                stream = decompressed(io.BytesIO(entry.data))
                yield _outcome(entry.path, stream, entry.offset, entry.size, options, facts)
    except Damage as err:
        facts.fault(end, err.reason)
        yield ended(err.reason, offset=end, record_type="unknown")


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
        return _paper(path, stream, offset, size, options)
    except Exception as err:
        return crashed(err, facts, **_place(path, offset, size))


def _paper(path: str, stream: Iterator[bytes], offset: int, size: int, options: ReadOptions) -> Outcome:
    """The outcome of one paper, which comes as decompressed pieces."""
    place = _place(path, offset, size)
    try:
        data = whole(stream, MAX_PAPER_BYTES)
        files = None if data is None else _sources(data)
    except Damage as err:
        return ended(err.reason, **place)
    if data is not None and is_pointer(data):
        return ended("pointer", **place)
    if data is not None and (data.startswith(b"%PDF") or (files and list(files) == [""] and is_binary(data))):
        return ended("not_html", **place)
    if files is None or sum(map(len, files.values())) > options.max_payload_bytes:
        return ended("too_large", **place)
    here = {name: content for name, content in files.items() if not (is_binary(content) or is_pointer(content))}
    texts = {name: decoded(content) for name, content in here.items()}
    clean = {name: without_comments(text) for name, (text, _) in texts.items()}
    main = main_file(clean)
    if main is None:
        return ended("no_main_file", **place)
    text = expanded(main, clean, options.max_payload_bytes)
    if text is None:
        return ended("too_large", **place)
    how = {key: texts[main][1][key] for key in ("charset", "charset_origin", "repairs")}
    place.pop("payload_bytes")
    return document(text, options, **place, **how, extractor="latex")


def _sources(data: bytes) -> dict[str, bytes]:
    """path -> bytes of a paper's TeX files; one without a name where it is no tarball.

    Raises:
        Damage: the tarball cannot be read.
    """
    if not _is_tar(data):
        return {"": data}
    found = members(iter([data]), MAX_PAPER_BYTES, lambda path: path.lower().endswith(SOURCES))
    return {str(PurePosixPath(e.path)): e.data for e in found if e.data is not None}


def _is_tar(data: bytes) -> bool:
    """Whether a tarball begins here: the checksum of its first header is right."""
    field = data[148:156].strip(b" \0")
    if len(data) < 512 or not re.fullmatch(rb"[0-7]{1,8}", field):
        return False
    return sum(data[:148]) + 8 * 32 + sum(data[156:512]) == int(field, 8)


def main_file(files: Mapping[str, str]) -> str | None:
    """The file that begins the document, of those that no other one inputs: one with a likely name, else the longest.

    Args:
        files: path -> text without comments.
    """
    begun = [path for path, text in files.items() if _MAIN.search(text)]
    whole_ones = [path for path in begun if _BODY.search(files[path])] or begun
    used = {found for path, text in files.items() for name in _named(text) if (found := _resolved(name, path, files))}
    free = [path for path in whole_ones if path not in used] or whole_ones
    likely = [path for path in free if PurePosixPath(path).stem.lower() in LIKELY]
    return max(sorted(likely or free), key=lambda path: len(files[path]), default=None)


def expanded(main: str, files: Mapping[str, str], limit: int) -> str | None:
    """The main file with its inputs in their places; None above the limit (in characters). What is missing stays a
    command, and no file is put into itself."""
    total, inputs = 0, 0

    def put(path: str, open_files: tuple[str, ...]) -> Iterator[str]:
        nonlocal total, inputs
        text, position = files[path], 0
        for match in _INPUT.finditer(text):
            found = _resolved(match[1] or match[2], main, files)
            if found is None or found in open_files or inputs >= MAX_INPUTS or len(open_files) >= MAX_DEPTH:
                continue
            inputs += 1
            yield text[position : match.start()]
            yield from put(found, (*open_files, found))
            position = match.end()
            if total > limit:
                return
        total += len(text)
        yield text[position:]

    text = "".join(put(main, (main,)))
    return text if len(text) <= limit else None


def _named(text: str) -> list[str]:
    return [braces or bare for braces, bare in _INPUT.findall(text)]


def _resolved(name: str, main: str, files: Mapping[str, str]) -> str | None:
    """The file an input command means: relative to the main file's folder, with or without its suffix."""
    path = str(PurePosixPath(main).parent / name.strip().strip('"'))
    path = re.sub(r"(^|/)\./", r"\1", path)
    return next((p for p in (path, f"{path}.tex", f"{path}.ltx") if p in files), None)


def without_comments(text: str) -> str:
    """LaTeX without what % and comment environments hide; a % that joins lines stays, and so does verbatim text."""
    return _COMMENT.sub(_uncommented, text)


def _uncommented(match: re.Match[str]) -> str:
    if match["kept"] is not None or match["escaped"] is not None:
        return match[0]
    return "%" if match["rest"] is not None else ""
