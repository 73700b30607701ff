"""What an address or a token is: an e-mail address, a bank account, a tax number, a key to a service, nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from stdnum import iban
from stdnum.es import dni, nie
from stdnum.it import codicefiscale

from corpusmill.kernels.pii import scan as scan
from corpusmill.kernels.pii.runs import Found

_FILES = """
png jpg jpeg gif svg webp avif bmp ico tif tiff pdf css js mjs jsx tsx json xml html htm php asp aspx jsp txt csv zip gz
tar mp3 mp4 webm rb go java cpp hpp dll exe jar yml yaml toml lock log bak
"""
FILES = frozenset(_FILES.split())
"""Ends of names that look like a domain's: "logo@2x.png". Country codes (py, rs, md) are not among them."""

NOWHERE = frozenset(
    ("local", "localhost", "localdomain", "invalid", "test", "lan", "internal", "intranet", "home", "arpa")
)
"""Last labels of hosts that no mail reaches (RFC 6761, RFC 6762, RFC 8375)."""

RESERVED = re.compile(rb"(?:^|\.)example(?:\.(?:com|org|net|edu))?$", re.IGNORECASE)
"""Domains for examples (RFC 2606)."""

_NOBODY = """
you your yourname your.name your-name your_name youremail your.email your-email me myname my.name name username user
user1 user2 users email e-mail mail address someone somebody anyone person customer client example sample test
testuser tester demo author foo bar baz foobar admin administrator root info contact support sales help hello noreply
no-reply postmaster webmaster hostmaster abuse security alice bob carol john jane johndoe john.doe jdoe janedoe
jane.doe joe first.last firstname.lastname first.lastname xyz abc a b x y u nobody
"""
PLACEHOLDERS = frozenset(_NOBODY.split())
"""Names of nobody: at a domain for examples, they are an example whatever the setting."""

NO_MAIL = frozenset(("git", "hg", "svn", "cvs", "ssh", "anoncvs"))
"""Users of repositories' servers: git@github.com."""

_DOMAIN = re.compile(
    r"(?:[0-9A-Za-z\u00c0-\u052f](?:[0-9A-Za-z\u00c0-\u052f-]{0,61}[0-9A-Za-z\u00c0-\u052f])?\.){1,8}"
    r"((?:xn--[0-9A-Za-z]{2,59})|[A-Za-z]{2,24}|[\u00c0-\u052f]{2,24})"
)

KEY = re.compile(
    rb"(?:(?:AKIA|ASIA|ABIA|ACCA)([A-Z2-7]{16})"  # Amazon Web Services
    rb"|gh[pousr]_([0-9A-Za-z]{36,251})|github_pat_([0-9A-Za-z_]{82})|glpat-([0-9A-Za-z_-]{20,64})"
    rb"|xox[abeoprs]-([0-9A-Za-z-]{20,250})|xapp-([0-9A-Za-z-]{20,250})"  # Slack
    rb"|(?:sk|rk)_(?:live|test)_([0-9A-Za-z]{16,247})|whsec_([0-9A-Za-z+/]{24,64})"  # Stripe
    rb"|AIza([0-9A-Za-z_-]{35})|ya29\.([0-9A-Za-z_-]{20,250})|GOCSPX-([0-9A-Za-z_-]{28})"  # Google
    rb"|sk-(?:proj-|svcacct-|admin-|ant-[a-z0-9]{3,6}-|or-v1-)?([0-9A-Za-z_-]{20,250})"  # OpenAI, Anthropic and others
    rb"|hf_([A-Za-z]{34})|npm_([0-9A-Za-z]{36})|pypi-(AgEI[0-9A-Za-z_-]{50,250})|dop_v1_([0-9a-f]{64})"
    rb"|SG\.([0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43})|key-([0-9a-f]{32})|SK([0-9a-f]{32})|shp(?:at|ca|pa|ss)_([0-9a-fA-F]{32})"
    rb"|(eyJ[0-9A-Za-z_-]{8,1000}\.eyJ[0-9A-Za-z_-]{8,2000}\.[0-9A-Za-z_-]{16,1000})"  # JSON Web Token
    rb"|[0-9]{8,10}:(AA[0-9A-Za-z_-]{33}))"  # Telegram
    rb"(?![0-9A-Za-z_-])"
)
"""Keys by the forms that services give them; what they keep secret is a group."""

_BEFORE = len(b"0123456789:")
_ANNOUNCED = re.compile(
    rb"(?:api|access|auth|secret|private|client|service|account|encryption|signing)[_. -]?(?:key|token|secret)"
    rb"(?:[_. -]?id)?[\"']?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}[\"'`]?$|(?:authorization:\s?)?bearer[ \t]$",
    re.IGNORECASE,
)
_VALUE = re.compile(rb"[0-9A-Za-z_-]{20,200}[0-9A-Za-z+/_-]{0,100}={0,2}")
_EXAMPLE = re.compile(rb"example|sample|placeholder|your|xxxx|insert|dummy|changeme|0123456789|abcdefgh", re.IGNORECASE)
_PEM = re.compile(rb"-----BEGIN (?:[A-Z]{2,9} ){0,2}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(rb"-----END (?:[A-Z]{2,9} ){0,2}PRIVATE KEY(?: BLOCK)?-----")
PEM_BYTES = 8192
"""Keys in longer blocks are not looked for."""

_IBAN = re.compile(rb"[A-Z]{2}[0-9]{2}(?:[0-9A-Z]{11,30}|(?: [0-9A-Z]{4}){2,7}(?: [0-9A-Z]{1,4})?)(?![0-9A-Za-z])")


def email(window: bytes, start: int, at: int, stop: int, reserved: bool) -> Iterator[Found]:
    """An e-mail address about the at sign of a window."""
    while start < at and window[start : start + 1] in (b".", b"'", b"-", b"+", b"%"):
        start += 1
    local = window[start:at].decode("utf-8", "replace")
    host = window[at + 1 : stop].decode("utf-8", "replace")
    domain = _DOMAIN.match(host)
    if not local or local.endswith(".") or ".." in local or domain is None:
        return
    name, last = local.lower(), domain[1].lower()
    if domain[0] != host and host[len(domain[0])] not in ".-":
        return
    if last in NOWHERE or last in FILES or name in NO_MAIL or window[max(0, start - 2) : start] == b"//":
        return
    encoded = domain[0].encode()
    if RESERVED.search(encoded) and (not reserved or name in PLACEHOLDERS):
        return
    yield start, at + 1 + len(encoded), "email"


def account(window: bytes, start: int) -> Iterator[Found]:
    """A bank account number of the international form (ISO 13616) that begins at a place."""
    match = _IBAN.match(window, start)
    if match is None:
        return
    text = match[0]
    while len(text) >= 15:
        compact = text.replace(b" ", b"").decode()
        moved = "".join(str(int(c, 36)) for c in compact[4:] + compact[:4])
        if int(moved) % 97 == 1 and iban.is_valid(compact):
            yield start, start + len(text), "iban"
            return
        text = text.rpartition(b" ")[0]


def code(window: bytes, start: int, stop: int, cue: int) -> Iterator[Found]:
    """An Italian tax number; a Spanish one where a word announces it."""
    text = window[start:stop].decode()
    italian = len(text) == 16 and text.isupper() and codicefiscale.is_valid(text)
    if italian or (cue == scan.DNI and len(text) <= 11 and (dni.is_valid(text) or nie.is_valid(text))):
        yield start, stop, "national_id"


def key(window: bytes, start: int, stop: int) -> Iterator[Found]:
    """A key to a service: of a known form, or announced as one; and not too regular to be one."""
    match = KEY.match(window, start)
    for back in (3, *range(9, _BEFORE + 1)):  # "SG." and the number of a Telegram bot stand before the token
        if match is None and start >= back and not window[max(0, start - back - 1) : start - back].isalnum():
            match = KEY.match(window, start - back)
    if match is not None:
        secret = next(group for group in match.groups() if group)
        if _irregular(secret) and not _EXAMPLE.search(match[0]):
            yield match.start(), match.end(), "api_key"
    elif _ANNOUNCED.search(window[max(0, start - 48) : start]):
        value = _VALUE.match(window, start)
        if value and re.search(rb"[0-9]", value[0]) and _irregular(value[0]) and not _EXAMPLE.search(value[0]):
            yield start, value.end(), "api_key"


def private_key(window: bytes, start: int) -> Iterator[Found]:
    """A block of a private key that begins at a place."""
    begin = _PEM.match(window, start)
    end = _PEM_END.search(window, begin.end(), start + PEM_BYTES) if begin else None
    if begin and end and end.start() - begin.end() >= 64:
        yield start, end.end(), "api_key"


def _irregular(secret: bytes) -> bool:
    """Whether characters differ as random ones do: collision entropy of at least 2.6 bits a character, in whole
    numbers (the sum of the squared shares is at most 1/6)."""
    return 6 * sum(count * count for count in Counter(secret).values()) <= len(secret) ** 2
