"""Whole builds: one snapshot after the other, and repeated lines cut from what leaves the store."""

from __future__ import annotations

from corpusmill.config import parse_recipe
from corpusmill.dataset.verify import verify
from corpusmill.store import Output, open_store
from tasks.chain import build
from tests.golden import SUBJECTS, page, recipe, record, write_crawl


def built(root, store, file: str, snapshot: str, **deduplicate):
    plain = recipe(root).model_dump(mode="json", exclude_unset=True)
    plain["source"]["made"] |= {"pattern": f"warc/{file}", "snapshot": snapshot}
    plain["deduplicate"] = {"min_jaccard": 0.7, **deduplicate}
    return build(parse_recipe(plain, "test"), store, lambda stage, fn, units: [fn(unit) for unit in units])


def table(store, manifest, kind: str):
    rows = store.table(manifest.table("lineage")).to_pylist()
    names = ("name", "digest", "content", "size", "rows")
    return [store.table(Output(*(r[n] for n in names))) for r in rows if r["kind"] == kind]


def test_a_second_snapshot_is_compared_with_the_first_and_names_it(tmp_path):
    root, store = write_crawl(tmp_path / "crawl"), open_store(tmp_path / "store", create=True)
    with (root / "warc" / "two.warc.gz").open("ab") as file:
        file.write(record("https://b.example/canal", page("canal", 9)))  # something new is kept
    options = {"index": True, "against": "golden"}
    first = built(root, store, "one.warc.gz", "jan", **options)
    second = built(root, store, "two.warc.gz", "feb", **options)
    assert second.manifest.parents == (first.digest,)
    assert second.manifest.index.snapshots == ("made/feb", "made/jan")
    assert [part.manifest for part in second.manifest.index.parts] == [first.digest, None]
    gone = {row["stage"]: row for t in table(store, second.manifest, "decisions") for row in t.to_pylist()}
    kept = {
        row["doc_id"] for t in table(store, first.manifest, "decisions") for row in t.to_pylist() if not row["stage"]
    }
    assert gone["exact"]["keeper"] in kept
    assert gone["near"]["keeper"] in kept
    assert gone["near"]["similarity"] >= 0.7
    found = [row for t in table(store, second.manifest, "found") for row in t.to_pylist() if row["keeper"]]
    assert {row["manifest"] for row in found} == {first.digest}
    assert verify(store, second.manifest)["documents"] > 0
    again = built(root, store, "two.warc.gz", "feb", **options)
    assert again.digest == second.digest
    assert not any(again.units_run.values())
    assert [entry["manifest"] for entry in store.history("golden")] == [first.digest, second.digest]


def test_repeated_lines_leave_the_packed_text_and_are_told(tmp_path):
    root, store = write_crawl(tmp_path / "crawl"), open_store(tmp_path / "store", create=True)
    footer = "All rights are reserved by the keepers of this place."
    pages = [record(f"https://c.example/{s}", page(s, i, extra=footer)) for i, s in enumerate(SUBJECTS)]
    (root / "warc" / "three.warc.gz").write_bytes(b"".join(pages))
    plain = built(root, store, "three.warc.gz", "jan")
    cut = built(root, store, "three.warc.gz", "jan", lines="line", lines_min_documents=3)
    kept = cut.manifest.documents
    assert kept == plain.manifest.documents > 3
    assert cut.manifest.deduplicate["lines"]["most_frequent"] == [{"documents": kept, "text": footer}]
    before, after = (sum(p.text_bytes for p in b.manifest.partitions.values()) for b in (plain, cut))
    assert (kept - 1) * len(footer) <= before - after <= (kept - 1) * (len(footer) + 2)  # with line feeds around it
    spans = [row for t in table(store, cut.manifest, "lines") for row in t.column("spans").to_pylist()]
    assert sum(map(len, spans)) == kept - 1
    assert verify(store, cut.manifest)["documents"] > 0
    assert plain.manifest.deduplicate.keys() == cut.manifest.deduplicate.keys() - {"lines"}
