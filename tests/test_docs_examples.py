"""Commands and Python in README, tutorial and how-to pages are run as they stand, page by page, on a small crawl.

A block with a line that begins with `mill` or `python`, and every block of Python, is run; what cannot be run here has
a comment right before it that says why and that readers do not see: <!-- not run: needs an S3 server -->.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

from corpusmill.config import parse_recipe, parse_section
from corpusmill.kernels.rules.faults import file_faults
from corpusmill.readers.outcomes import outcomes
from mill import cli
from tests.shared import linked
from training.config import TrainConfig

pytestmark = pytest.mark.timeout(1800)  # a busy machine; it takes less than two minutes of CPU

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "docs" / "tutorial.md"]
PAGES += sorted((REPOSITORY / "docs" / "how-to").glob("*.md"))
MARK = re.compile(r"<!-- not run: (\S.*\S) -->")
RUN = ("mill", "python")
TABLE = re.compile(r"(#.*\n)?(\[[a-z_.\[]+\]|version = )")
"""The beginning of an indented block of settings."""


@dataclass(frozen=True)
class Block:
    """A block that is to be run."""

    line: int
    text: str
    is_python: bool
    not_run: str | None
    """Why it is not."""

    def commands(self) -> list[list[str]]:
        """The words of its commands."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page that are to be run, in their order."""
    why = None
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block" and (mark := MARK.fullmatch(token.content.strip())):
            assert why is None, f"{page.name}: two marks for one block"
            why = mark[1]
        elif token.type in ("fence", "code_block"):
            assert token.map is not None
            is_python = token.info == "python"
            if is_python or any(line.split(" ")[0] in RUN for line in token.content.splitlines()):
                yield Block(token.map[0] + 1, token.content, is_python, why)
                why = None
    assert why is None, f"{page.name}: no command follows the mark {why!r}"


def one_worker(patch: pytest.MonkeyPatch) -> None:
    """As on a machine with one core: each further process of a build would import everything again."""
    patch.setattr("os.sched_getaffinity", lambda _: {0})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, small_crawl: Path) -> Path:
    """What readers of the pages have: the demo crawl, texts, a word list, rules of their own, and a dataset web-en."""
    folder = tmp_path_factory.mktemp("reader")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("CORPUSMILL_STORE", raising=False)
        patch.setenv("CORPUSMILL_CACHE", str(folder / "cache"))
        one_worker(patch)
        wets = sorted(linked(small_crawl, Path(".corpusmill/demo")).glob("crawl-data/*/segments/*/wet/*.gz"))
        texts = [one.text for wet in wets for one in outcomes(wet) if one.text]
        for name, part in (("good", texts[::2]), ("reference", texts)):
            with gzip.open(f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
                file.writelines(json.dumps({"text": text}) + "\n" for text in part)
        pq.write_table(pa.table({"text": texts[1::2]}), "sample.parquet")
        gopher = (REPOSITORY / "rules" / "gopher.toml").read_text(encoding="utf-8")
        Path("my-rules.toml").write_text(gopher.replace("min = 50", "min = 40"), encoding="utf-8")
        Path("my-list.txt").write_text("villain\n", encoding="utf-8")
        train = ["quality", "train", "--positive", "good.jsonl.gz", "--negative", "sample.parquet", "-o", "edu.bin"]
        assert cli.run([*train, "--epoch", "1"]) == 0
        assert cli.run(["perplexity", "train", "--text", "good.jsonl.gz", "-o", "lm", "--order", "2"]) == 0
        judges = ("judge.quality.edu.model=edu.bin", "judge.perplexity.model=lm")
        settings = [word for setting in ("name=web-en", *judges) for word in ("--set", setting)]
        assert cli.run(["build", "demo", *settings]) == 0
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if any(not block.not_run for block in blocks(page))],
                         ids=lambda page: page.stem)  # fmt: skip
def test_what_a_page_shows_runs(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CORPUSMILL_STORE", raising=False)
    monkeypatch.setenv("CORPUSMILL_CACHE", str(folder / "cache"))
    one_worker(monkeypatch)
    for block in blocks(page):
        if block.not_run:
            continue
        where = f"{page.name}, line {block.line}"
        if block.is_python:
            run_python(block.text, where)
            continue
        for program, *words in block.commands():
            monkeypatch.setattr("sys.stdin", io.StringIO("k\nd\n"))
            if (program, words[0]) == ("python", "-c"):
                run_python(words[1], where)
                continue
            assert program == "mill", f"{where}: {program} is not run by this test: mark the block"
            code = cli.run(words)
            assert code == 0, f"{where}: mill {shlex.join(words)} ended with {code}\n{capsys.readouterr().err}"


def run_python(text: str, where: str) -> None:
    """Run a block; one that begins with a file's name in a comment is also put there."""
    if name := re.match(r"# (\w+\.py)\b", text):
        Path(name[1]).write_text(text, encoding="utf-8")
    exec(compile(text, where, "exec"), {"__name__": "example"})


SETTINGS = [
    (page, token.map[0] + 1, tomllib.loads(token.content))
    for page in PAGES
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8"))
    if token.map and (token.info == "toml" or (token.type == "code_block" and TABLE.match(token.content)))
]


@pytest.mark.parametrize(("page", "line", "data"), SETTINGS, ids=[f"{page.stem}-{line}" for page, line, _ in SETTINGS])
def test_settings_that_a_page_shows_are_valid(page: Path, line: int, data: dict) -> None:
    if "rule" in data:
        assert list(file_faults({"version": 1, "definition": "datatrove", **data})) == []
    elif "domains" in data:  # lists of addresses
        assert data.keys() == {"version", "domains", "words", "soft_words", "substrings"}
    elif page.stem == "add-a-rule":  # bounds of a language, for rules that stand elsewhere
        assert data.keys() == {"language"}
    elif "mixture" in data:
        stage = {"mixture": {"stage": [{"steps": 1}], **data["mixture"]}}
        parse_section(TrainConfig, {"name": "x", **data, **stage}, f"{page.name}:{line}", "training config")
    else:
        parse_recipe({"name": "x", "source": {"x": {"kind": "files", "root": "x"}}, **data}, f"{page.name}:{line}")


def test_most_blocks_are_run_and_the_others_say_why() -> None:
    found = [(page, block) for page in PAGES for block in blocks(page)]
    left = [f"{page.name}:{block.line}: {block.not_run}" for page, block in found if block.not_run]
    print(f"{len(found)} blocks, {len(left)} of them not run", *left, sep="\n")
    assert len(left) < len(found) / 2
