"""What each bound of a rule file costs: the mini-crawl's English pages that it drops, by what they truly are.

Pages are extracted and their languages judged as recipes/crawl.toml does. Then every rule judges every page that is
left, so a page may break several. Kinds: good pages (`keep`, `keep-masked`), those at risk (code, verse, tables,
lists), spam, and pages that break a rule on purpose.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.common import REPOSITORY, arguments, report, run
from bench.rules.breakers import Judged, extracted
from corpusmill.config import load_recipe
from corpusmill.kernels.language.identify import LanguageModel
from corpusmill.kernels.measures.measures import measures
from corpusmill.kernels.rules.bounds import decide
from corpusmill.kernels.rules.rules import load_rules
from corpusmill.models import model_path
from corpusmill.plain_text import table

RULE_FILES = ("gopher", "gopher-datatrove")
KINDS = ("good", "code", "poem", "table", "list", "spam", "breaker")


@dataclass
class Costs:
    """Pages of each kind: how many came, ended before the rules, broke each rule, broke that one alone, were kept."""

    came: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    broken: dict[str, Counter[str]] = field(default_factory=dict)
    alone: dict[str, Counter[str]] = field(default_factory=dict)

    def dropped(self, kind: str) -> int:
        """Pages of a kind that rules drop."""
        return self.came[kind] - self.kept[kind]


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="the mini-crawl; else the test data's")
    options = parser.parse_args(argv)
    data = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    pages = [page for page in extracted(options.root or data / "mini-crawl", is_english) if page.ended is None]
    if options.quick:
        pages = pages[::4]
    ended = by_language(pages)
    left = [page for page, reason in zip(pages, ended, strict=True) if reason is None]
    parts, document = [], {"subject": "costs", "quick": options.quick, "pages": len(pages)}
    languages = {reason: Counter[str]() for reason in sorted({reason for reason in ended if reason})}
    for page, reason in zip(pages, ended, strict=True):
        if reason:
            languages[reason][kind_of(page)] += 1
    for name in RULE_FILES:
        found = costs(left, name)
        document[name] = {"came": found.came, "kept": found.kept, "broken": found.broken, "alone": found.alone}
        rows = [(reason, *(counts[kind] or "" for kind in KINDS)) for reason, counts in languages.items()]
        rows += [(rule, *(_shown(found, rule, kind) for kind in KINDS)) for rule in found.broken]
        rows.append(("kept", *(f"{found.kept[kind]} of {found.came[kind]}" for kind in KINDS)))
        parts.append(f"{name}: pages that break a rule, of these by no other\n\n{table((name, *KINDS), rows)}")
    return report(document, "\n\n".join(parts), [], options.json)


def is_english(row: Mapping[str, Any]) -> bool:
    """Whether a row of the truth is of an English page of one of KINDS."""
    good = row["expect"] in ("keep", "keep-masked", "keep-at-risk")
    return row["lang"] == "en" and (good or row["reason"] == "spam" or row["kind"] == "rule-breaker")


def kind_of(page: Judged) -> str:
    """One of KINDS."""
    if page.expect == "keep-at-risk":
        return page.kind.removeprefix("keep-")
    return "good" if page.expect != "drop" else "spam" if page.truth == "spam" else "breaker"


def by_language(pages: Sequence[Judged]) -> list[str | None]:
    """Why the language of each page ends it, by recipes/crawl.toml."""
    recipe = load_recipe("crawl")
    found = LanguageModel(model_path(recipe.language.model)).identify(_column(pages))
    least, keep = round(recipe.language.min_score * 10_000), recipe.language.keep
    codes, scores = found.column("language").to_pylist(), found.column("language_score_e4").to_pylist()
    return [
        "other_language" if code not in keep else "uncertain_language" if score < least else None
        for code, score in zip(codes, scores, strict=True)
    ]


def costs(pages: Sequence[Judged], name: str) -> Costs:
    """What the rules of a file (of raw texts) do to pages."""
    rules = load_rules(REPOSITORY / "rules" / f"{name}.toml")
    failed = decide(measures(_column(pages), rules.measured("raw")), rules.bounds()).failed.to_numpy()
    kinds = np.array([kind_of(page) for page in pages])
    found = Costs(Counter(kinds.tolist()), Counter(kinds[failed == 0].tolist()))
    for i, rule in enumerate(rules.rules):
        found.broken[rule.name] = Counter(kinds[(failed >> i & 1) == 1].tolist())
        found.alone[rule.name] = Counter(kinds[failed == 1 << i].tolist())
    return found


def _column(pages: Sequence[Judged]) -> pa.LargeStringArray:
    return pa.array([page.text for page in pages], pa.large_string())


def _shown(found: Costs, rule: str, kind: str) -> str:
    broken, alone = found.broken[rule][kind], found.alone[rule][kind]
    return f"{broken} ({alone})" if broken else ""


if __name__ == "__main__":
    run(main)
