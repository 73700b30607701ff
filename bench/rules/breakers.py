"""What rule files do to the mini-crawl's pages that break a rule on purpose, and to those that careful rules keep.

A page is extracted as recipes/crawl.toml does and judged by each rule file (languages are left out). Pages of kind
`rule-breaker` name the rule they break in the truth; they may break others too. Pages marked `keep-at-risk` (verse,
tables, lists, code) are shown one by one. Exit code 4: a rule-breaker that neither its end before the rules nor
rules/gopher.toml drops.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.common import REPOSITORY, arguments, report, run
from corpusmill.errors import CheckFailed, NotFound
from corpusmill.extractor.modes import extract
from corpusmill.kernels.edits import spans
from corpusmill.kernels.edits.lines import line_edits
from corpusmill.kernels.measures.measures import measures
from corpusmill.kernels.rules.bounds import decide
from corpusmill.kernels.rules.rules import load_rules
from corpusmill.plain_text import table
from corpusmill.readers.outcomes import outcomes

RULE_FILES = ("gopher", "gopher-datatrove", "c4", "fineweb", "dclm")
DROPPED_BY = "gopher"


@dataclass
class Judged:
    """One page: what the truth says of it, why it ended before the rules, and the first rule of each file it breaks."""

    url: str
    kind: str
    truth: str
    expect: str = ""
    text: str = ""
    ended: str | None = None
    broken: dict[str, str | None] = field(default_factory=dict)
    values: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)


def main(argv: Sequence[str]) -> int:
    """Judge, print, and say whether every rule-breaker is dropped."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="the mini-crawl; else the test data's")
    options = parser.parse_args(argv)
    data = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    pages = judged_pages(options.root or data / "mini-crawl")
    breakers = [page for page in pages if page.kind == "rule-breaker"]
    risked = [page for page in pages if page.kind != "rule-breaker"]
    kept = [page for page in breakers if page.ended is None and page.broken[DROPPED_BY] is None]
    heads = ("the page", *RULE_FILES)
    rows = []
    for truth in sorted({page.truth for page in breakers}):
        here = [page for page in breakers if page.truth == truth]
        rows.append((f"{truth} ({len(here)})", *(_counted(here, name) for name in RULE_FILES)))
    lines = [
        (page.url, page.kind.removeprefix("keep-"), *(page.ended or _shown(page, name) for name in RULE_FILES))
        for page in risked
    ]
    text = f"Rule-breakers: the first rule that drops them\n\n{table(heads, rows)}\n\nAt risk, one by one\n\n"
    text += table(("the page", "kind", *RULE_FILES), lines)
    if kept:
        text += f"\n\nNot dropped by {DROPPED_BY}: {', '.join(page.url for page in kept)}"
    document = {
        "subject": "breakers",
        "pages": [{key: value for key, value in vars(page).items() if key != "text"} for page in pages],
        "not_dropped": [page.url for page in kept],
    }
    return report(document, text, [], options.json) or (CheckFailed.exit_code if kept else 0)


def judged_pages(root: Path) -> list[Judged]:
    """Every rule-breaker and page at risk of the mini-crawl, judged.

    Raises:
        NotFound: there is no truth of such a crawl.
    """
    judged = extracted(root, lambda row: row["kind"] == "rule-breaker" or row["expect"] == "keep-at-risk")
    apply([page for page in judged if page.ended is None])
    return judged


def extracted(root: Path, wanted_row: Callable[[Mapping[str, Any]], bool]) -> list[Judged]:
    """The pages of the mini-crawl whose rows of the truth are wanted, with their texts.

    Raises:
        NotFound: there is no truth of such a crawl.
    """
    truth_file = root / "truth.jsonl.gz"
    if not truth_file.is_file():
        raise NotFound(f"no {truth_file}", "expected the mini-crawl of the test data", "Set CORPUSMILL_TEST_DATA.")
    wanted: dict[str, dict[int, Judged]] = {}
    with gzip.open(truth_file, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            row = json.loads(line)
            if wanted_row(row):
                page = Judged(row["url"], row["kind"], row["reason"] or "", row["expect"])
                wanted.setdefault(row["warc"], {})[row["offset"]] = page
    for warc, pages in sorted(wanted.items()):
        for one in outcomes(root / warc):
            if (found := pages.get(one.offset)) is None:
                continue
            found.text = extract(one.html, "auto").text if one.html else one.text or ""
            found.ended = one.reason or (None if found.text else "no_text")
    return [page for _, pages in sorted(wanted.items()) for _, page in sorted(pages.items())]


def apply(pages: Sequence[Judged]) -> None:
    """Judge pages by every rule file."""
    text = pa.array([page.text for page in pages], pa.large_string())
    for name in RULE_FILES:
        rules = load_rules(REPOSITORY / "rules" / f"{name}.toml")
        raw = measures(text, rules.measured("raw"))
        columns = {column: raw.column(column) for column in raw.schema.names}
        if rules.edits:
            cut = line_edits(text, rules.edits)
            clean = measures(spans.apply(text, cut.column("spans")), rules.measured("clean"))
            columns |= {f"clean.{column}": clean.column(column) for column in clean.schema.names}
            columns["removed_word_ratio"] = cut.column("removed_word_ratio")
        found = decide(pa.record_batch(columns), rules.bounds())
        ends = (column.to_pylist() for column in (found.reason, found.value, found.bound))
        for page, reason, value, bound in zip(pages, *ends, strict=True):
            page.broken[name], page.values[name] = reason, (value, bound)


def _counted(pages: Sequence[Judged], name: str) -> str:
    counts = Counter(page.ended or page.broken[name] or "kept" for page in pages)
    return ", ".join(f"{reason} {count}" if len(counts) > 1 else reason for reason, count in sorted(counts.items()))


def _shown(page: Judged, name: str) -> str:
    value, bound = page.values[name]
    return f"{page.broken[name]} {value:.3g} ({bound:g})" if page.broken[name] else "kept"


if __name__ == "__main__":
    run(main)
