"""Extractors on pages with text chosen by people: word F1 and CPU of every mode, page by page in turn.

Each FOLDER is a set, or holds some (`truth.jsonl.gz` and pages). Every mode gets the same decoded page; modes are
shuffled within a page, and the least CPU of the repeats counts. Figures of our modes on pages that the shipped model
was trained on are marked with *, by the pages themselves, whatever the set is called: for those, `make extractor`
prints what its folds score. Languages are those of the truths (lid.176, where fetched).
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.common import arguments, judged, note, report, run
from bench.extraction.published import SET as PUBLISHED_SET
from bench.extraction.published import justext_row
from bench.extraction.scores import Found, f1s, found, summary
from bench.extraction.sets import Page, load, sets_in, share_trained_on, tokens
from bench.extraction.structure import structure_recall
from bench.extraction.tables import shown
from corpusmill.errors import NotFound, UsageError
from corpusmill.extractor.modes import MODES, Mode, extract

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "extraction"
PEER = "trafilatura"
QUICK_PAGES = 12
DRAWS = 2000

Results = Mapping[str, Mapping[str, Sequence[Found]]]
"""Set -> mode -> pages."""


def main(argv: Sequence[str]) -> int:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help=f"sets; default {DATA}")
    parser.add_argument("--modes", default=",".join(MODES), help="comma-separated; default all")
    parser.add_argument("--pages", type=int, help="at most this number of pages of each set, drawn by a fixed seed")
    parser.add_argument("--structure", action="store_true", help="score structure and ROUGE-L too (slower)")
    parser.add_argument("--published", action="store_true", help="jusText beside its published row, on that benchmark")
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
    loaded = {name: load(path) for name, path in sets_in(options.folders or [DATA]).items()}
    results = {
        name: measured(name, _sample(pages, limit), modes, repeats, options.structure) for name, pages in loaded.items()
    }
    document = _document(results, modes)
    if options.published:
        pages = [page for name, held in loaded.items() if name.endswith(PUBLISHED_SET) for page in held]
        document["published"] = {"justext": justext_row(pages)} if pages else {}
    ratios = judged("extraction", _ratios(document, modes))
    if options.picture:
        from bench.extraction.picture import draw

        options.picture.write_text(draw(document["macro"]), encoding="utf-8")
    return report(document, shown(document, modes), ratios, options.json)


WARM_UP = f"<html><body><article><p>{'A sentence, so that all is loaded. ' * 30}</p></article></body></html>"


def _sample(pages: list[Page], limit: int | None) -> list[Page]:
    if limit is None or len(pages) <= limit:
        return pages
    return random.Random(17).sample(pages, limit)


def measured(
    name: str, pages: Sequence[Page], modes: Sequence[str], repeats: int, deep: bool
) -> dict[str, list[Found]]:
    """Figures of all modes on the pages of a set."""
    results: dict[str, list[Found]] = {mode: [] for mode in modes}
    shuffler = random.Random(17)
    note(f"{name}: {len(pages)} pages")
    for page, language in zip(pages, _languages(pages), strict=True):
        html = page.text()
        texts: dict[str, str] = {}
        least = dict.fromkeys(modes, float("inf"))
        for _ in range(repeats):
            for mode in shuffler.sample(list(modes), len(modes)):
                start = time.process_time()
                texts[mode] = _text_of(html, mode)  # type: ignore[arg-type]
                least[mode] = min(least[mode], time.process_time() - start)
        truth = Counter(tokens(page.truth)) if page.truth is not None else None
        for mode, rows in results.items():
            structure = structure_recall(html, mode, page.markdown) if deep and page.markdown else {}
            rows.append(
                found(page, texts[mode], least[mode] * 1000, truth, deep=deep, language=language, structure=structure)
            )
    return results


def _text_of(page: str, mode: Mode) -> str:
    return extract(page, mode).text or ""


def _languages(pages: Sequence[Page]) -> list[str | None]:
    """Language of each truth; None for all where the model of languages was not fetched."""
    import pyarrow as pa

    from corpusmill.kernels.language.identify import LanguageModel
    from corpusmill.models import model_path

    try:
        model = LanguageModel(model_path("lid.176.ftz"))
    except NotFound as missing:
        note(f"no scores by language: {missing}")
        return [None] * len(pages)
    truths = [page.truth if page.truth is not None else "\n".join(page.kept) for page in pages]
    codes = model.identify(pa.array(truths, pa.large_string())).column("language").to_pylist()
    return [str(code) for code in codes]


def _document(results: Results, modes: Sequence[str]) -> dict[str, Any]:
    sets = {name: {mode: summary(rows) for mode, rows in by_mode.items()} for name, by_mode in results.items()}
    for name, by_mode in sets.items():
        seen = share_trained_on([row.page for row in next(iter(results[name].values()), [])])
        for figures in by_mode.values():
            figures["trained_on"] = seen > 0
            figures["share_trained_on"] = seen
    scored = [name for name, by_mode in results.items() if any(f1s(rows) for rows in by_mode.values())] or list(results)
    macro = {
        mode: {
            key: statistics.fmean(sets[name][mode][key] for name in scored)
            for key in ("f1", "precision", "recall", "empties", "ms")
        }
        for mode in modes
    }
    compared: dict[str, dict[str, float]] = {}
    if PEER in modes:
        compared = {mode: _bootstrap(results, scored, mode) for mode in modes if mode != PEER}
    return {"sets": sets, "macro": macro, "minus_trafilatura": compared, "macro_of": scored}


def _bootstrap(results: Results, names: Sequence[str], mode: str) -> dict[str, float]:
    """Mean difference to the peer, with a 95 % interval: pages drawn anew within each set."""
    import numpy as np

    generator = np.random.default_rng(17)
    means = []
    draws = np.zeros(DRAWS)
    for name in names:
        difference = np.array(f1s(results[name][mode])) - np.array(f1s(results[name][PEER]))
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


__all__ = ["main", "measured"]

if __name__ == "__main__":
    run(main)
