"""One table of stages: nothing else lists them, and what it says of them is true."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tasks import stages

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = {stage.name for stage in stages.STAGES} | set(stages.ROWS)
LISTED = 4
"""Names of stages in one display of a list, tuple, set or dict: these many are a list of the stages."""
CODE = sorted(
    path
    for folder in ("corpusmill", "tasks", "flows", "mill", "training", "docs")
    for path in (REPOSITORY / folder).rglob("*.py")
)


def listed(source: str) -> list[list[str]]:
    """The displays of some code that hold names of stages, as values or keys."""
    found = []
    for node in ast.walk(ast.parse(source)):
        parts = node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []
        parts = node.keys if isinstance(node, ast.Dict) else parts
        names = [part.value for part in parts if isinstance(part, ast.Constant) and part.value in NAMES]
        if len(names) >= LISTED:
            found.append(names)
    return found


def test_a_list_of_stages_is_seen() -> None:
    assert listed('x = ("extract", "judge", "filter", "pack")')
    assert listed('x = {"extract": 1, "filter": 2, "near": f(3), "exact": 4, "other": 5}')
    assert not listed('x = ("language", "filter")')


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_stages_are_listed_in_one_place(path: Path) -> None:
    assert path == REPOSITORY / "tasks/stages.py" or not listed(path.read_text(encoding="utf-8"))


def test_a_unit_has_name_and_version_of_its_stage() -> None:
    unit = stages.NEAR.unit({"a": 1}, ("input",))
    assert (unit.stage, unit.version, unit.inputs, list(unit.libraries)) == ("near", 3, ("input",), ["datasketch"])
    part = stages.NEAR.part("plan").unit({})
    assert (part.stage, part.version, part.libraries) == ("near.plan", stages.NEAR.parts[0].version, {})
    with pytest.raises(AssertionError):
        stages.JUDGE.unit({})


def test_every_name_and_every_row_is_there_once_and_every_reason_has_a_row() -> None:
    assert len({stage.name for stage in stages.STAGES}) == len(stages.STAGES)
    assert len(set(stages.ROWS)) == len(stages.ROWS)
    assert {reason.row for reason in stages.REASONS.values()} <= set(stages.ROWS)
    order = [stages.ROWS.index(reason.row) for reason in stages.REASONS.values()]
    assert order == sorted(order), "reasons stand in the order of the funnel"


@pytest.mark.parametrize(
    ("name", "row", "kind"),
    [
        ("damaged", "acquire", "fault"),
        ("crashed", "extract", "fault"),
        ("other_language", "language", "policy"),
        ("near_duplicate", "near", "quality"),
        ("a_rule_of_ones_own", "filter", "quality"),
    ],
)
def test_every_reason_has_a_class(name: str, row: str, kind: str) -> None:
    reason = stages.reason_of(name)
    assert (reason.row, reason.kind) == (row, kind)
