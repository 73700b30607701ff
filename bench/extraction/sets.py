"""Pages with text chosen by people: sets read from disk, tokens and scores as every row of a comparison needs them.

A set is a folder with `truth.jsonl.gz` (one record a line: `id`, `html`, and `text`, `gold` or `with` and `without`)
and the pages it names. Tokens: lower case; each Han, Kana or Hangul character is one, else maximal runs of word
characters. Scores compare multisets of tokens.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusmill.errors import NotFound, UsageError
from corpusmill.readers.charset import decode

_CJK = "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
_CJK += "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_WORD = re.compile(r"[^\W_]+")
_WRAPPER = re.compile(rb"</?text\b[^>]*>", re.IGNORECASE)
_BLOCK_END = re.compile(
    r"(?i)</?(?:p|div|h[1-6]|li|ul|ol|tr|table|blockquote|pre|section|article|figure|dd|dt)\b[^>]*>|<br\b[^>]*>"
)
_UNSEEN = re.compile(r"(?is)<(script|style|noscript|template)\b.*?</\1\s*>|<!--.*?-->")
_TAG = re.compile(r"<[^>]*>")
_MARKS = re.compile(r"(?im)^\s*(?:<(?:h|p|l)>)")
DRAGNET_COMMENTS = "!@#$%^&*()"
SEEN_PAGES = Path(__file__).resolve().parents[2] / "extractor_training" / "pages.txt"
"""First 16 hexadecimal digits of the sha256 of every page that the shipped model was trained on."""


@dataclass(frozen=True)
class Page:
    """One page of a set; `truth` is None where only segments are known."""

    id: str
    raw: bytes
    truth: str | None
    kind: str | None = None
    url: str = ""
    markdown: str | None = None
    title: str | None = None
    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def text(self) -> str:
        """The decoded page."""
        return decode(self.raw).text


@dataclass(frozen=True)
class Score:
    """Word F1, precision and recall of one page."""

    f1: float
    precision: float
    recall: float


def tokens(text: str) -> list[str]:
    """Tokens of a text, in order."""
    return _TOKEN.findall(text.lower())


def word_score(found: Mapping[str, int], truth: Mapping[str, int]) -> Score:
    """Score of token counts; both empty is right, one empty is wrong."""
    have, want = sum(found.values()), sum(truth.values())
    if not have or not want:
        same = float(have == want)
        return Score(same, same, same)
    both = sum(min(count, truth.get(token, 0)) for token, count in found.items())
    precision, recall = both / have, both / want
    return Score(2 * both / (have + want), precision, recall)


def score(found: str, truth: str) -> Score:
    """Word score of a text."""
    return word_score(Counter(tokens(found)), Counter(tokens(truth)))


def load(folder: Path) -> list[Page]:
    """All pages of a set.

    Raises:
        NotFound: the folder is no set. UsageError: a record has no truth of a known form.
    """
    if not (folder / "truth.jsonl.gz").is_file():
        raise NotFound(f"no set in {folder}", "there is no truth.jsonl.gz", "Give a folder in the form of a set.")
    return list(_pages(folder))


def sets_in(folders: Sequence[Path]) -> dict[str, Path]:
    """Sets by name: each folder is one, or holds some. Sets of one name get their parent's before it.

    Raises:
        NotFound: there is no set in a folder.
    """
    paths: list[Path] = []
    for folder in folders:
        inside = [folder] if (folder / "truth.jsonl.gz").is_file() else []
        inside = inside or sorted(p.parent for p in folder.glob("*/truth.jsonl.gz"))
        if not inside:
            raise NotFound(f"no set in {folder}", "neither it nor a folder in it has a truth.jsonl.gz")
        paths.extend(path.resolve() for path in inside)
    paths = list(dict.fromkeys(paths))
    names = Counter(path.name for path in paths)
    return {path.name if names[path.name] == 1 else f"{path.parent.name}/{path.name}": path for path in paths}


def page_key(raw: bytes) -> str:
    """How a page stands in SEEN_PAGES."""
    return hashlib.sha256(raw).hexdigest()[:16]


def share_trained_on(pages: Sequence[Page]) -> float:
    """Share of the pages that the shipped model was trained on."""
    seen = set(SEEN_PAGES.read_text(encoding="ascii").split())
    return sum(page_key(page.raw) in seen for page in pages) / max(len(pages), 1)


def _pages(folder: Path) -> Iterator[Page]:
    for record in _records(folder / "truth.jsonl.gz"):
        raw = gzip.decompress((folder / record["html"]).read_bytes())
        if "gold" in record and b"<text" in raw[:4096].lower():
            raw = _WRAPPER.sub(b"", raw)
        kind = record.get("page_type")
        yield Page(
            id=record["id"],
            raw=raw,
            truth=_truth(record),
            kind=kind.get("primary") if isinstance(kind, dict) else kind,
            url=record.get("url") or "",
            markdown=record.get("markdown"),
            title=record.get("title"),
            kept=tuple(record.get("with") or ()),
            dropped=tuple(record.get("without") or ()),
        )


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def _truth(record: Mapping[str, Any]) -> str | None:
    if record.get("text") is not None:
        return str(record["text"])
    if record.get("gold") is not None:
        return gold_text(str(record["gold"]))
    if record.get("with") is not None:
        return None
    raise UsageError(f"record {record.get('id')!r} has no truth", "expected text, gold, or with and without")


def gold_text(gold: str) -> str:
    """Truth out of the forms it was published in: CleanEval's marks, dragnet's comments, readability's HTML."""
    gold = gold.split(DRAGNET_COMMENTS)[0]
    if len(re.findall(r"</(?:p|div|span|a)>", gold)) > 2:
        return html.unescape(_TAG.sub("", _BLOCK_END.sub("\n", _UNSEEN.sub("", gold))))
    lines = gold.split("\n")
    for number, line in enumerate(lines):
        if line.strip():
            if line.lstrip().startswith("URL:"):
                del lines[number]
            break
    return html.unescape(_MARKS.sub("", re.sub(r"(?s)<!--.*?-->", "", "\n".join(lines))))


def ordered_f1(found: Sequence[str], truth: Sequence[str]) -> float:
    """ROUGE-L: F1 by the longest common subsequence of tokens (bit-parallel, Hyyrö 2004)."""
    if not found or not truth:
        return float(len(found) == len(truth))
    return 2 * common_length(found, truth) / (len(found) + len(truth))


def common_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    full = (1 << len(a)) - 1
    state = full
    for token in b:
        matched = state & places.get(token, 0)
        state = (state + matched | state - matched) & full
    return len(a) - state.bit_count()


def shingle_counts(text: str, n: int = 4) -> Counter[tuple[str, ...]]:
    """The 4-grams of the article extraction benchmark: case-sensitive runs of word characters; a short text is one."""
    words = re.findall(r"\w+", text)
    if len(words) < n:
        return Counter([tuple(words)] if words else [])
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


def benchmark_measure(pairs: Iterable[tuple[str, str]]) -> tuple[float, float, float]:
    """The article extraction benchmark's own F1, precision and recall over (found, truth) pairs."""
    precisions: list[float] = []
    recalls: list[float] = []
    for found, truth in pairs:
        have, want = shingle_counts(found), shingle_counts(truth)
        both, total = (have & want).total(), max(have.total(), want.total(), 1)
        tp, fp, fn = both / total, (have.total() - both) / total, (want.total() - both) / total
        if fp == fn == 0:
            precisions.append(1.0)
            recalls.append(1.0)
            continue
        if tp + fp > 0:
            precisions.append(tp / (tp + fp))
        if tp + fn > 0:
            recalls.append(tp / (tp + fn))
    precision = sum(precisions) / max(len(precisions), 1)
    recall = sum(recalls) / max(len(recalls), 1)
    return 2 * precision * recall / max(precision + recall, 1e-12), precision, recall


def plain_form(text: str) -> str:
    """Words with one blank between them and around, lower case: for segments."""
    return " " + " ".join(_WORD.findall(text.lower())) + " "
