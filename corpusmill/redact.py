"""The one redactor: text for people, without passwords, signatures and keys.

Addresses of sources, servers and redirects may carry them. Everything that is said goes through `redacted`: errors
(errors.py), notes, log records and tracebacks (`guard_logs`), logs of training. An address keeps its scheme, host and
path; what stands before the host and the whole query go, since nobody knows all names of secret parameters. Crawled
data (URLs of documents) is data, and stays.
"""

from __future__ import annotations

import logging
import os
import re
import traceback
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote, urlsplit

from corpusmill.plain_text import visible

GONE, QUERY = "***", "?..."

_WORDS = (
    r"signature|credentials?|secret|password|passwd|passphrase|token|jwt|api[-_.]?key|access[-_.]?key|account[-_.]?key|"
    r"private[-_.]?key|secret[-_.]?key|shared[-_.]?key|session[-_.]?(?:id|key)|access[-_.]?id"
)
_NAME = rf"(?<![\w.-])([\w.-]*(?:{_WORDS})(?:[-_][\w-]*|id)?"
"""An opened group: the name of something secret, whatever stands before these words."""
_SLASHES = r"(?:\b[a-z][a-z0-9+.-]*:[/\\]{1,3}|[/\\]{2})"
_REST = r"(?:[^\s\"<>'\\]|'(?=\w)|\\(?=\w))*"
"""Of a query: to the blank or the quotation mark behind it; a mark between letters is part of it."""
_HEADERS = r"\b((?:proxy-)?authorization|cookie|set-cookie|x-api-key|x-amz-security-token)"
_LOWER = r"(?-i:[a-z]+)(?:[\s,.;:]|$)"

_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", GONE),
        # what stands before the host; a password may hold what ends a host elsewhere
        (rf"({_SLASHES})(?<!s3://)[^/?#\s]*@", r"\1"),
        (r"(?<=s3://)(?!anonymous@)[^/?#\s]*@", ""),
        (rf"({_SLASHES})[^/\\\s:@?#]*:(?!\d{{1,5}}(?:[/?#\s\"'),.;]|$))[^\s@\"<>]{{0,4096}}@", r"\1"),
        (r"(?<![\w.@/\\-])[^\s/\\:@\"'<>=()]+:(?!\d+[/\s])[^\s/@\"<>]+@(?=[\w\[])", ""),
        (r"(%3a%2f%2f)(?:(?!%2f|%3f|%23)[^\s/?#&])*%40", r"\1"),
        # the query of an address, and of a path alone, as libraries name it; a fragment with values
        (rf"(\b[a-z][a-z0-9+.-]*:[/\\]{{1,3}}[^\s\"<>?]*)\?{_REST}", rf"\1{QUERY}"),
        (rf"\?(?=[^\s\"<>]*=){_REST}", QUERY),
        (r"(%3f)[^\s\"<>'/]*%3d[^\s\"<>'/]*", rf"\1{GONE}"),
        (r"(?<=[\w/])#[^\s\"<>'#]*=[^\s\"<>']*", f"#{GONE}"),
        # headers
        (rf"{_HEADERS}(['\"]?\s*+[:=]\s*+['\"]?+)(?!\*\*\*)[^\n\"]+", rf"\1\2{GONE}"),
        (r"\b(AWS4-HMAC-SHA256)\b(?= +Credential)[^\n\"']*", rf"\1 {GONE}"),
        (r"\b(bearer|sharedkey(?:lite)?)\s++(?!\*\*\*)[^\s\"',;]{8,}", rf"\1 {GONE}"),
        # name and value; behind a colon a word in small letters is one of ours ("token: expected …")
        (rf"{_NAME}|sig|sas|pwd)(['\"]?\s*(?:=|%3d)\s*['\"]?)[^\s\"'&;,<>]+", rf"\1\2{GONE}"),
        (rf"{_NAME})(['\"]\s*:\s*['\"])[^\"']+", rf"\1\2{GONE}"),
        (rf"{_NAME})(\s*:\s*)(?!{_LOWER})[^\s\"'&;,<>]+", rf"\1\2{GONE}"),
        # keys and tokens that are known by their form
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?", GONE),
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", GONE),
        (r"\b(?:gh[pousr]_|github_pat_|hf_|glpat-|sk-|xox[abprs]-)[\w-]{16,}", GONE),
    )
)
_BASIC = re.compile(r"\b([Bb]asic)\s+(?=[A-Za-z0-9+/]*(?:[a-z][A-Z]|[0-9]|=))[A-Za-z0-9+/]{6,}={0,2}")

_SECRET_VARIABLE = re.compile(
    r"SECRET|TOKEN(?!IZER)|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|PRIVATE_KEY|ACCESS_KEY$|ACCOUNT_KEY|AUTH_STRING|CREDENTIAL|COOKIE"
    r"|(?:^|_)(?:AUTH|SAS|PASS|PW)(?:$|_(?!SOCK))"
)
_LEAST_CHARS = 6
"""Shorter values of the environment are words of every text."""


def redacted(text: str) -> str:
    """The text without secrets. Applied twice it changes nothing more."""
    for value in sorted(set(_of_environment()), key=len, reverse=True):
        text = text.replace(value, GONE)
    for pattern, put in _RULES:
        text = pattern.sub(put, text)
    return _BASIC.sub(rf"\1 {GONE}", text)


def _of_environment() -> Iterator[str]:
    """Values of variables whose names say that they are secret, and passwords of addresses in others."""
    for name, value in os.environ.items():
        if _SECRET_VARIABLE.search(name.upper()) and not value.startswith(("/", "~", ".")):
            found = [value, *value.split(":")[1:2]]  # user:password
        elif "://" in value and "@" in value:
            found = [unquote(_password(value)), _password(value)]
        else:
            continue
        for secret in found:
            if len(secret.strip()) >= _LEAST_CHARS:
                yield from (secret, quote(secret, safe=""), quote_plus(secret))


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""


def guard_logs() -> None:
    """From now on, log records of this process are redacted, and no terminal obeys them, whoever makes them."""
    logging.setLogRecordFactory(Redacted)


class Redacted(logging.LogRecord):
    """A record whose message and traceback are redacted."""

    def __init__(self, *args: object, **named: object) -> None:
        super().__init__(*args, **named)  # type: ignore[arg-type]
        if isinstance(self.exc_info, tuple) and self.exc_info[0] is not None:
            self.exc_text = visible(redacted("".join(traceback.format_exception(*self.exc_info)))).rstrip("\n")

    def getMessage(self) -> str:
        return visible(redacted(super().getMessage()))
