"""What-if: what moving bounds would let in and keep out, from the measures of a published dataset; no text is read but
for the samples.

Measures of all documents lie in a local DuckDB file beside a number whose bit i says whether bound i is broken. Moving
a bound reads its own column and that number, so an answer over a million documents takes milliseconds. The file is made
once for each dataset, and is refused where it does not give the decisions that the dataset has.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import schema
from corpusmill.canonical import parse_canonical
from corpusmill.errors import CheckFailed, NotFound, UsageError
from corpusmill.kernels.bounds import Bound
from corpusmill.kernels.rules import RuleSet
from corpusmill.measured import bounds_of, measured_batch
from corpusmill.rulebook import rules_from_json
from corpusmill.store import Output, Store
from tasks.views import LAYERS, overlay

FORMAT = 1
MEMORY = "768MB"
STAGES = ("language", "filter")
"""The rows of the funnel that are computed anew."""
MAX_BOUNDS = 62
"""Bits of a 64-bit number that stay positive."""


@dataclass(frozen=True)
class Move:
    """One bound elsewhere: `key=value` as it was typed, and the bounds that it changes."""

    text: str
    bounds: tuple[Bound, ...]


def whatif(
    store: Store, digest: str, manifest: Mapping[str, Any], moves: Sequence[str], samples: int
) -> dict[str, Any]:
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
    before, rules = _of_dataset(store, manifest)
    after = moved(manifest["recipe"], rules, moves)
    with _open(store, digest, manifest, before) as db:
        began = time.perf_counter()
        answer = _compare(db, before, after, manifest)
        seconds = time.perf_counter() - began
        answer["samples"] = {
            side: _samples(db, side, samples, store, manifest) for side in ("gained", "lost") if samples
        }
    return {"manifest": digest, "moves": list(moves), **answer, "seconds": round(seconds, 4)}


PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


def quantiles(
    store: Store, digest: str, manifest: Mapping[str, Any], measure: str, fraction: float | None
) -> dict[str, Any]:
    """How a measure is distributed over the documents that break no bound but those on it, whole and by language.

    Args:
        measure: a column of the measures, `perplexity_bits`, `quality_<name>`, `pii_<kind>`, `own_<name>` or another.
        fraction: also the bound that keeps this share of the documents with the highest values.

    Returns:
        {"manifest", "measure", "fraction", "rows": [{"language" (null: all), "docs", "unknown", "bound", "percents":
        {percent: value}}]}; percentiles are values that documents have.

    Raises:
        NotFound: no such measure. UsageError: a fraction outside of 0 to 1.
    """
    if fraction is not None and not 0 < fraction <= 1:
        raise UsageError(f"--fraction {fraction}", "expected a share from 0 to 1")
    before, _ = _of_dataset(store, manifest)
    own = sum(1 << i for i, bound in enumerate(before) if bound.column == measure)
    with _open(store, digest, manifest, before) as db:
        kinds = dict(db.execute("SELECT column_name, column_type FROM (DESCRIBE measures)").fetchall())
        known = sorted(set(kinds) - {"language", "drawn", "row", "file", "stage", "reason", "fails"})
        if measure not in known:
            raise NotFound(f"no measure {measure!r}", f"this dataset has {', '.join(known)}", "")
        asked = [percent / 100 for percent in PERCENTS] + ([1 - fraction] if fraction is not None else [])
        column = _quoted(measure)
        rows = db.execute(
            f"""SELECT language, count(*), count(*) - count({column}), quantile_disc({column}, {asked})
            FROM measures WHERE fails & {~own} = 0
            GROUP BY GROUPING SETS ((), (language)) ORDER BY grouping(language) DESC, count(*) DESC, language"""
        ).fetchall()
    return {
        "manifest": digest,
        "measure": measure,
        "fraction": fraction,
        "rows": [
            {
                "language": language,
                "docs": docs,
                "unknown": unknown,
                "percents": {str(p): v for p, v in zip(PERCENTS, values or [None] * len(PERCENTS), strict=False)},
                "bound": values[-1] if fraction is not None and values else None,
            }
            for language, docs, unknown, values in rows
        ],
    }


def _of_dataset(store: Store, manifest: Mapping[str, Any]) -> tuple[tuple[Bound, ...], RuleSet]:
    if "rules" not in manifest["tables"] or "judge" not in manifest["recipe"]:
        raise NotFound(
            f"dataset {manifest['name']} does not say what its rules are",
            "it holds documents only, or an earlier version built it",
            "Build it again: only the manifest is made anew.",
        )
    rules = rules_from_json(parse_canonical(store.bytes(Output.from_json(manifest["tables"]["rules"]))))
    return bounds_of(manifest["recipe"], rules), rules


def moved(recipe: Mapping[str, Any], rules: RuleSet, moves: Sequence[str]) -> tuple[Bound, ...]:
    """The bounds of a recipe after moves.

    Raises:
        UsageError: no such bound, not a number, or looser than a floor.
    """
    by_rule = {rule.name: rule for rule in rules.rules}
    what = _copied(recipe)
    for text in moves:
        key, sign, value = text.partition("=")
        *place, last = key.strip().split(".")
        if not sign or not place:
            raise UsageError(
                f"--set {text!r}", "expected rule.min=number, rule.max=number, or language.min_score=number"
            )
        name = ".".join(place)
        if name in by_rule and last in ("min", "max"):
            rule = by_rule[name]
            if getattr(rule, last) is None:
                raise UsageError(f"--set {text!r}", f"rule {name} has no {last}; it has {_has(rule.min, rule.max)}")
            number = _number(text, value)
            by_rule[name] = replace(rule, min=number) if last == "min" else replace(rule, max=number)
        else:
            _set_bound(what, place, last, text, value, list(by_rule))
    found = bounds_of(what, replace(rules, rules=tuple(by_rule.values())))
    for floor in (bound for bound in found if bound.reason == "below_floor"):
        for bound in found:
            if bound.rule is not None and bound.column == floor.column and _looser(bound, floor):
                raise UsageError(
                    f"rule {bound.reason}: {_has(bound.low, bound.high)} is looser than the floor",
                    f"judge.floors.{floor.column} has {_has(floor.low, floor.high)}: costly judges were spared there",
                    "Lower the floor in the recipe and build again.",
                )
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return value


def _has(low: float | None, high: float | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (("min", low), ("max", high)) if value is not None)


def _looser(bound: Bound, floor: Bound) -> bool:
    return (floor.low is not None and bound.low is not None and bound.low < floor.low) or (
        floor.high is not None and bound.high is not None and bound.high > floor.high
    )


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise UsageError(f"--set {text!r}", f"expected a number, given {value!r}")
    return number


def _set_bound(what: dict[str, Any], place: Sequence[str], last: str, text: str, value: str, rules: list[str]) -> None:
    at = what
    for part in place:
        at = at.get(part) if isinstance(at, dict) else None  # type: ignore[assignment]
    known = (
        place == ["language"] and last == "min_score",
        place == ["language", "min_scores"],
        place[:2] == ["judge", "quality"] and len(place) == 3 and last == "min_score",
        place == ["judge", "personal_data"] and last == "drop_above",
    )
    if at is None or not any(known):
        raise UsageError(
            f"--set {text!r}: no bound of this dataset",
            f"its rules: {', '.join(rules)}",
            "Bounds of the recipe: language.min_score, language.min_scores.CODE, judge.quality.NAME.min_score, "
            "judge.personal_data.drop_above. Another text (extract, edits) needs a build.",
        )
    at[last] = _number(text, value)


# The local file.


def cache_folder() -> Path:
    """Where the files are: CORPUSMILL_CACHE, else ~/.cache/corpusmill."""
    given = os.environ.get("CORPUSMILL_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "corpusmill"


class _open:
    """The measures of a dataset as table `measures` of a DuckDB connection; the file is made where it is not there."""

    def __init__(self, store: Store, digest: str, manifest: Mapping[str, Any], before: tuple[Bound, ...]) -> None:
        file = cache_folder() / f"whatif-{FORMAT}-{digest[:32]}.duckdb"
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=file.parent, suffix=".duckdb")
            os.close(handle)
            Path(partial).unlink()
            try:
                _fill(partial, store, manifest, before)
                Path(partial).replace(file)
            finally:
                Path(partial).unlink(missing_ok=True)
        self.db = duckdb.connect(str(file), read_only=True, config={"memory_limit": MEMORY})

    def __enter__(self) -> duckdb.DuckDBPyConnection:
        return self.db

    def __exit__(self, *_: object) -> None:
        self.db.close()


def _fill(path: str, store: Store, manifest: Mapping[str, Any], bounds: tuple[Bound, ...]) -> None:
    if len(bounds) > MAX_BOUNDS:
        raise UsageError(f"{len(bounds)} bounds", f"what-if knows {MAX_BOUNDS} at most", "Split the rule file.")
    with duckdb.connect(path, config={"memory_limit": MEMORY}) as db:
        made = False
        for number, batch in enumerate(_batches(store, manifest)):
            db.register("batch", batch.append_column("file", pa.array(np.full(batch.num_rows, number, np.int32))))
            bits = " | ".join(f"CASE WHEN {_broken(bound)} THEN {1 << i} ELSE 0 END" for i, bound in enumerate(bounds))
            select = f"SELECT *, ({bits})::BIGINT AS fails FROM batch"
            db.execute(f"INSERT INTO measures {select}" if made else f"CREATE TABLE measures AS {select}")
            made = True
            db.unregister("batch")
        db.execute(f"CREATE TABLE sums AS SELECT {FIRST} AS was, {SIZES} FROM measures GROUP BY was")
        found = dict(db.execute("SELECT was, docs FROM sums").fetchall())
        stored = dict(
            db.execute(
                "SELECT reason, count(*) FROM measures WHERE stage IN ('language', 'filter') GROUP BY reason"
            ).fetchall()
        )
    counted: dict[str, int] = {}
    for bit, count in found.items():
        if bit:
            reason = bounds[bit.bit_length() - 1].reason
            counted[reason] = counted.get(reason, 0) + count
    if counted != stored:
        raise CheckFailed(
            "what-if does not give the decisions of the dataset",
            f"expected {stored}, computed {counted}",
            "This is our fault: please report it with the recipe and its rules.",
        )


def _batches(store: Store, manifest: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """Measures, language and decisions of each file's documents; NaN, which breaks every bound, as null."""
    for _, objects in files_of(store, manifest):
        groups = {kind: store.table(output) for kind, output in objects.items() if _is_group(kind)}
        measures = measured_batch(groups)
        decisions = store.table(objects["decisions"], columns=["doc_id", "stage", "reason"]).combine_chunks()
        columns: dict[str, Any] = {}
        for name, values in zip(measures.schema.names, measures.columns, strict=True):
            if pa.types.is_floating(values.type):
                values = pc.if_else(pc.is_nan(values), None, values)
            columns[name] = values
        ids = decisions.column("doc_id").combine_chunks()
        columns["language"] = groups["language"].column("language").combine_chunks()
        columns["drawn"] = pa.array(np.frombuffer(ids.buffers()[1], "<u8", 2 * len(ids), 16 * ids.offset)[::2])
        columns["row"] = pa.array(np.arange(len(ids), dtype=np.int32))
        columns |= {name: decisions.column(name).combine_chunks() for name in ("stage", "reason")}
        yield pa.record_batch(columns)


def _is_group(kind: str) -> bool:
    return kind.partition(":")[0] in ("language", "measures", "edits", "pii", "quality", "perplexity", "own")


def files_of(store: Store, manifest: Mapping[str, Any]) -> list[tuple[str, dict[str, Output]]]:
    """(source/locator, kind -> object) of every file, in the order of the lineage; of decisions, the last stage's."""
    table = store.table(Output.from_json(manifest["tables"]["lineage"]))
    places: dict[str, dict[str, Output]] = {}
    for row in table.filter(pc.not_equal(table.column("locator"), "")).to_pylist():
        if row["stage"] != "pack":
            output = Output(*(row[key] for key in ("name", "digest", "content", "size", "rows")))
            places.setdefault(row["locator"], {})[row["kind"]] = output
    return list(places.items())


# SQL.


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _broken(bound: Bound) -> str:
    """Whether a document breaks a bound, as SQL; a null breaks it."""
    if bound.among:
        return f"NOT coalesce({_quoted(bound.column)} IN ({', '.join(map(_text, bound.among))}), false)"
    column = _quoted(bound.column)
    if bound.columns:
        cases = " ".join(f"WHEN {_text(code)} THEN {_quoted(name)}" for code, name in sorted(bound.columns.items()))
        column = f"(CASE language {cases} ELSE {column} END)"
    own = {code: "false" if b is None else _outside(column, *b) for code, b in sorted(bound.by_language.items())}
    plain = _outside(column, bound.low, bound.high)
    if not own:
        return plain
    return (
        f"(CASE language {' '.join(f'WHEN {_text(code)} THEN {test}' for code, test in own.items())} ELSE {plain} END)"
    )


def _outside(column: str, low: float | None, high: float | None) -> str:
    tests = [f"{column} >= {low!r}::DOUBLE"] if low is not None else []
    tests += [f"{column} <= {high!r}::DOUBLE"] if high is not None else []
    return f"NOT coalesce({' AND '.join(tests) or f'{column} IS NOT NULL'}, false)"


FIRST = "fails & -fails"
"""The first bound that is broken, as its bit; 0 where none is."""
SIZES = "count(*) AS docs, coalesce(sum(text_bytes), 0)::BIGINT AS bytes, coalesce(sum(word_total), 0)::BIGINT AS words"


def _compare(
    db: duckdb.DuckDBPyConnection, before: tuple[Bound, ...], after: tuple[Bound, ...], manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything but the samples. Only documents about which a moved bound changes its mind are looked at."""
    changed = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    moved_bits = sum(1 << i for i in changed)
    bits = " | ".join(f"CASE WHEN {_broken(after[i])} THEN {1 << i} ELSE 0 END" for i in changed) or "0"
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
        "not_recomputed": [stage for stage in schema.FUNNEL_STAGES if stage not in ("acquire", "extract", *STAGES)],
    }


UNITS = ("docs", "bytes", "words")


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


def _tokens_per_word(manifest: Mapping[str, Any]) -> float:
    tokens = sum(part["tokens"] for part in manifest["partitions"].values())
    words = next(row["words_out"] for row in manifest["funnel"] if row["stage"] == "pack")
    return float(tokens) / words if words else 0.0


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
    for i in changed:
        found = db.execute(f"SELECT now_fails FROM moved WHERE now_fails & {1 << i} <> 0").fetchnumpy()["now_fails"]
        broken = np.asarray(found, "<i8")
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
    db: duckdb.DuckDBPyConnection, side: str, number: int, store: Store, manifest: Mapping[str, Any]
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
