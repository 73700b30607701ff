"""Places in texts where personal data may be: one pass over the bytes, so that nearly no text meets a slower check.

A place is an address with a dotted domain, a run of numbers of a telling shape (or after a telling word, as "tel"), a
code that begins as an IBAN or a tax number does, or a long token of letters and digits. What a place holds is decided
in `pii_numbers`, `pii_phones` and `pii_words`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, load8, load32
from corpusmill.kernels.words.table import text_buffers

EMAIL, NUMBERS, IBAN, CODE, TOKEN, PEM, IP6 = range(7)
"""What a place may be."""

QUAD, PLUS, NANP, PAIRS, SSN, CPF, FOURS, LONG, NIR, RRN, CUED = (1 << bit for bit in range(11))
"""Shapes of a run of numbers: 1.2.3.4; a plus sign before it; 3-3-4 digits; five pairs; 3-2-4; 3.3.3-2; groups of four
(or 4-6-5); 13 to 19 digits at once; a French number in groups; 6-7; after a telling word."""

MIN_TOKEN = 20
"""Shorter tokens of letters and digits are no keys."""

MAX_NUMBERS = 40
"""Longer runs of numbers on a line are tables."""

PHONE, AADHAAR, PESEL, IDNR, BSN, DNI = range(1, 7)
"""What a telling word announces."""

CUES = {
    PHONE: (
        "tel tél phone phones telephone telephones telefon telefono teléfono téléphone telefone telefoon telefax fax "
        "mobile cell cellphone whatsapp handy mobil móvil movil celular portable ring call calling dial sms hotline "
        "tlf puh tel/fax telefonnummer rufnummer тел телефон Тел Телефон телефону факс Факс τηλ Τηλ τηλέφωνο "
        "电话 電話 手机 전화 携帯 号码 連絡"
    ),
    AADHAAR: "aadhaar aadhar",
    PESEL: "pesel",
    IDNR: "idnr steuer-id steueridentifikationsnummer identifikationsnummer steuernummer tin",
    BSN: "bsn burgerservicenummer sofinummer",
    DNI: "dni nif nie",
}
"""Words before a number that tell what it is, in small letters (others as they are written); two characters of
languages without spaces."""

FILLERS = (
    "no nr num number numbers numero número numéro nummer is us at me on or der die das le la el my our your номер"
)
"""Words between a telling word and the number."""

_DIGIT, _UPPER, _LOWER, _LINK, _AT, _LOCAL = (1 << bit for bit in range(6))
_WORD = _DIGIT | _UPPER | _LOWER | _LINK
_DOT, _HYPHEN, _BLANK, _OTHER = range(1, 5)  # separators in shapes
_HF = U(int.from_bytes(b"hf_", "little"))
_FNV, _PRIME = U(0xCBF29CE484222325), U(0x100000001B3)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """P places of a batch, in text order."""

    doc: Ints
    """int64[P], number of the text."""
    kind: Ints
    """int64[P], EMAIL, NUMBERS, …"""
    start: Ints
    """int64[P], first byte, from the beginning of the text."""
    stop: Ints
    """int64[P], byte after the last."""
    facts: Ints
    """int64[P], of NUMBERS the shapes, of CODE and TOKEN what a telling word before it announces, of EMAIL the place
    of the at sign."""
    cue: Ints
    """int64[P], what a telling word before it announces; 0 where there is none."""


def places(text: pa.LargeStringArray) -> Places:
    """Where personal data may be.

    Raises:
        ValueError: not a large_string array, or one with nulls.
    """
    data, bounds = text_buffers(text)
    room = int(bounds[-1] - bounds[0]) // 3 + 1
    found = np.empty((room, 6), np.int64)
    hashes, meanings = _cues()
    n = _scan(address_of(data), bounds, _byte_classes(), hashes, meanings, found)
    return Places(*(np.ascontiguousarray(found[:n, column]) for column in range(6)))


@cache
def _byte_classes() -> NDArray[np.uint8]:
    """Facts of each byte, uint8[256]."""
    classes = np.zeros(256, np.uint8)
    for code in range(128):
        character = chr(code)
        classes[code] = (
            character.isdigit() * _DIGIT
            | (character.isalpha() and character.isupper()) * _UPPER
            | (character.isalpha() and character.islower()) * _LOWER
            | (character in "_-") * _LINK
            | (character == "@") * _AT
            | (character.isalnum() or character in "._%+-'") * _LOCAL
        )
    return classes


@cache
def _cues() -> tuple[NDArray[np.uint64], Ints]:
    """Hashes of telling words, ascending, and what they announce; -1 for words between."""
    known = {word: meaning for meaning, words in CUES.items() for word in words.split()}
    known |= dict.fromkeys(FILLERS.split(), -1)
    hashed = sorted((_hash_of(word.encode()), meaning) for word, meaning in known.items())
    return np.array([h for h, _ in hashed], np.uint64), np.array([meaning for _, meaning in hashed])


def _hash_of(word: bytes) -> int:
    """FNV-1a from the last byte to the first, as `_announced` meets them."""
    h = int(_FNV)
    for byte in reversed(word):
        h = ((h ^ byte) * int(_PRIME)) & 0xFFFFFFFFFFFFFFFF
    return h


@inner
def _announced(begin: U, at: U, hashes: NDArray[np.uint64], meanings: Ints) -> int:
    """What the words before an address announce: at most four words back, three of them between."""
    for _ in range(4):
        gap = 0
        while at > begin and gap < 6:
            byte = load8(at - U(1))
            sign = byte in (0x20, 0x28, 0x29, 0x2B, 0x2E, 0x3A, 0x23, 0x3D, 0x2A, 0x22)  # " ()+.:#=*" and quotes
            wide = byte in (0xA0, 0x9A) and at - U(1) > begin and load8(at - U(2)) in (0xC2, 0xBC)  # NBSP, wide colon
            if wide:
                at -= U(2) if byte == 0xA0 else min(U(3), at - begin)
            elif sign:
                at -= U(1)
            else:
                break
            gap += 1
        h, size = _FNV, 0
        unspaced = at - begin >= U(3) and load8(at - U(1)) >= U(0x80) and load8(at - U(3)) >= U(0xE3)
        while at > begin and size < (6 if unspaced else 32):
            byte = load8(at - U(1))
            if U(0x41) <= byte <= U(0x5A):
                byte |= U(0x20)
            letter = U(0x61) <= byte <= U(0x7A) or byte >= U(0x80)
            if size > 0 and byte in (0x2D, 0x2F) and at - begin >= U(2):  # a hyphen or stroke between letters
                before = load8(at - U(2))
                letter = U(0x61) <= before | U(0x20) <= U(0x7A) or before >= U(0x80)
            if not letter:
                break
            h = (h ^ byte) * _PRIME
            at -= U(1)
            size += 1
        if size == 0:
            return 0
        place = np.searchsorted(hashes, h)
        if place == len(hashes) or hashes[place] != h:
            return 0
        if meanings[place] > 0:
            return meanings[place]
    return 0


@inner
def _separator(at: U, end: U) -> tuple[U, int]:
    """Bytes of the separator between two numbers at an address, and its kind; 0 where there is none."""
    size, kind = U(0), 0
    while at + size < end and size < U(4):
        byte = load8(at + size)
        if byte == U(0x2E):
            found = _DOT
        elif byte == U(0x2D):
            found = _HYPHEN
        elif byte == U(0x20):
            found = _BLANK
        elif byte in (0x28, 0x29, 0x2F):
            found = _OTHER
        elif byte == U(0xC2) and at + size + U(1) < end and load8(at + size + U(1)) == U(0xA0):
            found = _BLANK
            size += U(1)
        elif byte == U(0xE2) and at + size + U(2) < end and load8(at + size + U(1)) == U(0x80):
            third = load8(at + size + U(2))
            if not (U(0x80) <= third <= U(0x95) or third == U(0xAF)):
                break
            found = _HYPHEN if U(0x90) <= third <= U(0x95) else _BLANK
            size += U(2)
        else:
            break
        kind = found if kind == 0 else _OTHER
        size += U(1)
    return size, kind


@inner
def _is_public(values: U) -> bool:
    """Whether four numbers of 16 bits are an address that may be public; most in texts are not."""
    a, b, c, d = values >> U(48), values >> U(32) & U(0xFFFF), values >> U(16) & U(0xFFFF), values & U(0xFFFF)
    if max(max(a, b), max(c, d)) > U(255) or max(max(a, b), max(c, d)) < U(32) or a >= U(224):
        return False
    return bool(a not in (0, 10, 127) and not (a == U(192) and b == U(168)) and not (a == U(172) and b >> U(4) == U(1)))


@inner
def _shapes(shape: U, length: int, first: U, values: U) -> int:
    """Shapes that the last groups of a run make. `shape` has a byte a group: the separator before it, its length."""
    flags = 0
    lengths, seps = shape & U(0x0F0F0F0F0F0F0F0F), shape & U(0xF0F0F0F0F0F0F0F0)
    short = lengths & U(0x0C0C0C0C) == U(0) and lengths & U(0x0F000000) != U(0)
    if short and seps & U(0xF0F0F0) == U(0x101010) and _is_public(values):
        flags |= QUAD
    if lengths & U(0x0F0F0F) == U(0x030304):
        flags |= NANP
    if lengths & U(0x0F0F0F0F0F) == U(0x0202020202) and first == U(0x30):
        flags |= PAIRS
    if shape & U(0x0FFFFF) == U(0x032224):
        flags |= SSN
    if shape & U(0x0FFFFFFF) == U(0x03131322):
        flags |= CPF
    if lengths & U(0x0F0F0F) == U(0x040404) or lengths & U(0x0F0F0F) == U(0x040605):
        flags |= FOURS
    if 13 <= length <= 19:
        flags |= LONG
    if lengths & U(0x0F0F0F0F0F0F0F) == U(0x01020202030302):
        flags |= NIR
    if shape & U(0x0FFF) == U(0x0627):
        flags |= RRN
    return flags


@inner
def _numbers(begin: U, at: U, end: U, classes: NDArray[np.uint8]) -> tuple[U, int, int]:
    """A run of numbers from an address: its end, its digits, its shapes."""
    shape, digits, flags, lead, values = U(0), 0, 0, U(0), U(0)
    stop, separator, groups = at, 0, 0
    if at > begin and load8(at - U(1)) == U(0x2B):
        flags |= PLUS
    while True:
        i, length, value = at, 0, U(0)
        while i < end and classes[load8(i)] & _DIGIT:
            value = value * U(10) + (load8(i) & U(0x0F))
            i += U(1)
            length += 1
        address6 = length == 4 and i < end and load8(i) == U(0x3A) and load8(at) in (0x32, 0x33)
        if length == 0 or address6 or (i < end and classes[load8(i)] & (_UPPER | _LOWER)):
            if length in (16, 17) and load8(i) in (0x58, 0x78):  # a Chinese number may end with X
                flags |= LONG
                digits += length
                stop = i
            break
        shape = shape << U(8) | U(separator << 4 | min(length, 15))
        lead = lead << U(8) | load8(at)  # first digits of the groups
        values = values << U(16) | min(value, U(0xFFFF))
        digits += length
        groups += 1
        flags |= _shapes(shape, length, lead >> U(32) & U(0xFF), values)
        stop = i
        size, separator = _separator(i, end)
        at = i + size
        if size == U(0) or at >= end:
            break
    return stop, digits, flags if groups <= MAX_NUMBERS else 0


@inner
def _wide_letter(at: U, end: U) -> bool:
    """Whether two bytes are a letter of a script that addresses are written in: Latin, Greek, Cyrillic."""
    return bool(at + U(1) < end and U(0xC3) <= load8(at) <= U(0xD4) and U(0x80) <= load8(at + U(1)) < U(0xC0))


@inner
def _address(begin: U, at: U, end: U, classes: NDArray[np.uint8]) -> tuple[U, U]:
    """Begin and end of what may be an e-mail address about an at sign; equal where the domain has no dot."""
    start, stop = at, at + U(1)
    while start > begin and at - start < U(64):
        if classes[load8(start - U(1))] & _LOCAL:
            start -= U(1)
        elif start - begin >= U(2) and _wide_letter(start - U(2), at):
            start -= U(2)
        else:
            break
    dots = 0
    while stop < end and stop - at < U(255):
        byte = load8(stop)
        if classes[byte] & (_DIGIT | _UPPER | _LOWER) or byte == U(0x2D):
            stop += U(1)
        elif byte == U(0x2E) and stop + U(1) < end:
            after = load8(stop + U(1))
            if not (classes[after] & (_DIGIT | _UPPER | _LOWER) or after >= U(0xC3)):
                break
            dots += 1
            stop += U(1)
        elif _wide_letter(stop, end):
            stop += U(2)
        else:
            break
    return (start, stop) if start < at and dots > 0 else (at, at)


@inner
def _code(at: U, stop: U, classes: NDArray[np.uint8]) -> int:
    """What a token of letters and digits may be by its first bytes: IBAN, CODE, or -1."""
    size, letters = stop - at, U(0)
    while at + letters < stop and classes[load8(at + letters)] & (_UPPER | _LOWER):
        letters += U(1)
    digits = U(0)
    while at + letters + digits < stop and classes[load8(at + letters + digits)] & _DIGIT:
        digits += U(1)
    if letters == U(2) and digits >= U(2) and classes[load8(at)] & classes[load8(at + U(1))] & _UPPER:
        return IBAN
    if size == U(16) and letters == U(6) and digits == U(2):
        return CODE
    if U(9) <= size <= U(11) and ((letters == U(0) and digits == U(8)) or (letters == U(1) and digits == U(7))):
        return CODE
    return -1


@inner
def _put(found: Ints, n: int, doc: int, kind: int, start: U, stop: U, facts: Any, cue: int) -> None:
    found[n, 0], found[n, 1], found[n, 4], found[n, 5] = doc, kind, facts, cue
    found[n, 2], found[n, 3] = start, stop


@kernel
def _scan(
    data: U, bounds: Ints, classes: NDArray[np.uint8], hashes: NDArray[np.uint64], meanings: Ints, found: Ints
) -> int:
    n = 0
    for d in range(len(bounds) - 1):
        begin, end = data + U(bounds[d]), data + U(bounds[d + 1])
        at = begin
        while at < end:
            fact = classes[load8(at)]
            if fact & _AT:
                start, stop = _address(begin, at, end, classes)
                if start < stop:
                    _put(found, n, d, EMAIL, start - begin, stop - begin, at - begin, 0)
                    n += 1
                at += U(1)
                continue
            if not fact & _WORD:
                at += U(1)
                continue
            stop, facts = at, 0
            while stop < end and classes[load8(stop)] & _WORD:
                facts |= classes[load8(stop)]
                stop += U(1)
            after = stop
            if not facts & _DIGIT:
                pem = stop - at >= U(10) and load8(at) == U(0x2D) and load8(at + U(5)) == U(0x42)  # -----BEGIN
                if pem or (stop - at >= U(37) and load32(at) & U(0xFFFFFF) == _HF):  # the one key without digits
                    _put(found, n, d, PEM if pem else TOKEN, at - begin, stop - begin, 0, 0)
                    n += 1
            elif facts & (_UPPER | _LOWER):
                kind = _code(at, stop, classes)
                if kind < 0 and stop - at >= U(MIN_TOKEN):
                    kind = TOKEN
                elif kind < 0 and stop - at <= U(4) and stop < end and load8(stop) == U(0x3A):
                    kind = IP6 if load8(at) in (0x32, 0x33) and stop - at == U(4) else -1
                if kind >= 0:
                    cue = _announced(begin, at, hashes, meanings) if kind == CODE else 0
                    _put(found, n, d, kind, at - begin, stop - begin, 0, cue)
                    n += 1
            if facts & _DIGIT and classes[load8(at)] & (_DIGIT | _LINK):
                first = at
                while first < stop and classes[load8(first)] & _LINK:
                    first += U(1)
                end_of_run, digits, flags = _numbers(begin, first, end, classes)
                plain = not facts & (_UPPER | _LOWER | _LINK) and stop - at == U(4)
                if plain and stop < end and load8(stop) == U(0x3A) and load8(at) in (0x32, 0x33):
                    _put(found, n, d, IP6, at - begin, stop - begin, 0, 0)
                    n += 1
                if digits >= 6 or flags & QUAD:
                    cue = _announced(begin, first, hashes, meanings)
                    flags |= CUED if cue > 0 and digits >= 6 else 0
                    if flags and (digits >= 7 or flags & (QUAD | CUED)):
                        _put(found, n, d, NUMBERS, first - begin, end_of_run - begin, flags, cue)
                        n += 1
                after = max(after, end_of_run)
            at = after
    return n
