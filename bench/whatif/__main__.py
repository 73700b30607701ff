"""Moving a bound over a million documents: seconds of each answer after the first, and the memory of the process.

A made-up dataset with the measures of the Gopher rules is stored once; each answer is `tasks.queries.whatif.whatif`
itself, what a person waits for after the command has started.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.common import arguments, judged, note, report, run
from corpusmill import schema
from corpusmill.canonical import canonical_json
from corpusmill.config import load_recipe
from corpusmill.dataset.funnel import FunnelRow
from corpusmill.dataset.manifest import FORMAT, Manifest, Partition
from corpusmill.measured import measured_batch
from corpusmill.plain_text import human_bytes, table
from corpusmill.processes import peak_bytes
from corpusmill.rulebook import rules_of, rules_to_json
from corpusmill.store import Store, Unit, open_store
from tasks.filter import decide_rows

FILES = 8
MOVES = (
    ("duplicate_5grams.max=0.1",),
    ("too_few_words.min=80",),
    ("duplicate_5grams.max=0.2", "top_2gram.max=0.25"),
    ("language.min_score=0.8",),
)
MOST_SECONDS = 0.2
MOST_BYTES = 2**30


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    options = parser.parse_args(argv)
    rows = 100_000 if options.quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="bench-whatif-") as scratch:
        os.environ["CORPUSMILL_CACHE"] = f"{scratch}/cache"
        note(f"storing {rows:,} documents' measures")
        store = open_store(Path(scratch) / "store", create=True)
        manifest = made_up(store, rows)
        child = _answers(store, manifest, options.repeats or 5)
    slowest = max(max(seconds) for seconds in child["seconds"].values())
    ratios = judged("whatif", {"speed": MOST_SECONDS / slowest, "memory": MOST_BYTES / child["peak"]})
    lines = [
        (" ".join(["--set", *m.split("|")]), f"{1000 * min(s):.0f}", f"{1000 * max(s):.0f}")
        for m, s in child["seconds"].items()
    ]
    text = (
        f"{rows:,} documents; the first answer (makes the local file) took {child['first']:.1f} s\n\n"
        f"{table(('move', 'least ms', 'most ms'), lines, numbers=(1, 2))}\n\nmost memory: {human_bytes(child['peak'])}"
    )
    return report({"rows": rows, **child}, text, ratios, options.json)


def _answers(store: Store, manifest: Manifest, repeats: int) -> dict[str, Any]:
    """Answers in a process of its own, whose memory is that of what-if alone."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            json.dump(_measured(store, manifest, repeats), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        said = answers.read()
    os.waitpid(pid, 0)
    return dict(json.loads(said))


def _measured(store: Store, manifest: Manifest, repeats: int) -> dict[str, Any]:
    from tasks.queries.whatif import whatif

    began = time.perf_counter()
    whatif(store, "0" * 64, manifest, MOVES[0], 0)
    first = time.perf_counter() - began
    seconds: dict[str, list[float]] = {}
    for _ in range(repeats):
        for moves in MOVES:
            began = time.perf_counter()
            whatif(store, "0" * 64, manifest, moves, 0)
            seconds.setdefault("|".join(moves), []).append(round(time.perf_counter() - began, 4))
    return {"first": round(first, 2), "seconds": seconds, "peak": peak_bytes()}


def made_up(store: Store, rows: int) -> Manifest:
    """Store measures, languages and decisions of a number of documents; the manifest that names them."""
    recipe = load_recipe("crawl")
    rules = rules_of(recipe.filter.rules)
    columns = rules.measured("raw").schema
    rng = np.random.default_rng(17)
    lineage: list[dict[str, Any]] = []
    for number in range(FILES):
        count = rows // FILES
        measures = pa.table(
            {
                name: rng.integers(0, 5000, count) if pa.types.is_integer(kind) else rng.random(count) * scale(name)
                for name, kind in zip(columns.names, columns.types, strict=True)
            },
            schema=columns,
        )
        languages = pa.table(
            {
                "language": pa.array(np.array(["en", "de", "fr"], object)[rng.integers(0, 3, count)], pa.string()),
                "language_score_e4": pa.array(rng.integers(0, 10001, count), pa.int32()),
            }
        )
        batch = measured_batch({"language": languages, "measures": measures})
        found = decide_rows(batch, languages.column("language").combine_chunks(), rules, recipe)
        ids = pa.FixedSizeBinaryArray.from_buffers(schema.DOC_ID, count, [None, pa.py_buffer(rng.bytes(16 * count))])
        decisions = pa.table({"doc_id": ids, "stage": found.stage, "reason": found.reason})
        for kind, made in (("language", languages), ("measures", measures), ("decisions", decisions)):
            unit = Unit("bench", 1, {"kind": kind, "number": number}, ())
            output = store.commit(unit, {kind: store.draft_table(made)}).outputs[kind]
            row = {"stage": kind, "locator": f"made/{number}", "kind": kind, "unit": unit.key, **output.to_json()}
            lineage.append(row)
    unit = Unit("bench", 1, {"kind": "tables"}, ())
    outputs = store.commit(
        unit,
        {
            "lineage": store.draft_table(pa.Table.from_pylist(lineage, schema=schema.LINEAGE)),
            "rules": store.draft_bytes(canonical_json(rules_to_json(rules))),
        },
    ).outputs
    return Manifest(
        format=FORMAT,
        name="made",
        recipe=recipe.what(),
        stages={},
        tables=outputs,
        partitions={"made": Partition(256, 2, rows, 1300, 0, 0, 0, ())},
        funnel=(FunnelRow("pack", rows, rows, 0, 0, 1000, 1000, {}),),
        inputs=(),
        parents=(),
        content="",
    )


def scale(name: str) -> float:
    """About how large a measure is."""
    return {"word_count": 3000.0, "mean_word_chars": 8.0, "stop_word_count": 8.0}.get(name, 0.3)


if __name__ == "__main__":
    run(main)
