"""Datasets of every earlier format open, verify, show and train for ever: stores as earlier versions wrote them.

`tests/fixtures/format-<n>.tar.gz` is a store: a dataset of documents, one that was built from them with every section
that a manifest can have, and one that was built against that. `python -m tests.mill.small_store` made them.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from corpusmill.canonical import canonical_json
from corpusmill.dataset.manifest import FORMATS, open_manifest
from corpusmill.errors import Refused
from corpusmill.store import Store, open_store
from mill import cli
from tasks.chain import build
from tests import golden
from tests.mill import small_store
from tests.mill.small_store import FIXTURES

FUNNEL = [15, 13, 12, 11, 11, 10, 9, 8]


@pytest.fixture(scope="module", params=FORMATS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("format")
    with tarfile.open(FIXTURES / f"format-{request.param}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return open_store(folder / "store")


def digests(store: Store, name: str) -> list[str]:
    return [str(entry["manifest"]) for entry in store.history(name)]


def answer(capsys: pytest.CaptureFixture[str], store: Store, *argv: str) -> Any:
    assert cli.run([*argv, "--store", store.uri, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_manifest_is_written_back_to_its_bytes(store: Store) -> None:
    read = [(name, digest) for name in store.names() for digest in digests(store, name)]
    assert len(read) == 3
    for name, digest in read:
        stored = (Path(store.uri) / "datasets" / name / f"{digest}.json").read_bytes()
        assert canonical_json(open_manifest(store, digest, name).to_json()) == stored


def test_every_dataset_verifies(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for name in store.names():
        for digest in digests(store, name):
            assert answer(capsys, store, "verify", digest)["ok"]


def test_funnel_rejects_lineage_and_screen_are_shown(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = digests(store, "small")
    assert [row["docs_in"] for row in answer(capsys, store, "funnel", first)["stages"]] == FUNNEL
    (near,) = answer(capsys, store, "rejects", first, "--reason", "near_duplicate")["rejects"]
    assert near["keeper_url"]
    chain = answer(capsys, store, "lineage", second)
    assert chain["parents"] == [first]
    assert [file["locator"] for file in chain["inputs"]] == ["second/three.warc.gz"]
    found = answer(capsys, store, "contamination", first)
    assert [entry["documents"] for entry in found["benchmarks"]] == [1]
    (documents,) = digests(store, "small-documents")
    assert len(answer(capsys, store, "lineage", documents)["units"]) == 2


def test_bounds_can_be_moved_and_texts_exported(
    store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path / "cache"))
    first, second = digests(store, "small")
    moved = answer(capsys, store, "whatif", first, "--set", "too_few_words.min=1000")
    assert moved["lost"]["docs"] > 0
    done = answer(capsys, store, "export", second, "-o", str(tmp_path / "out"))
    texts = Path(done["file"]).read_text(encoding="utf-8")
    assert done["lines"] == 4
    assert "keeper@" not in texts


def test_an_index_whose_words_were_compared_otherwise_is_refused(store: Store, tmp_path: Path) -> None:
    """Both formats come from before words were compared in their plain form; signatures of the two cannot be mixed."""
    crawl = golden.write_crawl(tmp_path / "crawl")
    (crawl / "third").mkdir()
    (crawl / "third" / "four.warc.gz").write_bytes(golden.record("https://d.example/river", golden.page("river", 0)))
    copy = tmp_path / "copy"
    shutil.copytree(store.uri, copy)
    here = open_store(copy)
    with pytest.raises(Refused, match="was made with other settings") as refused:
        build(small_store.recipe(crawl, "third", "third/*.warc.gz"), here, small_store.run)
    assert "'folded-words' there, 'folded words of the plain form' here" in refused.value.why
    assert "build the earlier dataset again" in refused.value.do
    assert digests(here, "small") == digests(store, "small")


def test_reasons_have_a_class_from_format_2_on(store: Store) -> None:
    manifest = open_manifest(store, digests(store, "small")[0], "small")
    if manifest.format == 1:
        assert "reasons" not in manifest.tables
    else:
        rows = {row["reason"]: row for row in store.table(manifest.table("reasons")).to_pylist()}
        assert set(rows) == {reason for row in manifest.funnel for reason in row.reasons}
        assert (rows["near_duplicate"]["row"], rows["near_duplicate"]["kind"]) == ("near", "quality")
        assert rows["redirect"]["kind"] == "policy"


def test_a_model_trains_on_it(store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "train.toml"
    config.write_text(
        'name = "small"\n[model]\ndim = 16\nlayers = 1\nheads = 1\nhidden = 16\n'
        "[mixture]\nglobal_batch = 4\nmax_epochs = 100\n[[mixture.stage]]\nsteps = 3\n[run]\nnproc = 1\n",
        encoding="utf-8",
    )
    first, _ = digests(store, "small")
    result = answer(capsys, store, "train", first, "--config", str(config))
    assert (result["outcome"], result["step"], result["manifest"]) == ("finished", 3, first)
    assert result["heldout_after"] is not None
    assert answer(capsys, store, "lineage", first)["checkpoints"]
