"""Verbs that use a trained model: sample, and the half of export that takes a checkpoint.

`mill.cli` names them. torch is imported when one of them runs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from corpusmill.plain_text import human_bytes
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
    from training.sample import Draw
    from training.sample import sample as drawn
    from training.trained import open_trained

    draw = Draw(temperature, top_k, top_p, seed)
    trained = open_trained(options.open(), checkpoint)
    made = drawn(trained, text, draw, max_tokens)
    document = {**asdict(made), "checkpoint": trained.commit.name, "manifest": trained.commit.facts["manifest_sha256"]}
    options.answer({**document, "draw": asdict(draw)}, f"{made.prompt}{made.text}")


def export_checkpoint(ref: str, out: Path, options: InStore) -> None:
    """`mill export RUN/STEP`: the model as a folder that transformers loads."""
    from corpusmill import extras

    extras.need("train")
    from training.llama import export
    from training.trained import open_trained

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
