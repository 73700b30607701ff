"""Telephone numbers: E.164 with a plus sign, North American and French ones by their form, others after a word that
announces one."""

from __future__ import annotations

from collections.abc import Iterator

from corpusmill.kernels.pii.runs import SIMPLE, Found, Run

_LONGEST = {
    1: 11,
    7: 11,
    20: 12,
    27: 11,
    30: 12,
    31: 11,
    32: 11,
    33: 11,
    34: 11,
    36: 11,
    40: 11,
    41: 11,
    44: 12,
    45: 10,
}
_LONGEST |= {47: 10, 48: 11, 60: 12, 61: 11, 63: 12, 64: 12, 65: 10, 66: 11, 82: 12, 84: 12, 86: 13, 90: 12, 91: 12}
"""Digits of the longest numbers by country code; elsewhere 15 (E.164)."""
_TWO_DIGITS = frozenset(
    (
        *(20, 27, *range(30, 35), 36, 39, 40, 41, *range(43, 50), *range(51, 59), *range(60, 67), 81, 82, 84, 86),
        *(*range(90, 96), 98),
    )
)
_THREE_DIGITS = frozenset(
    (
        *(*range(211, 214), 216, 218, *range(220, 270), 290, 291, 297, 298, 299, *range(350, 360), *range(370, 379)),
        *(380, 381, 382, 383, 385, 386, 387, 389, 420, 421, 423, *range(500, 510), *range(590, 600), 670),
        *(*range(672, 693), 800, 808, 850, 852, 853, 855, 856, 870, 878, 880, 881, 882, 883, 886, 888),
        *(*range(960, 969), *range(970, 978), 979, 992, 993, 994, 995, 996, 998),
    )
)
_SHORTEST_ABROAD, _SHORTEST_ANNOUNCED, _LONGEST_NUMBER = 9, 6, 15


def by_form(run: Run, i: int) -> Iterator[Found]:
    joints = run.between(i, 5)
    if run.lengths(i, 3) == (3, 3, 4) and joints[0] in (*SIMPLE, b") ", b")", b")-", b"/") and joints[1] in SIMPLE:
        area, exchange = run.digits(i, 1), run.digits(i + 1, 1)
        first = (
            i - 1 if i and run.digits(i - 1, 1) == b"1" and run.separators[i] in (*SIMPLE, b" (", b"(", b"-(") else i
        )
        free = first == 0 or run.separators[first] not in (joints[1], b".", b"-")
        last = i + 3 == len(run.groups) or run.separators[i + 3] not in (b".", b"-")
        marked = set(joints[:2]) != {b" "} or run.window[run.groups[first][0] - 1 : run.groups[first][0]] == b"+"
        if area >= b"200" and exchange >= b"200" and free and last and marked and _starts_free(run, first):
            yield _opened(run, first, i), run.groups[i + 2][1], "phone"
    if run.lengths(i, 5) == (2, 2, 2, 2, 2) and len(set(joints)) == 1 and joints[0] in SIMPLE:
        first_digits = run.digits(i, 1)
        if first_digits[:1] == b"0" and first_digits != b"00" and run.alone(i, 5, joints[0]) and _starts_free(run, i):
            yield run.groups[i][0], run.groups[i + 4][1], "phone"


def _starts_free(run: Run, i: int) -> bool:
    """Whether a group begins a number: no decimal, no part of a path or name, no negative number."""
    start = run.groups[i][0]
    return i > 0 or start == 0 or run.window[start - 1 : start] not in (b".", b"/", b"_", b"-", b",", b"=", b"$")


def _opened(run: Run, first: int, i: int) -> int:
    """Where a number begins: at its plus sign or opening bracket, if it has one."""
    start, window = run.groups[first][0], run.window
    if first == i and b")" in run.separators[i + 1] and window[start - 1 : start] == b"(":
        start -= 1
    return start - 1 if start and window[start - 1 : start] == b"+" else start


def international(run: Run) -> Iterator[Found]:
    start = run.groups[0][0] - 1
    if start and (run.window[start - 1 : start].isalnum() or run.window[start - 1 : start] in (b"+", b"/", b"_")):
        return
    lead = run.digits(0, len(run.groups))[:3]
    code = next((int(lead[:n]) for n, known in ((2, _TWO_DIGITS), (3, _THREE_DIGITS)) if int(lead[:n]) in known), 0)
    code = int(lead[:1]) if lead[:1] in (b"1", b"7") else code
    if not code:
        return
    longest, total, last, rest = _LONGEST.get(code, _LONGEST_NUMBER), 0, -1, b""
    for i in range(len(run.groups)):
        digits, joint = run.digits(i, 1), run.separators[i]
        trunk = digits == b"0" and b"(" in joint and run.separators[i + 1 : i + 2][:1] not in ([], [b" "])
        size = 0 if trunk else len(digits)
        if total + size > longest or (i and not _joins(joint)):
            break
        total, last, rest = total + size, i, rest if trunk else rest + digits
    national = rest[len(str(code)) :]
    if last < 0 or total < _SHORTEST_ABROAD or (code == 1 and (total != 11 or national[:1] < b"2")):
        return
    if national[:1] == b"0" and code != 39:
        return
    yield start, run.groups[last][1], "phone"


def _joins(separator: bytes) -> bool:
    """Whether the parts of one telephone number may be so separated: not by the end of a sentence."""
    return separator != b". " and len(separator) <= 3 and separator.count(b" ") <= 2


def announced(run: Run) -> Iterator[Found]:
    total, last = 0, -1
    for i, (a, b) in enumerate(run.groups):
        if total + b - a > _LONGEST_NUMBER or (i and not _joins(run.separators[i])):
            break
        total, last = total + b - a, i
    if total < _SHORTEST_ANNOUNCED or not _starts_free(run, 0):
        return
    lengths, digits = run.lengths(0, last + 1), run.digits(0, last + 1)
    date = lengths[:3] in ((4, 2, 2), (2, 2, 4)) or (lengths[0] == 4 and digits[:2] in (b"19", b"20") and last > 0)
    if date or digits.endswith(b"000000") or (lengths[-1] == 3 and last and digits.endswith(b"000")):
        return
    start = run.groups[0][0]
    start -= start > 0 and run.window[start - 1 : start] == b"(" and any(b")" in s for s in run.separators[: last + 1])
    yield start, run.groups[last][1], "phone"
