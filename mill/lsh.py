"""The verb `lsh`: bands and rows for a similarity, and what they find and miss."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from corpusmill.errors import UsageError
from corpusmill.plain_text import table
from mill.common import Output
from mill.paths import on_this_machine, written


def lsh(
    *,
    threshold: Annotated[float, Parameter(help="Documents with at least this similarity are duplicates.")] = 0.8,
    num_perm: Annotated[int, Parameter(help="Permutations per signature.")] = 112,
    recall: Annotated[float, Parameter(help="Minimum probability to find a pair of exactly this similarity.")] = 0.9,
    svg: Annotated[
        Path | None, Parameter(validator=on_this_machine, help="Also draw the S-curves to this file.")
    ] = None,
    options: Output = Output(),
) -> None:
    """Recommend bands x rows, and draw the S-curve with the areas of false positives and false negatives.

    Candidates are verified, so a false positive costs one comparison, while a false negative is a duplicate that stays.
    The recommended choice has the fewest false positives among those with enough recall.
    """
    from corpusmill.dataset.scurve import drawn, drawn_svg
    from corpusmill.kernels.duplicates.scurve import choices, recommended

    if not 16 <= num_perm <= 1024:
        raise UsageError(f"--num-perm {num_perm}", "expected 16 to 1024, as in recipes, for example 112")
    best = recommended(threshold, num_perm, recall)
    rows = [
        (
            "*" if choice == best else "",
            choice.bands,
            choice.rows,
            f"{choice.half:.3f}",
            f"{choice.at_threshold:.3f}",
            f"{choice.false_positive:.4f}",
            f"{choice.false_negative:.4f}",
        )
        for choice in choices(threshold, num_perm)
    ]
    heads = ("", "bands", "rows", "half found at", f"found at {threshold:g}", "false positives", "false negatives")
    shown = "\n".join(
        [
            table(heads, rows, numbers=(1, 2, 3, 4, 5, 6)),
            "",
            drawn(best, threshold),
            "",
            f"recommended: deduplicate.num_perm = {num_perm}, deduplicate.bands = {best.bands} ({best.rows} rows)",
            f"a pair of similarity {threshold:g} is found with probability {best.at_threshold:.3f}",
        ]
    )
    document = {
        "threshold": threshold,
        "num_perm": num_perm,
        "recommended": best.to_json(),
        "choices": [choice.to_json() for choice in choices(threshold, num_perm)],
    }
    if svg is not None:
        written(svg, drawn_svg(best, threshold))
        shown += f"\n{svg}"
    options.answer(document, shown)
