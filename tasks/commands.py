"""Verbs of `mill` that run tasks: build and export. `corpusmill.cli` names them; they are imported when used."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from corpusmill.commands.common import DEFAULT_STORE, InStore, human_bytes, table


def build(
    recipe: Annotated[str, Parameter(help="A TOML file, or the name of one in recipes/.")],
    /,
    *,
    set_: Annotated[
        tuple[str, ...], Parameter(name="--set", help="Override a key of the recipe: key.path=value; may be repeated.")
    ] = (),
    workers: Annotated[int | None, Parameter(help="Processes; else as many as there are cores.")] = None,
    create_store: Annotated[bool, Parameter(help="Make a store at --store if there is none.")] = False,
    options: InStore = InStore(),
) -> None:
    """Build one dataset and publish its manifest. Finished units are never run again."""
    from corpusmill import funnel
    from corpusmill.config import load_recipe
    from corpusmill.engine import Engine
    from corpusmill.errors import UsageError
    from corpusmill.store import open_store

    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}", "expected a positive number")
    wanted = load_recipe(recipe, set_)
    at_default = Path(options.uri).absolute() == Path(DEFAULT_STORE).absolute()
    store = open_store(options.uri, create=create_store or at_default)
    # Imported last: it takes a second, and what was typed wrong should be said at once.
    from tasks.chain import build as run_chain
    from tasks.progress import shown

    with Engine(workers or _cores()) as engine, shown(engine, sys.stderr) as run:
        built = run_chain(wanted, store, run)
    units_run, units_reused = (sum(counts.values()) for counts in (built.units_run, built.units_reused))
    rows = built.manifest["funnel"]
    partitions = {
        name: {key: part[key] for key in ("documents", "tokens", "sequences", "text_bytes")}
        for name, part in sorted(built.manifest["partitions"].items())
    }
    lines = table(("stage", "documents", "kept", "of all", "bytes kept"), funnel.rows(rows), numbers=(1, 2, 3, 4))
    packed = "\n".join(f"{n}: {p['documents']:,} documents, {p['tokens']:,} tokens" for n, p in partitions.items())
    options.answer(
        {
            "name": built.name,
            "manifest": built.digest,
            "funnel": rows,
            "partitions": partitions,
            "units_run": units_run,
            "units_reused": units_reused,
        },
        f"{lines}\n\n{packed}\n{units_run:,} units run, {units_reused:,} reused\n{built.name}@{built.digest}",
    )


def export(
    ref: Annotated[str, Parameter(help="name, name@digest, or a whole digest.")],
    /,
    *,
    out: Annotated[Path, Parameter(name=("-o", "--out"), help="Folder to write to.")],
    format_: Annotated[str, Parameter(name="--format", help="jsonl.")] = "jsonl",
    all_: Annotated[bool, Parameter(name="--all", help="Every record ever read, with where and why it ended.")] = False,
    options: InStore = InStore(),
) -> None:
    """Write the kept documents, or with --all a line for every record ever read, as JSON lines."""
    from tasks.export import export as write

    data = options.dataset(ref)
    done = write(data.store, data.digest, format_, all_, out)
    options.answer(
        {
            "manifest": data.digest,
            "file": str(done.file),
            "lines": done.lines,
            "bytes": done.size,
            "sha256": done.sha256,
        },
        f"{done.file}: {done.lines:,} lines, {human_bytes(done.size)}, sha256 {done.sha256}",
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
