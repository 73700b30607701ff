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

from bench.extraction import DATA
from bench.extraction_sets import Page, load, score
from corpusmill.extractor.chooser import gate_features, verdict_features
from corpusmill.extractor.linemodel import Lines, judged
from corpusmill.extractor.model import MODEL, Trees
from corpusmill.extractor.modes import extract
from extractor_training import gains, lines
from extractor_training.data import FOLDS, Example, example
from extractor_training.export import flat, write

SETS = ("article-extraction-benchmark", "wcxb-dev")
"""MIT and CC-BY-4.0."""
ASKED = 0.12
"""Share of the training pages on which trafilatura is asked."""


def main() -> None:
    """Train, score and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CORPUSMILL_EXTRACTION_DATA", DATA)))
    parser.add_argument("--out", type=Path, default=MODEL)
    parser.add_argument("--scores", type=Path, help="write the folds' scores here as JSON")
    parser.add_argument("--cache", type=Path, help="a folder that keeps trafilatura's texts for the next run")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        known = [(name, page) for name in SETS for page in load(options.data / name) if page.truth]
        found = list(pool.map(partial(_read, cache=options.cache), known, chunksize=16))
        print(f"{len(found)} pages", flush=True)
        pages = [page for page, _ in found]
        others = [other for _, other in found]
        truths = [str(page.truth) for _, page in known]
        folded = _folded(pages, pool)
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
            booster = gains.fit([rows[i] for i in learned], gain[learned])
            found[asked] = booster.predict(np.concatenate([rows[i] for i in asked]))
    bound = float(np.quantile(gate_gain[usable], 1 - ASKED))
    auto = np.where((gate_gain > bound) & (verdict_gain > 0), theirs, ours)
    scores = _scores(pages, {"fast": ours, "trafilatura": theirs, "auto": auto})
    scores["asked"] = float((gate_gain > bound).mean())
    line_booster = lines.fit(*lines.drawn(pages))
    boosters = {
        "lines": line_booster,
        "gate": gains.fit([gate_rows[i] for i in usable], gain[usable]),
        "verdict": gains.fit([verdict_rows[i] for i in usable], gain[usable]),
    }
    trees = {name: flat(booster) for name, booster in boosters.items()}
    _check(boosters, trees, pages[0], gate_rows[usable[0]], verdict_rows[usable[0]])
    write(options.out, trees, {"gate_min_gain": bound})
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


def _folded(pages: list[Example], pool: Executor) -> list[Lines]:
    """Every page judged by a model of the other folds."""
    samples = (lines.drawn([page for page in pages if page.fold != k]) for k in range(FOLDS))
    models = [flat_of.result() for flat_of in [pool.submit(_trees, *sample) for sample in samples]]
    print(f"{FOLDS} folds", flush=True)
    return [judged(page.scan, page.x, models[page.fold].probability(page.x)) for page in pages]


def _trees(*sample: NDArray) -> Trees:
    return flat(lines.fit(*sample))


def _check(boosters: Any, trees: dict[str, Trees], page: Example, gate: Any, verdict: Any) -> None:
    for name, rows in (("lines", page.x), ("gate", gate), ("verdict", verdict)):
        difference = float(np.abs(boosters[name].predict(rows, raw_score=True) - trees[name].raw(rows)).max())
        assert difference < 1e-8, f"{name}: our evaluator differs by {difference}"


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
