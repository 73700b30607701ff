"""The local DuckDB file with the measures of a dataset, a row a document, and which bounds each breaks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.dataset.lineage import files_of
from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import CheckFailed, UsageError
from corpusmill.kernels.rules.bounds import Bound
from corpusmill.measured import measured_batch
from corpusmill.places import cache_folder
from corpusmill.store import Store
from corpusmill.store.scratch import process_scratch
from tasks.queries.whatif.sealed import discard, sealed
from tasks.queries.whatif.sql import broken

FORMAT = 3
MEMORY = "768MB"
STAGES = ("language", "filter")
"""The rows of the funnel that are computed anew."""
MAX_BOUNDS = 62
"""Bits of a 64-bit number that stay positive."""
FIRST = "fails & -fails"
"""The first bound that is broken, as its bit; 0 where none is."""
SIZES = "count(*) AS docs, coalesce(sum(text_bytes), 0)::BIGINT AS bytes, coalesce(sum(word_total), 0)::BIGINT AS words"


def folder_of_measures() -> Path:
    """Where the files are: CORPUSMILL_CACHE, else our part of the user's cache; where this takes no file, they are made
    for this process alone."""
    if given := os.environ.get("CORPUSMILL_CACHE"):
        return Path(given)
    cache = cache_folder()
    with suppress(OSError):
        if cache:
            cache.mkdir(parents=True, exist_ok=True)
    if cache and os.access(cache, os.W_OK | os.X_OK):
        return cache
    return process_scratch(Path(tempfile.gettempdir())).path()


@contextmanager
def measures_of(
    store: Store, digest: str, manifest: Manifest, before: tuple[Bound, ...]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The measures of a dataset as table `measures` of a connection; the file is made where it is not there.

    Raises:
        CheckFailed: a block of the file cannot be read as it was written; it is removed.
    """
    name = f"whatif-{FORMAT}-{digest[:32]}.duckdb"
    file = sealed(folder_of_measures() / name, digest, lambda path: _fill(str(path), store, manifest, before))
    try:
        with duckdb.connect(str(file), read_only=True, config=_limits()) as db:
            yield db
    except (duckdb.IOException, duckdb.InternalException, duckdb.FatalException, duckdb.SerializationException) as err:
        discard(file)
        raise CheckFailed(f"{file} is damaged", str(err).partition("\n")[0], "Run again: it is made anew.") from err


def _limits() -> dict[str, Any]:
    """What does not fit into memory goes to the scratch of this process."""
    return {"memory_limit": MEMORY, "temp_directory": str(process_scratch(Path(tempfile.gettempdir())).path())}


def _fill(path: str, store: Store, manifest: Manifest, bounds: tuple[Bound, ...]) -> None:
    if len(bounds) > MAX_BOUNDS:
        raise UsageError(f"{len(bounds)} bounds", f"what-if supports at most {MAX_BOUNDS}", "Split the rule file.")
    with duckdb.connect(path, config=_limits()) as db:
        made = False
        for number, batch in enumerate(_batches(store, manifest)):
            db.register("batch", batch.append_column("file", pa.array(np.full(batch.num_rows, number, np.int32))))
            bits = " | ".join(f"CASE WHEN {broken(bound)} THEN {1 << i} ELSE 0 END" for i, bound in enumerate(bounds))
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
            "what-if does not reproduce the decisions of the dataset",
            f"expected {stored}, computed {counted}",
            "This is an error in corpusmill: please report it with the recipe and its rules.",
        )


def _batches(store: Store, manifest: Manifest) -> Iterator[pa.RecordBatch]:
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
