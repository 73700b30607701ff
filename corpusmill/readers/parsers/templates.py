"""Templates of wikitext whose values are part of the sentence: measures, numbers, dates, words of other languages.

What they show is given in short and without conversions: `{{convert|93|m|ft}}` is "93 m". The names are those of the
English Wikipedia, which most wikis copy; all other templates show nothing of the sentence, and are dropped by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class Call:
    """A template as it stands in a page: its name in lower case, values by position (not empty) and by name."""

    name: str
    values: Sequence[str]
    named: Mapping[str, str]

    def value(self, place: int) -> str:
        """The value at a place, from the end where negative; empty where there is none."""
        return self.values[place] if -len(self.values) <= place < len(self.values) else ""


Shown = Callable[[Call], str]
_NUMBER = re.compile(r"[-+−]?[\d][\d.,/⁄ \u00a0+]*(?:e[-+]?\d+)?", re.IGNORECASE)
_RANGE = {
    "-": "–", "–": "–", "to": " to ", "to(-)": " to ", "and": " and ", "and(-)": " and ", "or": " or ", "by": " by ",
    "x": " × ", "xx": " × ", "*": " × ", "×": " × ", "+/-": " ± ", "±": " ± ",
}  # fmt: skip
_SMALLER = {"ft": ("in",), "lb": ("oz",), "st": ("lb",), "mi": ("yd", "ft")}


def is_shown(name: str) -> bool:
    """Whether a template of this name may show something of the sentence."""
    return name in _TEMPLATES or name.startswith(_LANG)


def shown(call: Call) -> str | None:
    """What a template shows; None where it shows nothing of the sentence."""
    if call.name in FUNCTIONS or call.name.startswith(_LANG):
        return call.value(0) or None
    found = _TEMPLATES.get(call.name)
    return (found(call) if found else None) or None


def _convert(call: Call) -> str:
    """A measure in the unit it is given in; a range, or one of two units, as a whole."""
    values = list(call.values)
    text = values.pop(0) if values and _NUMBER.fullmatch(values[0]) else ""
    while text and len(values) > 1 and values[0].lower() in _RANGE and _NUMBER.fullmatch(values[1]):
        text += _RANGE[values.pop(0).lower()] + values.pop(0)
    unit = values.pop(0) if values else ""
    if len(values) > 1 and values[1] in _SMALLER.get(unit, ()) and _NUMBER.fullmatch(values[0]):
        unit += f" {values[0]} {values[1]}"
    return f"{text} {unit}".rstrip() if text else ""


def _val(call: Call) -> str:
    power, unit = call.named.get("e"), call.named.get("u") or call.named.get("ul") or call.named.get("up")
    number = "±".join(call.values[:2])
    if not number:
        return ""
    return f"{number}{f'×10^{power}' if power else ''}{f' {unit}' if unit else ''}"


def _day(call: Call) -> str:
    """A date of one value, or of year, month and day."""
    parts = [value for value in call.values if value.isdecimal()][:3]
    if not parts or parts[0] != call.value(0):
        return call.value(0)
    return "-".join(part if i == 0 else part.zfill(2) for i, part in enumerate(parts))


def _before(prefix: str, joint: str = " – ") -> Shown:
    return lambda call: joint.join(f"{prefix}{value}" for value in call.values[:2])


def _fraction(call: Call) -> str:
    if len(call.values) == 3:
        return f"{call.values[0]} {call.values[1]}/{call.values[2]}"
    return f"1/{call.values[0]}" if len(call.values) == 1 else "/".join(call.values[:2])


def _ordinal(call: Call) -> str:
    number = call.value(0)
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(number[-1:], "th") if number[-2:-1] != "1" else "th"
    return f"{number}{ending}" if number.isdecimal() else number


def _height(call: Call) -> str:
    return " ".join(f"{call.named[unit]} {unit}" for unit in ("m", "cm", "ft", "in") if call.named.get(unit))


def _at(place: int) -> Shown:
    return lambda call: call.value(place)


def _joined(call: Call) -> str:
    return "".join(call.values)


def _always(text: str) -> Shown:
    return lambda call: text


def _by(names: str, what: Shown) -> dict[str, Shown]:
    return dict.fromkeys(names.split("|"), what)


def _second(call: Call) -> str:
    return call.values[-1] if len(call.values) > 1 else ""


def _as_of(call: Call) -> str:
    return f"{'as' if call.named.get('lc') else 'As'} of {_day(call)}" if call.values else ""


def _money(sign: str) -> Shown:
    return lambda call: f"{sign}{call.value(0)}"


_LANG = "lang-"
FUNCTIONS = frozenset(("formatnum", "lc", "lcfirst", "uc", "ucfirst"))
"""What stands behind their colon is shown."""
_DATES = (
    "start date|start date and age|start-date|end date|end date and age|end-date|film date|birth date|birth-date"
    "|birth date and age|birth-date and age|birth year and age|bda|dob|death date|death-date|death date and age"
    "|death-date and age|death year and age|dts|dtsh|date|datum|date table sorting|start and end dates|isodate"
)
_FIRST = (
    "sup|sub|su|small|smaller|big|larger|nowrap|nobr|nobreak|nbr|mvar|math|var|abbr|abbrlink|tooltip|hover title|sic"
    "|not a typo|typo|proper name|as written|notatypo|strong|em|smallcaps|sc|allcaps|underline|strike|nihongo|nihongo2"
    "|nihongo3|nihongo4|korean|zh|ruby|respell|num|number|nts|ntsh|nombre|unité|unite|fmtn|formatnumber"
)
_TEMPLATES: dict[str, Shown] = {
    **_by("convert|cvt|cv|conv|convinput|units", _convert),
    **_by("val", _val),
    **_by("gaps|chem|chem2|ce|chemical formula|chemf", _joined),
    **_by("circa|c.|ca|ca.|approx", _before("c. ")),
    **_by("floruit|fl.|fl", _before("fl. ", "–")),
    **_by("reign|r.", _before("r. ", "–")),
    **_by("born|born in", _before("born ")),
    **_by("as of|asof", _as_of),
    **_by(_DATES, _day),
    **_by("lang|langx|transl|transliteration|translit|tlit|wikt-lang|langue|foreign", _second),
    **_by("w|wp|wpl|wikipedia|sw|linktext", _at(-1)),
    **_by("ill|interlanguage link|link-interwiki|illm", lambda call: call.named.get("lt") or call.value(0)),
    **_by("frac|fraction|sfrac|fract|vfrac", _fraction),
    **_by("ordinal|ord|nth|ordinal number", _ordinal),
    **_by("height|hauteur", _height),
    **_by("pct|percent|percentage", lambda call: f"{call.value(0)}%" if call.values else ""),
    **_by(_FIRST, _at(0)),
    **_by("us$|usd|$", _money("US$")),
    **_by("a$|aud", _money("A$")),
    **_by("can$|cad", _money("C$")),
    **_by("£|gbp|pound sterling", _money("£")),
    **_by("€|eur|euro", _money("€")),
    **_by("¥|jpy|jp¥|yen", _money("¥")),
    **_by("₹|inr|indian rupee|indian rupees", _money("₹")),
    **_by("ndash|en dash|–", _always("–")),
    **_by("spaced ndash|snd|spnd|spndash|dash", _always(" – ")),
    **_by("mdash|em dash|—", _always("—")),
    **_by("nbsp|space|spaces", _always(" ")),
    **_by("!", _always("|")),
    **_by("=", _always("=")),
}
