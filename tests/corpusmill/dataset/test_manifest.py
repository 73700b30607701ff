"""A manifest is read into dataclasses and written back to its bytes; what it should not be is said, place and all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpusmill.canonical import canonical_json
from corpusmill.dataset.manifest import FORMATS, Manifest, open_manifest
from corpusmill.errors import CheckFailed, NotFound
from corpusmill.store import Store
from tests import datasets, manifests


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    return datasets.publish(tmp_path_factory.mktemp("tiny") / "store")


def changed(tiny: tuple[Store, str], place: str, value: Any) -> dict[str, Any]:
    """The stored JSON with another value at a dotted place; Ellipsis removes it."""
    stored = json.loads(json.dumps(tiny[0].manifest(tiny[1])))
    *parents, leaf = [int(part) if part.isdigit() else part for part in place.split(".")]
    at = stored
    for part in parents:
        at = at[part]
    if value is ...:
        del at[leaf]
    else:
        at[leaf] = value
    return stored


def test_the_form_that_is_stored_is_written_back_to_its_bytes(tiny: tuple[Store, str]) -> None:
    stored = tiny[0].manifest(tiny[1])
    assert canonical_json(open_manifest(*tiny).to_json()) == canonical_json(stored)


@pytest.mark.parametrize(
    ("place", "value", "at", "expected"),
    [
        ("partitions.crawl.tokens", "10", "partitions.crawl.tokens", "expected a whole number; came '10'"),
        ("partitions.crawl.tokens", True, "partitions.crawl.tokens", "expected a whole number; came True"),
        ("partitions.crawl.padding", ..., "partitions.crawl", "expected a key 'padding'"),
        ("partitions.crawl.shards.0.tokens.size", None, "partitions.crawl.shards[0].tokens.size", "came None"),
        ("partitions.crawl.shards", {}, "partitions.crawl.shards", "expected a list; came an object"),
        ("funnel.2.reasons", [], "funnel[2].reasons", "expected an object; came a list"),
        ("funnel.2.words_in", 1.5, "funnel[2].words_in", "expected a whole number or null; came 1.5"),
        ("tokenizer.eos_id", "0", "tokenizer.eos_id", "expected a whole number"),
        ("tables", ..., "", "expected a key 'tables'"),
        ("shiny", 1, "", "the unknown key 'shiny'"),
        ("inputs.1.url", "x", "inputs[1]", "the unknown key 'url'"),
    ],
)
def test_a_malformed_manifest_says_where_and_what_was_expected(
    tiny: tuple[Store, str], place: str, value: Any, at: str, expected: str
) -> None:
    with pytest.raises(CheckFailed) as caught:
        Manifest.from_json(changed(tiny, place, value))
    assert caught.value.what == "the manifest of dataset tiny is malformed" + (f" at {at}" if at else "")
    assert expected in caught.value.why
    assert "build the dataset again" in caught.value.do


@pytest.mark.parametrize("value", [[], "manifest", None, {}])
def test_what_is_no_manifest_at_all_is_malformed(value: object) -> None:
    with pytest.raises(CheckFailed, match=r"dataset \(no name\) is malformed"):
        Manifest.from_json(value)


@pytest.mark.parametrize("future", [max(FORMATS) + 1, "2.1", None])
def test_a_format_of_the_future_says_what_is_read_and_what_came(tiny: tuple[Store, str], future: object) -> None:
    with pytest.raises(CheckFailed) as caught:
        Manifest.from_json({**changed(tiny, "format", future), "unheard": "of"})
    assert caught.value.what == f"the manifest of dataset tiny has format {future!r}"
    assert str(max(FORMATS)) in caught.value.why
    assert "newer" in caught.value.do


def test_a_table_that_is_not_there_is_named_with_those_that_are(tiny: tuple[Store, str]) -> None:
    with pytest.raises(NotFound) as caught:
        open_manifest(*tiny).table("contamination")
    assert "has no table 'contamination'" in caught.value.what
    assert caught.value.why == "it has lineage, rejects"


@pytest.mark.parametrize("asked", [lambda m: m.vocabulary, lambda m: m.ingested, lambda m: m.row("pack")])
def test_sections_that_a_dataset_does_not_have_are_not_found(asked: Any) -> None:
    with pytest.raises(NotFound):
        asked(manifests.made())
