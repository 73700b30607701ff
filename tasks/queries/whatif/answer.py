"""The answer to moved bounds: funnel, documents gained and lost, overlap of rules, samples."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from corpusmill.dataset.lineage import files_of
from corpusmill.dataset.manifest import Manifest
from corpusmill.kernels.rules.bounds import Bound
from corpusmill.store import Output, Store
from tasks.queries.whatif.moves import languages_of, moved, of_dataset
from tasks.queries.whatif.sql import broken
from tasks.queries.whatif.table import FIRST, SIZES, STAGES, measures_of
from tasks.views import LAYERS, overlay

UNITS = ("docs", "bytes", "words")


def whatif(store: Store, digest: str, manifest: Manifest, moves: Sequence[str], samples: int) -> dict[str, Any]:
    """What a dataset's stages `language` and `filter` would keep with other bounds.

    Args:
        moves: `rule.min=…`, `rule.max=…`, or a key of the recipe that is a bound (`language.min_score=0.8`).
        samples: documents to show that would come in, and as many that would go.

    Returns:
        {"manifest", "moves", "funnel": [{"stage", "before", "after"}], "reasons", "gained", "lost", "overlap",
        "samples", "estimate", "not_recomputed", "seconds"}; documents, bytes and words are exact, tokens estimated.

    Raises:
        UsageError: no such bound, or a bound looser than a floor.
    """
    before, rules = of_dataset(store, manifest)
    after = moved(manifest.recipe, rules, moves, languages_of(manifest))
    with measures_of(store, digest, manifest, before) as db:
        began = time.perf_counter()
        answer = _compare(db, before, after, manifest)
        seconds = time.perf_counter() - began
        answer["samples"] = {
            side: _samples(db, side, samples, store, manifest) for side in ("gained", "lost") if samples
        }
    return {"manifest": digest, "moves": list(moves), **answer, "seconds": round(seconds, 4)}


def _compare(
    db: duckdb.DuckDBPyConnection, before: tuple[Bound, ...], after: tuple[Bound, ...], manifest: Manifest
) -> dict[str, Any]:
    """Everything but the samples. Only documents about which a moved bound changes its mind are looked at."""
    changed = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    moved_bits = sum(1 << i for i in changed)
    bits = " | ".join(f"CASE WHEN {broken(after[i])} THEN {1 << i} ELSE 0 END" for i in changed) or "0"
    db.execute(
        f"""CREATE TEMP VIEW moved AS SELECT *, {FIRST} AS was, now_fails & -now_fails AS now
        FROM (SELECT *, (fails & {~moved_bits}) | {bits} AS now_fails FROM measures)"""
    )
    sums = {bit: dict(zip(UNITS, sizes, strict=True)) for bit, *sizes in db.execute("FROM sums").fetchall()}
    total = {unit: sum(sizes[unit] for sizes in sums.values()) for unit in UNITS}
    ended = {bit: dict(sizes) for bit, sizes in sums.items()}
    gained, lost, lost_kept = _none(), _none(), _none()
    for was, now, kept, *found in db.execute(
        f"SELECT was, now, stage IS NULL AS kept, {SIZES} FROM moved "
        "WHERE now_fails <> fails AND was <> now GROUP BY ALL"
    ).fetchall():
        sizes = dict(zip(UNITS, found, strict=True))
        _add(ended.setdefault(was, _none()), sizes, -1)
        _add(ended.setdefault(now, _none()), sizes)
        if not now:
            _add(gained, sizes)
        if not was:
            _add(lost, sizes)
            if kept:
                _add(lost_kept, sizes)
    reasons = {"before": _by_reason(sums, before), "after": _by_reason(ended, before)}
    per_word = _tokens_per_word(manifest)
    return {
        "funnel": _funnel(total, reasons, before),
        "reasons": reasons,
        "gained": {**gained, "tokens_estimated": round(gained["words"] * per_word)},
        "lost": {
            **lost,
            "tokens_estimated": round(lost["words"] * per_word),
            "of_these_in_the_dataset": lost_kept["docs"],
        },
        "overlap": _overlap(db, before, changed),
        "estimate": "tokens: words times the dataset's tokens a word",
        "not_recomputed": [row.stage for row in manifest.funnel if row.has_text and row.stage not in STAGES],
    }


def _by_reason(ended: Mapping[int, Mapping[str, int]], bounds: Sequence[Bound]) -> dict[str, dict[str, int]]:
    """Sizes of what each reason ends; `ended` is by the bit of the first broken bound."""
    found: dict[str, dict[str, int]] = {}
    for bit, sizes in sorted(ended.items()):
        if bit and sizes["docs"]:
            _add(found.setdefault(bounds[bit.bit_length() - 1].reason, _none()), sizes)
    return dict(sorted(found.items()))


def _none() -> dict[str, int]:
    return dict.fromkeys(UNITS, 0)


def _add(to: dict[str, int], sizes: Mapping[str, int], sign: int = 1) -> None:
    for unit in UNITS:
        to[unit] += sign * sizes[unit]


def _tokens_per_word(manifest: Manifest) -> float:
    words = manifest.row("pack").words_out
    return float(manifest.tokens) / words if words else 0.0


def _funnel(
    total: Mapping[str, int], reasons: Mapping[str, Mapping[str, Mapping[str, int]]], bounds: Sequence[Bound]
) -> list[dict[str, Any]]:
    stage_of = {bound.reason: bound.stage for bound in bounds}
    rows = []
    left = {side: dict(total) for side in ("before", "after")}
    for stage in STAGES:
        row: dict[str, Any] = {"stage": stage}
        for side in ("before", "after"):
            came = dict(left[side])
            for reason, sizes in reasons[side].items():
                if stage_of[reason] == stage:
                    for name in left[side]:
                        left[side][name] -= sizes[name]
            row[side] = {"docs_in": came["docs"], **{f"{name}_out": left[side][name] for name in left[side]}}
        rows.append(row)
    return rows


def _overlap(db: duckdb.DuckDBPyConnection, bounds: Sequence[Bound], changed: Sequence[int]) -> list[dict[str, Any]]:
    """For each moved bound: documents that break it, those that break no other, and which others they break most."""
    rows = []
    bits = sum(1 << i for i in changed)
    found = db.execute(f"SELECT now_fails FROM moved WHERE now_fails & {bits} <> 0").fetchnumpy()["now_fails"]
    for i in changed:
        broken = np.asarray(found[found & (1 << i) != 0], "<i8")
        # By byte: 256 values are counted faster than 62 bits.
        counts = [np.bincount(column, minlength=256) for column in broken.view(np.uint8).reshape(-1, 8).T]
        others: list[tuple[str, int]] = []
        for j in (j for j in range(len(bounds)) if j != i):
            docs = int(counts[j // 8][(np.arange(256) >> (j % 8)) & 1 == 1].sum())
            if docs:
                others.append((bounds[j].reason, docs))
        most = [{"reason": name, "docs": docs} for name, docs in sorted(others, key=lambda o: (-o[1], o[0]))[:5]]
        alone = int((broken == 1 << i).sum())
        rows.append({"reason": bounds[i].reason, "breaks": len(broken), "alone": alone, "with": most})
    return rows


def _samples(
    db: duckdb.DuckDBPyConnection, side: str, number: int, store: Store, manifest: Manifest
) -> list[dict[str, Any]]:
    """The documents with the smallest ids that would come in, or go, with the beginning of their text."""
    where = "was <> 0 AND now = 0" if side == "gained" else "was = 0 AND now <> 0"
    picked = db.execute(
        f"SELECT file, row FROM moved WHERE {where} ORDER BY drawn, file, row LIMIT {int(number)}"
    ).fetchall()
    files = files_of(store, manifest)
    return [_shown(store, files[file][1], row) for file, row in picked]


def _shown(store: Store, objects: Mapping[str, Output], row: int) -> dict[str, Any]:
    documents = store.table(objects["documents"], columns=["doc_id", "url", "text"]).slice(row, 1).combine_chunks()
    over = overlay([objects[kind] for kind in LAYERS if kind in objects], store)
    text = over.take(documents.column("text").combine_chunks(), pa.array([row])).to_pylist()[0]
    return {
        "doc_id": documents.column("doc_id")[0].as_py().hex(),
        "url": documents.column("url")[0].as_py(),
        "text": text[:2000],
    }
