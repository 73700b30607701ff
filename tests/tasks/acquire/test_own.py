"""A source of the user's, from a folder outside the repository."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from corpusmill import plugins
from corpusmill.errors import NotFound, UsageError
from tasks import acquire
from tests.tasks.acquire import reading

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "add-a-source.md"


def module_of_the_how_to() -> str:
    """The code that the how-to shows."""
    return re.findall(r"```python\n(# my_forum\.py.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)[0]


@pytest.fixture
def forum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my_forum.py").write_text(module_of_the_how_to(), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    monkeypatch.delitem(sys.modules, "my_forum", raising=False)
    for cached in (plugins.module, plugins.identity):
        cached.cache_clear()
    root = tmp_path / "forum"
    root.mkdir()
    (root / "one.tsv").write_text("help\tHow do I knit a scarf?\nnews\tSpring has come.\n", encoding="utf-8")
    (root / "two.tsv").write_text("help\tWith two needles.\n", encoding="utf-8")
    return root


def made(root: Path, **keys: object):
    return reading.recipe("own", root, pattern="*.tsv", **{"module": "my_forum", "options": {"board": "help"}, **keys})


def test_the_module_of_the_how_to_reads_what_the_recipe_says(forum: Path) -> None:
    texts = [outcome.text for _, found in reading.by_unit(made(forum)) for outcome in found]
    assert texts == ["How do I knit a scarf?", "With two needles."]
    other = made(forum, options={"board": "news"})
    assert [o.text for _, found in reading.by_unit(other) for o in found] == ["Spring has come."]


def test_module_and_options_are_part_of_the_units_identity(forum: Path) -> None:
    (first, _) = acquire.single(made(forum))
    known = acquire.identity(first, made(forum))
    assert known != acquire.identity(first, made(forum, options={"board": "news"}))
    file = Path(plugins.module("my_forum").__file__ or "")
    file.write_text(file.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    plugins.identity.cache_clear()
    assert known != acquire.identity(first, made(forum))


def test_what_is_wrong_with_a_module_is_said(forum: Path) -> None:
    with pytest.raises(NotFound, match="no module no_such_module"):
        acquire.plan(made(forum, module="no_such_module"))
    mine = forum.parent / "mine"
    (mine / "unversioned.py").write_text("def read(*_):\n    yield 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="declares no VERSION"):
        acquire.plan(made(forum, module="unversioned"))
    (mine / "readless.py").write_text("VERSION = 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no function `read`"):
        acquire.plan(made(forum, module="readless"))
    (mine / "numbers_only.py").write_text("VERSION = 1\n\n\ndef read(*_):\n    yield 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="expected Outcome, got int"):
        reading.by_unit(made(forum, module="numbers_only"))
    (mine / "broken.py").write_text("VERSION = \n", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be imported"):
        acquire.plan(made(forum, module="broken"))
