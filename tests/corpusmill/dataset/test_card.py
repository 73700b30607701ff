"""The dataset card says what the manifest says, of documents and of shards, and which personal data is masked."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from corpusmill.config.judging import PersonalKind
from corpusmill.dataset.card import BAR, FILES, PERSONAL, bar, card, personal_data, store_card
from corpusmill.dataset.funnel import Ended, FunnelRow
from corpusmill.dataset.manifest import Input, Manifest, RuleFile, Snapshot
from corpusmill.store import open_store
from tests import manifests

DIGEST = "ab" * 32
ROW = FunnelRow("filter", 1_500, 1_000, 9_000_000, 8_000_000, None, None, {"few": Ended(100, 1), "many": Ended(400, 1)})


def masking(*kinds: str) -> Manifest:
    return manifests.made(recipe={"judge": {"personal_data": {"kinds": list(kinds)}}})


def test_a_built_dataset_shows_digest_funnel_partitions_and_rules() -> None:
    made = manifests.made(
        "web",
        seed=17,
        funnel=(ROW,),
        rules=RuleFile("gopher", 2, DIGEST),
        partitions={"crawl": manifests.partition(12, documents=990, tokens=12_345)},
        inputs=(Input("c", "s", "a.warc.gz", 1_000, DIGEST), Input("c", "s", "b.warc.gz", None, None)),
    )
    text = card(made, DIGEST)
    assert f"1,000 documents, 12,345 tokens, made by Corpusmill. Manifest `sha256:{DIGEST}`." in text
    assert "| **filter** | 1,500 | 1,000 |" in text
    assert text.index("| · many | −400 |") < text.index("| · few | −100 |")
    assert "| crawl | 990 | 12,345 | 12 | 0 | 64 |" in text
    assert "Rules `gopher` version 2" in text
    assert "2 files, 1,000 bytes." in text
    assert "`b.warc.gz` (unknown size)" in text
    assert card(made, DIGEST) == text


def test_a_dataset_of_documents_shows_its_snapshots_and_neither_tokens_nor_rules() -> None:
    shown = {"snapshot": Snapshot("c", "2026-05"), "snapshots": {"c": ("2026-01", "2026-05")}}
    text = card(manifests.made("web-documents", kind="documents", funnel=(ROW,), **shown), DIGEST)
    assert "1,000 documents, made by Corpusmill." in text
    assert "- `c`: 2026-01, 2026-05" in text
    assert "Rules" not in text
    assert "| partition |" not in text


def test_a_card_that_is_not_the_one_of_this_version_is_noted(tmp_path: Path) -> None:
    store, manifest, name = (
        open_store(tmp_path / "store", create=True),
        manifests.made(),
        f"datasets/made/{'a' * 64}.md",
    )
    assert store_card(store, manifest, "a" * 64) is None
    assert store_card(store, manifest, "a" * 64) is None
    (tmp_path / "store" / name).write_text("damaged")
    note = store_card(store, manifest, "a" * 64)
    assert note is not None
    assert name in note


def test_of_many_files_the_first_are_listed() -> None:
    files = tuple(Input("c", "s", f"{n}.warc.gz", 1, DIGEST) for n in range(FILES + 7))
    text = card(manifests.made(inputs=files), DIGEST)
    assert text.count(".warc.gz") == FILES
    assert "- and 7 more" in text


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((), "Personal data in them is not masked."),
        (("email",), "leaves the store: e-mail addresses. Other kinds"),
        (("email", "ip", "iban"), "leaves the store: e-mail addresses, IP addresses and IBANs. Other kinds"),
    ],
)
def test_the_card_names_the_kinds_of_personal_data_that_are_masked(kinds: tuple[str, ...], expected: str) -> None:
    assert expected in personal_data(masking(*kinds))
    assert personal_data(masking(*kinds)) in card(masking(*kinds), DIGEST)


def test_every_kind_of_personal_data_has_its_words() -> None:
    assert set(PERSONAL) == set(get_args(PersonalKind))


def test_a_bar_shows_anything_above_zero_and_nothing_for_zero() -> None:
    assert bar(0, 10) == "·" * BAR
    assert bar(1, 1_000_000).count("█") == 1
    assert bar(10, 10) == "█" * BAR
