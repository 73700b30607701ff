"""Extractors on pages with text chosen by people: word F1 and CPU of every mode, page by page in turn.

Each FOLDER is a set, or holds some (`truth.jsonl.gz` and pages). Every mode gets the same decoded page; modes are
shuffled within a page, and the least CPU of the repeats counts. Figures of our modes on sets that the shipped model was
trained on are marked with *: for those, `make extractor` prints what its folds score.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import arguments, judged, note, report, run
from bench.extraction_sets import (
    TRAINED_ON,
    Page,
    benchmark_measure,
    load,
    ordered_f1,
    plain_form,
    sets_in,
    tokens,
    word_score,
)
from bench.extraction_structure import STRUCTURES, structure_recall
from corpusmill.commands.common import table
from corpusmill.errors import UsageError
from corpusmill.extractor.modes import MODES, Mode, extract

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "extraction"
PEER = "trafilatura"
QUICK_PAGES = 12
DRAWS = 2000
MIN_PLAIN_WORDS = 100


@dataclass
class Rows:
    """Figures of one mode on one set, page by page."""

    f1: list[float] = field(default_factory=list)
    precision: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    rouge: list[float] = field(default_factory=list)
    leaked: list[float] = field(default_factory=list)
    """1 - precision of the pages with output."""
    empty: list[bool] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    kinds: list[str | None] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    segments: Counter[str] = field(default_factory=Counter)
    structure: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def summary(self) -> dict[str, Any]:
        """The figures of the set."""
        if not self.f1:
            known = self.segments
            wrong = known["fp"] + known["fn"]
            f1 = 2 * known["tp"] / max(2 * known["tp"] + wrong, 1)
            precision = known["tp"] / max(known["tp"] + known["fp"], 1)
            recall = known["tp"] / max(known["tp"] + known["fn"], 1)
            base = {"f1": f1, "precision": precision, "recall": recall, "measure": "segments"}
        else:
            gram_f1, gram_p, gram_r = benchmark_measure(self.pairs)
            base = {
                "f1": statistics.fmean(self.f1),
                "median_f1": statistics.median(self.f1),
                "precision": statistics.fmean(self.precision),
                "recall": statistics.fmean(self.recall),
                "leakage": statistics.fmean(self.leaked) if self.leaked else 0.0,
                "rouge_l": statistics.fmean(self.rouge) if self.rouge else None,
                "four_gram": {"f1": gram_f1, "precision": gram_p, "recall": gram_r},
                "measure": "words",
            }
            if any(self.kinds):
                by_kind: dict[str, list[float]] = defaultdict(list)
                for kind, value in zip(self.kinds, self.f1, strict=True):
                    by_kind[str(kind)].append(value)
                base["by_type"] = {kind: statistics.fmean(values) for kind, values in sorted(by_kind.items())}
            if self.structure:
                base["structure"] = {name: statistics.fmean(v) for name, v in sorted(self.structure.items())}
        return {
            **base,
            "empties": sum(self.empty) / max(len(self.empty), 1),
            "ms": statistics.fmean(self.ms) if self.ms else 0.0,
            "pages": len(self.empty),
        }


def main(argv: Sequence[str]) -> int:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help=f"sets; default {DATA}")
    parser.add_argument("--modes", default=",".join(MODES), help="comma-separated; default all")
    parser.add_argument("--pages", type=int, help="at most so many pages of each set, drawn by a fixed seed")
    parser.add_argument("--structure", action="store_true", help="score structure and ROUGE-L too (slower)")
    parser.add_argument("--picture", type=Path, help="write a picture of F1 against CPU to this SVG file")
    options = parser.parse_args(argv)
    modes = [m.strip() for m in options.modes.split(",") if m.strip()]
    if unknown := sorted(set(modes) - set(MODES)):
        raise UsageError(f"unknown mode {unknown[0]!r}", f"known: {', '.join(MODES)}", "Correct --modes.")
    if options.no_peer:
        modes = [mode for mode in modes if mode != PEER]
    limit = options.pages or (QUICK_PAGES if options.quick else None)
    repeats = options.repeats or (1 if options.quick else 2)
    for mode in modes:
        extract(WARM_UP, mode)  # type: ignore[arg-type]
    results = {
        name: measured(name, _sample(load(path), limit), modes, repeats, options.structure)
        for name, path in sets_in(options.folders or [DATA]).items()
    }
    document = _document(results, modes)
    ratios = judged("extraction", _ratios(document, modes))
    if options.picture:
        from bench.extraction_picture import draw

        options.picture.write_text(draw(document["macro"]), encoding="utf-8")
    return report(document, _text(document, modes), ratios, options.json)


WARM_UP = f"<html><body><article><p>{'A sentence, so that all is loaded. ' * 30}</p></article></body></html>"


def _sample(pages: list[Page], limit: int | None) -> list[Page]:
    if limit is None or len(pages) <= limit:
        return pages
    return random.Random(17).sample(pages, limit)


def measured(name: str, pages: Sequence[Page], modes: Sequence[str], repeats: int, deep: bool) -> dict[str, Rows]:
    """Figures of all modes on the pages of a set."""
    results = {mode: Rows() for mode in modes}
    shuffler = random.Random(17)
    note(f"{name}: {len(pages)} pages")
    for page in pages:
        text = page.text()
        found: dict[str, str] = {}
        least = dict.fromkeys(modes, float("inf"))
        for _ in range(repeats):
            for mode in shuffler.sample(list(modes), len(modes)):
                start = time.process_time()
                found[mode] = _text_of(text, mode)  # type: ignore[arg-type]
                least[mode] = min(least[mode], time.process_time() - start)
        truth = Counter(tokens(page.truth)) if page.truth is not None else None
        for mode, rows in results.items():
            rows.ms.append(least[mode] * 1000)
            _add(rows, page, found[mode], truth, deep)
            if deep and page.markdown:
                for kind, value in structure_recall(text, mode, page.markdown).items():
                    rows.structure[kind].append(value)
    return results


def _text_of(page: str, mode: Mode) -> str:
    return extract(page, mode).text or ""


def _add(rows: Rows, page: Page, text: str, truth: Mapping[str, int] | None, deep: bool) -> None:
    rows.empty.append(not text)
    if truth is None or page.truth is None:
        form = plain_form(text)
        rows.segments["tp"] += sum(plain_form(s) in form for s in page.kept)
        rows.segments["fn"] += sum(plain_form(s) not in form for s in page.kept)
        rows.segments["fp"] += sum(plain_form(s) in form for s in page.dropped)
        return
    ordered = tokens(text)
    score = word_score(Counter(ordered), truth)
    rows.f1.append(score.f1)
    rows.precision.append(score.precision)
    rows.recall.append(score.recall)
    if text:
        rows.leaked.append(1 - score.precision)
    rows.kinds.append(page.kind)
    rows.pairs.append((text, page.truth))
    if deep:
        rows.rouge.append(ordered_f1(ordered, tokens(page.truth)))


def _document(results: Mapping[str, Mapping[str, Rows]], modes: Sequence[str]) -> dict[str, Any]:
    sets = {name: {mode: rows.summary() for mode, rows in by_mode.items()} for name, by_mode in results.items()}
    for name, by_mode in sets.items():
        for figures in by_mode.values():
            figures["trained_on"] = name in TRAINED_ON
    scored = [name for name, by_mode in results.items() if any(rows.f1 for rows in by_mode.values())] or list(results)
    macro = {
        mode: {
            key: statistics.fmean(sets[name][mode][key] for name in scored)
            for key in ("f1", "precision", "recall", "empties", "ms")
        }
        for mode in modes
    }
    compared: dict[str, dict[str, float]] = {}
    if PEER in modes:
        for mode in modes:
            if mode != PEER:
                compared[mode] = _bootstrap(results, scored, mode)
    return {"sets": sets, "macro": macro, "minus_trafilatura": compared, "macro_of": scored}


def _bootstrap(results: Mapping[str, Mapping[str, Rows]], names: Sequence[str], mode: str) -> dict[str, float]:
    """Mean difference to the peer, with a 95 % interval: pages drawn anew within each set."""
    import numpy as np

    generator = np.random.default_rng(17)
    means = []
    draws = np.zeros(DRAWS)
    for name in names:
        difference = np.array(results[name][mode].f1) - np.array(results[name][PEER].f1)
        if len(difference):
            means.append(difference.mean())
            draws += difference[generator.integers(0, len(difference), (DRAWS, len(difference)))].mean(axis=1)
    if not means:
        return {"difference": 0.0, "low": 0.0, "high": 0.0}
    low, high = np.quantile(draws / len(means), [0.025, 0.975])
    return {"difference": float(np.mean(means)), "low": float(low), "high": float(high)}


def _ratios(document: Mapping[str, Any], modes: Sequence[str]) -> dict[str, float]:
    if PEER not in modes:
        return {}
    macro = document["macro"]
    return {f"{mode}_cpu": macro[PEER]["ms"] / macro[mode]["ms"] for mode in ("fast", "auto") if mode in modes}


def _text(document: Mapping[str, Any], modes: Sequence[str]) -> str:
    rows = []
    for name, by_mode in document["sets"].items():
        for mode in modes:
            f = by_mode[mode]
            mark = "*" if f["trained_on"] and mode in ("auto", "fast", "union") else ""
            rows.append((f"{name}{mark}", mode, f["pages"], *(_shown(f[k]) for k in ("f1", "precision", "recall")),
                         f"{100 * f['empties']:.1f}", f"{f['ms']:.2f}"))  # fmt: skip
    for mode in modes:
        f = document["macro"][mode]
        rows.append(("macro", mode, "", *(_shown(f[k]) for k in ("f1", "precision", "recall")),
                     f"{100 * f['empties']:.1f}", f"{f['ms']:.2f}"))  # fmt: skip
    text = table(("set", "mode", "pages", "F1", "P", "R", "empty %", "ms"), rows, numbers=(2, 3, 4, 5, 6, 7))
    for mode, d in document["minus_trafilatura"].items():
        text += f"\n{mode} minus trafilatura: {d['difference']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}]"
    for name, by_mode in document["sets"].items():
        for key in ("by_type", "structure"):
            if any(key in f for f in by_mode.values()):
                kinds = sorted({kind for f in by_mode.values() for kind in f.get(key, {})})
                lines = [(k, *(_shown(by_mode[m].get(key, {}).get(k)) for m in modes)) for k in kinds]
                text += f"\n\n{name}\n" + table((key, *modes), lines, numbers=tuple(range(1, len(modes) + 1)))
    return text


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


__all__ = ["STRUCTURES", "main", "measured"]

if __name__ == "__main__":
    run(main)
