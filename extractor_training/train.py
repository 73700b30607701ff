"""`make extractor`: features, labels, line model, chooser and scores from the licensed sets; the model file.

    python -m extractor_training [--data FOLDER] [--out FILE] [--scores FILE] [--cache FOLDER] [--workers N]

The line model's and the chooser's scores are of five folds over domains: a page is scored by models that saw no page of
its domain. The chooser learns from lines judged by such models too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections import defaultdict
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.extraction.__main__ import DATA
from bench.extraction.sets import SEEN_PAGES, Page, load, page_key, score
from corpusmill.errors import CheckFailed
from corpusmill.extractor.model.chooser import gate_features, verdict_features
from corpusmill.extractor.model.lines import Lines, judged
from corpusmill.extractor.model.load import MODEL, Trees
from corpusmill.extractor.modes import extract
from extractor_training import gains, lines
from extractor_training.data import FOLDS, Example, example
from extractor_training.export import flat, write
from extractor_training.unnamed import unnamed

SETS = ("article-extraction-benchmark", "wcxb-dev")
"""MIT and CC-BY-4.0."""
ASKED = 0.05
"""Share of the training pages on which trafilatura is asked."""


def main() -> None:
    """Train, score and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CORPUSMILL_EXTRACTION_DATA", DATA)))
    parser.add_argument("--out", type=Path, default=MODEL)
    parser.add_argument("--seen", type=Path, default=SEEN_PAGES, help="write the keys of the pages trained on here")
    parser.add_argument("--scores", type=Path, help="write the folds' scores here as JSON")
    parser.add_argument("--cache", type=Path, help="a folder that keeps trafilatura's texts for the next run")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        known = [(name, page) for name in SETS for page in load(options.data / name) if page.truth]
        found = list(pool.map(partial(_read, cache=options.cache), known, chunksize=16))
        print(f"{len(found)} pages", flush=True)
        pages = [page for page, _ in found]
        nameless = [unnamed(page) for page in pages]
        others = [other for _, other in found]
        truths = [str(page.truth) for _, page in known]
        folded, line_trees = _folded(pages, nameless, pool)
    ours = np.array([page.f1(judged_.keep) for page, judged_ in zip(pages, folded, strict=True)])
    theirs = np.array([score(other, truth).f1 for other, truth in zip(others, truths, strict=True)])
    gate_rows = [gate_features(one) if len(one.page) else None for one in folded]
    verdict_rows = [
        verdict_features(one, other, gate) if gate is not None else None
        for one, other, gate in zip(folded, others, gate_rows, strict=True)
    ]
    usable = [i for i, row in enumerate(gate_rows) if row is not None]
    gain = theirs - ours
    fold = np.array([page.fold for page in pages])
    gate_gain, verdict_gain = np.full(len(pages), 1.0), np.full(len(pages), 1.0)
    for k in range(FOLDS):
        learned = [i for i in usable if fold[i] != k]
        asked = [i for i in usable if fold[i] == k]
        for rows, found in ((gate_rows, gate_gain), (verdict_rows, verdict_gain)):
            booster = _gain(rows, gain, pages, learned)
            found[asked] = booster.predict(np.concatenate([rows[i] for i in asked]))
    bound = float(np.quantile(gate_gain[usable], 1 - ASKED))
    auto = np.where((gate_gain > bound) & (verdict_gain > 0), theirs, ours)
    scores = _scores(pages, {"fast": ours, "trafilatura": theirs, "auto": auto})
    scores["asked"] = float((gate_gain > bound).mean())
    boosters = {
        "gate": _gain(gate_rows, gain, pages, usable),
        "verdict": _gain(verdict_rows, gain, pages, usable),
    }
    trees = {name: flat(booster) for name, booster in boosters.items()}
    for name, rows in (("gate", gate_rows), ("verdict", verdict_rows)):
        check(boosters[name], trees[name], rows[usable[0]])
    write(options.out, {**trees, "lines": line_trees}, {"gate_min_gain": bound})
    options.seen.write_text(
        "".join(f"{key}\n" for key in sorted({page_key(p.raw) for _, p in known})), encoding="ascii"
    )
    print(json.dumps(scores, indent=1))
    print("sha256", hashlib.sha256(options.out.read_bytes()).hexdigest(), options.out.stat().st_size, "bytes")
    if options.scores:
        options.scores.write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")


def _read(known: tuple[str, Page], cache: Path | None) -> tuple[Example, str]:
    """A page as an example, and trafilatura's text of it."""
    text = known[1].text()
    name = hashlib.sha256(f"{version('trafilatura')}\n{text}".encode("utf-8", "replace")).hexdigest()
    kept = cache / name if cache else None
    if kept and kept.is_file():
        return example(*known), kept.read_text(encoding="utf-8")
    other = extract(text, "trafilatura").text or ""
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(other, encoding="utf-8")
    return example(*known), other


def _folded(pages: list[Example], nameless: list[Example], pool: Executor) -> tuple[list[Lines], Trees]:
    """Every page judged by a model of the other folds, and the model of all pages."""
    fitted = [
        pool.submit(_trees, *lines.sample(_without(k, pages), _without(k, nameless))) for k in (*range(FOLDS), None)
    ]
    models = [trees.result() for trees in fitted]
    print(f"{FOLDS} folds", flush=True)
    found = [judged(page.scan, page.x, models[page.fold].probability(page.x), page.description) for page in pages]
    return found, models[-1]


def _gain(rows: list[Any], gain: NDArray[np.float64], pages: list[Example], learned: list[int]) -> Any:
    return gains.fit([rows[i] for i in learned], gain[learned], [pages[i].set for i in learned])


def _without(fold: int | None, pages: list[Example]) -> list[Example]:
    return [page for page in pages if page.fold != fold]


def _trees(*sample: NDArray) -> Trees:
    booster = lines.fit(*sample)
    trees = flat(booster)
    check(booster, trees, sample[0][:1000])
    return trees


def check(booster: Any, trees: Trees, rows: NDArray[np.float32]) -> None:
    """Fail unless our evaluator gives what the training library gives, to 1e-8."""
    difference = float(np.abs(booster.predict(rows, raw_score=True) - trees.raw(rows)).max())
    if difference >= 1e-8:
        raise CheckFailed(f"our evaluator differs by {difference}", "expected less than 1e-8 from LightGBM's")


def _scores(pages: list[Example], arms: dict[str, Any]) -> dict[str, Any]:
    """Mean word F1 of each arm by set, and by page type of those that have one."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, page in enumerate(pages):
        groups[page.set].append(i)
        if page.kind:
            groups[f"{page.set}/{page.kind}"].append(i)
    return {
        group: {"pages": len(held), **{arm: float(np.mean(values[held])) for arm, values in arms.items()}}
        for group, held in sorted(groups.items())
    }
