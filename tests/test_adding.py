"""Adding a stage, a source and a verb takes what the how-to pages say: their blocks are applied to a copy and run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from corpusmill.errors import NotFound
from corpusmill.models import model_path

REPOSITORY = Path(__file__).resolve().parents[1]
MODEL = "lid.176.ftz"
COPIED = ("corpusmill", "tasks", "flows", "mill", "recipes", "rules", "tests/__init__.py", "tests/golden.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The code of the repository, elsewhere."""
    for name in COPIED:
        source, target = REPOSITORY / name, tmp_path / "copy" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return tmp_path / "copy"


def apply(page: str, copy: Path) -> set[str]:
    """Do what the blocks of a page say: a block of Python that begins with a file's name is that file, a diff changes
    the file in its first line. Returns the files that are touched."""
    touched = set()
    for token in MarkdownIt().parse((REPOSITORY / "docs/how-to" / page).read_text(encoding="utf-8")):
        if token.type != "fence":
            continue
        head, _, rest = token.content.partition("\n")
        if token.info == "python" and (name := re.fullmatch(r"# (\w+/\S+\.py)", head)):
            assert not (copy / name[1]).exists()
            (copy / name[1]).write_text(rest, encoding="utf-8")
            touched.add(name[1])
        elif token.info == "diff":
            name = head.removeprefix("--- ")
            (copy / name).write_text(patched((copy / name).read_text(encoding="utf-8"), rest, page), encoding="utf-8")
            touched.add(name)
    return touched


def patched(text: str, diff: str, page: str) -> str:
    """The text after the changes of a diff; what it replaces stands there exactly once."""
    for hunk in re.split(r"(?m)^@@\n", diff):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
        new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
        found = len(re.findall(rf"(?m)^{re.escape(old)}", text))
        assert found == 1, f"{page}: these lines stand {found} times in the file that they change:\n{old}"
        text = text.replace(old, new, 1) if text.startswith(old) else text.replace(f"\n{old}", f"\n{new}", 1)
    return text


def run(copy: Path, *arguments: str) -> str:
    """What Python says, with the code of the copy before any other; kernels and models are those of this machine."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    with contextlib.suppress(NotFound):
        environment["CORPUSMILL_MODELS"] = str(model_path(MODEL).parent)
    command = [sys.executable, "-W", "ignore", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=copy, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


BUILD = """
import json
from pathlib import Path
from corpusmill.config import parse_recipe
from corpusmill.store import Output, open_store
from tasks import stages
from tasks.chain import build
from tests import golden

def built(recipe):
    run = lambda stage, fn, units: [fn(unit) for unit in units]
    store = open_store("store", create=True)
    made = build(recipe, store, run)
    manifest = json.loads(store.get(f"datasets/{made.name}/{made.digest}.json"))
    lineage = store.table(Output.from_json(manifest["tables"]["lineage"])).to_pylist()
    said = {key: manifest[key] for key in ("funnel", "stages", "inputs")}
    return said | {"lineage": sorted({row["stage"] for row in lineage}), "code": stages.__file__}

crawl = golden.write_crawl(Path("crawl"))
"""


def needs_the_model() -> None:
    try:
        model_path(MODEL)
    except NotFound:
        pytest.skip("no language model: run `mill models fetch`")


def test_a_stage_takes_three_files(copy: Path) -> None:
    needs_the_model()
    assert apply("add-a-stage.md", copy) == {"tasks/capitals.py", "tasks/stages.py", "tasks/chain.py"}
    code = BUILD + (
        'words = enumerate(golden.page("market", 0).split(" "))\n'
        'page = " ".join(word.upper() if number % 2 else word for number, word in words)\n'
        '(crawl / "warc/three.warc.gz").write_bytes(golden.record("https://c.example/shout", page))\n'
        "print(json.dumps(built(golden.recipe(crawl))))"
    )
    made = json.loads(run(copy, "-c", code))
    assert Path(made["code"]) == copy / "tasks/stages.py"
    rows = {row["stage"]: row for row in made["funnel"]}
    assert list(rows)[list(rows).index("filter") + 1] == "capitals"
    assert {reason: count["docs"] for reason, count in rows["capitals"]["reasons"].items()} == {"capitals": 1}
    assert rows["capitals"]["docs_out"] == rows["capitals"]["docs_in"] - 1 == rows["decontaminate"]["docs_in"]
    assert "capitals" in made["lineage"]
    assert made["stages"]["capitals"] == {"version": 1}


def test_a_source_takes_two_files(copy: Path) -> None:
    needs_the_model()
    assert apply("add-a-source.md", copy) == {"corpusmill/config/sources.py", "tasks/acquire/tsv.py"}
    code = BUILD + (
        'texts = [" ".join(s.format(s=subject) for s in golden.SENTENCES) for subject in golden.SUBJECTS]\n'
        'Path("tables").mkdir()\n'
        'Path("tables/a.tsv").write_text("".join(f"{i}\\t{text}\\n" for i, text in enumerate(texts)) + "short\\n")\n'
        'source = {"kind": "tsv", "root": "tables", "column": 1}\n'
        'recipe = golden.recipe(crawl).what() | {"source": {"t": source}, "decontaminate": {"root": str(crawl), '
        '"benchmark": [{"name": "lamps", "file": "bench.jsonl", "fields": ["question"]}]}}\n'
        'print(json.dumps(built(parse_recipe(recipe, "tsv"))))'
    )
    made = json.loads(run(copy, "-c", code))
    rows = {row["stage"]: row for row in made["funnel"]}
    assert rows["acquire"]["docs_in"] == 9
    assert {reason: count["docs"] for reason, count in rows["acquire"]["reasons"].items()} == {"no_text_column": 1}
    assert rows["language"]["docs_in"] == 8
    assert [file["locator"] for file in made["inputs"]] == ["a.tsv"]
    assert made["stages"]["source.t"] == {"version": 1}


def test_a_verb_takes_one_file_and_a_line(copy: Path) -> None:
    before = (copy / "mill/cli.py").read_text(encoding="utf-8")
    assert apply("add-a-verb.md", copy) == {"mill/versions.py", "mill/cli.py"}
    after = (copy / "mill/cli.py").read_text(encoding="utf-8")
    assert len(after.splitlines()) - len(before.splitlines()) == 1
    publish = (
        "from corpusmill.store import open_store; s = open_store('store', create=True)\n"
        "print(s.publish('x', {'format': 1, 'name': 'x', 'partitions': {}, 'tables': {}}, why='test'))"
    )
    digest = run(copy, "-c", publish).strip()
    verb = "import sys; from mill.cli import main; main(sys.argv[1:])"
    said = run(copy, "-c", verb, "versions", "x", "--store", "store", "--json")
    assert json.loads(said) == {"name": "x", "manifests": [digest]}
    assert "versions" in run(copy, "-c", verb, "--help")


def test_a_change_that_does_not_fit_is_seen() -> None:
    assert patched("a\nb\nc\n", " a\n-b\n+x\n", "page") == "a\nx\nc\n"
    with pytest.raises(AssertionError, match="0 times"):
        patched("a\nb\n", " a\n-c\n+x\n", "page")
    with pytest.raises(AssertionError, match="2 times"):
        patched("a\na\n", "+x\n a\n", "page")
