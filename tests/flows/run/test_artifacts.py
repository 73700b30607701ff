"""Artifacts render the manifest: the same numbers, and no markup of a crawled page comes through."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from corpusmill.dataset.funnel import Ended, FunnelRow
from flows.run.artifacts import (
    fenced,
    funnel_rows,
    manifest_link,
    rejects_sample,
    training_card,
    training_rows,
)
from tests import manifests

DIGEST = "ab" * 32
FUNNEL = FunnelRow(
    stage="filter",
    docs_in=1_500,
    docs_out=1_000,
    bytes_in=9_000_000,
    bytes_out=8_000_000,
    words_in=None,
    words_out=None,
    reasons={"too_few_words": Ended(100, 1), "too_many_symbols": Ended(400, 1)},
)


def reject(text: str | None, stage: str = "filter", reason: str = "too_few_words") -> dict[str, Any]:
    return {"stage": stage, "reason": reason, "locator": "a.warc.gz", "offset": 7, "text": text}


def test_the_funnel_table_has_the_numbers_of_the_manifest_and_the_frequent_reasons_first() -> None:
    assert funnel_rows(manifests.made(funnel=(FUNNEL,))) == [
        {
            "stage": "filter",
            "docs_in": 1_500,
            "docs_out": 1_000,
            "bytes_in": 9_000_000,
            "bytes_out": 8_000_000,
            "reasons": "too_many_symbols 400, too_few_words 100",
        }
    ]


def test_one_reject_of_each_reason_is_shown() -> None:
    text = rejects_sample(
        [reject("first"), reject("second"), reject("third", reason="other"), reject(None, "extract", "x")]
    )
    assert "first" in text
    assert "second" not in text
    assert "third" in text
    assert "## extract: x" in text


@given(st.text(alphabet=st.sampled_from("`~<>![]()#\n ab\x1b\u2028\u200e"), max_size=200))
def test_no_text_escapes_its_fence(text: str) -> None:
    tokens = MarkdownIt().parse("\n".join([*fenced(text), "", "end"]))
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


def test_a_page_with_markup_and_addresses_stays_text() -> None:
    page = "```\n</code><img src=http://tracker.example/x.png onerror=alert(1)>\n[click](http://bad.example)\n~~~"
    html = MarkdownIt().render(rejects_sample([reject(page)]))
    assert "<img" not in html
    assert "<a " not in html


def test_the_manifest_is_linked_where_the_store_is() -> None:
    assert manifest_link("/data/store", "web", DIGEST) == f"file:///data/store/datasets/web/{DIGEST}.json"
    assert manifest_link("s3://bucket/store", "web", DIGEST) == f"s3://bucket/store/datasets/web/{DIGEST}.json"


def test_a_training_run_shows_before_and_after_and_a_dash_where_there_is_no_figure() -> None:
    run = {
        "run_id": "ab" * 8,
        "name": "web",
        "manifest": DIGEST,
        "outcome": "finished",
        "checkpoint": "checkpoints/x/60",
    }
    figures = {
        "loss_first": 8.25,
        "loss_last": 6.5,
        "heldout_before": 3.0,
        "heldout_after": None,
        "steps": 60,
        "step": 60,
    }
    assert training_rows({**run, **figures}) == [
        {"measure": "loss (nats a token)", "before": "8.2500", "after": "6.5000"},
        {"measure": "held-out (bits a byte)", "before": "3.0000", "after": "–"},
    ]
    assert f"`web@{DIGEST}`" in training_card({**run, **figures})
    elsewhere = {**run, "outcome": "running elsewhere", "checkpoint": None}
    assert "running elsewhere" in training_card(elsewhere)
