"""Plain Python for the places of `pii_scan`, written with regular expressions over one document."""

from __future__ import annotations

import re

from corpusmill.kernels.pii import scan as scan

TOKEN = re.compile(rb"[0-9A-Za-z_-]+|@")
SEPARATOR = rb"(?:[ .\-()/]|\xc2\xa0|\xe2\x80[\x80-\x95\xaf])"
WIDE = rb"[\xc3-\xd4][\x80-\xbf]"
LOCAL = re.compile(rb"(?:[0-9A-Za-z._%+\-']|" + WIDE + rb")+\Z")
DOMAIN = re.compile(rb"(?:[0-9A-Za-z-]|" + WIDE + rb"|\.(?=[0-9A-Za-z]|[\xc3-\xff]))+")
GROUPS = re.compile(rb"[0-9]+")

Place = tuple[int, int, int, int, int]
"""Kind, begin, end, facts, cue."""


def places(text: bytes) -> list[Place]:
    """Everything `pii_scan.places` finds in one document."""
    found: list[Place] = []
    at = 0
    while match := TOKEN.search(text, at):
        start, stop = match.span()
        token, at = match[0], stop
        if token == b"@":
            found += _email(text, start)
            continue
        follows = text[stop : stop + 1]
        if not re.search(rb"[0-9]", token):
            if len(token) >= 10 and token[:1] == b"-" and token[5:6] == b"B":
                found.append((scan.PEM, start, stop, 0, 0))
            elif len(token) >= 37 and token.startswith(b"hf_"):
                found.append((scan.TOKEN, start, stop, 0, 0))
            continue
        if re.search(rb"[A-Za-z]", token):
            kind = _code(token)
            if kind is None and len(token) >= scan.MIN_TOKEN:
                kind = scan.TOKEN
            if kind is None and len(token) == 4 and follows == b":" and token[:1] in b"23":
                kind = scan.IP6
            if kind is not None:
                cue = announced(text[:start]) if kind == scan.CODE else 0
                found.append((kind, start, stop, 0, cue))
        if re.match(rb"[0-9_-]", token):
            if re.fullmatch(rb"[23][0-9]{3}", token) and follows == b":":
                found.append((scan.IP6, start, stop, 0, 0))
            first = start + len(token) - len(token.lstrip(b"_-"))
            end, run = _run(text, first)
            at = max(stop, end)
            found += run
    return found


def _run(text: bytes, first: int) -> tuple[int, list[Place]]:
    """A run of numbers that begins at a place: its end, and the place if it tells."""
    groups, separators, at, separator = [], [], first, b""
    while match := GROUPS.match(text, at):
        follows = text[match.end() : match.end() + 1]
        if re.match(rb"[A-Za-z]", follows) or (follows == b":" and re.fullmatch(rb"[23][0-9]{3}", match[0])):
            break
        groups.append(match)
        separators.append(separator)
        gap = re.compile(SEPARATOR + rb"{1,4}").match(text, match.end())
        separator = gap[0] if gap else b""
        at = gap.end() if gap else len(text)
    digits = sum(len(group[0]) for group in groups)
    end = groups[-1].end() if groups else first
    flags = scan.PLUS if first and text[first - 1 : first] == b"+" else 0
    for last in range(len(groups)):
        flags |= _shapes([group[0] for group in groups[: last + 1]], separators[: last + 1])
    if match and len(match[0]) in (16, 17) and text[match.end() : match.end() + 1] in (b"X", b"x"):
        flags, digits, end = flags | scan.LONG, digits + len(match[0]), match.end()
    if len(groups) > scan.MAX_NUMBERS:
        flags = 0
    cue = announced(text[:first]) if digits >= 6 or flags & scan.QUAD else 0
    flags |= scan.CUED if cue and digits >= 6 else 0
    if flags and (digits >= 7 or flags & (scan.QUAD | scan.CUED)):
        return end, [(scan.NUMBERS, first, end, flags, cue)]
    return end, []


def _shapes(groups: list[bytes], separators: list[bytes]) -> int:
    """Shapes that end with the last group."""

    def lengths(count: int) -> tuple[int, ...]:
        return tuple(min(len(group), 15) for group in groups[-count:])

    def joined(*joints: bytes) -> bool:
        return separators[len(separators) - len(joints) :] == list(joints)

    flags = 0
    if len(groups) >= 4 and joined(b".", b".", b".") and max(lengths(4)) <= 3 and _public(groups[-4:]):
        flags |= scan.QUAD
    if lengths(3) == (3, 3, 4):
        flags |= scan.NANP
    if lengths(5) == (2,) * 5 and groups[-5].startswith(b"0"):
        flags |= scan.PAIRS
    hyphens = [re.fullmatch(rb"-|\xe2\x80[\x90-\x95]", s) is not None for s in separators]
    if lengths(3) == (3, 2, 4) and all(hyphens[-2:]):
        flags |= scan.SSN
    if lengths(4) == (3, 3, 3, 2) and separators[-3:-1] == [b".", b"."] and hyphens[-1]:
        flags |= scan.CPF
    if lengths(3) in ((4, 4, 4), (4, 6, 5)):
        flags |= scan.FOURS
    if 13 <= len(groups[-1]) <= 19:
        flags |= scan.LONG
    if lengths(7) == (1, 2, 2, 2, 3, 3, 2):
        flags |= scan.NIR
    if lengths(2) == (6, 7) and hyphens[-1]:
        flags |= scan.RRN
    return flags


def _public(octets: list[bytes]) -> bool:
    a, b, c, d = map(int, octets)
    closed = a in (0, 10, 127) or (a, b) == (192, 168) or (a == 172 and 16 <= b < 32) or a >= 224
    return 32 <= max(a, b, c, d) <= 255 and not closed


def _code(token: bytes) -> int | None:
    if re.match(rb"[A-Z]{2}[0-9]{2}", token):
        return scan.IBAN
    if len(token) == 16 and re.match(rb"[A-Za-z]{6}[0-9]{2}(?![0-9])", token):
        return scan.CODE
    if 9 <= len(token) <= 11 and re.match(rb"(?:[0-9]{8}|[A-Za-z][0-9]{7})(?![0-9])", token):
        return scan.CODE
    return None


def _email(text: bytes, at: int) -> list[Place]:
    local, domain = b"", DOMAIN.match(text, at + 1)
    for size in range(1, 66):  # back, a character at a time, until there is one that may not be in a name
        found = LOCAL.search(text[max(0, at - size) : at])
        local = found[0] if found else local
        if len(local) >= 64:
            break
    if not local or domain is None or b"." not in domain[0]:
        return []
    return [(scan.EMAIL, at - len(local), domain.end(), at, 0)]


WORD = re.compile(rb"([A-Za-z\x80-\xff]+(?:[/-][A-Za-z\x80-\xff]+)*)\Z")


CUES = {word.encode(): meaning for meaning, words in scan.CUES.items() for word in words.split()}
FILLERS = {word.encode() for word in scan.FILLERS.split()}


def announced(before: bytes) -> int:
    """What the words before a number announce."""
    for _ in range(4):
        before = re.sub(rb"(?:[ ()+.:#=*\"]|\xc2\xa0|\xef\xbc\x9a){0,6}\Z", b"", before, count=1)
        match = WORD.search(before[-32:])
        if match is None:
            return 0
        word = match[1].lower()  # of ASCII letters
        if len(before) >= 3 and before[-1] >= 0x80 and before[-3] >= 0xE3:
            word = before[-6:]
        if word in CUES:
            return CUES[word]
        if word not in FILLERS:
            return 0
        before = before[: len(before) - len(word)]
    return 0
