"""Nothing usable is no success: nothing kept, or too many faults, publishes nothing and ends with 6."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpusmill.errors import Incomplete, NotFound
from corpusmill.store import open_store
from tasks.chain import build
from tasks.ingest import ingest
from tests.manifests import EMPTY
from tests.tasks.test_rows_built import prose, recipe

GOOD = [json.dumps({"text": prose(i)}) for i in range(12)]


def run(stage: str, fn: Any, units: Any) -> list[Any]:
    return [fn(unit) for unit in units]


def source(folder: Path, name: str, lines: list[str]) -> dict[str, Any]:
    (folder / name).mkdir()
    (folder / name / "a.jsonl").write_text("\n".join(lines))
    return {"kind": "jsonl", "root": str(folder / name)}


@pytest.mark.parametrize("verb", [build, ingest])
def test_too_many_faults_publish_nothing_and_name_the_first_and_the_columns(verb: Any, tmp_path: Path) -> None:
    bad = [json.dumps({"content": "text", "n": i}) for i in range(13)]
    wanted = recipe(tmp_path, {"s": source(tmp_path, "s", [*bad, "{", *GOOD])})
    store = open_store(tmp_path / "store", create=True)
    with pytest.raises(Incomplete) as err:
        verb(wanted, store, run)
    assert err.value.exit_code == 6
    assert "14 of 26 records have faults (54%; limits.max_fault_share is 0.5)" in err.value.what
    assert "no_text_column 13, bad_row 1" in err.value.why
    assert "s/a.jsonl at 0: no_text_column" in err.value.why
    assert "columns seen: content (string), n (number), text (string)" in err.value.why
    assert not [name for name in store.list("") if name.startswith(("datasets/", "history/"))]
    more = wanted.model_copy(update={"limits": wanted.limits.model_copy(update={"max_fault_share": 0.6})})
    assert verb(more, store, run).digest


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([json.dumps({"body": "x"})] * 5, "columns seen: body (string)"),
        (["Two words."], "bad_row 1"),
        ([json.dumps({"text": "Two words."})] * 40, "too_few_words"),
        ([], "0 records in 1 files"),
        (["{"] * 19, "bad_row 19"),
    ],
)
def test_a_build_that_keeps_nothing_publishes_nothing_and_says_why(lines: list[str], says: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    with pytest.raises(Incomplete, match="no document was kept") as err:
        build(recipe(tmp_path, {"s": source(tmp_path, "s", lines)}), store, run)
    assert says in err.value.why
    assert not store.list("history/")


def test_few_faults_and_small_sources_are_published(tmp_path: Path) -> None:
    sources = {"good": source(tmp_path, "good", [*GOOD, *["{"] * 12]), "small": source(tmp_path, "small", ["{"] * 19)}
    assert build(recipe(tmp_path, sources), open_store(tmp_path / "store", create=True), run).digest


def test_a_source_that_fails_leaves_the_others_of_an_ingestion_published(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    sources = {"a": source(tmp_path, "a", ["{"] * 3), "b": source(tmp_path, "b", GOOD)}
    with pytest.raises(Incomplete, match="no document was kept"):
        ingest(recipe(tmp_path, sources), store, run)
    assert len(store.history("rows-documents")) == 1


def test_training_on_an_empty_dataset_says_that_it_is_empty_and_why() -> None:
    from corpusmill.dataset.funnel import Ended, FunnelRow
    from corpusmill.dataset.manifest import Manifest
    from training.config import load_train_config, plan_of

    row = FunnelRow("acquire", 30, 0, 9, 0, None, None, {"bad_row": Ended(27, 8), "damaged": Ended(3, 1)})
    manifest = Manifest.from_json({**EMPTY, "format": 2, "name": "none"})
    empty = Manifest(**{**vars(manifest), "funnel": (row,)})
    with pytest.raises(NotFound, match="no training sequences") as err:
        plan_of(load_train_config("train-demo"), empty)
    assert "it is empty: of 30 records none was kept (bad_row 27, damaged 3)" in str(err.value)
