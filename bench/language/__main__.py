"""Language: accuracy by language and length, upper-case twins, mixed texts, and CPU beside fastText alone.

Texts are sentences in 75 languages from the test data (CORPUSMILL_TEST_DATA), joined until they are long enough and cut
at the length of a column. A twin is the same text in upper case. CPU is measured on documents of a crawl's WET texts
where there are some, else on the joined sentences; three arms in turn:

  identify       what judge calls: windows, lines, model (compressed ones run by us), second windows
  fasttext alone fastText on the lines that the first windows give, one call a batch
  one by one     the first windows prepared by Python's string methods, one call a document
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pyarrow as pa

from bench.common import REPOSITORY, arguments, interleaved, judged, note, report, run, timed
from corpusmill.errors import NotFound
from corpusmill.kernels.language.identify import HEAD_CHARS, LanguageModel
from corpusmill.kernels.language.windows import lines, places
from corpusmill.models import model_path
from corpusmill.plain_text import table
from corpusmill.readers.warc import read_records

LENGTHS = (30, 100, 300, 1000)
SAME = {"nb": "no"}
"""Codes of the data for which lid.176 has another."""
BATCH = 1024
QUICK_SENTENCES, QUICK_DOCUMENTS = 40, 600

Row = Mapping[str, Any]


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--model", default="lid.176.ftz", help="a fastText model: a file, or a known name")
    options = parser.parse_args(argv)
    data = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (data / "langid").is_dir():
        raise NotFound(
            f"no language data at {data / 'langid'}",
            "the test data is not part of this repository",
            "Set CORPUSMILL_TEST_DATA.",
        )
    path = model_path(options.model)
    model = LanguageModel(path)
    sentences = defaultdict(list)
    for row in rows(data / "langid" / "sentences.jsonl.gz"):
        sentences[row["lang"]].append(row["text"])
    note("accuracy")
    most = QUICK_SENTENCES if options.quick else None
    scores = [accuracy(model, language, texts[:most]) for language, texts in sorted(sentences.items())]
    flags = mixtures(model, data / "langid")
    documents = wet_texts(data / "mini-crawl") or [" ".join(texts) for texts in sentences.values()]
    documents = documents[:QUICK_DOCUMENTS] if options.quick else documents
    paired = interleaved(arms(model, path, documents), options.repeats or 3, note)
    return _report(scores, flags, paired, len(documents), options.quick, options.json)


def rows(path: Path) -> Iterable[Row]:
    """Rows of a compressed JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from map(json.loads, file)


def wet_texts(crawl: Path) -> list[str]:
    """Texts of a crawl's WET files."""
    files = sorted(crawl.glob("crawl-data/*/segments/*/wet/*.gz"))
    found = (record for file in files for record in read_records(file) if record.type == "conversion")
    return [record.payload.decode("utf-8", "replace") for record in found]


def joined(sentences: Sequence[str], length: int) -> list[str]:
    """Texts of about a given number of characters: sentences in a row until it is reached, then cut."""
    texts, text = [], ""
    for sentence in sentences:
        text = f"{text} {sentence}".strip()
        if len(text) >= length:
            texts.append(text[:length])
            text = ""
    return texts


def accuracy(model: LanguageModel, language: str, sentences: Sequence[str]) -> dict[str, Any]:
    """Share of right answers and of twins with the same answer, by length."""
    code = SAME.get(language, language)
    found: dict[str, Any] = {"language": language, "known": code in model.codes, "texts": {}, "right": {}, "twins": {}}
    for length in LENGTHS:
        texts = joined(sentences, length)
        answers, twins = (spoken(model, values) for values in (texts, [text.upper() for text in texts]))
        found["texts"][length] = len(texts)
        found["right"][length] = sum(answer == code for answer in answers)
        found["twins"][length] = sum(map(str.__eq__, answers, twins))
        found.setdefault("taken_for", Counter()).update(answer for answer in answers if answer != code)
    return found


def spoken(model: LanguageModel, texts: Sequence[str]) -> list[str]:
    """Languages of texts."""
    return model.identify(pa.array(texts, pa.large_string())).column("language").to_pylist()


def mixtures(model: LanguageModel, folder: Path) -> dict[str, tuple[int, int]]:
    """(flagged, all) texts by how they are mixed: sentences of the rarer language in ten; 0: one language."""
    groups = defaultdict(list)
    for row in rows(folder / "mixed.jsonl.gz"):
        groups[str(min(row["langs"].values()))].append(row["text"])
    groups["0"] = [row["text"] for row in rows(folder / "udhr.jsonl.gz") if row["bcp47"] in model.codes]
    flags = {}
    for name, texts in sorted(groups.items()):
        flagged = model.identify(pa.array(texts, pa.large_string())).column("language_mixed").to_pylist()
        flags[name] = (sum(flagged), len(texts))
    return flags


def arms(model: LanguageModel, path: Path, documents: Sequence[str]) -> dict[str, Callable[[], float]]:
    """CPU seconds of each arm over the documents."""
    batches = [pa.array(documents[i : i + BATCH], pa.large_string()) for i in range(0, len(documents), BATCH)]
    alone = fasttext.load_model(str(path))
    prepared = [_heads(batch) for batch in batches]
    single = re.compile(r"\s+")

    def one_by_one(document: str) -> None:
        line = single.sub(" ", document[:HEAD_CHARS].replace("</s>", " ")).strip()
        if any(map(str.isalpha, line)):
            alone.predict(line.lower())

    return {
        "identify": timed(lambda: [model.identify(batch) for batch in batches]),
        "fasttext alone": timed(lambda: [alone.predict(list(texts)) for texts in prepared]),
        "one by one": timed(lambda: [one_by_one(document) for document in documents]),
    }


def _heads(batch: pa.LargeStringArray) -> list[str]:
    numbers = np.arange(len(batch))
    made = lines(batch, numbers, np.zeros(len(batch), np.int64), places(batch).head)
    return [made.line(int(i)).lower() for i in np.flatnonzero(made.letters)]


def _report(
    scores: Sequence[dict[str, Any]],
    flags: Mapping[str, tuple[int, int]],
    paired: Mapping[str, Sequence[float]],
    documents: int,
    quick: bool,
    as_json: bool,
) -> int:
    known = [score for score in scores if score["known"]]
    least = {name: min(seconds) for name, seconds in paired.items()}
    lines_ = [(s["language"], *(_share(s, "right", n) for n in LENGTHS), _twins([s]), _taken(s)) for s in known]
    for length in LENGTHS:
        assert any(score["texts"][length] for score in known), f"no text of {length} characters"
    means = [np.mean([s["right"][n] / s["texts"][n] for s in known if s["texts"][n]]) for n in LENGTHS]
    lines_.append(("mean", *(f"{mean:.3f}" for mean in means), _twins(known), ""))
    heads = ("language", *(f"{n} chars" for n in LENGTHS), "twins", "else taken for")
    unknown = ", ".join(score["language"] for score in scores if not score["known"])
    rows_ = [
        (name, f"{s / documents * 1e3:.3f}", f"{max(paired[name]) / documents * 1e3:.3f}") for name, s in least.items()
    ]
    mixed = [(name, f"{hit} of {total}", f"{hit / total:.3f}") for name, (hit, total) in flags.items()]
    text = "\n\n".join(
        (
            table(heads, lines_, numbers=range(1, len(LENGTHS) + 2)),
            f"Not in the model: {unknown or 'none'}.",
            table(("rarer language, sentences of ten", "flagged as mixed", "share"), mixed, numbers=(2,)),
            table((f"{documents} documents", "CPU ms each", "most"), rows_, numbers=(1, 2)),
        )
    )
    ratios = {
        "accuracy_300": float(means[LENGTHS.index(300)]),
        "twins": sum(sum(s["twins"].values()) for s in known) / sum(sum(s["texts"].values()) for s in known),
        "one_by_one": least["one by one"] / least["identify"],
        "fasttext_alone": least["fasttext alone"] / least["identify"],
    }
    document = {
        "subject": "language",
        "quick": quick,
        "accuracy": scores,
        "mixed": flags,
        "documents": documents,
        "cpu_s": paired,
        "versions": {name: version(name) for name in ("corpusmill", "fasttext-community")},
    }
    return report(document, text, judged("language", ratios), as_json)


def _share(score: Mapping[str, Any], what: str, length: int) -> str:
    total = score["texts"][length]
    return f"{score[what][length] / total:.3f}" if total else "-"


def _twins(scores: Sequence[Mapping[str, Any]]) -> str:
    total = sum(sum(score["texts"].values()) for score in scores)
    return f"{sum(sum(score['twins'].values()) for score in scores) / total:.3f}"


def _taken(score: Mapping[str, Any]) -> str:
    return ", ".join(f"{code} {count}" for code, count in score["taken_for"].most_common(3))


if __name__ == "__main__":
    run(main)
