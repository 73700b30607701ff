"""Quality and perplexity: CPU milliseconds a document, and what both judges say about text of known kind.

Speed is measured on texts of `bench/texts.py`; the models are trained in the run: the language model on every second
text, the classifier on the test data's clean text and spam, else on halves of the texts (its speed does not depend on
what the labels mean). Arms, in turn:

  quality         what judge calls: the first characters as a line, fastText's model
  fasttext alone  fastText on the same lines, prepared beforehand
  perplexity      what judge calls: words, then our own query of our own table
  kenlm           KenLM's query of the same model (in the extra `dev`) on words spelled beforehand; if installed

Both models are trained a second time, the classifier on its texts in another order; `same_bytes` is the share of the
two that are the same file then. With `lmplz` on PATH, a model of it on the same words is scored beside ours:
`lmplz_agrees` is the smaller of the two perplexities over the larger, on the text where they differ most.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fasttext
import pyarrow as pa

from bench.common import REPOSITORY, arguments, interleaved, judged, note, report, run, timed
from bench.texts import texts
from corpusmill.kernels.perplexity.score import Model
from corpusmill.kernels.perplexity.tokens import spelled
from corpusmill.kernels.quality.classifier import Classifier, normalised
from corpusmill.plain_text import table
from tasks.models import perplexity, quality

QUICK = 400
BATCH = 256
ORDER = 5


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    options = arguments(__doc__ or "").parse_args(argv)
    found = texts(2 * QUICK if options.quick else None)
    learned, asked = found[::2], found[1::2]
    with tempfile.TemporaryDirectory(prefix="bench-judges-") as folder:
        work = Path(folder)
        note("training")
        good, other = _labelled() or (found[: len(found) // 2], found[len(found) // 2 :])
        card = quality.train(good, other, work / "quality.bin")
        perplexity.train(learned, work / "model", perplexity.Training(ORDER), work / "model.arpa")
        same = trained_again(work, good, other, learned)
        agrees = _lmplz(work, learned, asked)
        measured = arms(work, asked, options.no_peer)
        note("warm-up")
        for once in measured.values():
            once()
        paired = interleaved(measured, options.repeats or 3, note)
        bits = Model(work / "model").log2_e4(pa.array(asked, pa.large_string())).drop_null().to_pylist()
        return _report(card, paired, asked, bits, same, agrees, options.quick, options.json)


def trained_again(work: Path, good: Sequence[str], other: Sequence[str], learned: Sequence[str]) -> float:
    """Share of the two models that have the same bytes when they are trained a second time."""
    again = work / "again"
    quality.train(reversed(good), reversed(other), again / "quality.bin")
    perplexity.train(learned, again / "model", perplexity.Training(ORDER))
    names = ("quality.bin", "model")
    return sum((work / name).read_bytes() == (again / name).read_bytes() for name in names) / len(names)


def arms(work: Path, asked: Sequence[str], no_peer: bool) -> dict[str, Callable[[], float]]:
    """CPU seconds of each arm over the documents."""
    batches = [pa.array(asked[i : i + BATCH], pa.large_string()) for i in range(0, len(asked), BATCH)]
    classifier, model = Classifier(work / "quality.bin"), Model(work / "model")

    found = {
        "quality": timed(lambda: [classifier.scores_e6(batch) for batch in batches]),
        "perplexity": timed(lambda: [model.log2_e4(batch) for batch in batches]),
    }
    if no_peer:
        return found
    alone = fasttext.load_model(str(work / "quality.bin"))
    prepared = [line for text in asked if (line := normalised(text))]
    found["fasttext alone"] = timed(lambda: [alone.predict(line, k=2) for line in prepared])
    if importlib.util.find_spec("kenlm"):
        import kenlm

        theirs = kenlm.Model(str(work / "model.arpa"))
        lines = [" ".join(line) for batch in batches for line in spelled(batch)]
        found["kenlm"] = timed(lambda: [theirs.score(line) for line in lines])
    return found


def _labelled() -> tuple[list[str], list[str]] | None:
    folder = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data")) / "quality"
    if not folder.is_dir():
        return None
    sides = []
    for name in ("clean", "spam"):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as file:
            sides.append([json.loads(line)["text"] for line in file])
    return sides[0], sides[1]


def _lmplz(work: Path, learned: Sequence[str], asked: Sequence[str]) -> float | None:
    program = shutil.which("lmplz")
    if program is None:
        return None
    lines = spelled(pa.array(learned, pa.large_string()))
    (work / "words").write_text("".join(" ".join(line) + "\n" for line in lines), "utf-8")
    command = [
        program,
        "-o",
        str(ORDER),
        "--prune",
        "0",
        "0",
        "1",
        "--discount_fallback",
        "-S",
        "500M",
        "-T",
        str(work),
    ]
    command += ["--text", str(work / "words"), "--arpa", str(work / "lmplz.arpa")]
    subprocess.run(command, check=True, capture_output=True)
    perplexity.convert(work / "lmplz.arpa", work / "lmplz")
    column = pa.array(asked, pa.large_string())
    pairs = [Model(work / name).log2_e4(column).to_pylist() for name in ("model", "lmplz")]
    return min(2 ** (-abs(a - b) / 1e4) for a, b in zip(*pairs, strict=True) if a is not None)


def _report(
    card: Mapping[str, Any],
    paired: Mapping[str, Sequence[float]],
    asked: Sequence[str],
    bits: Sequence[int],
    same: float,
    agrees: float | None,
    quick: bool,
    as_json: bool,
) -> int:
    least = {name: min(seconds) for name, seconds in paired.items()}
    size = sum(len(text.encode()) for text in asked)
    speed = {
        name: {"ms_a_document": seconds / len(asked) * 1e3, "mb_a_second": size / seconds / 1e6}
        for name, seconds in least.items()
    }
    half = next(row for row in card["held_out"]["table"] if row["threshold_e6"] == 500_000)
    middle = statistics.median(bits)
    rows = [
        (
            name,
            f"{each['ms_a_document']:.3f}",
            f"{max(paired[name]) / len(asked) * 1e3:.3f}",
            f"{each['mb_a_second']:.1f}",
        )
        for name, each in speed.items()
    ]
    shares = (
        f"{name} {half[name]['value']} ({half[name]['low']}-{half[name]['high']})" for name in ("precision", "recall")
    )
    text = "\n\n".join(
        (
            table(
                (f"{len(asked):,} documents of {size / len(asked):,.0f} bytes", "CPU ms each", "most", "MB/s"),
                rows,
                (1, 2, 3),
            ),
            f"quality at 0.5, held out: {', '.join(shares)}",
            f"perplexity: the middle document has {middle / 1e4:.2f} bits a word",
        )
    )
    ratios: dict[str, float] = {}
    if "fasttext alone" in least:
        ratios |= {"same_bytes": same, "quality_overhead": least["fasttext alone"] / least["quality"]}
    if "kenlm" in least:
        ratios["kenlm"] = least["kenlm"] / least["perplexity"]
    if agrees is not None:
        ratios["lmplz_agrees"] = agrees
    document = {
        "subject": "judges",
        "quick": quick,
        "documents": len(asked),
        "bytes": size,
        "speed": speed,
        "held_out": half,
        "median_bits_e4": middle,
        "paired": {name: list(seconds) for name, seconds in paired.items()},
    }
    return report(document, text, judged("judges", ratios), as_json)


if __name__ == "__main__":
    run(main)
