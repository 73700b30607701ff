"""Verbs that try other rules on a published dataset: whatif, quantiles, rules compare.

`mill.cli` names them; they are imported when used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from corpusmill.plain_text import table
from mill.build import Recipe, Set, Workers, processes
from mill.common import InStore, noted
from mill.datasets import Ref


def whatif(
    ref: Ref,
    /,
    *,
    set_: Annotated[
        tuple[str, ...],
        Parameter(name="--set", help="Move a bound: RULE.max=…, RULE.min=…, language.min_score=…; may be repeated."),
    ] = (),
    samples: Annotated[int, Parameter(name=("-n", "--samples"), help="Documents to show on each side.")] = 3,
    options: InStore = InStore(),
) -> None:
    """Show which documents moved bounds would add and remove, from the measures alone; nothing is built.

    Documents, bytes and words of the stages language and filter are exact; tokens are estimated; later stages are not
    recomputed.
    """
    from tasks.acquire.notices import heard
    from tasks.queries.whatif import whatif as ask

    _check_samples(samples)
    data = options.dataset(ref)
    with heard() as notices:
        found = ask(data.store, data.digest, data.manifest, set_, samples)
    options.answer({**found, "notices": notices}, f"{data.short}\n\n{_whatif_text(found)}{noted(notices)}")


def _check_samples(samples: int) -> None:
    from corpusmill.errors import UsageError

    if samples < 0:
        raise UsageError(f"--samples {samples}", "expected 0 or more")


def _whatif_text(found: Mapping[str, Any]) -> str:
    rows: list[Sequence[object]] = []
    for row in found["funnel"]:
        before, after = row["before"], row["after"]
        rows.append(
            (row["stage"], before["docs_out"], after["docs_out"], _signed(after["docs_out"], before["docs_out"]))
        )
    moved = sorted(
        name
        for name in {*found["reasons"]["before"], *found["reasons"]["after"]}
        if _docs(found, "before", name) != _docs(found, "after", name)
    )
    for name in moved:
        was, now = _docs(found, "before", name), _docs(found, "after", name)
        rows.append((f"  {name}", was, now, _signed(now, was)))
    lines = [table(("kept by stage, ended by reason", "before", "after", "change"), rows, numbers=(1, 2, 3)), ""]
    for side, says in (("gained", "would be added"), ("lost", "would be removed")):
        part = found[side]
        lines.append(
            f"{part['docs']:,} documents {says}: {part['words']:,} words, about {part['tokens_estimated']:,} tokens"
            + (f"; {part['of_these_in_the_dataset']:,} of them are in the dataset" if side == "lost" else "")
        )
    for row in found["overlap"]:
        also = ", ".join(f"{other['reason']} {other['docs']:,}" for other in row["with"]) or "none"
        lines.append(
            f"{row['reason']}: {row['breaks']:,} documents break it, {row['alone']:,} only it; also broken: {also}"
        )
    lines.append(f"Not recomputed: {', '.join(found['not_recomputed'])}. Tokens are estimates.")
    for side in ("gained", "lost"):
        for sample in found["samples"].get(side, ()):
            lines += ["", *_sample_lines(f"would be {'added' if side == 'gained' else 'removed'}", sample)]
    return "\n".join(lines)


def _docs(found: Mapping[str, Any], side: str, reason: str) -> int:
    return int(found["reasons"][side].get(reason, {"docs": 0})["docs"])


def _signed(now: int, was: int) -> str:
    return f"{now - was:+,}" if now != was else ""


def _sample_lines(says: str, sample: Mapping[str, Any]) -> list[str]:
    from corpusmill.dataset.rejects import excerpt, plain

    return [f"{says}: {plain(sample['url'] or '(no URL)')}", *excerpt(sample["text"])]


def quantiles(
    ref: Ref,
    measure: Annotated[str, Parameter(help="A measure, such as perplexity_bits or quality_NAME.")],
    /,
    *,
    fraction: Annotated[
        float | None, Parameter(help="Also show the bound that keeps this share, of the highest values.")
    ] = None,
    options: InStore = InStore(),
) -> None:
    """Show how a measure is distributed over the documents that the other bounds keep, in total and by language.

    With --fraction 0.1 it also shows the bound that keeps a tenth: set it as judge.quality.NAME.min_score or in a
    rule. For CCNet's head, middle and tail use the percentiles 30 and 60 of perplexity_bits of a language.
    """
    from tasks.acquire.notices import heard
    from tasks.queries.whatif import quantiles as ask

    data = options.dataset(ref)
    with heard() as notices:
        found = ask(data.store, data.digest, data.manifest, measure, fraction)
    percents = ("5", "10", "30", "50", "60", "90", "95")
    header = ("language", "documents", "unknown", *(f"{p} %" for p in percents), *(("bound",) if fraction else ()))
    rows = []
    for row in found["rows"]:
        values = [row["percents"][p] for p in percents] + ([row["bound"]] if fraction else [])
        name = "all" if row["language"] is None else row["language"]
        rows.append((name, row["docs"], row["unknown"], *("" if v is None else f"{v:.4g}" for v in values)))
    shown = table(header, rows, numbers=range(1, len(header)))
    options.answer({**found, "notices": notices}, f"{data.short}\n\n{shown}{noted(notices)}")


def compare(
    recipe_a: Recipe,
    recipe_b: Recipe,
    ref: Ref,
    /,
    *,
    set_: Set = (),
    workers: Workers = None,
    samples: Annotated[int, Parameter(name=("-n", "--samples"), help="Documents to show on each side.")] = 3,
    options: InStore = InStore(),
) -> None:
    """Show how the languages and rules of two recipes differ on the documents of a dataset.

    Measures that a recipe needs and the dataset lacks are computed and stored beside the others; nothing is
    published.
    """
    from corpusmill.config import load_recipe
    from corpusmill.engine.local import Engine
    from mill.progress import shown
    from tasks.queries.compare import compare as run_compare

    number = processes(workers)
    _check_samples(samples)
    a, b = load_recipe(recipe_a, set_), load_recipe(recipe_b, set_)
    data = options.dataset(ref)
    with Engine(number) as engine, shown(engine, sys.stderr) as run:
        found = run_compare(a, b, data.store, data.manifest, samples, run)
    options.answer({"manifest": data.digest, **found}, f"{data.short}\n\n{_compare_text(recipe_a, recipe_b, found)}")


def _compare_text(a: str, b: str, found: Mapping[str, Any]) -> str:
    names = {
        "both": "kept by both",
        "only_a": f"kept by {a} alone",
        "only_b": f"kept by {b} alone",
        "neither": "kept by neither",
    }
    rows = [(says, found["kept"][key]["docs"], found["kept"][key]["words"]) for key, says in names.items()]
    lines = [table(("documents", "number", "words"), rows, numbers=(1, 2)), ""]
    pairs = [
        (row["a"] or "(kept)", row["b"] or "(kept)", row["docs"]) for row in found["reasons"] if row["a"] != row["b"]
    ]
    lines.append(table((f"ends in {a} for", f"in {b} for", "documents"), pairs[:20], numbers=(2,)))
    if len(pairs) > 20:
        lines.append(f"and {len(pairs) - 20:,} more pairs (--json lists all)")
    for side, says in (("only_a", f"kept by {a} alone"), ("only_b", f"kept by {b} alone")):
        for sample in found["samples"][side]:
            lines += ["", *_sample_lines(f"{says}, ends as {sample['reason']}", sample)]
    return "\n".join(lines)
