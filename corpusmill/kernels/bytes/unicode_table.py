"""What each character is to the text kernels: its kind, its folded form and seven facts, packed into one uint32.

The table is data of the package (`unicode_table.npz`), made once by `build_table` from Unicode 14.0, and not from the
running interpreter, so that words do not change with the Python version. A new table is a new VERSION of every stage
that counts words:

    python -m corpusmill.kernels.bytes.unicode_table        # writes unicode_table.npz; a golden test names its digest

Method: the default word boundaries of UAX #29 where they need no dictionary, with two simplifications: scripts written
without spaces are cut at each letter, and a run of one and the same symbol is one token.
"""

from __future__ import annotations

import unicodedata
from enum import IntEnum
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_name("unicode_table.npz")

LIMIT = 0x20000
"""Characters below it are in the table; above it `entry_of` decides by plane."""

FOLD_MASK = 0x1FFFFF
"""Bits 0 to 20: the folded character; 0 where it leaves no trace in a folded word."""
KIND_SHIFT = 21
"""Bits 21 to 23: the `Kind`."""
ALPHA = 1 << 24
"""A letter (general category L), as `str.isalpha` has it."""
NON_PUNCTUATION = 1 << 25
"""Not among the punctuation that datatrove's Gopher filter lists (PUNCTUATION and END_MARKS below)."""
DIGIT = 1 << 26
"""A decimal digit (general category Nd)."""
UPPER = 1 << 27
"""A capital, as `str.isupper` has it."""
DIGIT_VALUE = 1 << 28
"""A digit, as `str.isdigit` has it: superscripts and circled ones too."""
END_MARK = 1 << 29
"""One of END_MARKS: a sentence may end with it."""
SPACE = 1 << 30
"""White space, as `str.isspace` has it."""

NO_TRACE = 1 << 30
"""In the file: this character folds to nothing."""


class Kind(IntEnum):
    """How a character takes part in words."""

    SEPARATOR = 0
    """Space, line break, control, zero width space: ends a token, belongs to none."""
    WORD = 1
    """Letter or number of a script with spaces: a word is a run of them."""
    SINGLE = 2
    """Letter of a script without spaces: a word of its own, with the marks that follow it."""
    SYMBOL = 3
    """Punctuation, symbol, private or unassigned: a run of the same one is a token, not a word."""
    MARK = 4
    """Combining mark: belongs to the token before it; after a separator it begins a word."""
    FORMAT = 5
    """Invisible (soft hyphen, joiners, directions, variation selectors): belongs to the token before it; else
    nothing."""
    JOINER = 6
    """Apostrophe, middle dot, underscore: inside a word between two WORD characters, else a SYMBOL."""
    NUMERIC = 7
    """Full stop and comma: inside a word between two decimal digits, else a SYMBOL."""


PUNCTUATION = frozenset(
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u00ab\u00b4\u00bb\u2013\u2014\u2019\u201c\u201d\u201e\u2026\u2236\u2501\u25ba\u3001\u3002"
    "\u3008\u3009\u300a\u300b\u300c\u300d\u3010\u3011\uff01\uff05\uff08\uff09\uff0c\uff0e\uff11\uff1a\uff1b\uff1f\uff5e"
)
"""The visible characters of PUNCTUATION in datatrove 0.10.1 (a list by hand; the full-width 1 is in it)."""

_END_MARKS = (
    *((0x21, 0x21), (0x2E, 0x2E), (0x3F, 0x3F), (0x589, 0x589), (0x61D, 0x61F), (0x6D4, 0x6D4), (0x700, 0x702)),
    *((0x7F9, 0x7F9), (0x837, 0x837), (0x839, 0x839), (0x83D, 0x83E), (0x964, 0x965), (0x104A, 0x104B)),
    *((0x1362, 0x1362), (0x1367, 0x1368), (0x166E, 0x166E), (0x1735, 0x1736), (0x17D4, 0x17D6), (0x17D9, 0x17DA)),
    *((0x1803, 0x1803), (0x1809, 0x1809), (0x1944, 0x1945), (0x1AA8, 0x1AAB), (0x1B5A, 0x1B5B), (0x1B5E, 0x1B5F)),
    *((0x1B7D, 0x1B7E), (0x1C3B, 0x1C3C), (0x1C7E, 0x1C7F), (0x203C, 0x203D), (0x2047, 0x2049), (0x2E2E, 0x2E2E)),
    *((0x2E3C, 0x2E3C), (0x2E53, 0x2E54), (0x3002, 0x3002), (0xA4FF, 0xA4FF), (0xA60E, 0xA60F), (0xA6F3, 0xA6F3)),
    *((0xA6F7, 0xA6F7), (0xA876, 0xA877), (0xA8CE, 0xA8CF), (0xA92F, 0xA92F), (0xA9C8, 0xA9C9), (0xAA5D, 0xAA5F)),
    *((0xAAF0, 0xAAF1), (0xABEB, 0xABEB), (0xFE52, 0xFE52), (0xFE56, 0xFE57), (0xFF01, 0xFF01), (0xFF0E, 0xFF0E)),
    *((0xFF1F, 0xFF1F), (0xFF61, 0xFF61), (0x10A56, 0x10A57), (0x10F55, 0x10F59), (0x10F86, 0x10F89)),
    *((0x11047, 0x11048), (0x110BE, 0x110C1), (0x11141, 0x11143), (0x111C5, 0x111C6), (0x111CD, 0x111CD)),
    *((0x111DE, 0x111DF), (0x11238, 0x11239), (0x1123B, 0x1123C), (0x112A9, 0x112A9), (0x1144B, 0x1144C)),
    *((0x115C2, 0x115C3), (0x115C9, 0x115D7), (0x11641, 0x11642), (0x1173C, 0x1173E), (0x11944, 0x11944)),
    *((0x11946, 0x11946), (0x11A42, 0x11A43), (0x11A9B, 0x11A9C), (0x11C41, 0x11C42), (0x11EF7, 0x11EF8)),
    *((0x11F43, 0x11F44), (0x16A6E, 0x16A6F), (0x16AF5, 0x16AF5), (0x16B37, 0x16B38), (0x16B44, 0x16B44)),
    *((0x16E98, 0x16E98), (0x1BC9F, 0x1BC9F), (0x1DA88, 0x1DA88)),
)
END_MARKS = frozenset(chr(code) for low, high in _END_MARKS for code in range(low, high + 1))
"""The 159 marks that datatrove 0.10.1 counts as the end of a line (TERMINAL_PUNCTUATION): full stops, question and
exclamation marks of many scripts."""

JOINERS = "'\u2019\u00b7\u05f3\u05f4_"
"""Typewriter and curly apostrophe, middle dot (Catalan), geresh and gershayim (Hebrew), underscore (identifiers)."""

UNSPACED = (
    # East Asian: Hangul and its leading consonants, radicals, kana, bopomofo, ideographs, Yi, Tangut, Khitan, Nushu
    *((0x1100, 0x115F), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303C)),
    *((0x3041, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0xA4CF), (0xA960, 0xA97F), (0xAC00, 0xD7A3), (0xF900, 0xFAFF)),
    *((0xFF66, 0xFF9D), (0xFFA0, 0xFFDC), (0x16FE0, 0x18D08), (0x1AFF0, 0x1B2FB)),
    # South East Asian scripts whose words need a dictionary (Line_Break = SA): Thai, Lao, Myanmar, Khmer, Tai, Ahom
    *((0x0E01, 0x0EDF), (0x1000, 0x109F), (0x1780, 0x17DC), (0x1950, 0x19DF), (0x1A20, 0x1AAD), (0xA9E0, 0xA9FE)),
    *((0xAA60, 0xAADF), (0x11700, 0x11746)),
)
"""Ranges of scripts written without spaces (and Hangul, whose syllables are counted like ideographs)."""

EXTENDERS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FB), (0xFF9E, 0xFF9F))
"""Vowel and final Hangul letters, half-width kana voice marks: letters by category, marks by use."""

SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F))
"""Variation selectors: marks by category, invisible by use."""


@cache
def load_table() -> NDArray[np.uint32]:
    """The packed table, uint32[LIMIT], read-only."""
    with np.load(FILE, allow_pickle=False) as stored:
        fold = stored["shift"] + np.where(stored["shift"] == NO_TRACE, -NO_TRACE, np.arange(LIMIT))
        table = fold.astype(np.uint32) | stored["facts"].astype(np.uint32) << KIND_SHIFT
    table.flags.writeable = False
    return table


def save_table(table: NDArray[np.uint32], file: Path) -> None:
    """Write a table as `load_table` reads it: facts, and how far each character is from its fold (small when
    compressed)."""
    fold = (table & FOLD_MASK).astype(np.int32)
    shift = np.where(fold == 0, NO_TRACE, fold - np.arange(LIMIT)).astype(np.int32)
    np.savez_compressed(file, facts=(table >> KIND_SHIFT).astype(np.uint16), shift=shift)


def entry_of(code: int) -> int:
    """Packed entry of any code point: from the table, or by plane where it ends (as the kernels do)."""
    if code < LIMIT:
        return int(load_table()[code])
    if code < 0x40000:
        return pack(code, Kind.SINGLE, alpha=True)
    if 0xE0000 <= code < 0xE1000:
        return pack(0, Kind.FORMAT)
    return pack(code, Kind.SYMBOL)


def pack(fold: int, kind: Kind, *, alpha: bool = False, non_punctuation: bool = True, facts: int = 0) -> int:
    """One entry of the table; `facts` are bits of the others."""
    return fold | kind << KIND_SHIFT | alpha * ALPHA | non_punctuation * NON_PUNCTUATION | facts


def build_table() -> NDArray[np.uint32]:
    """The table that this interpreter's `unicodedata` gives, uint32[LIMIT]."""
    return np.array([entry_from_unicodedata(code) for code in range(LIMIT)], np.uint32)


def entry_from_unicodedata(code: int) -> int:
    """Entry of a code point below LIMIT by the interpreter's character database."""
    character = chr(code)
    category = unicodedata.category(character)
    kind = _kind(code, character, category)
    return pack(
        _fold(code, character, kind),
        kind,
        alpha=category[0] == "L",
        non_punctuation=character not in PUNCTUATION and character not in END_MARKS,
        facts=(category == "Nd") * DIGIT
        | character.isupper() * UPPER
        | character.isdigit() * DIGIT_VALUE
        | (character in END_MARKS) * END_MARK
        | character.isspace() * SPACE,
    )


def _kind(code: int, character: str, category: str) -> Kind:
    if category in ("Cc", "Cs", "Zs", "Zl", "Zp") or code == 0x200B:
        return Kind.SEPARATOR
    if character in JOINERS:
        return Kind.JOINER
    if character in ".,":
        return Kind.NUMERIC
    if category == "Cf" or _within(code, SELECTORS):
        return Kind.FORMAT
    if category[0] == "M" or (category[0] == "L" and _within(code, EXTENDERS)):
        return Kind.MARK
    if (category[0] == "L" or category == "Nl") and _within(code, UNSPACED):
        return Kind.SINGLE
    return Kind.WORD if category[0] in "LN" else Kind.SYMBOL


def _fold(code: int, character: str, kind: Kind) -> int:
    if kind == Kind.FORMAT or (kind == Kind.JOINER and character != "_"):
        return 0
    if code == 0x3C2:  # final sigma: str.lower writes it by context, a table cannot
        return 0x3C3
    lower = character.lower()
    return ord(lower[0])  # one character for all but U+0130, whose second is a mark of the first


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


if __name__ == "__main__":
    save_table(build_table(), FILE)
    print(f"{FILE.name}: Unicode {unicodedata.unidata_version}, {FILE.stat().st_size:,} bytes")
