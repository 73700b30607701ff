"""Decisions document by document: our rules against datatrove's own filters, each difference named.

Two runs of datatrove 0.10.1 on the same texts: with our words in place of its tokenizer (what is left are differences
of definition: equal on 99.9 % of the texts is the floor), and as it comes, with spaCy's words, on the texts in English
(agreement by rule).

Filters: Gopher repetition and quality (rules/gopher-datatrove.toml), C4 (rules/c4.toml), C4 without end marks and
FineWeb on what that leaves (rules/fineweb.toml). Of C4 the texts that are left are compared too.
"""

from __future__ import annotations

import json
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.common import REPOSITORY, Ratio, arguments, judged, note, report, run
from bench.peer import Peer
from bench.texts import in_english, texts
from corpusmill.kernels.edits import spans
from corpusmill.kernels.edits.lines import line_edits
from corpusmill.kernels.measures.measures import measures
from corpusmill.kernels.rules.bounds import decide
from corpusmill.kernels.rules.rules import RuleSet, load_rules
from corpusmill.kernels.words.table import word_table
from corpusmill.plain_text import table

QUICK = 400
SPACY_TEXTS = 1500
OURS, SPACY = "ours", "spacy"
C4_RULES = ("lorem_ipsum", "curly_bracket", "too_few_sentences")
FINEWEB_RULES = ("too_few_end_marks", "too_many_short_lines", "duplicate_line_body", "too_many_line_breaks")
RULE_FILES = ("gopher-datatrove", "fineweb", "c4")
FILTERS = ("gopher_repetition", "gopher_quality", "c4", "c4_without_end_marks", "fineweb")


@dataclass(frozen=True)
class Ruled:
    """What a rule file says of N texts."""

    broken: Mapping[str, np.ndarray]
    """rule -> bool[N]."""
    values: Mapping[str, np.ndarray]
    """rule -> float64[N], the measure."""
    left: list[str]
    """The clean texts."""


@dataclass(frozen=True)
class Difference:
    """One text on which the two sides disagree."""

    filter: str
    text: int
    ours: str
    theirs: str
    cause: str


def main(argv: Sequence[str]) -> int:
    """Compare, print each difference, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--texts", type=int, help="how many texts (default: all)")
    options = parser.parse_args(argv)
    # Our measures are those of normal form C; both sides get texts in it.
    values = [unicodedata.normalize("NFC", text) for text in texts(QUICK if options.quick else options.texts)]
    note(f"{len(values)} texts, {sum(map(len, values)) / 1e6:.1f} M characters")
    ours = {name: ruled(values, load_rules(REPOSITORY / "rules" / f"{name}.toml")) for name in RULE_FILES}
    if options.no_peer:
        rows = [(name, f"{np.mean(column):.4f}") for name, column in ours["fineweb"].broken.items()]
        return report({"subject": "parity"}, table(("rule", "share broken"), rows, numbers=(1,)), [], options.json)
    english = [i for i, there in enumerate(in_english(values)) if there][: QUICK if options.quick else SPACY_TEXTS]
    with tempfile.TemporaryDirectory(prefix="bench-parity-") as scratch:
        theirs = decided(values, OURS, Path(scratch))
        shipped = decided([values[i] for i in english], SPACY, Path(scratch))
    found = list(differences(values, ours, theirs))
    return _report(values, ours, theirs, found, english, shipped, options)


def ruled(values: list[str], rules: RuleSet) -> Ruled:
    """Our side, as the judge and the filter compute it."""
    text = pa.array(values, pa.large_string())
    cut = line_edits(text, rules.edits, word_table(text))
    clean = spans.apply(text, cut.column("spans"))
    raw = measures(text, rules.measured("raw"))
    left = measures(clean, rules.measured("clean"))
    columns = {name: raw.column(name) for name in raw.schema.names}
    columns |= {f"clean.{name}": left.column(name) for name in left.schema.names}
    columns["removed_word_ratio"] = cut.column("removed_word_ratio")
    batch = pa.record_batch(columns)
    failed = decide(batch, rules.bounds()).failed.to_numpy()
    return Ruled(
        {rule.name: (failed >> i & 1).astype(bool) for i, rule in enumerate(rules.rules)},
        {rule.name: batch.column(rule.column).to_numpy() for rule in rules.rules},
        clean.to_pylist(),
    )


def decided(values: list[str], words: str, scratch: Path) -> list[dict[str, Any]]:
    """datatrove's side: a row a text."""
    note(f"datatrove with {words} words on {len(values)} texts")
    file, out = scratch / f"{words}.jsonl", scratch / f"{words}-decisions.jsonl"
    file.write_text("".join(json.dumps(text) + "\n" for text in values))
    with Peer("datatrove_filters", scratch / f"{words}.log") as peer:
        peer.ask({"texts": str(file), "words": words, "decide": True, "out": str(out)})
    return [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n") if line]


def groups(ours: Mapping[str, Ruled]) -> dict[str, dict[str, np.ndarray]]:
    """filter -> its rules -> bool[N]."""
    gopher, fineweb = ours["gopher-datatrove"].broken, ours["fineweb"].broken
    names = list(gopher)
    split = names.index("too_few_words")
    return {
        "gopher_repetition": {name: gopher[name] for name in names[:split]},
        "gopher_quality": {name: gopher[name] for name in names[split:]},
        "c4": dict(ours["c4"].broken),
        "c4_without_end_marks": {name: fineweb[name] for name in C4_RULES},
        "fineweb": {name: fineweb[name] for name in FINEWEB_RULES},
    }


def compared(filter_name: str, theirs: Sequence[Mapping[str, Any]]) -> list[int]:
    """The texts that a filter came to: FineWeb's sees what C4 keeps."""
    return [i for i, row in enumerate(theirs) if filter_name in row]


def differences(
    values: list[str], ours: Mapping[str, Ruled], theirs: Sequence[Mapping[str, Any]]
) -> Iterator[Difference]:
    """Every text that one side keeps and the other drops."""
    for name, rules in groups(ours).items():
        side = ours["gopher-datatrove" if name.startswith("gopher") else "c4" if name == "c4" else "fineweb"]
        for i in compared(name, theirs):
            broken = [rule for rule, column in rules.items() if column[i]]
            reason = theirs[i][name]
            if bool(broken) == (reason is not None):
                continue
            shown = ", ".join(f"{rule} {side.values[rule][i]:.6g}" for rule in broken) or "kept"
            yield Difference(name, i, shown, reason or "kept", cause(values[i], broken, reason))


def cause(text: str, broken: Sequence[str], reason: str | None) -> str:
    """Why the two sides differ on a text, where that can be said."""
    from tests.corpusmill.kernels.reference import tokens

    words = [token for token, _ in tokens(text)]
    if not any(character.isalnum() for character in text):
        return "no word at all: datatrove's mean of nothing is no number and passes, ours is 0"
    sizes = [int(part) for part in str(reason).split("_") if part.isdigit()] if reason else []
    sizes += [n for n in range(5, 11) if f"duplicate_{n}grams" in broken]
    for n in sizes:
        if n >= 5 and joined_duplicates(words, n) != separate_duplicates(words, n):
            return f"datatrove joins the words of a {n}-gram without a blank, so that different ones are equal"
    return "not explained"


def joined_duplicates(words: Sequence[str], n: int) -> int:
    """Characters of duplicated n-grams where n-grams are joined without a separator."""
    return _duplicates(words, n, "".join)


def separate_duplicates(words: Sequence[str], n: int) -> int:
    """The same, word by word."""
    return _duplicates(words, n, tuple)


def _duplicates(words: Sequence[str], n: int, key: Callable[[Sequence[str]], Any]) -> int:
    met, chars, i = set(), 0, 0
    while i + n <= len(words):
        gram = key(words[i : i + n])
        if gram in met:
            chars += sum(map(len, words[i : i + n]))
            i += n
        else:
            met.add(gram)
            i += 1
    return chars


def agreement_by_rule(
    ours: Mapping[str, Ruled], english: Sequence[int], shipped: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Share of the English texts on which a rule alone says the same with spaCy's words."""
    fineweb = dict(ours["fineweb"].broken)
    fineweb["too_many_hashes_or_ellipses"] = fineweb["too_many_hashes"] | fineweb["too_many_ellipses"]
    shares = {}
    for name, column in fineweb.items():
        rows = [(column[i], row[name] is not None) for i, row in zip(english, shipped, strict=True) if name in row]
        if rows:
            shares[name] = float(np.mean([a == b for a, b in rows]))
    for name, rules in groups(ours).items():
        rows = [
            (any(column[i] for column in rules.values()), row[name] is not None)
            for i, row in zip(english, shipped, strict=True)
            if name in row
        ]
        shares[f"all of {name}"] = float(np.mean([a == b for a, b in rows]))
    return shares


def _texts_left(ours: Mapping[str, Ruled], theirs: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """filter -> (texts that both keep, of which what C4 leaves is the same)."""
    found = {}
    for name, side, column in (("c4", "c4", "c4_text"), ("c4_without_end_marks", "fineweb", "fineweb_text")):
        kept = [
            i
            for i, row in enumerate(theirs)
            if row[name] is None and not any(ours[side].broken[rule][i] for rule in C4_RULES)
        ]
        same = sum(ours[side].left[i].splitlines() == theirs[i][column].splitlines() for i in kept)
        found[name] = (len(kept), same)
    return found


def _report(
    values: list[str],
    ours: Mapping[str, Ruled],
    theirs: Sequence[Mapping[str, Any]],
    found: Sequence[Difference],
    english: Sequence[int],
    shipped: Sequence[Mapping[str, Any]],
    options: Any,
) -> int:
    left = _texts_left(ours, theirs)
    shares, rows = {}, []
    for name in FILTERS:
        places = compared(name, theirs)
        here = [difference for difference in found if difference.filter == name]
        shares[name] = 1 - len(here) / max(len(places), 1)
        dropped = sum(theirs[i][name] is not None for i in places)
        same = f"{left[name][1]} of {left[name][0]}" if name in left else ""
        rows.append((name, len(places), dropped, len(here), f"{100 * shares[name]:.3f}", same))
    heads = ("filter, our words", "texts", "datatrove drops", "differ", "equal, %", "same text left")
    parts = [table(heads, rows, numbers=(1, 2, 3, 4))]
    if found:
        listed = [(d.filter, d.text, d.ours, d.theirs, d.cause) for d in found]
        parts.append(table(("filter", "text", "ours", "datatrove", "because"), listed, numbers=(1,)))
    by_rule = agreement_by_rule(ours, english, shipped)
    lines = [(name, f"{100 * share:.2f}") for name, share in by_rule.items()]
    parts.append(f"As shipped, with spaCy's words, on {len(english)} texts in English:")
    parts.append(table(("rule", "equal, %"), lines, numbers=(1,)))
    ratios: list[Ratio] = judged("parity", shares)
    ratios += judged("parity_shipped", {"least_rule": min(by_rule.values())})
    document = {
        "subject": "parity",
        "quick": options.quick,
        "texts": len(values),
        "differences": [vars(difference) for difference in found],
        "equal": shares,
        "same_text_left": left,
        "spacy_texts": len(english),
        "equal_as_shipped": by_rule,
    }
    return report(document, "\n\n".join(parts), ratios, options.json)


if __name__ == "__main__":
    run(main)
