"""Training of language models, and models made from ARPA files; equal texts in equal order give equal bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.errors import NotFound, UsageError
from corpusmill.kernels.perplexity import arpa as arpa_file
from corpusmill.kernels.perplexity.estimate import bits_e6, kept_ngrams, keys_of
from corpusmill.kernels.perplexity.table import pack, write_table
from corpusmill.kernels.perplexity.tokens import UNKNOWN_TEXT
from corpusmill.store.scratch import temporary_folder
from tasks.folders import made as made_folder
from tasks.models.model_files import identity, put, refuse_existing
from tasks.models.perplexity_estimate import Estimate
from tasks.models.perplexity_stream import Scratch, Stream, tokenized

ORDERS = range(2, 7)
PRUNE = (0, 0, 1)
BLOCK = 1 << 20
"""N-grams that are written at a time."""
_PARTS = 64  # rows are sorted part by part, by the first bits of their keys


@dataclass(frozen=True)
class Training:
    """What a model is trained with."""

    order: int = 5
    prune: tuple[int, ...] | None = None
    """N-grams that occur so often or less are left out, by length; the last number holds for all longer ones. None is
    PRUNE as far as the order goes."""

    def thresholds(self) -> NDArray[np.int64]:
        """int64[order].

        Raises:
            UsageError: an order or thresholds out of range.
        """
        if self.order not in ORDERS:
            raise UsageError(f"order {self.order}", f"expected {ORDERS.start} to {ORDERS.stop - 1}")
        given = PRUNE[: self.order] if self.prune is None else self.prune or (0,)
        if given[0] != 0 or list(given) != sorted(given) or len(given) > self.order:
            raise UsageError(
                f"prune {','.join(map(str, given))}",
                f"expected 0 for single words and then non-decreasing numbers, at most {self.order} in total",
            )
        return np.array([*given, *[given[-1]] * (self.order - len(given))], np.int64)


def train(
    texts: Iterable[str], output: Path, training: Training = Training(), arpa: Path | None = None, name: str = ""
) -> dict[str, Any]:
    """Train a model on clean text.

    Args:
        texts: documents; each line with a word in it is a sentence.
        output: the model. Its card is written beside it, NAME.json.
        training: order and pruning.
        arpa: also write the model as an ARPA file.
        name: of the model in its card; else that of the file.

    Returns:
        the card.

    Raises:
        UsageError: parameters out of range, or texts without a word. Refused: one of the files exists.
    """
    prune = training.thresholds()
    refuse_existing(output, *((arpa,) if arpa else ()))
    if arpa:
        made_folder(arpa.parent)
    with temporary_folder(made_folder(output.parent)) as folder:
        scratch = Scratch(folder)
        stream = tokenized(texts, scratch, spell=arpa is not None)
        model = Estimate(stream, training.order, prune, scratch)
        rows, text = Rows(scratch), scratch.folder / "arpa"
        if arpa:
            with text.open("w", encoding="utf-8", newline="\n") as to:
                write(model, rows, scratch, to)
        else:
            write(model, rows, scratch, None)
        card = {
            "name": name or output.stem,
            "training": {"order": training.order, "prune": prune.tolist()},
            "data": stream.facts,
            "ngrams": {"seen": model.seen[:, 0].tolist(), "kept": model.seen[:, 5].tolist()},
            "discounts": [{"values": list(d.values), "fallback": d.fallback} for d in model.discounts],
        }
        card = _finish(rows, model.unknown_e6, card, output)
        if arpa:
            shutil.move(text, arpa)
    return card


def convert(arpa: Path, output: Path, name: str = "") -> dict[str, Any]:
    """A model of ours from an ARPA file, such as lmplz writes; it must speak of words as `perplexity_tokens` does.

    Returns:
        the card.

    Raises:
        NotFound: no such file. UsageError: not an ARPA file. Refused: the model exists.
    """
    refuse_existing(output)
    if not arpa.is_file():
        raise NotFound(f"{arpa}: no such file", "expected an ARPA file")
    with temporary_folder(made_folder(output.parent)) as folder:
        rows = Rows(Scratch(folder))
        try:
            with arpa.open(encoding="utf-8", newline="\n") as lines:
                unknown_e6 = _read_arpa(lines, rows)
        except ValueError as err:
            raise UsageError(
                f"{arpa}: not a complete ARPA file", str(err), "Write it again, for example with lmplz."
            ) from err
        about = {"name": name or output.stem, "arpa": {"sha256": identity(arpa)["sha256"]}}
        return _finish(rows, unknown_e6, about, output)


def _read_arpa(lines: Iterable[str], rows: Rows) -> int:
    """Fill rows; returns what the unknown word costs."""
    unknown_e6 = -1
    block: list[tuple[str, int, int]] = []

    def add() -> None:
        if block:
            words, prob, backoff = zip(*block, strict=True)
            rows.add(arpa_file.keys_of_words(words), np.array(prob, np.int32), np.array(backoff, np.int32))
            block.clear()

    for item in arpa_file.parse(lines):
        if isinstance(item, list):
            continue
        k, words, prob_e6, backoff_e6 = item
        if k > len(rows.counts) or len(block) == BLOCK:
            add()
        while k > len(rows.counts):
            rows.counts.append(0)
        if k == 1 and words == UNKNOWN_TEXT:
            unknown_e6 = prob_e6
        elif not arpa_file.has_unknown(words):
            block.append((words, prob_e6, backoff_e6))
    add()
    if unknown_e6 < 0:
        raise ValueError(f"no {UNKNOWN_TEXT} among the single words: unknown words would have no probability")
    return unknown_e6


def _finish(rows: Rows, unknown_e6: int, about: dict[str, Any], output: Path) -> dict[str, Any]:
    """Write model and card; both are there or neither."""
    made = rows.folder / "model"
    header = {"order": len(rows.counts), "counts": rows.counts, "unknown_e6": unknown_e6}
    with made.open("wb") as file:
        write_table(file, header, rows.sorted_parts())
    card = {"card": 1, "kind": "perplexity", **about, "model": identity(made)}
    put(made, card, output)
    return card


class Rows:
    """Rows of a model on their way to its file: kept on disk by the first bits of their keys."""

    def __init__(self, scratch: Scratch) -> None:
        self.folder, self.counts = scratch.folder, list[int]()
        self._paths = [scratch.folder / f"rows.{part:02x}" for part in range(_PARTS)]

    def add(self, keys: NDArray[np.uint64], prob_e6: NDArray[np.int32], backoff_e6: NDArray[np.int32]) -> None:
        """Some n-grams of the length that `counts` ends with."""
        self.counts[-1] += len(keys)
        rows = np.stack([keys, pack(prob_e6, backoff_e6)], axis=1)
        part = keys >> np.uint64(58)
        rows = rows[np.argsort(part, kind="stable")]
        bounds = np.concatenate(
            [np.zeros(1, np.int64), np.cumsum(np.bincount(part.astype(np.int64), minlength=_PARTS))]
        )
        for number, path in enumerate(self._paths):
            with path.open("ab") as file:
                file.write(rows[bounds[number] : bounds[number + 1]].tobytes())

    def sorted_parts(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
        """(keys, values) in ascending order of keys, part by part; shorter n-grams first among equal keys."""
        for path in self._paths:
            rows = np.fromfile(path, np.uint64).reshape(-1, 2) if path.exists() else np.zeros((0, 2), np.uint64)
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            yield rows[:, 0], rows[:, 1]
            path.unlink(missing_ok=True)


def write(model: Estimate, rows: Rows, scratch: Scratch, arpa: IO[str] | None) -> None:
    """Put the n-grams of a model into rows, and into an ARPA file where one is wanted."""
    counts = model.seen[:, 5] + np.array([2] + [0] * (model.order - 1))  # <unk> and <s>
    if arpa:
        arpa.write(arpa_file.head(counts.tolist()))
    for k, ngrams in enumerate(model.lengths(), 1):
        rows.counts.append(0)
        prune = int(model.prune[k - 1])
        if arpa:
            arpa.write(f"\n\\{k}-grams:\n")
            if k == 1:
                arpa.write(arpa_file.line(UNKNOWN_TEXT, model.unknown_e6, 0))
        for begin in range(0, len(ngrams.first), BLOCK):
            kept = kept_ngrams(ngrams.occurs, prune, begin, min(begin + BLOCK, len(ngrams.first)))
            keys = keys_of(kept, ngrams.first, k, model.stream.tokens, model.stream.hashes)
            prob, backoff = bits_e6(ngrams.probability[kept]), np.zeros(len(kept), np.int32)
            if len(ngrams.total):
                total = ngrams.total[kept]
                backoff[total > 0] = bits_e6(ngrams.freed[kept][total > 0] / total[total > 0])
            rows.add(keys, prob, backoff)
            scratch.release()
            if arpa:
                arpa.writelines(_lines(model.stream, k, ngrams.first[kept], prob, backoff))
    if arpa:
        arpa.write("\n\\end\\\n")


def _lines(
    stream: Stream, k: int, ends: NDArray[np.uint32], prob: NDArray[np.int32], backoff: NDArray[np.int32]
) -> Iterator[str]:
    ids = np.stack([stream.tokens[ends.astype(np.int64) - back] for back in range(k - 1, -1, -1)], axis=1)
    for words, p, b in zip(ids.tolist(), prob.tolist(), backoff.tolist(), strict=True):
        yield arpa_file.line(" ".join(stream.spelling[word] for word in words), p, b)
