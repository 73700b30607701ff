"""Training of a quality classifier: the same bytes each time, a held-out part by hash, a card beside the model.

fastText learns from lines in their order, with one thread and a fixed seed. Lines are ordered by the hash of their
text, so the model does not depend on the order of files and rows. A text that comes again counts once; one that is both
positive and negative teaches nothing and is left out. A text's hash also decides whether it is held out, so copies
never stand on both sides.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pyarrow as pa

from corpusmill.canonical import canonical_json
from corpusmill.errors import UsageError
from corpusmill.kernels.quality.calibration import calibration
from corpusmill.kernels.quality.classifier import HEAD_CHARS, NEGATIVE, POSITIVE, Classifier, card_path, normalised
from corpusmill.store.scratch import temporary_folder
from tasks.folders import made as made_folder
from tasks.models.model_files import identity, put, refuse_existing

LABELS = (POSITIVE, NEGATIVE)
NAMES = ("positive", "negative")
LIBRARY = "fasttext-community"
_PARTS = 256  # texts are ordered part by part, by the first byte of their hash
_BATCH = 512


@dataclass(frozen=True)
class Training:
    """What a model is trained with; all of it is in the card."""

    lr: float = 0.5
    dim: int = 16
    epoch: int = 25
    word_ngrams: int = 2
    bucket: int = 200_000
    """Rows for hashed n-grams of 2 words and more."""
    min_count: int = 1
    head_chars: int = HEAD_CHARS
    held_out_percent: int = 20
    seed: int = 0

    def check(self) -> None:
        """Raises UsageError where a value makes no sense."""
        for key in ("dim", "epoch", "word_ngrams", "min_count", "head_chars"):
            if getattr(self, key) < 1:
                raise UsageError(f"{key} = {getattr(self, key)}", "expected a positive number")
        if not 0 < self.lr <= 10:
            raise UsageError(f"lr = {self.lr}", "expected above 0 and at most 10")
        if not 1 <= self.held_out_percent <= 90:
            raise UsageError(f"held_out_percent = {self.held_out_percent}", "expected 1 to 90")
        if self.bucket < (1 if self.word_ngrams > 1 else 0):
            raise UsageError(f"bucket = {self.bucket}", "n-grams of words need at least one bucket")


def train(
    positive: Iterable[str], negative: Iterable[str], output: Path, training: Training = Training(), name: str = ""
) -> dict[str, Any]:
    """Train a model, measure it on the held-out part, write model and card.

    Args:
        positive, negative: texts of each label.
        output: NAME.bin, or NAME.ftz for a quantised model (about a tenth of the size).
        training: parameters.
        name: of the model in its card; else that of the file.

    Returns:
        the card.

    Raises:
        UsageError: another ending of the name, a parameter out of range, a label without texts to train on or to test.
        Refused: the model or its card exists.
    """
    training.check()
    if output.suffix not in (".bin", ".ftz"):
        raise UsageError(f"--output {output.name}", "expected a name that ends in .bin, or in .ftz for a small model")
    refuse_existing(output)
    with temporary_folder(made_folder(output.parent)) as folder:
        work = folder
        data, lines, held = _prepared((positive, negative), work, training)
        made = work / output.name
        _fit(lines, made, training)
        card = {
            "card": 1,
            "kind": "quality",
            "name": name or output.stem,
            "model": identity(made),
            "labels": {"positive": POSITIVE, "negative": NEGATIVE},
            "text": {"form": 1, "head_chars": training.head_chars},
            "training": {**asdict(training), "thread": 1, "library": LIBRARY, "version": version(LIBRARY)},
            "data": data,
        }
        card_path(made).write_bytes(canonical_json({**card, "held_out": {}}))  # the classifier reads it
        card["held_out"] = _held_out(Classifier(made), held)
        put(made, card, output)
    return card


def _prepared(sides: tuple[Iterable[str], Iterable[str]], work: Path, training: Training) -> tuple[dict, Path, Path]:
    """Lines to learn from and lines held out, `label text`, in the order of their hashes; and what the data is."""
    counts = [Counter({"documents": 0, "empty": 0}) for _ in LABELS]
    with ExitStack() as stack:
        names = [[work / f"{label}.{part:02x}" for part in range(_PARTS)] for label in NAMES]
        for label, side in enumerate(sides):
            files = [stack.enter_context(path.open("wb")) for path in names[label]]
            for text in side:
                counts[label]["documents"] += 1
                line = normalised(text, training.head_chars).encode()
                if line:
                    files[_hash(line)[0]].write(line + b"\n")
                else:
                    counts[label]["empty"] += 1
            for file in files:
                file.close()
    known = [hashlib.sha256() for _ in LABELS]
    lines, held = work / "lines", work / "held"
    with lines.open("wb") as to_learn, held.open("wb") as to_hold:
        for part in range(_PARTS):
            found = [Counter(names[label][part].read_bytes().split(b"\n")[:-1]) for label in range(2)]
            for label in range(2):
                counts[label]["repeated"] += sum(found[label].values()) - len(found[label])
                counts[label]["in_both"] += len(found[0].keys() & found[1].keys())
                names[label][part].unlink()
            ordered = sorted((_hash(line), label, line) for label in range(2) for line in found[label])
            for digest, label, line in ordered:
                known[label].update(digest)
                if line in found[1 - label]:
                    continue
                is_held = int.from_bytes(digest[-8:], "big") % 100 < training.held_out_percent
                counts[label]["held_out" if is_held else "trained"] += 1
                (to_hold if is_held else to_learn).write(LABELS[label].encode() + b" " + line + b"\n")
    for label, name in enumerate(NAMES):
        if not counts[label]["trained"] or not counts[label]["held_out"]:
            raise UsageError(
                f"too few {name} texts",
                f"{counts[label]['documents']:,} given, {counts[label]['repeated']:,} of them repeated, "
                f"{counts[label]['empty']:,} empty, {counts[label]['in_both']:,} both positive and negative; "
                f"which leaves {counts[label]['trained']:,} to train on and {counts[label]['held_out']:,} to test with",
                "Add more texts, or hold out another percentage.",
            )
    keys = ("documents", "empty", "repeated", "in_both", "trained", "held_out")
    data = {
        name: {**{key: counts[i][key] for key in keys}, "sha256": known[i].hexdigest()} for i, name in enumerate(NAMES)
    }
    return data, lines, held


def _fit(lines: Path, output: Path, training: Training) -> None:
    model = fasttext.train_supervised(
        str(lines),
        lr=training.lr,
        dim=training.dim,
        epoch=training.epoch,
        wordNgrams=training.word_ngrams,
        bucket=training.bucket if training.word_ngrams > 1 else 0,
        minCount=training.min_count,
        minn=0,
        maxn=0,
        loss="softmax",
        seed=training.seed,
        thread=1,  # more threads race, and the model differs each time
        verbose=0,
    )
    if output.suffix == ".ftz":
        model.quantize(input=str(lines), qnorm=True, retrain=False, thread=1, verbose=0)
    model.save_model(str(output))


def _held_out(classifier: Classifier, held: Path) -> dict[str, Any]:
    scores: tuple[list[int], list[int]] = ([], [])
    for label, text in _batches(held):
        scores[label].extend(classifier.scores_e6(pa.array(text, pa.large_string())).drop_null().to_pylist())
    positive, negative = (np.array(side, np.int32) for side in scores)
    return {
        "positive": len(positive),
        "negative": len(negative),
        "table": [row.to_json() for row in calibration(positive, negative)],
    }


def _batches(held: Path) -> Iterator[tuple[int, list[str]]]:
    """(label, texts) of runs of lines."""
    batch: tuple[list[str], list[str]] = ([], [])
    with held.open("rb") as file:
        for line in file:
            label, _, text = line[:-1].partition(b" ")
            side = LABELS.index(label.decode())
            batch[side].append(text.decode())
            if len(batch[side]) == _BATCH:
                yield side, batch[side][:]
                batch[side].clear()
    for side in range(2):
        if batch[side]:
            yield side, batch[side]


def _hash(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16, person=b"quality1").digest()
