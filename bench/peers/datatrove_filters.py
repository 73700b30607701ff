"""datatrove's filters on given texts: how long they take, or what each decides; runs in the peers' venv.

Words are "spacy" (as datatrove comes), "split" (at spaces) or "ours" (tests/corpusmill/kernels/reference.py,
which is plain Python and says what our word table cuts).

A request to time: {"texts": a file of JSON strings, a line each, "words", "chain"}; with `chain` a text goes no further
than the first filter that drops it. The answer: {"cpu_s", "kept"}.

A request to decide: {"texts", "words", "decide": true, "out": a file}. The answer: {"rows"}; a line of `out` is what
each filter and each rule alone says of a text: {"gopher_repetition": null or datatrove's reason, ...}, with "c4_text"
and "fineweb_text", what C4 leaves of the text where it keeps it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.utils.logging import logger
from datatrove.utils.word_tokenizers import SpaCyTokenizer, WordTokenizer
from serve import serve
from stopwatch import cpu_seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.corpusmill.kernels import reference

NEVER = 10**9


class Plain(WordTokenizer):
    """Words by one function, sentences by another."""

    def __init__(self, words: Callable[[str], list[str]], sentences: Callable[[str], list[str]]) -> None:
        super().__init__()
        self.words, self.sentences = words, sentences

    def word_tokenize(self, text: str) -> list[str]:
        return self.words(text)

    def sent_tokenize(self, text: str) -> list[str]:
        return self.sentences(text)

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        """As many as there are sentences, whichever: filters only count them."""
        count = len(self.sentences(text))
        return [(i, len(text) if i == count - 1 else i) for i in range(count)]


TOKENIZERS: dict[str, Callable[[], WordTokenizer]] = {
    "spacy": lambda: SpaCyTokenizer("en"),
    "split": lambda: Plain(str.split, lambda text: [text]),
    "ours": lambda: Plain(
        lambda text: [token for token, _ in reference.tokens(text)], lambda text: [""] * reference.sentences(text)
    ),
}


def pipeline(words: WordTokenizer) -> dict[str, BaseFilter]:
    """The filters of examples/fineweb.py, in its order."""
    return {
        "gopher_repetition": GopherRepetitionFilter(language=words),
        "gopher_quality": GopherQualityFilter(language=words),
        "c4": C4QualityFilter(filter_no_terminal_punct=False, language=words),
        "fineweb": FineWebQualityFilter(language=words),
    }


def alone(words: WordTokenizer) -> dict[str, BaseFilter]:
    """A filter for each rule of Gopher's, by our name of the rule's measure, with every other rule off."""
    off_quality = dict.fromkeys(
        (
            *("min_doc_words", "max_doc_words", "min_avg_word_length", "max_avg_word_length"),
            *("max_symbol_word_ratio", "max_bullet_lines_ratio", "max_ellipsis_lines_ratio"),
            *("max_non_alpha_words_ratio", "min_stop_words"),
        )
    )
    off_repetition: dict[str, Any] = {
        **dict.fromkeys(("dup_line_frac", "dup_para_frac", "dup_line_char_frac", "dup_para_char_frac")),
        "top_n_grams": (),
        "dup_n_grams": (),
    }

    def quality(**rules: Any) -> BaseFilter:
        return GopherQualityFilter(**{**off_quality, **rules}, language=words)

    def repetition(**rules: Any) -> BaseFilter:
        return GopherRepetitionFilter(**{**off_repetition, **rules}, language=words)

    tops, dups = ((2, 0.2), (3, 0.18), (4, 0.16)), zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.10), strict=True)
    return {
        "duplicate_lines": repetition(dup_line_frac=0.3),
        "duplicate_paragraphs": repetition(dup_para_frac=0.3),
        "duplicate_line_characters": repetition(dup_line_char_frac=0.2),
        "duplicate_paragraph_characters": repetition(dup_para_char_frac=0.2),
        **{f"top_{n}gram": repetition(top_n_grams=((n, bound),)) for n, bound in tops},
        **{f"duplicate_{n}grams": repetition(dup_n_grams=((n, bound),)) for n, bound in dups},
        "too_few_words": quality(min_doc_words=50),
        "too_many_words": quality(max_doc_words=100_000),
        "words_too_short": quality(min_avg_word_length=3),
        "words_too_long": quality(max_avg_word_length=10),
        "too_many_hashes_or_ellipses": quality(max_symbol_word_ratio=0.1),
        "too_many_bullet_lines": quality(max_bullet_lines_ratio=0.9),
        "too_many_ellipsis_lines": quality(max_ellipsis_lines_ratio=0.3),
        "too_few_alphabetic_words": quality(max_non_alpha_words_ratio=0.8),
        "too_few_stop_words": quality(min_stop_words=2),
    }


def cleaned_alone(words: WordTokenizer) -> dict[str, BaseFilter]:
    """The same for FineWeb's rules."""
    off = {
        "line_punct_thr": -1.0,
        "short_line_thr": NEVER,
        "char_duplicates_ratio": NEVER,
        "new_line_ratio": NEVER,
        "language": words,
    }
    return {
        "too_few_end_marks": FineWebQualityFilter(**{**off, "line_punct_thr": 0.12}),
        "too_many_short_lines": FineWebQualityFilter(**{**off, "short_line_thr": 0.67}),
        "duplicate_line_body": FineWebQualityFilter(**{**off, "char_duplicates_ratio": 0.01}),
        "too_many_line_breaks": FineWebQualityFilter(**{**off, "new_line_ratio": 0.3}),
    }


def reason(step: BaseFilter, document: Document) -> str | None:
    """Why a filter drops a document; None where it keeps it."""
    result = step.filter(document)
    return None if result is True else result[1] if isinstance(result, tuple) else "dropped"


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Time the pipeline, or decide."""
    with Path(request["texts"]).open(encoding="utf-8", newline="\n") as lines:
        texts = [json.loads(line) for line in lines]
    words = TOKENIZERS[request["words"]]()
    return decide(request, texts, words) if request.get("decide") else timed(request, texts, words)


def timed(request: dict[str, Any], texts: list[str], words: WordTokenizer) -> dict[str, Any]:
    steps = pipeline(words)
    words.word_tokenize("warm")
    began, kept = cpu_seconds(), 0
    for i, text in enumerate(texts):
        document, passed = Document(text, str(i)), True
        for step in steps.values():
            passed = reason(step, document) is None and passed
            if request["chain"] and not passed:
                break
        kept += passed
    return {"cpu_s": cpu_seconds() - began, "kept": kept}


def decide(request: dict[str, Any], texts: list[str], words: WordTokenizer) -> dict[str, Any]:
    steps, rules, cleaned = pipeline(words), alone(words), cleaned_alone(words)
    c4 = C4QualityFilter(language=words)
    with Path(request["out"]).open("w", encoding="utf-8") as out:
        for i, text in enumerate(texts):
            row: dict[str, str | None] = {}
            for name in ("gopher_repetition", "gopher_quality"):
                row[name] = reason(steps[name], Document(text, str(i)))
            row |= {name: reason(rule, Document(text, str(i))) for name, rule in rules.items()}
            document = Document(text, str(i))
            row["c4"] = reason(c4, document)
            row["c4_text"] = document.text
            document = Document(text, str(i))
            row["c4_without_end_marks"] = reason(steps["c4"], document)
            row["fineweb_text"] = document.text
            if row["c4_without_end_marks"] is None:  # what FineWeb's filter sees is what C4 leaves
                row["fineweb"] = reason(steps["fineweb"], document)
                row |= {name: reason(rule, document) for name, rule in cleaned.items()}
            out.write(json.dumps(row) + "\n")
    return {"rows": len(texts)}


if __name__ == "__main__":
    logger.remove()
    serve(handle)
