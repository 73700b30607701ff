"""What extraction loses by language: pages of a crawl that keep less than a tenth of their visible text; empty ones.

No truth is needed: visible is what the mode `plain` finds, counted in tokens (an ideograph is one); pages with fewer
than 100 are left out. Languages come from the crawl's `truth.jsonl.gz`. Exit code 4 where a language loses more pages
than it may, the greater of one page and one in a hundred, or more than 1.5 % of all pages come out empty.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import REPOSITORY, arguments, note, report, run
from bench.extraction.sets import tokens
from corpusmill.errors import CheckFailed, NotFound, UsageError
from corpusmill.extractor.modes import MODES, Mode, extract
from corpusmill.plain_text import table
from corpusmill.readers.outcomes import outcomes

MIN_WORDS, LOST_SHARE = 100, 0.1
MAX_LOST_SHARE, MAX_EMPTY_SHARE = 0.01, 0.015
QUICK_PAGES = 5


@dataclass(frozen=True)
class Kept:
    """One page: its language, and its words that are visible and kept."""

    language: str
    url: str
    visible: int
    kept: int

    @property
    def lost(self) -> bool:
        """Whether less than a tenth of its text is kept."""
        return self.kept < LOST_SHARE * self.visible


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the bounds hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="a crawl with truth.jsonl.gz; default the test data's")
    parser.add_argument("--mode", default="fast", help="mode of extraction; default fast")
    parser.add_argument("--pages", type=int, help="at most this number of pages of each language, the first")
    options = parser.parse_args(argv)
    if options.mode not in MODES:
        raise UsageError(f"unknown mode {options.mode!r}", f"known: {', '.join(MODES)}", "Correct --mode.")
    data = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    limit = options.pages or (QUICK_PAGES if options.quick else None)
    pages = measured(options.root or data / "mini-crawl", options.mode, limit)
    document = summary(pages)
    code = report(document, _text(document), [], options.json)
    return code or (0 if document["ok"] else CheckFailed.exit_code)


def measured(root: Path, mode: Mode, limit: int | None) -> list[Kept]:
    """Words of each page of one language that should be kept.

    Raises:
        NotFound: the crawl has no truth.
    """
    if not (root / "truth.jsonl.gz").is_file():
        raise NotFound(f"no truth in {root}", "there is no truth.jsonl.gz", "Give a crawl that has one.")
    found: list[Kept] = []
    taken: dict[str, int] = defaultdict(int)
    for language, url, html in _pages(root):
        if limit is not None and taken[language] >= limit:
            continue
        visible = len(tokens(extract(html, "plain").text or ""))
        if visible < MIN_WORDS:
            continue
        taken[language] += 1
        found.append(Kept(language, url, visible, len(tokens(extract(html, mode).text or ""))))
    return found


def _pages(root: Path) -> Iterator[tuple[str, str, str]]:
    """(language, URL, page) of every page that should be kept."""
    wanted: dict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for line in gzip.decompress((root / "truth.jsonl.gz").read_bytes()).decode("utf-8").split("\n"):
        record = json.loads(line) if line else {}
        if str(record.get("expect", "")).startswith("keep") and record.get("status") == 200 and record.get("lang"):
            wanted[record["warc"]][record["offset"]] = record
    for warc, records in sorted(wanted.items()):
        note(warc)
        for outcome in outcomes(root / warc):
            record = records.get(outcome.offset)
            if record and outcome.html is not None and record["lang"] not in ("mixed", "unlabelled"):
                yield str(record["lang"]), str(outcome.url), outcome.html


def summary(pages: Sequence[Kept]) -> dict[str, Any]:
    """Figures by language and of all, and whether they are within their bounds."""
    by_language: dict[str, list[Kept]] = defaultdict(list)
    for page in pages:
        by_language[page.language].append(page)
    languages = {
        language: {
            "pages": len(held),
            "lost": sum(page.lost for page in held),
            "empty": sum(page.kept == 0 for page in held),
            "kept_median": statistics.median(page.kept / page.visible for page in held),
            "ok": sum(page.lost for page in held) <= max(1, MAX_LOST_SHARE * len(held)),
        }
        for language, held in sorted(by_language.items())
    }
    empties = sum(page.kept == 0 for page in pages) / max(len(pages), 1)
    return {
        "languages": languages,
        "pages": len(pages),
        "empties": empties,
        "lost": [page.url for page in pages if page.lost],
        "ok": empties <= MAX_EMPTY_SHARE and all(figures["ok"] for figures in languages.values()),
    }


def _text(document: Mapping[str, Any]) -> str:
    rows = [
        (language, f["pages"], f["lost"], f["empty"], f"{f['kept_median']:.2f}", "" if f["ok"] else "too many lost")
        for language, f in document["languages"].items()
    ]
    text = table(("language", "pages", "lost", "empty", "kept, median", ""), rows, numbers=(1, 2, 3, 4))
    text += f"\n{document['pages']} pages, {100 * document['empties']:.2f} % empty"
    return text + "".join(f"\nlost: {url}" for url in document["lost"])


if __name__ == "__main__":
    run(main)
