"""The output of a stage moves only with its VERSION."""

from __future__ import annotations

import json

import pytest

from corpusmill.dataset import funnel
from corpusmill.dataset.manifest import open_manifest
from corpusmill.errors import NotFound
from corpusmill.models import model_path
from corpusmill.store import open_store
from corpusmill.store.receipts import unseal
from tests import golden


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    try:
        model_path("lid.176.ftz")
    except NotFound:
        pytest.skip("no language model: run `mill models fetch`")
    folder = tmp_path_factory.mktemp("golden")
    return golden.digests(folder), open_store(folder / "store")


KNOWN = json.loads(golden.GOLDEN.read_text(encoding="utf-8"))


def test_every_stage_that_ran_is_held(found):
    assert found[0].keys() == KNOWN.keys()


@pytest.mark.parametrize("stage", sorted(KNOWN))
def test_output_changes_only_with_its_version(found, stage):
    known = KNOWN[stage]
    assert found[0][stage]["version"] == known["version"], (
        "a VERSION was raised: python -m tests.golden > tests/golden.json"
    )
    assert found[0][stage]["content"] == known["content"], f"raise VERSION of stage {stage}: its output has moved"


def test_each_planted_fate_is_met(found):
    store = found[1]
    _, digest = store.resolve("golden")
    rows = open_manifest(store, digest).funnel
    assert funnel.faults(rows) == []
    reasons = {row.stage: {reason: n.docs for reason, n in row.reasons.items()} for row in rows}
    assert reasons["acquire"] == {"not_html": 1, "redirect": 1}
    assert reasons["extract"] == {"no_text": 1}
    assert reasons["language"] == {"other_language": 1}
    assert reasons["decontaminate"] == {"contaminated": 1}
    assert reasons["exact"] == {"exact_duplicate": 1}
    assert reasons["near"] == {"near_duplicate": 1}


def test_the_manifest_names_the_version_of_every_unit(found):
    store = found[1]
    _, digest = store.resolve("golden")
    named = json.loads(store.get(f"datasets/golden/{digest}.json"))["stages"]
    units = [unseal(store.get(name), name)["unit"] for name in store.list("receipts/")]
    assert {unit["stage"] for unit in units} >= {
        "source",
        "extract",
        "judge",
        "exact",
        "decide",
        "tokenizer",
        "publish",
    }
    for unit in units:
        version = named[unit["stage"]]["version"]
        assert unit["version"] == (version[unit["config"]["group"]] if unit["stage"] == "judge" else version)
    assert named["near.plan"] == {"version": 1}, "whether the search was cut into parts is no property of the dataset"
    assert "lines" not in named, "the recipe asks for no repeated passages"
    assert named["tokenizer"]["libraries"].keys() == {"tokenizers"}
    assert named["pack"]["libraries"].keys() == {"tokenizers", "tokie"}
