"""Exact duplicates: by text, payload and address; who stays is declared."""

from __future__ import annotations

import pytest

from corpusmill.errors import UsageError
from corpusmill.kernels.addresses import normalised
from tasks import dedup
from tests.dedup.corpus import Doc, doc_id, families, recipe, shards, store_at


def found(parts, made, store):
    receipt = dedup.exact(shards(parts, made, store), made, store).receipt
    rows = store.table(receipt.outputs["found"]).to_pylist()
    return {r["doc_id"]: r for r in rows if r["keeper"]}, receipt


TEXT = families(1, 0)[0].text


def test_equal_texts_leave_the_first_in_preference(tmp_path):
    docs = [Doc("b", TEXT, "2026-02"), Doc("a", TEXT.upper(), "2026-01"), Doc("c", TEXT + " more", "2025-01")]
    gone, receipt = found([docs], recipe(), store_at(tmp_path / "s"))
    assert {(k, v["keeper"], v["similarity"], v["reason"]) for k, v in gone.items()} == {
        (doc_id("b"), doc_id("a"), 1.0, "exact_duplicate")
    }
    assert receipt.reasons["exact_duplicate"]["docs"] == 1


@pytest.mark.parametrize(("prefer", "kept"), [(("newest",), "b"), (("oldest",), "a"), (("longest", "newest"), "b")])
def test_preference_is_declared(tmp_path, prefer, kept):
    docs = [Doc("a", TEXT, "2026-01"), Doc("b", TEXT, "2026-02"), Doc("undated", TEXT)]
    gone, _ = found([docs], recipe(prefer=prefer), store_at(tmp_path / "s"))
    assert {v["keeper"] for v in gone.values()} == {doc_id(kept)}
    assert len(gone) == 2


def test_payload_text_and_address_in_turn_with_one_keeper_at_the_end(tmp_path):
    other = families(2, 0)[1].text
    docs = [
        Doc("longest", other + " and more" * 20, "2026-03", "https://www.example.org/page/"),
        Doc("page", TEXT, "2026-01", "http://example.org/page?utm_source=x"),
        Doc("copy", TEXT, "2026-02", "https://example.org/copy"),
        Doc("bytes", TEXT, "2026-04", None, payload="page"),
        Doc("nowhere", other, "2026-01", None),
    ]
    store = store_at(tmp_path / "s")
    gone, receipt = found([docs[:2], docs[2:]], recipe(exact=("payload", "text", "url")), store)
    assert {k: v["reason"] for k, v in gone.items()} == {
        doc_id("bytes"): "same_payload",
        doc_id("copy"): "exact_duplicate",
        doc_id("page"): "same_url",
    }
    assert {v["keeper"] for v in gone.values()} == {doc_id("longest")}
    assert all(v["similarity"] is None for v in gone.values())  # equal to it by address only
    assert {v["cluster_size"] for v in gone.values()} == {4}
    assert receipt.counters["exact.docs_out"] == 2


def test_each_snapshot_alone_where_the_policy_says_so(tmp_path):
    docs = {"jan/a": [Doc("a", TEXT), Doc("a2", TEXT)], "feb/b": [Doc("b", TEXT)]}
    assert len(found(docs, recipe(), store_at(tmp_path / "s"))[0]) == 2
    gone, _ = found(docs, recipe(policy="within"), store_at(tmp_path / "t"))
    assert len(gone) == 1
    assert doc_id("b") not in gone


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://www.Example.org:443/a/?b=2&a=1#top", "http://example.org/a?a=1&b=2"),
        ("http://example.org/index.html", "https://example.org"),
        ("http://example.org/%7Euser/caf%c3%a9", "http://example.org/~user/café"),
        ("http://example.org/p;jsessionid=7?gclid=1", "http://example.org/p"),
        (" example.org/p ", "http://example.org/p"),
    ],
)
def test_addresses_of_one_page(one, other):
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/a", "http://example.org/b"),
        ("http://example.org/?id=1", "http://example.org/?id=2"),
        ("http://example.org/A", "http://example.org/a"),
        ("http://a.example.org/", "http://example.org/"),
        ("http://[broken", "http://[also"),
        ("", "http://example.org"),
    ],
)
def test_addresses_of_different_pages(one, other):
    assert normalised(one) != normalised(other)


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(UsageError, match="one of oldest and newest"):
        recipe(prefer=("oldest", "newest"))
    with pytest.raises(UsageError, match="compares with no other snapshot"):
        recipe(policy="within", index=True)
    with pytest.raises(UsageError, match="shorter passages than 50"):
        recipe(substring_words=20)
