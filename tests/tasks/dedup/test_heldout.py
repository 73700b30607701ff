"""Held out: no text that is trained on equals a held-out one or is near it, whatever its source, snapshot or policy."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from corpusmill import schema
from corpusmill.config import parse_recipe
from corpusmill.dataset.manifest import HELDOUT, PackedShard, publish
from corpusmill.dataset.verify import verify
from corpusmill.errors import CheckFailed
from corpusmill.kernels.duplicates.minhash import shingle_sets
from corpusmill.store import Output, Unit, open_store
from tasks import dedup
from tasks.chain import build
from tasks.dedup import leak_check
from tasks.dedup.held_out import COPIES, drawn
from tests import manifests
from tests.tasks.dedup.corpus import Doc, doc_id, families, sentence, shards, store_at
from tests.tasks.dedup.test_near import inline, whole

ONE_IN = 4


def recipe(one_in: int = ONE_IN, personal_data=(), **deduplicate):
    return parse_recipe(
        {
            "name": "made",
            "source": {"made": {"kind": "jsonl", "root": "nowhere"}},
            "judge": {"personal_data": {"kinds": list(personal_data)}},
            "deduplicate": {"policy": "within", **deduplicate},
            "pack": {"heldout_one_in": one_in},
        },
        "made",
    )


def run(parts, made, store, earlier=None):
    """Shards, what deduplication kept, and the rows of what is held out as a copy."""
    held = shards(parts, made, store)
    near = near_of(held, made, store)
    kept = {row["doc_id"] for row in store.table(near.outputs["found"]).to_pylist() if row["reason"] is None}
    receipt = dedup.hold_out(held, near, made, store, earlier).receipt
    return held, kept, store.table(receipt.outputs["found"]).to_pylist(), receipt.facts


def near_of(held, made, store):
    exact = dedup.exact(held, made, store).receipt
    return dedup.near_over(inline, whole, held, exact, made, store, None)[-1].receipt


def of_drawn(wanted: bool, prefix: str, one_in: int = ONE_IN) -> str:
    """A name whose document is drawn, or is not."""
    return next(n for i in range(1000) if drawn([doc_id(n := f"{prefix}{i}")], one_in)[0] == wanted)


def names(rows) -> dict[bytes, tuple[bytes, float]]:
    return {row["doc_id"]: (row["keeper"], row["similarity"]) for row in rows}


def text(seed: str = "a", words: int = 200) -> str:
    return " ".join(sentence(seed, words))


def edited(given: str, words: int, at: int = 0) -> str:
    """The same with `words` words in a row replaced."""
    left = given.split()
    return " ".join([*left[:at], *(f"new{at + i}" for i in range(words)), *left[at + words :]])


def test_copies_in_every_other_snapshot_are_held_out_and_name_a_held_out_document(tmp_path):
    held, other = of_drawn(True, "held"), of_drawn(True, "other")
    parts = {"jan/a": [Doc(held, text()), Doc(of_drawn(False, "apart"), text("b"))]}
    for month in ("feb", "mar", "apr"):
        same, near = of_drawn(False, month), of_drawn(False, f"near {month}")
        parts[f"{month}/a"] = [Doc(same, text().upper().replace(" ", ",  "))]
        parts[f"{month}-2/a"] = [Doc(near, edited(text(), 5))]
    parts["may/a"] = [Doc(other, text())]  # itself drawn: no copy
    _, kept, rows, facts = run(parts, recipe(), store_at(tmp_path / "s"))
    assert len(kept) == 9
    found = names(rows)
    assert len(found) == 6
    assert facts["drawn"] == 2
    assert {keeper for keeper, _ in found.values()} <= {doc_id(held), doc_id(other)}
    assert sorted(similarity == 1 for _, similarity in found.values()) == [False] * 3 + [True] * 3
    assert all(similarity >= 0.8 for _, similarity in found.values())


def test_what_is_near_a_copy_alone_is_held_out_too(tmp_path):
    steps = [text()]
    for step in range(5):
        steps.append(edited(steps[-1], 8, 20 * step))
    chain = [Doc(of_drawn(i == 0, f"step {i} "), one) for i, one in enumerate(steps)]
    _, kept, rows, facts = run({f"{i}/a": [doc] for i, doc in enumerate(chain)}, recipe(), store_at(tmp_path / "s"))
    assert len(kept) == 6
    assert names(rows).keys() == {doc_id(doc.name) for doc in chain[1:]}
    assert facts["rounds"] > 2, "the last is not near the first"


@pytest.mark.parametrize(("one_in", "policy"), [(2, "within"), (20, "within"), (2, "across")])
def test_it_is_what_comparing_all_with_all_gives(tmp_path, one_in, policy):
    docs = families(40, 6, 60)
    random.Random(one_in).shuffle(docs)
    parts = {f"{month}/{part}": docs[i::6] for i, (month, part) in enumerate((m, p) for m in "abc" for p in "xy")}
    made = recipe(one_in, policy=policy)
    _, kept, rows, facts = run(parts, made, store_at(tmp_path / "s"))
    left = [doc for doc in docs if doc_id(doc.name) in kept]
    offsets, hashes = shingle_sets(pa.array([doc.text for doc in left], pa.large_string()), 5)
    sets = [set(hashes[a:b].tolist()) for a, b in pairwise(offsets)]
    held = {i for i, doc in enumerate(left) if drawn([doc_id(doc.name)], one_in)[0]}
    expected, new = set(), held
    while new:
        new = {
            i
            for i in range(len(left))
            if i not in held and any(len(sets[i] & sets[j]) >= 0.8 * len(sets[i] | sets[j]) for j in new)
        }
        expected, held = expected | new, held | new
    assert names(rows).keys() == {doc_id(left[i].name) for i in expected}
    assert bool(expected) == (policy == "within"), "a case that shows something"
    assert facts["copies"] == len(expected)


def test_shuffled_and_split_shards_and_small_batches_give_the_same(tmp_path, monkeypatch):
    docs, made, store = families(30, 6), recipe(), store_at(tmp_path / "s")
    months = [docs[i::3] for i in range(3)]
    first = run({f"{i}/a": month for i, month in enumerate(months)}, made, store)[2]
    monkeypatch.setattr("tasks.dedup.neighbours.FEW", 3)
    monkeypatch.setattr("tasks.dedup.neighbours.PAIRS", 2)
    monkeypatch.setattr("corpusmill.kernels.duplicates.few_to_many.MOST_PAIRS", 1)
    monkeypatch.setattr("tasks.dedup.near_duplicates.SIGNATURE_ROWS", 7)
    parts = {}
    for i, month in reversed(list(enumerate(months))):
        random.Random(i).shuffle(month)
        parts |= {f"{i}/z{i}": month[:11], f"{i}/b{i}": month[11:]}
    second = run(parts, made, store_at(tmp_path / "other"))[2]
    assert len(first) > 20
    assert names(first) == names(second)


@pytest.mark.parametrize("given", ["Too short", "?!", "Grüße aus Köln", "one two three four"])
@pytest.mark.parametrize("policy", [{"policy": "within"}, {"policy": "across", "exact": ["url"]}])
def test_texts_too_short_for_a_shingle_are_equal_or_are_not(tmp_path, given, policy):
    parts = {
        "jan/a": [Doc(of_drawn(True, "held"), given)],
        "feb/b": [Doc(of_drawn(False, "same"), f" {given}\n"), Doc(of_drawn(False, "apart"), given + " more")],
    }
    _, kept, rows, _ = run(parts, recipe(**policy), store_at(tmp_path / "s"))
    assert len(kept) == 3
    assert names(rows) == {doc_id(of_drawn(False, "same")): (doc_id(of_drawn(True, "held")), 1.0)}


def test_texts_that_are_equal_only_as_they_are_packed_are_copies(tmp_path):
    """Masked, they are the same; as compared, they are too different."""
    note = "Write to {} and to {} for the plans of the mill"
    docs = [Doc(of_drawn(i == 0, f"m{i}"), note.format(f"a{i}@mail.org", f"b{i}@post.org")) for i in range(3)]
    parts = {f"{i}/a": [doc, Doc(f"x{i}", text(str(i)))] for i, doc in enumerate(docs)}
    _, _, plain, _ = run(parts, recipe(), store_at(tmp_path / "s"))
    _, _, masked, _ = run(parts, recipe(personal_data=["email"]), store_at(tmp_path / "t"))
    assert not plain
    assert names(masked).keys() == {doc_id(doc.name) for doc in docs[1:]}


@pytest.mark.parametrize("count", [1, 30])
def test_one_text_in_many_snapshots_is_held_out_in_all(tmp_path, count):
    docs = [Doc(of_drawn(i == 0, f"{i}-"), edited(text(), i % 5)) for i in range(count)]
    _, kept, rows, facts = run({f"{i:03d}/a": [doc] for i, doc in enumerate(docs)}, recipe(), store_at(tmp_path / "s"))
    assert len(kept) == count
    assert len(rows) == count - 1
    assert facts["comparisons"] <= count


def test_none_drawn_is_none_held_out(tmp_path):
    _, _, rows, facts = run({"a/a": [Doc(of_drawn(False, "x"), text())]}, recipe(), store_at(tmp_path / "s"))
    assert not rows
    assert facts == {"drawn": 0, "drawn_before": 0, "copies": 0, "rounds": 0, "comparisons": 0}


def test_copies_of_what_the_datasets_of_an_index_held_out_are_held_out(tmp_path):
    """Whatever the search for near duplicates may miss of them: here it does not look at the index."""
    store, made = store_at(tmp_path / "s"), recipe(policy="across", index=True, against="made")
    old = [Doc(of_drawn(True, "old"), text()), Doc(of_drawn(True, "older"), text("c")), Doc("trained", text("b"))]
    held = shards({"jan/a": old}, made, store)
    packed = packs(store, heldout=[old[0].name, old[1].name])[0].outputs["heldout.docs"]
    partition = manifests.partition(0, shards=(PackedShard(packed, packed, packed, 0, ()),))
    index = dedup.index_of(near_of(held, made, store), held, None, made)
    publish(store, manifests.made("made", partitions={HELDOUT: partition}, index=index), why="test")
    new = {"same": text(), "near": edited(text("c"), 5, 50), "b": edited(text("b"), 5)}
    docs = {name: Doc(of_drawn(False, name), one) for name, one in new.items()}
    parts = {f"feb/{name}": [doc] for name, doc in docs.items()}
    earlier = dedup.earlier(made, shards(parts, made, store), store)
    held, _, rows, facts = run(parts, made, store, earlier)
    found = names(rows)
    assert facts["drawn_before"] == 2
    assert found.keys() == {doc_id(docs[name].name) for name in ("same", "near")}
    assert found[doc_id(docs["same"].name)] == (doc_id(old[0].name), 1.0)
    assert found[doc_id(docs["near"].name)][0] == doc_id(old[1].name)
    with pytest.raises(CheckFailed, match="1 documents to train on"):
        leak_check.check(
            dedup.find_leaks(held, packs(store, made=[docs["near"].name]), made, store, earlier).receipt, store
        )


def packs(store, **partitions):
    """A pack unit's receipt that says which documents lie in which partition."""
    outputs = {}
    for name, ids in partitions.items():
        rows = [{"doc_id": doc_id(one), "tokens": 1, "text_bytes": 1, "url": None} for one in ids]
        outputs[f"{name}.docs"] = store.draft_table(pa.Table.from_pylist(rows, schema=schema.PACK_DOCS))
    return [store.commit(Unit("pack", 1, {"of": sorted(map(list, partitions.items()), key=str)}, ()), outputs)]


@pytest.mark.parametrize(
    ("trained", "leaked"), [("same", True), ("near", True), ("held", True), ("apart", False), ("short", True)]
)
def test_what_was_packed_is_compared_not_what_was_meant_to_be(tmp_path, trained, leaked):
    store, made = store_at(tmp_path / "s"), recipe()
    texts = {"held": text(), "same": text(), "near": edited(text(), 5), "apart": text("b"), "tiny": "Hm", "short": "hm"}
    held = shards({f"{name}/a": [Doc(name, one)] for name, one in texts.items()}, made, store)
    packed = packs(store, heldout=["held", "tiny"], made=[trained])
    receipt = dedup.find_leaks(held, packed, made, store, None).receipt
    assert (receipt.facts["heldout"], receipt.facts["trained"]) == (2, 1)
    if leaked:
        with pytest.raises(CheckFailed, match=r"(?s)1 documents to train on .*nothing was published"):
            leak_check.check(receipt, store)
    else:
        leak_check.check(receipt, store)


def test_a_packed_document_that_was_never_extracted_is_a_fault(tmp_path):
    store, made = store_at(tmp_path / "s"), recipe()
    held = shards({"a/a": [Doc("one", text())]}, made, store)
    with pytest.raises(CheckFailed, match="2 documents, of which 1 were extracted"):
        dedup.find_leaks(held, packs(store, made=["one", "two"]), made, store, None)


def sources(folder, data_dir, second: str, policy: str):
    """Two sources, a snapshot each, whose texts are the same, or the second's are a sentence longer."""
    source = {}
    for name, month, file in (("one", "2024-01", "B107-texts.jsonl"), ("two", "2024-02", second)):
        (folder / name).mkdir()
        (folder / name / "a.jsonl").write_bytes((data_dir / "hostile" / file).read_bytes())
        source[name] = {"kind": "jsonl", "root": str(folder / name), "snapshot": month}
    pack = {"seq_len": 64, "vocab_size": 512, "heldout_one_in": 5}
    return parse_recipe({"name": "b107", "source": source, "deduplicate": {"policy": policy}, "pack": pack}, "b107")


def texts_of(store, manifest) -> dict[str, list[set[str]]]:
    """The sentences of each document of each partition."""
    rows = store.table(manifest.table("lineage")).to_pylist()
    known = {}
    for row in (row for row in rows if row["kind"] == "documents"):
        table = store.table(Output(*(row[n] for n in ("name", "digest", "content", "size", "rows"))))
        known |= dict(zip(table.column("doc_id").to_pylist(), table.column("text").to_pylist(), strict=True))
    found: dict[str, list[set[str]]] = {}
    for name, part in manifest.partitions.items():
        ids = [i for shard in part.shards for i in store.table(shard.docs).column("doc_id").to_pylist()]
        found[name] = [set(known[i].split(". ")) for i in ids]
    return found


@pytest.mark.parametrize(
    ("second", "policy"),
    [("B107-texts.jsonl", "within"), ("B107-texts-longer.jsonl", "within"), ("B107-texts-longer.jsonl", "across")],
)
def test_no_held_out_text_is_in_a_training_partition(tmp_path, data_dir, second, policy):
    store = open_store(tmp_path / "s", create=True)
    manifest = build(sources(tmp_path, data_dir, second, policy), store, inline).manifest
    texts = texts_of(store, manifest)
    held = texts.pop(HELDOUT)
    assert len(held) > 10
    assert not [1 for part in texts.values() for one in part for other in held if len(one & other) > 3]
    packed = manifest.row("pack")
    copies = packed.reasons["heldout_copy"].docs if policy == "within" else 0
    assert copies == manifest.deduplicate["heldout"]["copies"]
    assert len(held) == manifest.deduplicate["heldout"]["drawn"] + copies
    assert packed.docs_in == packed.docs_out + copies == len(held) + sum(map(len, texts.values()))
    assert (copies > 10) == (policy == "within")
    assert verify(store, manifest)["documents"] == 120
    rejects = [r for r in store.table(manifest.table("rejects")).to_pylist() if r["reason"] == "heldout_copy"]
    assert len(rejects) == min(copies, 20)
    assert all(r["similarity"] >= 0.8 and r["keeper_text"] for r in rejects)


def test_a_build_that_would_train_on_what_it_holds_out_publishes_nothing(tmp_path, data_dir):
    store = open_store(tmp_path / "s", create=True)
    none = store.commit(Unit("heldout", 1, {}, ()), {"found": store.draft_table(COPIES.empty_table())})

    def faulty(stage, unit, jobs):
        if stage == "decide":
            jobs = [replace(job, item=(*job.item[:2], (*job.item[2][:2], none))) for job in jobs]
        return inline(stage, unit, jobs)

    with pytest.raises(CheckFailed, match="to train on are held out, or are copies"):
        build(sources(tmp_path, data_dir, "B107-texts-longer.jsonl", "within"), store, faulty)
    assert not store.names()
