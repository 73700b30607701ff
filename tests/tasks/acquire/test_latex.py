"""Papers in LaTeX: the main file with its inputs, without comments."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.readers.parsers.tex import main_file, without_comments
from corpusmill.readers.warc import FileFacts
from tests.tasks.acquire.reading import outcomes, reasons

MAIN = r"""%% style notes
\documentclass{article}
\input{macros}
\begin{document}
A theorem. % to be proved
  % a whole line
50\% of it\\% joined
\input{sec/intro}
\include{missing}
\begin{comment}
nobody reads this
\end{comment}
\end{document}
"""
TEXT = r"""\documentclass{article}
\newcommand{\x}{y}

\begin{document}
A theorem. %
50\% of it\\%
Intro \verb|100% sure| \url{http://a.example/%7E}.

\include{missing}
\end{document}"""
FILES = {
    "paper.tex": MAIN,
    "macros.tex": "\\newcommand{\\x}{y}\n",
    "sec/intro.tex": "Intro \\verb|100% sure| \\url{http://a.example/%7E}.\n",
    "old.tex": "\\documentclass{article}\\begin{document}short\\end{document}",
    "fig.png": "\0\1",
    "notes.txt": "\\documentclass{article}",
}


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def paper() -> bytes:
    return tar({name: text.encode() for name, text in FILES.items()})


def test_a_paper_is_its_main_file_with_inputs(tmp_path: Path) -> None:
    (tmp_path / "2301.00001v2.tar.gz").write_bytes(gzip.compress(paper()))
    (found,) = outcomes("latex", tmp_path)
    assert found.text == TEXT
    assert (found.source_id, found.extractor, found.record_type) == ("2301.00001v2", "latex", "file")


def test_bulk_tarballs_hold_papers(tmp_path: Path) -> None:
    """As arXiv packs them: each a gzip of a tarball or of one file, or a PDF; the damaged one is lost alone."""
    single = b"\\documentclass{amsart}\n\\begin{document}\nOne file.\n\\end{document}\n"
    papers = {
        "2301/": b"",
        "2301/2301.00001.gz": gzip.compress(paper()),
        "2301/2301.00002.gz": gzip.compress(single),
        "2301/2301.00003.pdf": b"%PDF-1.5 ...",
        "2301/2301.00004.gz": gzip.compress(b"no document at all"),
        "2301/2301.00005.gz": gzip.compress(paper())[:-100],
        "2301/hep-th9901001.gz": gzip.compress("\\documentstyle{article} Schrödinger".encode("latin-1")),
    }
    data = tar({name: content for name, content in papers.items() if content})
    (tmp_path / "arXiv_src_2301_001.tar").write_bytes(data)
    facts = FileFacts()
    found = outcomes("latex", tmp_path, facts)
    assert [(o.source_id, o.reason) for o in found] == [
        ("2301.00001", None),
        ("2301.00002", None),
        ("2301.00003", "not_html"),
        ("2301.00004", "no_main_file"),
        ("2301.00005", "truncated"),
        ("hep-th9901001", None),
    ]
    assert "Schrödinger" in str(found[-1].text)
    assert found[0].text == TEXT
    (tmp_path / "arXiv_src_2301_001.tar").write_bytes(data[:700])
    assert reasons(outcomes("latex", tmp_path)) == {"truncated": 1}


def test_bombs_are_too_large(tmp_path: Path) -> None:
    (tmp_path / "2301.00001.gz").write_bytes(gzip.compress(b"\\documentclass{a}" + b" " * 300 * 2**20, 1))
    assert reasons(outcomes("latex", tmp_path)) == {"too_large": 1}
    doubling = {f"{i}.tex": f"\\input{{{i + 1}}}" * 8 for i in range(20)} | {"20.tex": "word " * 1000}
    doubling["main.tex"] = "\\documentclass{a}\\begin{document}\\input{0}\\end{document}"
    (tmp_path / "2301.00001.gz").write_bytes(gzip.compress(tar({k: v.encode() for k, v in doubling.items()})))
    (found,) = outcomes("latex", tmp_path)
    assert len(found.text or "") < 10_000_000


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a % b\nc", "a %\nc"),
        ("a%\nc", "a%\nc"),
        ("a\n  % b\nc", "a\nc"),
        (r"5\% of", r"5\% of"),
        ("\\\\% gone\nx", "\\\\%\nx"),
        ("\\begin{verbatim}\n% stays\n\\end{verbatim}", "\\begin{verbatim}\n% stays\n\\end{verbatim}"),
        ("\\begin{lstlisting}%x\n\\end{verbatim}\n", "\\begin{lstlisting}%\n\\end{verbatim}\n"),
        ("\\verb+%+ % x", "\\verb+%+ %"),
        ("\\href{http://x/%20}{y}% z", "\\href{http://x/%20}{y}%"),
        ("a\\begin{comment}x\n\\end{comment}\nb", "ab"),
        ("\\begin{comment} open", "\\begin{comment} open"),
        ("", ""),
    ],
)
def test_comments_go(source: str, text: str) -> None:
    assert without_comments(source) == text


_COMMENT = re.compile(  # the same by one expression, which takes the square of what is never ended
    r"(?P<kept>\\begin\{(?P<as>verbatim\*?|Verbatim|lstlisting|minted|filecontents\*?)\}.*?\\end\{(?P=as)\}"
    r"|\\verb\*?(?P<mark>[^\sa-zA-Z*{])[^\n]*?(?P=mark)|\\(?:url|href|path)\s*\{[^{}\n]*\})"
    r"|(?P<block>\\begin\{comment\}.*?\\end\{comment\}[ \t]*\n?)"
    r"|(?P<escaped>\\.)|(?P<line>(?m:^)[ \t]*%[^\n]*(?:\n|\Z))|(?P<rest>%[^\n]+)",
    re.DOTALL,
)
WORDS = ["%", "a", "\n", " ", "\\", "\\%", "\\verb", "|", "+", "\\url{", "}", "{", *(
    f"\\{side}{{{name}}}" for side in ("begin", "end") for name in ("verbatim", "verbatim*", "comment", "minted")
)]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_one_scan_finds_the_comments_that_an_expression_finds(words: list[str]) -> None:
    def uncommented(match: re.Match[str]) -> str:
        kept = match["kept"] is not None or match["escaped"] is not None
        return match[0] if kept else "%" if match["rest"] is not None else ""

    text = "".join(words)
    assert without_comments(text) == _COMMENT.sub(uncommented, text)


NEVER_ENDED = {
    "verbatim": "\\begin{verbatim}",
    "comment": "\\begin{comment}",
    "both": "\\begin{minted}\\begin{comment}\\begin{lstlisting}",
    "verb": "".join(f"\\verb{chr(0x4E00 + i)}" for i in range(100)),
    "url": "\\url{",
    "input": "\\input   ",
    "per cent": " % ",
    "blank lines": "\n ",
    "backslashes": "\\",
}


@pytest.mark.parametrize("name", NEVER_ENDED)
def test_what_is_never_ended_takes_time_by_its_size(name: str) -> None:
    mark = NEVER_ENDED[name]
    begin = time.process_time()
    text = without_comments(mark * (400_000 // len(mark)))
    assert main_file({"a.tex": text}) is None
    assert time.process_time() - begin < 3  # the square of it takes minutes


def test_the_main_file_is_not_one_that_others_input() -> None:
    begin = "\\documentclass{a}\\begin{document}"
    assert main_file({"a.tex": begin + "\\input{b}", "b.tex": begin + "longer"}) == "a.tex"
    assert main_file({"a.tex": begin, "main.tex": begin}) == "main.tex"
    assert main_file({"a.tex": begin + "longer", "b.tex": begin}) == "a.tex"
    assert main_file({"a.tex": begin + "\\input{b}", "b.tex": begin + "\\input{a}"}) == "a.tex"
    assert main_file({"a.tex": "text"}) is None
    assert main_file({}) is None
