"""Hostile files through the stages, as a build would run them."""

from __future__ import annotations

import gzip
import json
import time
import unicodedata

import pytest

from tasks import dedup
from tests.tasks.dedup.corpus import Doc, recipe, shards, store_at


def rows(path) -> list[dict]:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in data.split(b"\n") if line]


def deduplicated(path, folder):
    store, made = store_at(folder), recipe()
    docs = [Doc(f"{i}", row["text"]) for i, row in enumerate(rows(path))]
    held = shards([docs[::2], docs[1::2]], made, store)
    exact = dedup.exact(held, made, store).receipt
    near = dedup.near(held, exact, made, store).receipt
    return exact, near, store.table(near.outputs["found"]).to_pylist()


def test_clusters_leave_one_each(tmp_path, data_dir):
    exact, near, found = deduplicated(data_dir / "hostile" / "B39-clusters.jsonl", tmp_path / "s")
    assert near.counters["near.docs_out"] == 4
    assert exact.counters["exact.docs_in"] - near.counters["near.docs_out"] == 3
    kept = {row["doc_id"] for row in found if row["keeper"] is None}
    assert all(row["keeper"] in kept and row["similarity"] >= 0.8 for row in found if row["keeper"])


def test_a_bucket_of_boilerplate_costs_few_comparisons(tmp_path, data_dir):
    began = time.process_time()
    _, near, _ = deduplicated(data_dir / "hostile" / "B44-boilerplate-bucket.jsonl.gz", tmp_path / "s")
    assert time.process_time() - began < 60
    assert near.counters["near.docs_out"] == 1
    assert near.facts["comparisons"] <= 30_000
    assert near.facts["crowded_buckets"] > 0  # the facts say that not all its pairs are compared


def test_tiny_documents_are_no_near_duplicates_of_one_another(tmp_path, data_dir):
    exact, near, _ = deduplicated(data_dir / "hostile" / "B35-tiny-documents.jsonl", tmp_path / "s")
    assert near.facts["comparisons"] == 0
    assert near.counters["near.docs_out"] == near.counters["near.docs_in"]
    assert exact.counters["exact.docs_in"] == 21


def test_a_text_composed_and_decomposed_is_one_document(tmp_path, data_dir):
    exact, near, found = deduplicated(data_dir / "hostile" / "B147-nfc-nfd.jsonl", tmp_path / "s")
    assert (exact.counters["exact.docs_out"], near.counters["near.docs_out"], len(found)) == (1, 1, 1)
    assert exact.reasons["exact_duplicate"]["docs"] == 1


TEXTS = {
    "vietnamese": "Người ở miền Bắc và miền Nam đặt nền tảng cho tiếng Việt được viết bằng chữ cái",
    "korean": "한국어 문서 는 여러 가지 방법 으로 저장 될 수 있다 그래서 비교 해야 한다",
    "japanese": "ガラスのドアがギシギシとひびき、パンダはゴロゴロところがる",
    "arabic": "قرأ المُدَرِّسُ الآية في المدرسة أمام الطلاب وأعاد شرحها مرّة أخرى للجميع",
    "greek": "Ἐν ἀρχῇ ἦν ὁ λόγος καὶ ὁ λόγος ἦν πρὸς τὸν θεόν καὶ θεὸς ἦν ὁ λόγος",
    "hebrew": "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ וְהָאָרֶץ הָיְתָה",
}


@pytest.mark.parametrize("language", TEXTS)
def test_encodings_of_one_text_are_exact_copies_and_of_an_edited_one_near_copies(tmp_path, language):
    store, made = store_at(tmp_path / "s"), recipe()
    text = f"{TEXTS[language]} ﬁnally ＦＵＬＬ width, don´t"
    forms = {form: unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    docs = [Doc(form, one) for form, one in forms.items()]
    docs += [Doc(f"{form} edited", f"{one} more") for form, one in forms.items()]
    docs.append(Doc("ascii", "an ordinary text of the same batch that needs no other form at all"))
    held = shards([docs], made, store)
    exact = dedup.exact(held, made, store).receipt
    near = dedup.near(held, exact, made, store).receipt
    assert exact.reasons["exact_duplicate"]["docs"] == 2
    assert near.counters["near.docs_out"] == 2
    stored = store.table(held[0].documents.outputs["documents"]).column("text").to_pylist()
    assert stored == [doc.text for doc in docs], "what is stored is not normalised"
