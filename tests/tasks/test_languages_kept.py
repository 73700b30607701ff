"""Which languages a recipe keeps: those named, or all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from corpusmill.config import load_recipe
from tasks.filter import decide_rows, in_languages
from tasks.judge.groups import rules_of

LANGUAGES = pa.array(["en", "de", None])


@pytest.mark.parametrize(
    ("keep", "kept"), [(("en",), [True, False, False]), (("*",), [True, True, True]), (("de", "*"), [True, True, True])]
)
def test_a_star_keeps_every_language_and_documents_without_one(keep, kept) -> None:
    assert in_languages(LANGUAGES, keep).to_pylist() == kept


def test_the_recipe_for_code_ends_nothing_for_its_language() -> None:
    recipe = load_recipe("code")
    rules = rules_of(recipe.filter.rules)
    columns = {rule.measure: pa.array([1.0 if rule.min is None else rule.min] * 3) for rule in rules.rules}
    columns |= {"code_mean_line_chars": pa.array([20.0, 20.0, 200.0]), "code_xml": pa.array([0.0, 1.0, 0.0])}
    columns["code_encoded_ratio"] = pa.array([0.0] * 3)
    columns["language_score"] = pa.array([0.1, 0.9, 0.0])
    decided = decide_rows(pa.record_batch(columns), LANGUAGES, rules, recipe)
    assert decided.stage.to_pylist() == [None, "filter", "filter"]
    assert decided.reason.to_pylist() == [None, "xml_document", "lines_too_long"]
