"""Verbs of `mill` that train small models and score files with them: quality and perplexity.

`mill.cli` names them; they are imported when used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from corpusmill.errors import NotFound, UsageError
from corpusmill.plain_text import human_bytes, table
from mill.common import InStore, Output
from mill.paths import on_this_machine

if TYPE_CHECKING:
    import pyarrow as pa

Sources = Annotated[
    tuple[str, ...],
    Parameter(help="A file (JSON lines, Parquet, text), a folder of them, or a dataset; may be repeated."),
]
Field = Annotated[str, Parameter(help="Column with the text, in JSON lines and Parquet files.")]
ModelFile = Annotated[
    Path,
    Parameter(
        name=("-o", "--output"),
        validator=on_this_machine,
        help="Path of the model to write; its card is written beside it.",
    ),
]
Name = Annotated[str, Parameter(help="Name of the model in its card; default: the file's name.")]
Files = Annotated[tuple[str, ...], Parameter(help="Files, folders or datasets with texts.")]

BATCH = 256


def quality_train(
    *,
    positive: Sources,
    negative: Sources,
    output: ModelFile,
    name: Name = "",
    field: Field = "text",
    lr: Annotated[float, Parameter(help="Learning rate.")] = 0.5,
    dim: Annotated[int, Parameter(help="Dimensions of a word vector.")] = 16,
    epoch: Annotated[int, Parameter(help="Passes over the texts; a few are enough for many texts.")] = 25,
    word_ngrams: Annotated[int, Parameter(help="Length of the longest n-gram in words.")] = 2,
    bucket: Annotated[int, Parameter(help="Rows shared by n-grams of two or more words.")] = 200_000,
    min_count: Annotated[int, Parameter(help="Leave out words that occur less often.")] = 1,
    head_chars: Annotated[int, Parameter(help="Number of characters read, from the beginning of a text.")] = 5000,
    held_out_percent: Annotated[
        int, Parameter(help="Percentage of the texts, by hash, that is held out for the table.")
    ] = 20,
    options: InStore = InStore(),
) -> None:
    """Train a quality classifier, and show the effect of thresholds on its score."""
    from tasks.models import quality
    from tasks.models.corpus import texts

    training = quality.Training(
        lr=lr,
        dim=dim,
        epoch=epoch,
        word_ngrams=word_ngrams,
        bucket=bucket,
        min_count=min_count,
        head_chars=head_chars,
        held_out_percent=held_out_percent,
    )
    good, other = (texts(sources, options.uri, field) for sources in (positive, negative))
    card = quality.train(good, other, output, training, name)
    options.answer(card, _quality_text(card, output))


def quality_score(
    model: Annotated[Path, Parameter(help="A classifier (.bin or .ftz).")],
    files: Files,
    /,
    *,
    field: Field = "text",
    options: InStore = InStore(),
) -> None:
    """Print the score of each text: the probability that it is positive."""
    from corpusmill.kernels.quality.classifier import Classifier

    _score(files, field, options, _opened(model, Classifier).scores_e6, "score_e6", 1_000_000)


def perplexity_train(
    *,
    text: Sources,
    output: ModelFile,
    name: Name = "",
    order: Annotated[int, Parameter(help="Length of the longest n-gram in words.")] = 5,
    prune: Annotated[
        str | None,
        Parameter(
            help="Leave out n-grams that occur at most this often: for 1 word, 2 words, 3 and more; default: 0,0,1."
        ),
    ] = None,
    arpa: Annotated[Path | None, Parameter(validator=on_this_machine, help="Also write an ARPA file.")] = None,
    field: Field = "text",
    options: InStore = InStore(),
) -> None:
    """Train a language model on clean text; each line is a sentence."""
    from tasks.models import perplexity
    from tasks.models.corpus import texts

    try:
        thresholds = None if prune is None else tuple(int(part) for part in prune.split(","))
    except ValueError as err:
        raise UsageError(f"--prune {prune}", "expected numbers separated by commas, for example 0,0,1") from err
    training = perplexity.Training(order, thresholds)
    card = perplexity.train(texts(text, options.uri, field, by_line=True), output, training, arpa, name)
    options.answer(card, _perplexity_text(card, output))


def perplexity_convert(
    arpa: Annotated[Path, Parameter(help="An ARPA file, as written by lmplz.")],
    /,
    *,
    output: ModelFile,
    name: Name = "",
    options: Output = Output(),
) -> None:
    """Make a model from an ARPA file."""
    from tasks.models import perplexity

    card = perplexity.convert(arpa, output, name)
    options.answer(card, _written(card, output))


def perplexity_score(
    model: Annotated[Path, Parameter(help="A language model.")],
    files: Files,
    /,
    *,
    field: Field = "text",
    options: InStore = InStore(),
) -> None:
    """Print the cross entropy of each text in bits per word; the perplexity is 2 to the power of it."""
    from corpusmill.kernels.perplexity.score import Model

    _score(files, field, options, _opened(model, Model).log2_e4, "bits_e4", 10_000)


def _opened(model: Path, kind: Callable[[Path], Any]) -> Any:
    if not model.is_file():
        raise NotFound(f"{model}: {'a folder' if model.is_dir() else 'no such file'}", "expected a model's file")
    try:
        return kind(model)
    except ValueError as err:
        raise UsageError(f"{model}: not a model of this kind", str(err), "Train one, or check the path.") from err


def _score(
    files: Sequence[str],
    field: str,
    options: InStore,
    judge: Callable[[pa.LargeStringArray], pa.Int32Array],
    key: str,
    unit: int,
) -> None:
    """Judge and print all texts of the given files, folders or datasets, numbered within each."""
    if not files:
        raise UsageError("no file to score", "expected files, folders or datasets")
    rows = list(_scored(files, field, options.uri, judge))
    shown = [(source, number, "" if value is None else f"{value / unit:.6f}") for source, number, value in rows]
    options.answer(
        {"texts": [{"source": source, "number": number, key: value} for source, number, value in rows]},
        table(("source", "text", key.partition("_")[0]), shown, numbers=(1, 2)),
    )


def _scored(
    files: Sequence[str], field: str, store: str, judge: Callable[[pa.LargeStringArray], pa.Int32Array]
) -> Iterator[tuple[str, int, int | None]]:
    import pyarrow as pa

    from tasks.models.corpus import texts

    for source in files:
        found, number = texts([source], store, field), 1
        while batch := list(islice(found, BATCH)):
            for value in judge(pa.array(batch, pa.large_string())).to_pylist():
                yield source, number, value
                number += 1


def _written(card: dict[str, Any], output: Path) -> str:
    return f"{output}: {human_bytes(card['model']['bytes'])}, sha256 {card['model']['sha256']}"


def _quality_text(card: dict[str, Any], output: Path) -> str:
    held = card["held_out"]

    def share(part: dict[str, Any]) -> str:
        return "" if part["value"] is None else f"{part['value']:.3f} ({part['low']:.3f}-{part['high']:.3f})"

    rows = [
        (
            f"{row['threshold_e6'] / 1e6:.2f}",
            *(share(row[name]) for name in ("kept", "precision", "recall", "false_positives")),
        )
        for row in held["table"]
    ]
    header = ("threshold", "kept", "precision", "recall", "false positives")
    trained = " and ".join(f"{card['data'][side]['trained']:,} {side}" for side in ("positive", "negative"))
    return (
        f"{table(header, rows)}\n\n"
        f"shares and their 95 % intervals on {held['positive']:,} positive and {held['negative']:,} negative texts "
        f"held out; trained on {trained}\n"
        f"{_written(card, output)}"
    )


def _perplexity_text(card: dict[str, Any], output: Path) -> str:
    parts = zip(card["ngrams"]["kept"], card["ngrams"]["seen"], card["discounts"], strict=True)
    rows = [
        (k, kept, seen, *(f"{value:.4f}" for value in d["values"]), "given" if d["fallback"] else "")
        for k, (kept, seen, d) in enumerate(parts, 1)
    ]
    data = card["data"]
    return (
        f"{table(('words', 'n-grams', 'seen', 'D1', 'D2', 'D3+', ''), rows, numbers=(0, 1, 2, 3, 4, 5))}\n\n"
        f"{data['words']:,} words of {data['sentences']:,} lines, {data['vocabulary']:,} distinct\n"
        f"{_written(card, output)}"
    )
