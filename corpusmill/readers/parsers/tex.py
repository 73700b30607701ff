"""Papers in LaTeX: the main file with the files it inputs in their places, without comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from corpusmill.extractor.extraction import Extraction

MAX_INPUTS, MAX_DEPTH = 1000, 50
LIKELY = ("main", "ms", "paper", "article")

_MAIN = re.compile(r"\\document(?:class|style)\b")
_BODY = re.compile(r"\\begin\s*\{document\}")
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}\n]{1,300})\}|\\input\s+([^\s\\{}%]{1,300})")
_MARK = re.compile(
    r"\\begin\{(?P<begun>verbatim\*?|Verbatim|lstlisting|minted|filecontents\*?|comment)\}"
    r"|\\verb\*?(?P<mark>[^\sa-zA-Z*{])|\\(?:url|href|path)\s*\{[^{}\n]*\}|\\."
    r"|(?P<line>(?m:^)[ \t]*%[^\n]*(?:\n|\Z))|(?P<rest>%[^\n]+)",
    re.DOTALL,
)
_BLANK_END = re.compile(r"[ \t]*\n?")
MAX_VERB = 10_000  # characters between the marks of \verb, which has to end in its line


def paper_text(request: str) -> Extraction:
    """Main file and text of a paper, for a process of its own.

    Args:
        request: as JSON, the most characters and {path: text}.

    Returns:
        as JSON, the path of the main file, the text, and the reason why there is none.
    """
    limit, files = json.loads(request)
    clean = {name: without_comments(text) for name, text in files.items()}
    main = main_file(clean)
    text = expanded(main, clean, limit) if main is not None else None
    reason = "no_main_file" if main is None else "too_large" if text is None else None
    return Extraction(json.dumps([main, text, reason]))


def main_file(files: Mapping[str, str]) -> str | None:
    """The file that begins the document, of those that no other one inputs: one with a likely name, else the longest.

    Args:
        files: path -> text without comments.
    """
    begun = [path for path, text in files.items() if _MAIN.search(text)]
    whole_ones = [path for path in begun if _BODY.search(files[path])] or begun
    named = {(path, name) for path, text in files.items() for name in _named(text)}
    used = {found for path, name in named if (found := _resolved(name, path, files))}
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
    """LaTeX without what % and comment environments hide; a % that joins lines stays, and so does verbatim text.

    One scan: an environment that is not ended once is not ended behind that place either, and is looked for no more.
    """
    parts: list[str] = []
    kept, at, unended = 0, 0, set[str]()
    while match := _MARK.search(text, at):
        at = match.end()
        if match["line"] is not None or match["rest"] is not None:
            parts += (text[kept : match.start()], "%" if match["rest"] else "")
            kept = at
        elif (name := match["begun"]) is not None:
            end = -1 if name in unended else text.find(f"\\end{{{name}}}", at)
            if end < 0:
                unended.add(name)
                at = match.start() + 2  # a command as any other
                continue
            at = end + len(f"\\end{{{name}}}")
            if name == "comment":
                parts.append(text[kept : match.start()])
                kept = at = _BLANK_END.match(text, at).end()  # type: ignore[union-attr]  # it matches anything
        elif (mark := match["mark"]) is not None:
            line = text.find("\n", at, at + MAX_VERB)
            end = text.find(mark, at, line if line >= 0 else at + MAX_VERB)
            at = end + 1 if end >= 0 else match.start() + 2
    return "".join([*parts, text[kept:]])
