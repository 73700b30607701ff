"""Snapshot after snapshot: what was kept before stays kept, is not read again, and is named with its manifest."""

from __future__ import annotations

import json

import pytest

from corpusmill.dataset.manifest import publish
from corpusmill.errors import NotFound, Refused
from corpusmill.store import Store
from tasks import dedup
from tests import manifests
from tests.tasks.dedup.corpus import Doc, doc_id, families, recipe, shards, store_at
from tests.tasks.dedup.test_near import inline, whole


def build(parts, made, store: Store, name: str = "made"):
    """Deduplicate, and publish a manifest that holds no more than a later build looks at."""
    held = shards(parts, made, store)
    earlier = dedup.earlier(made, held, store)
    exact = dedup.exact(held, made, store, earlier).receipt
    near = dedup.near_over(inline, whole, held, exact, made, store, earlier)[-1].receipt
    parents = (earlier.manifest,) if earlier else ()
    index = dedup.index_of(near, held, earlier, made)
    digest = publish(store, manifests.made(name, parents=parents, index=index), why="test")
    gone = {}
    for receipt in (exact, near):
        for row in store.table(receipt.outputs["found"]).to_pylist():
            if row["keeper"]:
                gone[row["doc_id"]] = (row["keeper"], row["manifest"], row["similarity"])
    return digest, gone, near


def corpus():
    """January; February with copies of January's, copies of its own, and new documents."""
    docs = families(60, 3)
    january = [d for i, d in enumerate(docs) if i % 4 in (0, 1) and i < 160]
    return january, [doc for doc in docs if doc not in january]


@pytest.mark.parametrize("memory_mb", [2048, 0])
def test_removal_names_the_old_document_and_its_manifest(tmp_path, memory_mb, monkeypatch):
    if not memory_mb:
        monkeypatch.setattr("tasks.dedup.parts.search.fits", lambda shards, recipe: False)
        monkeypatch.setattr("tasks.dedup.parts.ranges.ENTRY_BYTES", 5000)
    january, february = corpus()
    store = store_at(tmp_path / "s")
    made = recipe(index=True, against="made", memory_mb=memory_mb or 1)
    first, gone_first, _ = build({"jan/a": january}, made, store)
    february.append(Doc("again", next(d.text for d in january if doc_id(d.name) not in gone_first)))
    second, gone, near = build({"feb/b": february[:40], "feb/c": february[40:]}, made, store)
    kept_first = {doc_id(d.name) for d in january} - gone_first.keys()
    old = {who: verdict for who, verdict in gone.items() if verdict[1] is not None}
    assert len(old) > 20
    assert all(keeper in kept_first and manifest == first for keeper, manifest, _ in old.values())
    assert all(similarity >= 0.8 for _, _, similarity in old.values())
    assert gone[doc_id("again")][2] == 1.0
    kept_second = {doc_id(d.name) for d in february} - gone.keys()
    assert {k for k, m, _ in gone.values() if m is None} <= kept_second
    assert near.facts["kept_before"] > 10
    assert store.manifest(second, "made")["parents"] == [first]

    third, gone_third, _ = build({"mar/d": [Doc(f"m{d.name}", d.text) for d in february]}, made, store)
    assert {m for _, m, _ in gone_third.values()} == {first, second}
    assert store.manifest(third, "made")["index"]["snapshots"] == ["made/feb", "made/jan", "made/mar"]


def test_parts_and_one_unit_agree_with_an_index(tmp_path, monkeypatch):
    january, february = corpus()
    made = recipe(index=True, against="made", memory_mb=1)
    results = []
    for name in ("one", "parts"):
        if name == "parts":
            monkeypatch.setattr("tasks.dedup.parts.search.fits", lambda shards, recipe: False)
            monkeypatch.setattr("tasks.dedup.parts.ranges.ENTRY_BYTES", 4000)
        store = store_at(tmp_path / name)
        parts = {"jan/a": january[:30], "jan/b": january[30:]}
        first = build(parts, made, store)[2]
        second = build({"feb/b": february[:50], "feb/c": february[50:]}, made, store)[2]
        results.append((first, second))
    (a, b), (c, d) = results
    assert a.key == c.key
    assert a.agrees(c)
    assert b.key == d.key
    assert b.agrees(d)


def test_the_same_snapshot_again_changes_nothing(tmp_path):
    january, february = corpus()
    store = store_at(tmp_path / "s")
    made = recipe(index=True, against="made")
    first = build({"jan/a": january}, made, store)[0]
    second = build({"feb/b": february}, made, store)[0]
    before = store.list("objects/")
    assert build({"feb/b": february}, made, store)[0] == second
    assert [entry["manifest"] for entry in store.history("made")] == [first, second]
    assert store.list("objects/") == before


def test_earlier_text_is_not_read_again(tmp_path, monkeypatch):
    january, february = corpus()
    store = store_at(tmp_path / "s")
    made = recipe(index=True, against="made")
    build({"jan/a": january}, made, store)
    old_texts = {d.text for d in january}
    import tasks.shards

    read = tasks.shards.Shard.texts

    def watched(self, *args, **options):
        texts = read(self, *args, **options)
        assert self.snapshot == "feb"
        assert not old_texts & set(texts.to_pylist())
        return texts

    monkeypatch.setattr(tasks.shards.Shard, "texts", watched)
    build({"feb/b": february}, made, store)


def test_across_and_within_on_two_crawls_of_one_site(tmp_path, data_dir):
    crawls = []
    for number in (1, 2):
        lines = (data_dir / "hostile" / f"B45-crawl-{number}.jsonl").read_bytes().split(b"\n")
        rows = [json.loads(line) for line in lines if line]
        crawls.append([Doc(f"{number}/{row['id']}", row["text"]) for row in rows])
    parts = {"one/a": crawls[0], "two/b": crawls[1]}
    for policy, kept in (("within", 12), ("across", 8)):
        digest, gone, _ = build(parts, recipe(policy=policy), store_at(tmp_path / policy), "both")
        assert len(crawls[0]) + len(crawls[1]) - len(gone) == kept, policy
    store = store_at(tmp_path / "incremental")
    made = recipe(index=True, against="made")
    _, one, _ = build({"one/a": crawls[0]}, made, store)
    digest, two, _ = build({"two/b": crawls[1]}, made, store)
    assert len(crawls[0]) - len(one) + len(crawls[1]) - len(two) == 8
    assert recipe(policy="within").what()["deduplicate"]["policy"] == "within"  # what a manifest holds
    assert digest


def test_other_settings_are_refused(tmp_path):
    january, february = corpus()
    store = store_at(tmp_path / "s")
    build({"jan/a": january}, recipe(index=True), store)
    with pytest.raises(Refused, match=r"ngram|5 words there, '4 words' here|shingle: '5 words' there, '4 words' here"):
        build({"feb/b": february}, recipe(index=True, against="made", ngram=4), store)
    with pytest.raises(Refused, match="digits as one"):
        build({"feb/b": february}, recipe(index=True, against="made", fold_digits=True), store)


def test_a_dataset_without_index_or_of_this_snapshot_is_refused(tmp_path):
    january, february = corpus()
    store = store_at(tmp_path / "s")
    digest, _, _ = build({"jan/a": january}, recipe(), store, "plain")
    with pytest.raises(NotFound, match="has no index"):
        build({"feb/b": february}, recipe(against="plain"), store)
    with pytest.raises(NotFound, match="no dataset 'nothing'"):
        build({"feb/b": february}, recipe(against="nothing"), store)
    digest, _, _ = build({"jan/a": january}, recipe(index=True), store, "indexed")
    with pytest.raises(Refused, match="contains snapshots of this build"):
        build({"jan/a": january}, recipe(against=f"indexed@{digest[:12]}"), store)
