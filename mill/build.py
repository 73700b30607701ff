"""Verbs of `mill` that run tasks: build, ingest, plan and export.

`mill.cli` names them; they are imported when used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from corpusmill.config.defaults import DEFAULT_STORE
from corpusmill.errors import UsageError
from corpusmill.plain_text import human_bytes, table
from mill.common import InStore, note, noted
from mill.paths import on_this_machine

if TYPE_CHECKING:
    from corpusmill import config
    from corpusmill.store import Store
    from tasks.traffic import Record
    from tasks.units import Runner


Recipe = Annotated[str, Parameter(help="A TOML file, or the name of one in recipes/.")]
Set = Annotated[
    tuple[str, ...], Parameter(name="--set", help="Override a key of the recipe: key.path=value; may be repeated.")
]
Workers = Annotated[int | None, Parameter(help="Number of processes; default: one per core.")]
CreateStore = Annotated[bool, Parameter(help="Create the store at --store if it does not exist.")]


def build(
    recipe: Recipe,
    /,
    *,
    set_: Set = (),
    workers: Workers = None,
    create_store: CreateStore = False,
    options: InStore = InStore(),
) -> None:
    """Build one dataset and publish its manifest. Finished units never run again."""
    wanted, store = _prepared(recipe, set_, workers, create_store, options)
    from corpusmill.dataset import columns, counts, funnel
    from corpusmill.dataset.proofs import near_duplicates
    from corpusmill.typed_json import written

    # Imported last: it takes a second, and wrong input should be reported at once.
    from tasks.chain import build as run_chain
    from tasks.sources.changed import said as changes

    with _running(store, "build", wanted.name, workers) as (record, run):
        built = run_chain(wanted, store, run)
        record.manifest = built.digest
    units_run, units_reused = (sum(counts.values()) for counts in (built.units_run, built.units_reused))
    rows, own = built.manifest.funnel, columns.columns(store, built.manifest)
    counted = counts.counts(store, built.manifest)
    partitions = {
        name: {key: getattr(part, key) for key in ("documents", "tokens", "sequences", "text_bytes")}
        for name, part in sorted(built.manifest.partitions.items())
    }
    lines = table(("stage", "documents", "kept", "of all", "bytes kept"), funnel.rows(rows), numbers=(1, 2, 3, 4))
    packed = "\n".join(f"{n}: {p['documents']:,} documents, {p['tokens']:,} tokens" for n, p in partitions.items())
    options.answer(
        {
            "name": built.name,
            "manifest": built.digest,
            "funnel": written(rows),
            "partitions": partitions,
            "columns": own,
            "counts": counted,
            "units_run": units_run,
            "units_reused": units_reused,
            "changed": built.changed,
            "notices": built.cautions,
            **record.to_json(),
        },
        f"{lines}\n\n{near_duplicates(built.manifest)}\n\n{packed}{columns.said(own)}{counts.said(counted)}\n"
        f"{units_run:,} units run, {units_reused:,} reused\n"
        f"{_line(changes(built.changed, 'in the newest dataset before'))}{record.text()}{built.name}@{built.digest}"
        f"{noted(built.cautions)}",
    )


def ingest(
    recipe: Recipe,
    /,
    *,
    set_: Set = (),
    workers: Workers = None,
    create_store: CreateStore = False,
    options: InStore = InStore(),
) -> None:
    """Publish the documents of every crawl that is new since the last run. Nothing is fetched twice."""
    wanted, store = _prepared(recipe, set_, workers, create_store, options)
    from tasks.ingest import ingest as run_ingest

    with _running(store, "ingest", wanted.name, workers) as (record, run):
        done = run_ingest(wanted, store, run)
        record.manifest = done.digest if done.published else None
    added = [
        {
            "source": manifest.ingested.source,
            "snapshot": manifest.ingested.id,
            "files": len(manifest.inputs),
            "bytes": manifest.input_bytes,
            "documents": manifest.documents,
            "manifest": digest,
        }
        for digest, manifest in done.published
    ]
    lines = table(
        ("source", "snapshot", "files", "bytes", "documents", "manifest"),
        [(*list(row.values())[:-1], str(row["manifest"])[:12]) for row in added],
        numbers=(2, 3, 4),
    )
    newest = f"{done.name}@{done.digest}" if done.digest else f"{done.name}: no manifest yet"
    counts = f"{done.units_run:,} units run, {done.units_reused:,} reused"
    options.answer(
        {
            "name": done.name,
            "manifest": done.digest,
            "published": added,
            "units_run": done.units_run,
            "units_reused": done.units_reused,
            **record.to_json(),
        },
        f"{lines}\n\n{counts}\n{record.text()}{newest}" if added else f"nothing new\n{record.text()}{newest}",
    )


def _line(sentence: str) -> str:
    return f"{sentence}\n" if sentence else ""


def plan(recipe: Recipe, /, *, set_: Set = (), options: InStore = InStore()) -> None:
    """Show what a recipe has to read and do, and what is already done. Nothing is written."""
    from corpusmill.config import load_recipe
    from corpusmill.errors import NotFound
    from corpusmill.store import open_store
    from tasks import checks, tokenizer
    from tasks.acquire.notices import heard
    from tasks.queries.plan import plan as make

    wanted = load_recipe(recipe, set_)
    checks.check(wanted)
    tokenizer.check(wanted)
    try:
        store = open_store(options.uri)
    except NotFound:
        store = None
    with heard() as notices:
        planned = make(wanted, store).to_json()
    options.answer({**planned, "notices": notices}, _plan_text(planned) + noted(notices))


def _plan_text(planned: Mapping[str, Any]) -> str:
    """A plan as text."""
    from corpusmill.dataset.origins import lines as lines_of
    from tasks.sources.changed import said as changes

    def size(value: int | None, sampled: bool) -> str:
        return "unknown" if value is None else ("about " if sampled else "") + human_bytes(value)

    rows = [
        (
            part["source"],
            part["snapshot"],
            part["files"],
            part["done"],
            size(part["size"], part["sampled"]),
            size(part["todo"], part["sampled"]),
            "yes" if part["new"] else "",
        )
        for part in planned["sources"]
    ]
    lines = table(("source", "snapshot", "files", "done", "size", "to read", "to ingest"), rows, numbers=(2, 3, 4, 5))
    runs = planned["task_runs"]
    flows = ", ".join(f"{name} {count}" for name, count in runs.items() if name != "most")
    hours = planned["core_hours"]
    said = {name: "unknown" if value is None else f"{value:,.2f}" for name, value in hours.items()}
    least = "at least " if planned["requests_at_least"] else ""
    return (
        f"{lines}\n\n"
        f"requests    {least}{planned['requests']:,}\n"
        f"task runs   {flows} (of {runs['most']} at most)\n"
        f"core-hours  about {said['extract']} to extract, {said['judge_to_pack']} from judging to packing\n"
        f"units       {_units(planned['units'])}\n"
        f"duplicates  {_deduplication(planned['deduplicate'])}"
        + "".join(f"\n{line}" for line in lines_of(planned["listings"]))
        + "".join(f"\nchanged     {line}" for line in [changes(planned["changed"], "in the newest dataset")] if line)
    )


def _units(units: Mapping[str, int] | None) -> str:
    if units is None:
        return "unknown"
    return f"{sum(units.values()):,} from nothing: " + ", ".join(f"{stage} {n:,}" for stage, n in units.items())


def _deduplication(cost: Mapping[str, Any] | None) -> str:
    if cost is None:
        return "unknown"
    return (
        f"about {cost['documents']:,} documents: {cost['units']:,} units of at most "
        f"{human_bytes(cost['memory_bytes'])}, {human_bytes(cost['exchange_bytes'])} through the store, "
        f"{cost['core_hours']:,.2f} core-hours"
    )


def export(
    ref: Annotated[str, Parameter(help="Dataset: name, name@digest, or a whole digest; or a checkpoint: RUN/STEP.")],
    /,
    *,
    out: Annotated[Path, Parameter(name=("-o", "--out"), validator=on_this_machine, help="Folder to write to.")],
    format_: Annotated[str, Parameter(name="--format", help="File format: jsonl.")] = "jsonl",
    all_: Annotated[
        bool, Parameter(name="--all", help="Every record that was read, with where and why it ended.")
    ] = False,
    raw: Annotated[bool, Parameter(help="Texts as stored: without edits, with personal data unmasked.")] = False,
    options: InStore = InStore(),
) -> None:
    """Write the documents of a dataset as JSON lines, or a trained model as files that `transformers` loads.

    A dataset gives its kept documents; with --all, one line for every record that was read. `partition` says where a
    document was packed: those of `heldout` are not for training. A checkpoint gives weights
    (safetensors), config, tokenizer and a card, in a new folder.
    """
    if "/" in ref:  # no dataset has a name with a slash
        if all_ or raw or format_ != "jsonl":
            raise UsageError("--all, --raw and --format are for documents", f"{ref} is a checkpoint")
        from mill.trained import export_checkpoint

        return export_checkpoint(ref, out, options)
    from tasks.queries.export import export as write

    data = options.dataset(ref)
    done = write(data.store, data.digest, format_, all_, out, raw=raw)
    options.answer(
        {
            "manifest": data.digest,
            "file": str(done.file),
            "lines": done.lines,
            "bytes": done.size,
            "sha256": done.sha256,
            "partitions": done.partitions,
        },
        f"{done.file}: {done.lines:,} lines, {human_bytes(done.size)}, sha256 {done.sha256}"
        + "".join(f"\n{name}: {lines:,} documents" for name, lines in done.partitions.items()),
    )


def _prepared(
    recipe: str, overrides: Sequence[str], workers: int | None, create_store: bool, options: InStore
) -> tuple[config.Recipe, Store]:
    """What a verb that runs units needs; checked before slow imports."""
    from corpusmill.config import load_recipe
    from corpusmill.store import open_store

    processes(workers)
    wanted = load_recipe(recipe, overrides)
    at_default = Path(options.uri).absolute() == Path(DEFAULT_STORE).absolute()
    return wanted, open_store(options.uri, create=create_store or at_default)


@contextmanager
def _running(store: Store, verb: str, name: str, workers: int | None) -> Iterator[tuple[Record, Runner]]:
    """Worker processes that show their progress, and the record of the run that counts units."""
    from corpusmill.compiled import is_warm, writable
    from corpusmill.engine.local import Engine
    from mill.progress import shown
    from tasks.traffic import recorded

    if not is_warm() and writable():  # else it says that they are compiled each time
        note("compiling kernels first: some minutes of CPU, once on this machine")
    with (
        recorded(store, verb, name) as record,
        Engine(processes(workers)) as engine,
        shown(engine, sys.stderr) as run,
    ):
        yield record, record.counting(run)


def processes(workers: int | None) -> int:
    """Number of processes that run units."""
    if workers is not None:
        if workers < 1:
            raise UsageError(f"--workers {workers}", "expected a positive number")
        return workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
