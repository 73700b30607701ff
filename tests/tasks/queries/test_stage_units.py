"""The plan counts the units of every stage, as a build then has them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from corpusmill.config import Recipe
from corpusmill.store import open_store
from tasks import stages
from tasks.chain import build
from tasks.queries.plan import plan
from tasks.queries.stage_units import UNITS
from tests import golden

MORE = {
    "lines": {"deduplicate": {"lines": "line", "lines_min_documents": 2, "substring_words": 20}},
    "exempt": {"decontaminate": {"exempt_contexts": 2}},
}


def test_no_stage_of_a_build_is_missing() -> None:
    assert set(UNITS) == {stage.name for stage in stages.STAGES} - {stages.INGEST.name}


@pytest.mark.parametrize("more", [[], ["lines", "exempt"]], ids=["plain", "all"])
def test_a_build_has_the_units_that_were_planned(more: list[str], tmp_path: Path) -> None:
    made = golden.recipe(golden.write_crawl(tmp_path / "crawl"))
    for name in more:
        for section, keys in MORE[name].items():
            made = made.model_copy(update={section: getattr(made, section).model_copy(update=keys)})
    assert isinstance(made, Recipe)
    store = open_store(tmp_path / "store", create=True)
    planned = plan(made, store).to_json()
    built = build(made, store, lambda stage, unit, jobs: [unit(job) for job in jobs])
    run: Counter[str] = Counter()
    for stage, units in built.units_run.items():
        run[stage.partition(".")[0]] += units  # parts of a stage are named after it
    assert run == {stage: n for stage, n in planned["units"].items() if stage != "publish"}
    assert planned["units"]["publish"] == 1
    duplicates = planned["deduplicate"]
    assert duplicates["units"] == sum(stage["units"] for stage in duplicates["stages"].values())
    assert {"heldout", "leaks"} <= set(duplicates["stages"])
