"""Measures, rules and line edits: megabytes of text per CPU second, beside datatrove's filters.

Paired in one run on the same texts. Ours is all that rules/fineweb.toml needs of a text: the edits, the measures of
the text before and after them, the rules. datatrove runs its four filters on every text (each stops at the first of its
rules that drops the text), once with its tokenizer replaced by a plain split, once as it comes, with spaCy's words.

Besides, our side alone: all measures of datatrove's definitions together, those of every definition, and what the judge
takes for a mean document of the recipe fineweb without languages and perplexity.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.common import REPOSITORY, Ratio, arguments, interleaved, judged, note, report, run
from bench.peer import Peer
from bench.peers.stopwatch import cpu_seconds
from bench.texts import texts
from corpusmill.config import load_recipe
from corpusmill.kernels.edits import spans
from corpusmill.kernels.edits.lines import line_edits
from corpusmill.kernels.measures.families import FAMILIES, MeasureSpec
from corpusmill.kernels.measures.measures import measures
from corpusmill.kernels.rules.bounds import decide
from corpusmill.kernels.rules.rules import load_rules
from corpusmill.kernels.words.table import word_table
from corpusmill.plain_text import table
from tasks.judge.groups import groups_of
from tasks.judge.judge import Pass

QUICK_TEXTS = 300
QUICK_PASSES = 5
"""Over so few texts a pass takes 20 ms, less than what else a machine does at a time: the least of some counts. What is
measured against datatrove has one pass, as datatrove has."""
PEER_TEXTS = 800
BATCH_ROWS = 1024
JUDGE_MS = 0.35
"""CPU milliseconds that the judge may take for a mean document, languages and perplexity left out."""

RULES, SPLIT, SPACY = "ours, rules", "datatrove, split", "datatrove, spaCy"
DATATROVE, ALL, JUDGE = "ours, datatrove's measures", "ours, every measure", "ours, judge"


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    options = parser.parse_args(argv)
    sample = texts(QUICK_TEXTS if options.quick else PEER_TEXTS)
    whole = sample if options.quick else texts()
    with tempfile.TemporaryDirectory(prefix="bench-measures-") as temporary, ExitStack() as peers:
        scratch = Path(temporary)
        file = scratch / "texts.jsonl"
        file.write_text("".join(json.dumps(text) + "\n" for text in sample))
        arms: dict[str, Callable[[], float]] = {RULES: _ours(batches(sample), by_rules())}
        if not options.no_peer:
            peer = peers.enter_context(Peer("datatrove_filters", scratch / "peer.log"))
            for name, words in ((SPLIT, "split"), (SPACY, "spacy")):
                arms[name] = _theirs(peer, file, words)
        passes = QUICK_PASSES if options.quick else 1
        arms[DATATROVE] = _ours(batches(whole), _measure(MeasureSpec(("gopher", "fineweb", "page"))), passes)
        arms[ALL] = _ours(batches(whole), _measure(MeasureSpec(tuple(FAMILIES))), passes)
        arms[JUDGE] = _ours(batches(whole), by_judge(), passes)
        note("warm-up")
        for name, once in arms.items():
            if name not in (SPLIT, SPACY):
                once()
        paired = interleaved(arms, options.repeats or (2 if options.quick else 3), note)
        return _report(sample, whole, paired, options)


def batches(values: Sequence[str]) -> list[pa.LargeStringArray]:
    """The texts as the judge reads them."""
    column = pa.array(values, pa.large_string())
    return [column.slice(i, BATCH_ROWS) for i in range(0, len(column), BATCH_ROWS)]


def by_rules() -> Callable[[pa.LargeStringArray], object]:
    """What rules/fineweb.toml takes, from texts to reasons."""
    rules = load_rules(REPOSITORY / "rules" / "fineweb.toml")
    raw, clean = rules.measured("raw"), rules.measured("clean")

    def once(text: pa.LargeStringArray) -> object:
        words = word_table(text)
        cut = line_edits(text, rules.edits, words)
        before = measures(text, raw, words)
        after = measures(spans.apply(text, cut.column("spans")), clean)
        columns = {name: before.column(name) for name in before.schema.names}
        columns |= {f"clean.{name}": after.column(name) for name in after.schema.names}
        return decide(pa.record_batch(columns), rules.bounds())

    return once


def by_judge() -> Callable[[pa.LargeStringArray], object]:
    """The attribute groups of recipes/fineweb.toml but languages."""
    recipe = load_recipe("fineweb")
    groups = {name: group for name, group in groups_of(recipe).items() if name != "language"}
    work = Pass(groups, list(groups.values()), recipe)
    return lambda text: list(work.over(text))


def _measure(spec: MeasureSpec) -> Callable[[pa.LargeStringArray], object]:
    return lambda text: measures(text, spec)


def _ours(
    parts: Sequence[pa.LargeStringArray], work: Callable[[pa.LargeStringArray], object], passes: int = 1
) -> Callable[[], float]:
    def once() -> float:
        began = cpu_seconds()
        for part in parts:
            work(part)
        return cpu_seconds() - began

    return lambda: min(once() for _ in range(passes))


def _theirs(peer: Peer, file: Path, words: str) -> Callable[[], float]:
    return lambda: float(peer.ask({"texts": str(file), "words": words, "chain": False})["cpu_s"])


def _report(sample: Sequence[str], whole: Sequence[str], paired: Mapping[str, Sequence[float]], options: Any) -> int:
    least = {name: min(seconds) for name, seconds in paired.items()}
    megabytes = {
        name: sum(len(text.encode()) for text in (sample if name in (RULES, SPLIT, SPACY) else whole)) / 1e6
        for name in least
    }
    counts = {name: len(sample) if name in (RULES, SPLIT, SPACY) else len(whole) for name in least}
    rows = [
        (
            name,
            counts[name],
            f"{megabytes[name]:.2f}",
            f"{seconds:.3f}",
            f"{max(paired[name]):.3f}",
            f"{megabytes[name] / seconds:.2f}",
            f"{1000 * seconds / counts[name]:.4f}",
        )
        for name, seconds in least.items()
    ]
    found = {
        "mb_per_s": megabytes[DATATROVE] / least[DATATROVE],
        "judge": JUDGE_MS / (1000 * least[JUDGE] / len(whole)),
    }
    if SPLIT in least:
        found |= {"split": least[SPLIT] / least[RULES], "shipped": least[SPACY] / least[RULES]}
    ratios: list[Ratio] = judged("measures", found)
    heads = ("measures", "texts", "MB", "CPU s", "most", "MB/CPU s", "ms/text")
    text = f"{table(heads, rows, numbers=(1, 2, 3, 4, 5, 6))}\nCPU s: the least of the runs; most: the greatest."
    text += f"\nmb_per_s: of {DATATROVE}. judge: {JUDGE_MS} ms over what a mean text takes."
    document = {
        "subject": "measures",
        "quick": options.quick,
        "texts": counts,
        "megabytes": megabytes,
        "cpu_s": {name: list(seconds) for name, seconds in paired.items()},
        "versions": {name: version(name) for name in ("corpusmill", "numba", "pyarrow")},
    }
    return report(document, text, ratios, options.json)


if __name__ == "__main__":
    run(main)
