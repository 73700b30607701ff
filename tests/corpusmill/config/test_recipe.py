"""Recipes: every fault at once, what is hashed and what is not."""

from __future__ import annotations

import pytest

from corpusmill.config import load_recipe, recipe_schema
from corpusmill.errors import NotFound, UsageError


def test_shipped_crawl_recipe_loads_by_name_and_by_path():
    assert load_recipe("crawl") == load_recipe("recipes/crawl.toml")


def test_overrides_take_toml_values_and_bare_strings():
    recipe = load_recipe("crawl", ["pack.seq_len=512", "source.crawl.root=somewhere", 'language.keep=["de", "fr"]'])
    assert (recipe.pack.seq_len, recipe.source["crawl"].root, recipe.language.keep) == (512, "somewhere", ("de", "fr"))


def test_where_fields_are_not_in_the_identity():
    moved = load_recipe(
        "crawl", ["source.crawl.root=elsewhere", "language.model=x.bin", "decontaminate.root=y", "filter.rules=z"]
    )
    assert moved.what() == load_recipe("crawl").what()


def test_all_faults_are_reported_at_once_with_key_expected_and_given():
    with pytest.raises(UsageError) as caught:
        load_recipe(
            "crawl",
            [
                "extract.mod=1",
                "pack.seq_len=long",
                "deduplicate.bands=13",
                "source.crawl.roots=1",
                "language.min_score=2",
                "language.keep=en",
            ],
        )
    text = str(caught.value)
    assert "recipes" in text or "crawl" in text
    assert 'extract.mod: unknown key; did you mean "mode"?' in text
    assert 'pack.seq_len: expected a whole number, given "long"' in text
    assert "deduplicate.bands: num_perm 112 is not a multiple of bands 13" in text
    assert 'language.keep: expected a list, for example ["a", "b"] (in quotes after --set), given "en"' in text
    assert 'source.crawl.roots: unknown key; did you mean "root"?' in text
    assert "language.min_score: expected 1 or less, given 2" in text
    assert "6 faults" in text


@pytest.mark.parametrize("override", ["pack.seq_len", "=3", "name.x=1"])
def test_malformed_override_is_a_usage_error(override):
    with pytest.raises(UsageError, match="--set"):
        load_recipe("crawl", [override])


def test_missing_recipe_names_those_that_exist():
    with pytest.raises(NotFound, match="crawl"):
        load_recipe("no-such-recipe")


def test_file_that_is_not_toml_is_a_usage_error(tmp_path):
    (tmp_path / "bad.toml").write_bytes(b"name = \xff")
    with pytest.raises(UsageError, match="not a TOML file"):
        load_recipe(tmp_path / "bad.toml")


def test_schema_for_editors_knows_every_section():
    schema = recipe_schema()
    assert {"source", "extract", "language", "filter", "decontaminate", "deduplicate", "pack"} <= set(
        schema["properties"]
    )
    assert "$defs" not in str(schema)
