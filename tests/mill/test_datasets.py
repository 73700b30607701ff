"""funnel, rejects, lineage, verify and export of a published dataset, and verify's answer to every kind of damage."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpusmill.dataset import funnel
from corpusmill.dataset.manifest import Manifest, open_manifest, publish
from corpusmill.dataset.verify import verify
from corpusmill.errors import CheckFailed
from corpusmill.store import Output, Store, Unit, open_store
from corpusmill.store.receipts import seal
from mill import cli
from tests import datasets


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    return datasets.publish(tmp_path_factory.mktemp("tiny") / "store")


@pytest.fixture
def tiny(published: tuple[Store, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, str]:
    """A copy of the dataset's store, for a test to damage."""
    shutil.copytree(published[0].uri, tmp_path / "store")
    monkeypatch.setenv("CORPUSMILL_STORE", str(tmp_path / "store"))
    return open_store(tmp_path / "store"), published[1]


def answer(capsys: pytest.CaptureFixture, *argv: str) -> Any:
    """The document that a command prints with --json."""
    assert cli.run([*argv, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def test_funnel_has_every_stage_and_adds_up(capsys, tiny):
    found = answer(capsys, "funnel", "tiny")
    assert found["manifest"] == tiny[1]
    assert [row["stage"] for row in found["stages"]] == [
        *("acquire", "extract", "language", "filter", "decontaminate", "exact", "near", "pack")
    ]
    assert [row["docs_out"] for row in found["stages"]] == [6, 5, 4, 3, 3, 3, 2, 2]
    assert {"docs_in", "docs_out", "bytes_in", "bytes_out", "reasons"} <= set(found["stages"][0])
    assert found["stages"][0]["reasons"]["redirect"]["docs"] == 1
    assert cli.run(["funnel", f"tiny@{tiny[1][:8]}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"tiny@{tiny[1][:12]}"
    assert [line.split() for line in lines if "near_duplicate" in line] == [["near_duplicate", "1"]]


def test_every_form_of_ref_finds_the_dataset(capsys, tiny):
    for ref in ("tiny", f"tiny@{tiny[1][:6]}", tiny[1]):
        assert answer(capsys, "funnel", ref)["manifest"] == tiny[1]
    for ref, code in (("other", 3), ("tiny@ffffff", 3), ("tiny@12", 2), ("Tiny!", 2), ("f" * 64, 3)):
        assert cli.run(["funnel", ref]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_rejects_are_shown_by_reason_without_control_characters(capsys, tiny):
    found = answer(capsys, "rejects", "tiny")["rejects"]
    assert sorted(row["reason"] for row in found) == sorted(
        ["http_status", "other_language", "too_few_words", "no_text", "revisit", "near_duplicate", "redirect"]
    )
    near = answer(capsys, "rejects", "tiny", "--reason", "near_duplicate")["rejects"]
    assert [(row["similarity"], row["keeper"]) for row in near] == [(0.9, datasets.doc_id("b.warc.gz", 0).hex())]
    assert cli.run(["rejects", "tiny", "--reason", "too_few_words", "-n", "1"]) == 0
    shown = capsys.readouterr().out
    assert "short" in shown
    assert "\x1b" not in shown
    assert cli.run(["rejects", "tiny", "--reason", "nope"]) == 3
    assert "near_duplicate" in capsys.readouterr().err
    assert cli.run(["rejects", "tiny", "-n", "0"]) == 2


def test_lineage_goes_from_the_checkpoint_to_the_files(capsys, tiny):
    store, digest = tiny
    for run, manifest in (("0123456789abcdef", digest), ("fedcba9876543210", "0" * 64)):
        commit = seal({"manifest_sha256": manifest, "step": 20})
        store.create(f"checkpoints/{run}/00000020/COMMIT.json", commit)
    found = answer(capsys, "lineage", "tiny")
    assert [(c["run"], c["step"]) for c in found["checkpoints"]] == [("0123456789abcdef", 20)]
    assert [source["locator"] for source in found["inputs"]] == ["a.warc.gz", "b.warc.gz"]
    assert [shard["sequences"] for shard in found["shards"]] == [2]
    units = {(unit["stage"], unit["locator"]): unit["outputs"] for unit in found["units"]}
    assert [output["kind"] for output in units["extract", "crawl/a.warc.gz"]] == ["documents", "records"]
    assert cli.run(["lineage", "tiny"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "checkpoint 0123456789abcdef step 20"
    assert shown[1] == f"manifest   tiny@{digest}"
    assert sum(line.startswith("file ") for line in shown) == 2


def test_a_sound_dataset_is_verified(capsys, tiny):
    found = answer(capsys, "verify", "tiny")
    assert found["ok"]
    assert found["manifest"] == tiny[1]
    assert (found["checked"]["documents"], found["checked"]["tokens"]) == (5, 10)
    lineage = tiny[0].table(open_manifest(*tiny).table("lineage"))
    assert found["checked"]["objects"] == len(set(lineage.column("digest").to_pylist())) + 2


@pytest.mark.parametrize(
    "kind", ["documents", "records", "language", "decisions", "tokens", "rows", "docs", "tokenizer"]
)
@pytest.mark.parametrize("how", ["a flipped bit", "cut short", "gone"])
def test_damage_anywhere_ends_with_4_and_names_the_object(capsys, tiny, kind, how):
    store, digest = tiny
    lineage = store.table(open_manifest(store, digest).table("lineage")).to_pylist()
    row = next(row for row in lineage if row["kind"] == kind)
    output = Output(*(row[key] for key in ("name", "digest", "content", "size", "rows")))
    data = bytearray(store.bytes(output))
    if how == "gone":
        (Path(store.uri) / output.name).unlink()
    else:
        data[len(data) // 2] ^= 1
        datasets.damage(store, output, bytes(data if how == "a flipped bit" else data[: len(data) // 2]))
    code = cli.run(["verify", "tiny"])
    err = capsys.readouterr().err
    assert code == 4
    assert output.name in err
    assert "Traceback" not in err


def test_a_damaged_manifest_ends_with_4(capsys, tiny):
    store, digest = tiny
    path = Path(store.uri) / "datasets" / "tiny" / f"{digest}.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b'"seed":17', b'"seed":18'))
    assert cli.run(["verify", "tiny"]) == 4
    assert digest in capsys.readouterr().err


def changed(manifest: Manifest, path: str, value: object) -> Manifest:
    """The manifest with another value at a dotted path."""
    copy = json.loads(json.dumps(manifest.to_json()))
    *parents, leaf = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = copy
    for part in parents:
        place = place[part]
    assert place[leaf] != value
    place[leaf] = value
    return Manifest.from_json(copy)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("funnel.2.docs_out", 5, "stage language: 5 docs in, 5 out, 1 with a reason"),
        ("funnel.3.bytes_in", 1, "83 bytes leave language, 1 enter filter"),
        ("funnel.6.words_out", 0, "stage near"),
        ("partitions.crawl.tokens", 11, "partitions.crawl.tokens is 11"),
        ("partitions.crawl.documents", 1, "partitions.crawl.documents is 1"),
        ("partitions.crawl.padding", 5, "partitions.crawl.padding is 5"),
        ("partitions.crawl.shards.0.sequences", 3, "it has 2 rows"),
        ("partitions.crawl.shards.0.payload.0.offset", 4, "are not what the manifest says"),
        ("partitions.crawl.shards.0.docs.rows", 3, "has 2 rows"),
        ("partitions.crawl.shards.0.docs.size", 3, "bytes"),
        ("partitions.crawl.shards.0.tokens.content", "0" * 64, "content digest"),
    ],
)
def test_a_manifest_that_says_something_false_is_found_out(tiny, path, value, expected):
    store, digest = tiny
    with pytest.raises(CheckFailed, match=expected):
        verify(store, changed(open_manifest(store, digest), path, value))


def test_rows_that_do_not_fit_their_documents_are_found_out(tiny):
    store, digest = tiny
    manifest = open_manifest(store, digest)
    lineage = store.table(manifest.table("lineage")).to_pylist()
    of = {kind: [row for row in lineage if row["kind"] == kind] for kind in ("decisions", "language")}
    for kind, expected in (("language", "rows"), ("decisions", "doc_id differs|rows")):
        first, second = of[kind]
        swap = {id(first): second, id(second): first}
        rows = [
            {**row, **{k: swap[id(row)][k] for k in ("name", "digest", "content", "size", "rows")}}
            if id(row) in swap
            else row
            for row in lineage
        ]
        table = store.draft_table(pa.Table.from_pylist(rows, schema=_lineage_schema()))
        receipt = store.commit(Unit("publish", 1, {"swapped": kind}, ()), {"lineage": table})
        forged = changed(manifest, "tables.lineage", receipt.outputs["lineage"].to_json())
        with pytest.raises(CheckFailed, match=expected):
            verify(store, forged)


def _lineage_schema() -> pa.Schema:
    from corpusmill.schema import LINEAGE

    return LINEAGE


def test_export_writes_the_fate_of_every_record(capsys, tiny, tmp_path):
    done = answer(capsys, "export", "tiny", "--all", "-o", str(tmp_path / "out"))
    lines = [json.loads(line) for line in Path(done["file"]).read_text(encoding="utf-8").splitlines()]
    assert done["lines"] == len(lines) == 9
    own = {"id", "date", "title", "author", "licence", "columns", "partition"}
    assert set(lines[0]) == {"url", "file", "offset", "doc_id", "stage", "reason", "lang", "charset", "text"} | own
    fates = [(line["file"], line["url"], line["stage"], line["reason"], line["lang"], line["text"]) for line in lines]
    assert fates == [(file, *record) for file, records in datasets.FILES.items() for record in records]
    assert [line["doc_id"] is None for line in lines] == [line["stage"] in ("acquire", "extract") for line in lines]
    assert [line["partition"] is None for line in lines] == [line["reason"] is not None for line in lines]


def test_export_of_the_kept_never_overwrites(capsys, tiny, tmp_path):
    done = answer(capsys, "export", "tiny", "-o", str(tmp_path / "out"), "--format", "jsonl")
    lines = [json.loads(line) for line in Path(done["file"]).read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in lines] == ["kept in the first file", "kept in the second file"]
    before = Path(done["file"]).read_bytes()
    assert cli.run(["export", "tiny", "-o", str(tmp_path / "out")]) == 5
    assert Path(done["file"]).read_bytes() == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["documents.jsonl"]
    assert cli.run(["export", "tiny", "-o", str(tmp_path / "other"), "--format", "csv"]) == 2
    assert not (tmp_path / "other").exists()
    assert cli.run(["export", "tiny", "-o", done["file"]]) == 5
    assert "Traceback" not in capsys.readouterr().err


def test_a_document_that_no_shard_holds_ended_in_pack(capsys, tiny, tmp_path):
    store, digest = tiny
    other = publish(store, replace(open_manifest(store, digest), partitions={}), why="test")
    done = answer(capsys, "export", other, "--all", "-o", str(tmp_path / "out"))
    lines = [json.loads(line) for line in Path(done["file"]).read_text(encoding="utf-8").splitlines()]
    assert [line["reason"] for line in lines if line["stage"] == "pack"] == ["empty_document", "empty_document"]


def test_the_funnel_identity_names_the_row_and_the_unit(tiny):
    rows = open_manifest(*tiny).funnel
    assert funnel.faults(rows) == []
    broken = [replace(row, docs_in=row.docs_in + (i == 4)) for i, row in enumerate(rows)]
    assert funnel.faults(broken) == [
        "3 docs leave filter, 4 enter decontaminate",
        "stage decontaminate: 4 docs in, 3 out, 0 with a reason",
    ]
