"""Edit rules are data too: what is cut from a text before the view `clean` is measured and packed.

An edit rule has a test with settings. It sees each line as the rules before it left it. Most tests remove the whole
line; `blanks`, `newlines`, `citation`, `address` and `phrase` with `cut = "phrase"` remove parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

_PLACES = ("anywhere", "start", "end")
_CUTS = ("line", "phrase")


@dataclass(frozen=True)
class EditRule:
    """One test on lines; the name is the kind of the spans that it removes."""

    name: str
    test: str
    settings: Mapping[str, Any]
    """Every setting of the test: those given, the others at their defaults; lists as tuples."""
    source: str = ""
    says: str = ""
    """What it removes, as one sentence."""

    def deciding(self) -> list[Any]:
        """What decides its spans, as plain JSON."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in self.settings.items()}
        return [self.name, self.test, plain]


REQUIRED = object()

TESTS: Mapping[str, Mapping[str, Any]] = {
    # White space at both ends of every line, and line breaks at both ends of the text.
    "blanks": {},
    # Line feeds beyond this number in a row.
    "newlines": {"max": REQUIRED},
    # Lines with a word (between white space) of more characters.
    "long_word": {"max_chars": REQUIRED},
    # Lines of fewer words; `keep_empty` spares lines without a character.
    "few_words": {"min_words": REQUIRED, "keep_empty": False},
    # Lines that end in none of `marks`, or in one of `unless`; `blanks` lets white space follow.
    "no_end_mark": {"marks": REQUIRED, "unless": (), "blanks": False, "keep_empty": False},
    # Lines with a phrase (A to Z in either case); lines with one of `unless`, or of more words than `max_words`
    # (0: of any number), are spared. `cut = "phrase"` removes the phrase with the white space beside it, and the
    # line where nothing else is left.
    "phrase": {
        "phrases": REQUIRED,
        "at": "anywhere",
        "whole_words": False,
        "max_words": 0,
        "unless": (),
        "cut": "line",
    },
    # Lines with a greater share of capitals, or of digits, among their characters.
    "capitals": {"max_ratio": REQUIRED},
    "digits": {"max_ratio": REQUIRED},
    # Lines that are a number and one of `units`, as "1.2k likes".
    "counter": {"units": REQUIRED},
    # Marks in square brackets: numbers (`[12]`, `[]`), or one of `phrases`, exactly as written.
    "citation": {"numbers": True, "phrases": ()},
    # URLs with the white space before them: with a scheme, with `www.`, or a host that ends in one of
    # `endings` (top-level domains); numeric addresses.
    "address": {"endings": ()},
    # Later copies of a line, white space around it and the case of A to Z ignored; lines without a word are spared.
    "repeated_line": {},
}
"""test -> setting -> default, or REQUIRED."""

_TEXTS = ("name", "test", "source", "says")
_POSITIVE = {"max", "max_chars", "min_words"}


def make_edit(entry: Mapping[str, Any]) -> EditRule:
    """The rule of an entry without faults."""
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    settings = {key: given.get(key, default) for key, default in TESTS[entry["test"]].items()}
    return EditRule(entry["name"], entry["test"], settings, entry.get("source", ""), entry["says"])


def text_faults(entry: Mapping[str, Any], required: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    """What is wrong with the texts of an entry, its name among them."""
    yield from (f"{key} is missing" for key in required if key not in entry)
    yield from (
        f"{key}: expected text, given {entry[key]!r}"
        for key in texts
        if key in entry and not (isinstance(entry[key], str) and entry[key].strip())
    )
    if isinstance(entry.get("name"), str) and not NAME.fullmatch(entry["name"]):
        yield "name: expected small letters, digits and underscores"


def edit_faults(entry: Mapping[str, Any]) -> Iterator[str]:
    """Everything that is wrong with an entry."""
    yield from text_faults(entry, ("name", "test", "says"), _TEXTS)
    test = entry.get("test")
    if not isinstance(test, str):
        return
    if test not in TESTS:
        yield f"no test {test!r}; there are {', '.join(TESTS)}"
        return
    known = TESTS[test]
    yield from (f"unknown key {key!r}" for key in sorted(set(entry) - {*_TEXTS, *known}))
    yield from (f"{key} is missing" for key, value in known.items() if value is REQUIRED and key not in entry)
    yield from (fault for key, value in entry.items() if key in known for fault in _setting_faults(key, value))
    if test == "citation" and entry.get("numbers") is False and not entry.get("phrases"):
        yield "expected numbers or phrases"


def _setting_faults(key: str, value: Any) -> Iterator[str]:
    if key in ("phrases", "marks", "unless", "units", "endings"):
        wanted = "a list of texts without line breaks"
        fits = isinstance(value, list) and all(isinstance(v, str) and v and len(v.splitlines()) == 1 for v in value)
        fits = fits and (bool(value) or key in ("unless", "endings"))
    elif key in ("keep_empty", "blanks", "whole_words", "numbers"):
        wanted, fits = "true or false", isinstance(value, bool)
    elif key == "max_ratio":
        wanted = "a number from 0 to 1"
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    elif key in ("at", "cut"):
        choices = _PLACES if key == "at" else _CUTS
        wanted, fits = f"one of {', '.join(choices)}", value in choices
    else:
        least = 1 if key in _POSITIVE else 0
        wanted = f"a whole number from {least} on"
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= 2**31 - 1
    if not fits:
        yield f"{key}: expected {wanted}, given {value!r}"
