"""What a run of numbers is: an address on the Internet, a card, a tax or identity number, a telephone number, nothing.

Identity numbers are checked by python-stdnum. Card numbers are checked by issuer, length and the Luhn digit (ISO/IEC
7812). Public addresses are all but those of IANA's special-purpose registries, as they stood when this was written:
Python's `ipaddress` has another answer in another version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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

from corpusmill.kernels.pii import phones
from corpusmill.kernels.pii import scan as scan
from corpusmill.kernels.pii.runs import SIMPLE, Found, Run

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
_CARDS = re.compile(
    rb"(?:4[0-9]{15}(?:[0-9]{3})?|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|"
    rb"3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}|"
    rb"6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}|62[0-9]{14,17})"
)
"""Visa, Mastercard, American Express, Diners Club, JCB, Discover, UnionPay by first digits and length."""
_CARD_GROUPS = {(4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4)}


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
            yield from phones.by_form(run, i)
    if cue not in (0, scan.PHONE):
        yield from _announced_identity(run, cue)
    if flags & scan.PLUS:
        yield from phones.international(run)
    elif cue == scan.PHONE and flags & scan.CUED:
        yield from phones.announced(run)


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
        if len(digits) == size and set(run.between(0, count)) <= set(SIMPLE) and module.is_valid(digits.decode()):
            yield run.groups[0][0], run.groups[count - 1][1], "national_id"
        count += 1
