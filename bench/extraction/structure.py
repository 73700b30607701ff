"""Structure that an extraction kept, against the Markdown truth of a set: headings, table cells, list items, code."""

from __future__ import annotations

import re

from corpusmill.extractor.modes import markdown

STRUCTURES = ("headings", "table_cells", "list_items", "code_lines")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(.+)$")
_RULE = re.compile(r"^[\s|:-]+$")
_MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)|[*_`~\\]")
_WORDS = re.compile(r"\w+")


def structures(text: str) -> dict[str, list[str]]:
    """Headings, cells, items and lines of code of a Markdown text, each as its words in lower case."""
    found: dict[str, list[str]] = {name: [] for name in STRUCTURES}
    in_code = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif in_code:
            found["code_lines"].append(" ".join(line.split()))
        elif match := _HEADING.match(line):
            found["headings"].append(_plain(match[1]))
        elif line.count("|") >= 2:
            if not _RULE.match(line):
                found["table_cells"].extend(_plain(cell) for cell in line.strip().strip("|").split("|"))
        elif match := _ITEM.match(line):
            found["list_items"].append(_plain(match[1]))
    return {name: [item for item in items if item] for name, items in found.items()}


def structure_recall(page: str, mode: str, truth: str) -> dict[str, float]:
    """Share of the truth's pieces of each kind that the mode's Markdown has as such; kinds that the truth lacks are
    left out, modes without Markdown give nothing."""
    said = markdown(page, mode)
    if said is None:
        return {}
    wanted, found = structures(truth), structures(said)
    return {
        name: sum(piece in have for piece in pieces) / len(pieces)
        for name, pieces in wanted.items()
        if pieces and (have := set(found[name])) is not None
    }


def _plain(text: str) -> str:
    return " ".join(_WORDS.findall(_MARKS.sub(lambda m: m[1] or "", text).lower()))
