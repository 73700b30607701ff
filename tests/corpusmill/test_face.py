"""`from corpusmill import extract`: a page in, a document out, and only what that needs is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import corpusmill
from corpusmill import extract
from corpusmill.errors import UsageError
from corpusmill.extractor.modes import MODES

SENTENCE = "The old mill stands by the river, and its wheel has turned in every season since it was built."
PAGE = f"""<html lang="en"><head><title>The mill</title><link rel="canonical" href="/mill"></head>
<body><nav><a href="/">Home</a></nav>
<article>{"".join(f"<p>{SENTENCE} {n}</p>" for n in range(8))}</article></body></html>"""


def test_a_page_becomes_its_text_and_what_it_says_about_itself() -> None:
    document = extract(PAGE, "https://a.example/x")
    assert document.text is not None
    assert document.text.count(SENTENCE) == 8
    assert "Home" not in document.text
    assert (document.extractor, document.reason) == ("lines", None)
    assert (document.meta.title, document.meta.canonical) == ("The mill", "https://a.example/mill")
    assert extract(PAGE).meta.declared_language == "en"


def test_of_bytes_the_charset_is_found() -> None:
    page = PAGE.replace("season", "été").replace("<head>", '<head><meta charset="windows-1252">')
    document = extract(page.encode("windows-1252"))
    assert document.text is not None
    assert "in every été since" in document.text


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_there_and_no_other(mode) -> None:
    assert SENTENCE in (extract(PAGE, mode=mode).text or "")
    with pytest.raises(UsageError, match="no extraction mode"):
        extract(PAGE, mode=f"{mode}er")


def test_a_page_without_text_says_why() -> None:
    assert (extract("<html></html>").text, extract("<html></html>").reason) == (None, "no_text")
    assert extract("<div>" * 3000).reason == "too_deep"


def loaded(code: str, cwd: Path) -> set[str]:
    """Modules in memory after some code, run in a folder with modules of the user's own."""
    for name in ("tasks.py", "training.py", "flows.py", "mill.py"):
        (cwd / name).write_text("raise SystemExit('the wrong one')")
    command = [sys.executable, "-W", "ignore", "-c", f"{code}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout.split())


def test_the_import_is_light_and_the_first_page_loads_what_it_needs(tmp_path: Path) -> None:
    heavy = {"numba", "numpy", "pyarrow", "pydantic", "resiliparse", "trafilatura", "scipy.linalg", "fasttext"}
    assert not loaded("import corpusmill", tmp_path) & heavy
    first_page = f"from corpusmill import extract\nassert extract({PAGE!r}).extractor == 'lines'"
    assert loaded(first_page, tmp_path) & heavy == {"numba", "numpy", "resiliparse"}


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="no attribute 'extrakt'"):
        corpusmill.extrakt  # noqa: B018
