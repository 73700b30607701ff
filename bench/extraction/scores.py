"""Figures of one mode on one set, page by page, and their summaries: whole, by page type, by language."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.extraction.sets import Page, Score, benchmark_measure, ordered_f1, plain_form, tokens, word_score


@dataclass(frozen=True)
class Found:
    """What a mode made of one page; `score` is None where the truth is segments, which are counted in `segments`."""

    page: Page
    text: str
    ms: float
    score: Score | None
    rouge: float | None = None
    segments: Mapping[str, int] = field(default_factory=dict)
    """tp, fn over what must be there; fp over what must not."""
    structure: Mapping[str, float] = field(default_factory=dict)
    language: str | None = None


def found(page: Page, text: str, ms: float, truth: Mapping[str, int] | None, *, deep: bool, **more: Any) -> Found:
    """A page's figures; `truth` holds the counts of the truth's tokens, `deep` asks for ROUGE-L too."""
    if truth is None or page.truth is None:
        form = plain_form(text)
        kept = sum(plain_form(segment) in form for segment in page.kept)
        wrong = sum(plain_form(segment) in form for segment in page.dropped)
        return Found(page, text, ms, None, None, {"tp": kept, "fn": len(page.kept) - kept, "fp": wrong}, **more)
    ordered = tokens(text)
    rouge = ordered_f1(ordered, tokens(page.truth)) if deep else None
    return Found(page, text, ms, word_score(Counter(ordered), truth), rouge, **more)


def f1s(rows: Sequence[Found]) -> list[float]:
    """Word F1 of the pages whose truth is a text."""
    return [row.score.f1 for row in rows if row.score]


def summary(rows: Sequence[Found]) -> dict[str, Any]:
    """The figures of a set."""
    figures = {**_base(rows), "pages": len(rows)}
    figures["empties"] = statistics.fmean(not row.text for row in rows) if rows else 0.0
    figures["ms"] = statistics.fmean(row.ms for row in rows) if rows else 0.0
    for name, key in (("by_type", lambda row: row.page.kind), ("by_language", lambda row: row.language)):
        groups: dict[str, list[Found]] = defaultdict(list)
        for row in rows:
            if (group := key(row)) is not None:
                groups[group].append(row)
        if groups:
            figures[name] = {group: _base(held)["f1"] for group, held in sorted(groups.items())}
            figures[f"pages_{name}"] = {group: len(held) for group, held in sorted(groups.items())}
    return figures


def _base(rows: Sequence[Found]) -> dict[str, Any]:
    scored = [row for row in rows if row.score]
    return _words(scored) if scored else _segments(rows)


def _words(rows: Sequence[Found]) -> dict[str, Any]:
    scores = [row.score for row in rows if row.score]
    leaked = [1 - row.score.precision for row in rows if row.score and row.text]
    rouges = [row.rouge for row in rows if row.rouge is not None]
    f1, precision, recall = benchmark_measure((row.text, row.page.truth or "") for row in rows)
    pieces: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for kind, share in row.structure.items():
            pieces[kind].append(share)
    figures: dict[str, Any] = {
        "measure": "words",
        "f1": statistics.fmean(score.f1 for score in scores),
        "median_f1": statistics.median(score.f1 for score in scores),
        "precision": statistics.fmean(score.precision for score in scores),
        "recall": statistics.fmean(score.recall for score in scores),
        "leakage": statistics.fmean(leaked) if leaked else 0.0,
        "rouge_l": statistics.fmean(rouges) if rouges else None,
        "four_gram": {"f1": f1, "precision": precision, "recall": recall},
    }
    if pieces:
        figures["structure"] = {kind: statistics.fmean(shares) for kind, shares in sorted(pieces.items())}
    return figures


def _segments(rows: Sequence[Found]) -> dict[str, Any]:
    known: Counter[str] = Counter()
    for row in rows:
        known.update(row.segments)
    tp, fp, fn = known["tp"], known["fp"], known["fn"]
    return {
        "measure": "segments",
        "f1": 2 * tp / max(2 * tp + fp + fn, 1),
        "precision": tp / max(tp + fp, 1),
        "recall": tp / max(tp + fn, 1),
    }
