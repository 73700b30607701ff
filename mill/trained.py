"""Verbs that use a trained model: sample, evaluate, and the half of export that takes a checkpoint.

`mill.cli` names them. torch is imported when one of them runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from corpusmill.plain_text import human_bytes, table
from mill.common import InStore

Checkpoint = Annotated[str, Parameter(help="Checkpoint: RUN/STEP, or RUN for its newest.")]


def sample(
    checkpoint: Checkpoint,
    text: Annotated[str, Parameter(help="Beginning of the text.")] = "",
    /,
    *,
    max_tokens: Annotated[int, Parameter(name=("-n", "--max-tokens"), help="Tokens to write at most.")] = 100,
    temperature: Annotated[float, Parameter(help="0: the likeliest token each time; 1: as the model says.")] = 0.8,
    top_k: Annotated[int, Parameter(help="Draw among the k likeliest tokens only; 0: all.")] = 0,
    top_p: Annotated[float, Parameter(help="Draw among the likeliest tokens of this probability together.")] = 1.0,
    seed: Annotated[int, Parameter(help="Of the draws; the same seed gives the same text on one machine.")] = 0,
    options: InStore = InStore(),
) -> None:
    """Let a trained model continue a text."""
    from corpusmill import extras

    extras.need("train")
    from training.use.sample import Draw
    from training.use.sample import sample as drawn
    from training.use.trained import open_trained

    draw = Draw(temperature, top_k, top_p, seed)
    trained = open_trained(options.open(), checkpoint)
    made = drawn(trained, text, draw, max_tokens)
    document = {**asdict(made), "checkpoint": trained.commit.name, "manifest": trained.commit.facts["manifest_sha256"]}
    options.answer({**document, "draw": asdict(draw)}, f"{made.prompt}{made.text}")


def export_checkpoint(ref: str, out: Path, options: InStore) -> None:
    """`mill export RUN/STEP`: the model as a folder that transformers loads."""
    from corpusmill import extras

    extras.need("train")
    from training.use.llama import export
    from training.use.trained import open_trained

    trained = open_trained(options.open(), ref)
    done = export(trained, out)
    files = {name: {"bytes": size, "sha256": sha256} for name, (size, sha256) in done.files.items()}
    size = sum(size for size, _ in done.files.values())
    options.answer(
        {
            "checkpoint": trained.commit.name,
            "manifest": trained.commit.facts["manifest_sha256"],
            "folder": str(done.folder),
            "files": files,
        },
        f"{done.folder}: {len(files)} files, {human_bytes(size)}, of {trained.commit.name}",
    )


def evaluate(
    checkpoint: Checkpoint,
    /,
    *,
    on: Annotated[
        str | None, Parameter(help="Dataset whose held-out documents are read; default: the one it was trained on.")
    ] = None,
    benchmark: Annotated[
        tuple[str, ...],
        Parameter(help="Also answer a registered benchmark of multiple choice, such as arc-easy; may be repeated."),
    ] = (),
    items: Annotated[int | None, Parameter(help="Only the first so many items of each benchmark.")] = None,
    options: InStore = InStore(),
) -> None:
    """Measure a trained model on held-out text, in bits per byte, and on benchmarks.

    Clean are the held-out documents that share no 13-gram with what the model was trained on. The figures, and those of
    every document, are kept under the run.
    """
    from corpusmill import extras
    from corpusmill.errors import UsageError

    extras.need("train")
    if items is not None and items < 1:
        raise UsageError(f"--items {items}", "expected 1 or more")
    from training.use.report import evaluate as measured
    from training.use.trained import open_trained

    trained = open_trained(options.open(), checkpoint)
    data = options.dataset(on or trained.dataset)
    found = measured(data.store, trained, data.digest, data.manifest, benchmark, items)
    options.answer(found, f"{trained.commit.name} on {data.short}\n\n{_written(found)}")


def _written(found: Mapping[str, Any]) -> str:
    def bits(value: float | None) -> str:
        return "" if value is None else f"{value:.4f}"

    rows = [
        (name, one["documents"], bits(one["bits_per_byte"]), one["clean_documents"], bits(one["clean_bits_per_byte"]))
        for name, one in (*found["partitions"].items(), ("all", found["all"]))
    ]
    lines = [table(("held out of", "documents", "bits/byte", "clean", "bits/byte"), rows, numbers=(1, 2, 3, 4))]
    if found["benchmarks"]:
        shown = [
            (name, one["items"], *(f"{one[key]:.3f}" for key in ("accuracy", "normalised_accuracy", "chance")))
            for name, one in found["benchmarks"].items()
        ]
        heads = ("benchmark", "items", "accuracy", "by length", "chance")
        lines += ["", table(heads, shown, numbers=(1, 2, 3, 4))]
    lines += ["", f"every document: {found['documents']}"]
    return "\n".join(lines)
