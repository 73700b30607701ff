"""Verbs that ask about training, by its order: batch, trace, spikes. Need no torch.

`mill.cli` names them.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from corpusmill.errors import NotFound, UsageError
from corpusmill.plain_text import one_line
from mill.common import InStore
from mill.datasets import Ref

if TYPE_CHECKING:
    from training.ledger import Spike
    from training.questions import BatchRead, Row, Trace

SHOWN = 160
"""Characters of a piece's text, where a whole batch is shown."""
DRAWS = 12
"""Draws that the text lists; --json has all."""


def batch(
    ref: Ref,
    /,
    *,
    config: Annotated[str, Parameter(help="Training config: a TOML file, or the name of one in recipes/.")],
    step: Annotated[int, Parameter(help="From 1, as in the log of a run.")],
    row: Annotated[int | None, Parameter(help="Only this sequence of the batch, from 0, with its whole text.")] = None,
    set_: Annotated[
        tuple[str, ...], Parameter(name="--set", help="Override a key of the config: key.path=value; may be repeated.")
    ] = (),
    options: InStore = InStore(),
) -> None:
    """Show what a step of training reads, before or after it was trained.

    For each sequence its partition, shard and row; for each document in it the address, the number of tokens, the text.
    """
    from training.config import load_train_config
    from training.datasets import pinned
    from training.questions import batch as read
    from training.run import RunSpec

    data = options.dataset(ref)
    wish = pinned(data.store, load_train_config(config, set_), data.digest)
    spec = RunSpec(data.store.uri, data.name, data.digest, wish)
    found = read(spec, step)
    if row is not None and not 0 <= row < len(found.rows):
        raise UsageError(f"--row {row}", f"a batch has rows 0 to {len(found.rows) - 1}")
    rows = found.rows if row is None else (found.rows[row],)
    document = {"dataset": f"{data.name}@{data.digest}", "run": spec.run_id, "step": step, "steps": spec.plan.steps}
    head = f"{data.short}, run {spec.run_id}, step {step:,} of {spec.plan.steps:,}"
    options.answer(
        {**document, "batch": found.batch, "rows": [asdict(one) for one in rows]},
        f"{head}\n{_batch_text(found, rows, row is not None)}",
    )


def _batch_text(found: BatchRead, rows: tuple[Row, ...], whole: bool) -> str:
    lines = [f"batch {found.batch[:16]}: {len(found.rows)} sequences"]
    for one in rows:
        again = f", pass {one.epoch + 1}" if one.epoch else ""
        place = f"{one.partition} row {one.number:,}{again}, shard {one.shard[:12]} row {one.shard_row:,}"
        lines += ["", f"row {one.row}  {place}"]
        for piece in one.pieces:
            lines.append(f"  {piece.doc_id[:16]}  {piece.tokens:,} tokens  {one_line(piece.address or '-')}")
            text = piece.text if whole or len(piece.text) <= SHOWN else f"{piece.text[:SHOWN]}…"
            lines += [f"    {line}" for line in (text.splitlines() if whole else [one_line(text)])]
    return "\n".join(lines)


def trace(
    document: Annotated[str, Parameter(help="A doc id (8 or more of its first hex digits), or a URL.")],
    /,
    *,
    run: Annotated[
        str | None, Parameter(help="Only this run, and those from whose checkpoints it began; default: all runs.")
    ] = None,
    options: InStore = InStore(),
) -> None:
    """Show which steps of which runs read a document, which checkpoints have seen it, and the last that has not."""
    from training.questions import runs_on
    from training.questions import trace as ask

    store = options.open()
    runs = runs_on(store, run)
    found = [one for spec in runs for one in ask(spec, document)]
    if not found:
        raise NotFound(
            f"{document!r} is in no dataset of {len(runs)} run{'s' if len(runs) > 1 else ''} in {store.uri}",
            "expected the id of a document (8 or more hex digits), or its URL as it was stored",
            "Search for it: `mill export REF --all -o DIR` writes what became of every record.",
        )
    options.answer({"traces": [asdict(one) for one in found]}, "\n\n".join(map(_trace_text, found)))


def _trace_text(one: Trace) -> str:
    lines = [f"run {one.run}  {one.doc_id}  {one_line(one.address or '-')}"]
    if one.heldout:
        return "\n".join([*lines, "  held out: no step reads it"])
    if not one.draws:
        return "\n".join([*lines, "  no step of this run reads it"])
    for draw in one.draws[:DRAWS]:
        when = "" if draw.step <= one.reached else "  (not reached yet)"
        lines.append(f"  step {draw.step:,}, row {draw.row}: {draw.partition} row {draw.number:,}{when}")
    if len(one.draws) > DRAWS:
        lines.append(f"  and {len(one.draws) - DRAWS:,} more (--json lists all)")
    seen = f"{len(one.seen)}, the first {one.seen[0]}" if one.seen else "none"
    lines.append(f"  checkpoints that have seen it: {seen}")
    lines.append(f"  last checkpoint that has not:  {one.unseen or 'none'}")
    return "\n".join(lines)


def spikes(
    run: Annotated[str, Parameter(help="Id of a run, as `mill runs` lists them.")],
    /,
    *,
    least: Annotated[
        float, Parameter(help="Robust standard deviations above the median of the 20 steps before.")
    ] = 6.0,
    most: Annotated[int, Parameter(help="Steps that are shown, the worst first.")] = 10,
    rows: Annotated[int, Parameter(help="Rows of each step, those with the largest loss a label.")] = 3,
    options: InStore = InStore(),
) -> None:
    """Show the steps of a run whose loss or gradient norm stands out, and the rows and documents that they read."""
    from training.ledger import LEAST, spikes
    from training.run import RunSpec
    from training.runs import metrics

    store = options.open()
    spec = RunSpec.recorded(store, run)
    steps = len(metrics(store, spec.run_id))
    if steps <= LEAST:
        raise NotFound(
            f"run {spec.run_id} has stored the metrics of {steps} steps",
            f"a step is compared with those before it, {LEAST} at least",
            "Metrics are stored with each checkpoint (run.checkpoint_every).",
        )
    found = spikes(spec, least, most, rows)
    text = "\n\n".join(map(_spike_text, found)) or f"no step stands out by {least:g} deviations or more"
    head = f"run {spec.run_id}: {len(found)} of {steps:,} steps stand out"
    options.answer({"run": spec.run_id, "steps": steps, "spikes": [asdict(one) for one in found]}, f"{head}\n{text}")


def _spike_text(one: Spike) -> str:
    norm = f"gradient norm {one.grad_norm:.4g} ({one.by_norm:+.1f})"
    lines = [f"step {one.step:,}: loss {one.loss:.4f} ({one.by_loss:+.1f}), {norm}"]
    for loss, labels, row in one.rows:
        lines.append(f"  row {row.row}: {loss:.4f} a label, {labels:,} labels; {row.partition} row {row.number:,}")
        for piece in row.pieces:
            lines.append(f"    {piece.doc_id[:16]}  {piece.tokens:,} tokens  {one_line(piece.address or '-')}")
            lines.append(f"      {one_line(piece.text[:SHOWN])}")
    return "\n".join(lines)
