"""Exact duplicates: by text, payload and URL; who stays is declared."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.config import parse_recipe
from corpusmill.errors import UsageError
from corpusmill.kernels.duplicates.url_keys import normalised
from corpusmill.store import Unit
from tasks import dedup
from tests.tasks.dedup.corpus import Doc, doc_id, families, recipe, shards, store_at


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


def scored(part, scores, store):
    """The shard with scores of a classifier called `prose`; None: of a document that it was spared."""
    receipt = store.commit(
        Unit("quality", 1, {"scores": scores}, (part.decided.key,)),
        {"quality:prose": store.draft_table(pa.table({"quality_prose_e6": pa.array(scores, pa.int32())}))},
    )
    return replace(part, groups={**part.groups, "quality:prose": receipt})


def test_the_best_score_is_preferred_and_another_score_is_another_unit(tmp_path):
    store, plain = store_at(tmp_path / "s"), recipe()
    docs = [Doc("low", TEXT, "2026-01"), Doc("unscored", TEXT), Doc("high", TEXT.upper(), "2026-03")]
    made = by_score(("quality:prose", "oldest"))
    first, second, again = (
        dedup.exact([scored(*shards([docs], plain, store), scores, store)], made, store).receipt
        for scores in ([100, None, 900_000], [900_000, None, 100], [100, None, 900_000])
    )
    kept = [{r["keeper"] for r in store.table(r.outputs["found"]).to_pylist()} - {None} for r in (first, second)]
    assert kept == [{doc_id("high")}, {doc_id("low")}]
    assert first.key == again.key != second.key


def by_score(prefer, classifiers=("prose",)):
    quality = {name: {"model": f"{name}.ftz"} for name in classifiers}
    source = {"made": {"kind": "jsonl", "root": "nowhere"}}
    data = {"name": "made", "source": source, "judge": {"quality": quality}, "deduplicate": {"prefer": prefer}}
    return parse_recipe(data, "made")


def test_a_preference_that_is_not_known_says_what_is(tmp_path):
    with pytest.raises(UsageError, match=r"prefer: it names 'quality:prose', but \[judge.quality\] has quality:other"):
        by_score(["quality:prose"], ["other"])
    with pytest.raises(UsageError, match=r"prefer.*longest"):
        by_score(["shortest"])
    with pytest.raises(UsageError, match="each key once"):
        by_score(["quality:prose", "quality:prose"])


def test_payload_text_and_url_in_turn_with_one_keeper_at_the_end(tmp_path):
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
    assert all(v["similarity"] is None for v in gone.values())  # equal to it by URL only
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
        ("http://xn--mnchen-3ya.de/a", "https://MÜNCHEN.de:443/a"),
        ("http://xn--strae-oqa.example.org", "http://straße.example.org/"),
        ("http://例え。example.org/", "http://xn--r8jz45g.example.org"),
        ("http://example.org/a%2fb", "http://example.org/a%2Fb"),
        ("http://example.org/?q=a+b%2Fc", "http://example.org/?q=a%20b/c"),
        ("http://example.org/#!/a%C3%A9", "http://example.org/#!/aé"),
        ("http://example.org/?PHPSESSID=1&utm_medium=x&sid=0123456789abcdef", "http://example.org/"),
        ("http://example.org/a;JSESSIONID=1.n2/b", "http://example.org/a/b"),
    ],
)
def test_urls_of_one_page(one, other):
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
        ("http://example.org/a%2Fb", "http://example.org/a/b"),
        ("http://example.org/a%3Fb=1", "http://example.org/a?b=1"),
        ("http://example.org/a%23!b", "http://example.org/a#!b"),
        ("http://example.org/a%252Fb", "http://example.org/a%2Fb"),
        ("http://example.org/a%3Bb", "http://example.org/a;b"),
        ("http://example.org/?sid=12", "http://example.org/?sid=13"),
        ("http://example.org/?sid=interestingstoryofmills", "http://example.org/"),
        ("http://example.org/?utm_zone=33", "http://example.org/?utm_zone=34"),
        ("http://example.org/?tag=a&tag=b", "http://example.org/?tag=b&tag=a"),
        ("http://example.org/?q=%CF%F0%E8", "http://example.org/?q=%CF%F0%E9"),
        ("http://example.org/%CF%F0", "http://example.org/%CF%F1"),
        ("http://example.org/#!/one", "http://example.org/#!/two"),
        ("http://example.org/#!one", "http://example.org/"),
        ("http://example.org/#/one", "http://example.org/#/two"),
        ("http://example.org:8080/", "http://example.org/"),
        ("http://example.org:8080/", "http://example.org:8081/"),
        ("https://example.org:80/", "https://example.org/"),
        ("http://[::1]:8080/", "http://[::1:8080]/"),
        ("http://example.org/a;jsessionid=1/b", "http://example.org/a;jsessionid=1/c"),
        ("ftp://example.org/a", "http://example.org/a"),
        ("urn:isbn:1", "urn:isbn:2"),
        ("isbn:1", "isbn:2"),
        ("http://xn--mnchen-3ya.de", "http://munchen.de"),
        ("http://straße.example.org", "http://strasse.example.org"),
        ("http://xn--999999999999.org", "http://xn--999999999998.org"),
    ],
)
def test_urls_of_different_pages(one, other):
    assert normalised(one) != normalised(other)


@given(st.text(st.sampled_from("ab/%2fF5#!?&=;:@.[]xn-1 é\u3002\u0301+")))
def test_no_text_is_a_fault(text):
    for url in (text, f"http://{text}", f"http://a.org/{text}", f"http://xn--{text}"):
        assert isinstance(normalised(url).encode(), bytes)


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(UsageError, match="one of oldest and newest"):
        recipe(prefer=("oldest", "newest"))
    with pytest.raises(UsageError, match="compares with no other snapshot"):
        recipe(policy="within", index=True)
    with pytest.raises(UsageError, match="shorter passages are quotations"):
        recipe(substring_words=20)
