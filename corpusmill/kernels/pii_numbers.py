"""What a run of numbers is: an address on the Internet, a card, a tax or identity number, a telephone number, nothing.

Identity numbers are checked by python-stdnum. Card numbers are checked by issuer, length and the Luhn digit (ISO/IEC
7812). Public addresses are all but those of IANA's special-purpose registries, as they stood when this was written:
Python's `ipaddress` has another answer in another version. Telephone numbers: E.164 with a plus sign, North American
and French ones by their form, others after a word that announces one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_network

from stdnum import luhn
from stdnum.br import cpf
from stdnum.cn import ric
from stdnum.de import idnr
from stdnum.fr import nir
from stdnum.in_ import aadhaar
from stdnum.kr import rrn
from stdnum.nl import bsn
from stdnum.pl import pesel
from stdnum.us import ssn

from corpusmill.kernels import pii_scan as scan

Found = tuple[int, int, str]
"""Begin and end in the window, and the kind."""

ITIN_GROUPS = frozenset((*range(50, 66), *range(70, 89), *range(90, 93), *range(94, 100)))
"""Middle digits of US taxpayer numbers for people without a social security number (IRS publication 1915)."""

RESERVED_NETWORKS = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
"""For documentation (RFC 5737)."""
NO_PUBLIC_NETWORKS = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15"),
    "224.0.0.0/3",
)
"""Private, shared, loopback, link-local, benchmarking, multicast, reserved (IANA, 2026)."""
RESERVED_NETWORKS_6 = ("2001:db8::/32", "3fff::/20")
"""For documentation (RFC 3849, RFC 9637)."""
NO_PUBLIC_NETWORKS_6 = ("2001::/23", "2002::/16", "2620:4f:8000::/48")
"""Protocol assignments, 6to4, AS112; all else of 2000::/3 is public."""

OUTLINE = 32
"""Four numbers below it are a version or the number of a section: of public addresses one in four thousand is so."""

_BEFORE_NO_ADDRESS = re.compile(
    rb"(?:\b(?:v|ver|vers|versions?|release|rel|rev|revision|build|firmware|kernel|driver|update|upgrade|patch|section|"
    rb"sect?|chapter|clause|article|figure|table|oid|isbn|doi)\b[.:#]?\s{0,2}|[A-Za-z_\-]|[^/]/|(?<![0-9A-Za-z])\.)$",
    re.IGNORECASE,
)
_PREFIX_LENGTH = re.compile(rb"/(?:[0-9]|[12][0-9]|3[01])(?![0-9])")
_IP6 = re.compile(rb"(?:[0-9A-Fa-f]{1,4}:{1,2}){1,7}[0-9A-Fa-f]{0,4}(?![0-9A-Za-z:])")
_GROUP = re.compile(rb"[0-9]+")
_TYPOGRAPHIC = {
    0xA0: " ",
    0x202F: " ",
    **dict.fromkeys(range(0x2000, 0x200B), " "),
    **dict.fromkeys(range(0x2010, 0x2016), "-"),
}

_CARDS = re.compile(
    rb"(?:4[0-9]{15}(?:[0-9]{3})?|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|"
    rb"3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}|"
    rb"6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}|62[0-9]{14,17})"
)
"""Visa, Mastercard, American Express, Diners Club, JCB, Discover, UnionPay by first digits and length."""
_CARD_GROUPS = {(4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4)}

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
_SIMPLE = (b" ", b"-", b".")


@dataclass(frozen=True)
class Run:
    """Groups of digits in a window, and what stands between them."""

    window: bytes
    groups: list[tuple[int, int]]
    separators: list[bytes]
    """separators[i] stands before group i; the first is empty."""

    def lengths(self, i: int, count: int) -> tuple[int, ...]:
        """Lengths of so many groups from group i."""
        return tuple(b - a for a, b in self.groups[i : i + count])

    def digits(self, i: int, count: int) -> bytes:
        """Digits of so many groups from group i."""
        return b"".join(self.window[a:b] for a, b in self.groups[i : i + count])

    def between(self, i: int, count: int) -> list[bytes]:
        """The separators within so many groups from group i."""
        return self.separators[i + 1 : i + count]

    def alone(self, i: int, count: int, joined_by: bytes) -> bool:
        """Whether no group before or after is joined to these as they are to each other."""
        after = i + count
        return not (
            (i > 0 and self.separators[i] == joined_by)
            or (after < len(self.groups) and self.separators[after] == joined_by)
        )


def run_of(window: bytes, start: int, stop: int) -> Run:
    """The groups of a run of numbers."""
    groups = [match.span() for match in _GROUP.finditer(window, start, stop)]
    ends = [start, *(end for _, end in groups)]
    separators = [_plain(window[end:begin]) for end, (begin, _) in zip(ends, groups, strict=False)]
    return Run(window, groups, separators)


def _plain(separator: bytes) -> bytes:
    """A separator with a plain blank and hyphen in place of typographic ones."""
    if separator.isascii():
        return separator
    plain = separator.decode("utf-8", "replace").translate(_TYPOGRAPHIC)
    return plain.encode("utf-8")


def in_numbers(run: Run, flags: int, cue: int, reserved: bool) -> Iterator[Found]:
    """Personal data in a run of numbers; what overlaps is settled by the caller."""
    for i in range(len(run.groups)):
        if flags & scan.QUAD:
            yield from _address(run, i, reserved)
        if flags & (scan.FOURS | scan.LONG):
            yield from _card(run, i)
        if flags & (scan.SSN | scan.CPF | scan.LONG | scan.NIR | scan.RRN):
            yield from _identity(run, i)
        if flags & (scan.NANP | scan.PAIRS):
            yield from _by_form(run, i)
    if cue not in (0, scan.PHONE):
        yield from _announced_identity(run, cue)
    if flags & scan.PLUS:
        yield from _international(run)
    elif cue == scan.PHONE and flags & scan.CUED:
        yield from _announced_phone(run)


def _address(run: Run, i: int, reserved: bool) -> Iterator[Found]:
    if len(run.groups) < i + 4 or run.between(i, 4) != [b".", b".", b"."] or not run.alone(i, 4, b"."):
        return
    start, stop, window = run.groups[i][0], run.groups[i + 3][1], run.window
    parts = window[start:stop].split(b".")
    octets = [int(part) for part in parts]
    if any(octet > 255 or len(part) > len(str(octet)) for octet, part in zip(octets, parts, strict=True)):
        return  # too large, or with a leading zero
    number = octets[0] << 24 | octets[1] << 16 | octets[2] << 8 | octets[3]
    if _within(number, _CLOSED[reserved]) or max(octets) < OUTLINE:
        return
    if window[stop : stop + 1].isalnum() or window[stop : stop + 1] == b"_" or _PREFIX_LENGTH.match(window, stop):
        return
    if _BEFORE_NO_ADDRESS.search(window[max(0, start - 16) : start]):
        return
    yield start, stop, "ip"


def _masks(*networks: str) -> tuple[tuple[int, int], ...]:
    """Mask and address of each network."""
    parsed = map(ip_network, networks)
    return tuple((int(network.netmask), int(network.network_address)) for network in parsed)


_CLOSED = {False: _masks(*NO_PUBLIC_NETWORKS, *RESERVED_NETWORKS), True: _masks(*NO_PUBLIC_NETWORKS)}
_CLOSED_6 = _masks(*NO_PUBLIC_NETWORKS_6, *RESERVED_NETWORKS_6)
_RESERVED_6 = _masks(*RESERVED_NETWORKS_6)


def _within(number: int, masks: tuple[tuple[int, int], ...]) -> bool:
    return any(number & mask == address for mask, address in masks)


def address6(window: bytes, start: int, reserved: bool) -> Iterator[Found]:
    """A public IPv6 address that begins at a place."""
    match = _IP6.match(window, start)
    if match is None or (start and (window[start - 1 : start].isalnum() or window[start - 1 : start] in b":._-")):
        return
    text = match[0].decode()
    try:
        number = int(IPv6Address(text.removesuffix(":") if not text.endswith("::") else text))
    except ValueError:
        return
    stop = match.end() - (text.endswith(":") and not text.endswith("::"))
    if window[stop : stop + 1] == b"/" or number >> 125 != 1 or number & ((1 << 64) - 1) == 0:
        return  # a network, or outside 2000::/3
    if (reserved and _within(number, _RESERVED_6)) or not _within(number, _CLOSED_6):
        yield start, stop, "ip"


def _card(run: Run, i: int) -> Iterator[Found]:
    for count in (5, 4, 3, 1):
        lengths = run.lengths(i, count)
        joints = set(run.between(i, count))
        if len(lengths) != count or not (lengths in _CARD_GROUPS if count > 1 else 14 <= lengths[0] <= 19):
            continue
        joint = next(iter(joints), b"")
        if len(joints) > 1 or (joint and joint not in (b" ", b"-")):
            continue
        if joint and not run.alone(i, count, joint) and _fours_about(run, i, count):
            continue
        start, stop = run.groups[i][0], run.groups[i + count - 1][1]
        if run.window[start - 1 : start] in (b"/", b".", b"_", b"-") and start:
            continue
        digits = run.digits(i, count)
        if _CARDS.fullmatch(digits) and len(set(digits)) > 1 and luhn.is_valid(digits.decode()):
            yield start, stop, "card"
            return


def _fours_about(run: Run, i: int, count: int) -> bool:
    """Whether the groups go on in fours: a table of numbers, not a card."""
    return (i > 0 and run.lengths(i - 1, 1) == (4,)) or run.lengths(i + count, 1) == (4,)


def _identity(run: Run, i: int) -> Iterator[Found]:
    start = run.groups[i][0]
    if run.window[start - 1 : start] in (b"/", b".", b"_", b"-") and start:
        return
    lengths = run.lengths(i, 7)
    if lengths[:3] == (3, 2, 4) and run.between(i, 3) == [b"-", b"-"] and run.alone(i, 3, b"-"):
        text = run.window[start : run.groups[i + 2][1]].decode()
        if ssn.is_valid(text) or (text[0] == "9" and int(text[4:6]) in ITIN_GROUPS and text[7:] != "0000"):
            yield start, run.groups[i + 2][1], "national_id"
    dotted = lengths[:4] == (3, 3, 3, 2) and run.between(i, 4) == [b".", b".", b"-"]
    if dotted and cpf.is_valid(run.digits(i, 4).decode()):
        yield start, run.groups[i + 3][1], "national_id"
    for shape in ((15,), (13, 2), (1, 2, 2, 2, 3, 3, 2)):
        count = len(shape)
        formed = lengths[:count] == shape and set(run.between(i, count)) <= {b" "}
        if formed and nir.is_valid(run.digits(i, count).decode()):
            yield start, run.groups[i + count - 1][1], "national_id"
    if lengths[:1] in ((17,), (18,)):
        stop = start + 18
        if not run.window[stop : stop + 1].isalnum() and ric.is_valid(run.window[start:stop].decode("latin-1")):
            yield start, stop, "national_id"
    if lengths[:2] == (6, 7) and run.between(i, 2) == [b"-"] and rrn.is_valid(run.digits(i, 2).decode()):
        yield start, run.groups[i + 1][1], "national_id"


def _announced_identity(run: Run, cue: int) -> Iterator[Found]:
    module, size = {
        scan.AADHAAR: (aadhaar, 12),
        scan.PESEL: (pesel, 11),
        scan.IDNR: (idnr, 11),
        scan.BSN: (bsn, 9),
    }.get(cue, (None, 0))
    count = 1
    while module is not None and count <= len(run.groups):
        digits = run.digits(0, count)
        if len(digits) == size and set(run.between(0, count)) <= set(_SIMPLE) and module.is_valid(digits.decode()):
            yield run.groups[0][0], run.groups[count - 1][1], "national_id"
        count += 1


def _by_form(run: Run, i: int) -> Iterator[Found]:
    joints = run.between(i, 5)
    if run.lengths(i, 3) == (3, 3, 4) and joints[0] in (*_SIMPLE, b") ", b")", b")-", b"/") and joints[1] in _SIMPLE:
        area, exchange = run.digits(i, 1), run.digits(i + 1, 1)
        first = (
            i - 1 if i and run.digits(i - 1, 1) == b"1" and run.separators[i] in (*_SIMPLE, b" (", b"(", b"-(") else i
        )
        free = first == 0 or run.separators[first] not in (joints[1], b".", b"-")
        last = i + 3 == len(run.groups) or run.separators[i + 3] not in (b".", b"-")
        marked = set(joints[:2]) != {b" "} or run.window[run.groups[first][0] - 1 : run.groups[first][0]] == b"+"
        if area >= b"200" and exchange >= b"200" and free and last and marked and _starts_free(run, first):
            yield _opened(run, first, i), run.groups[i + 2][1], "phone"
    if run.lengths(i, 5) == (2, 2, 2, 2, 2) and len(set(joints)) == 1 and joints[0] in _SIMPLE:
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


def _international(run: Run) -> Iterator[Found]:
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


def _announced_phone(run: Run) -> Iterator[Found]:
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
