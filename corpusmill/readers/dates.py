"""Dates as people and programs write them, in one form: RFC 3339 in UTC, `2020-01-31T10:00:00Z`.

A fraction of a second stays, without zeros at its end. A date without a time is its midnight, one without a zone is
taken as UTC. Of 03/04/2020 the month comes first, of 03.04.2020 the day; a number above 12 shows where the day is.
What has two readings besides, or none, has no form. Compare forms without their `Z`: then they sort by time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIN_SECONDS, MAX_SECONDS = 10**8, 10**10
"""Seconds since 1970 that a number may be: 1973 to 2286, or as long before. Others are counts, keys, or no dates."""
MAX_CHARS = 100

_FORM = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? +)?"
_TIME = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,12}))?)?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?"
)
_ZONE = r"(?: ?(?P<zone>[a-z]{1,5}|(?:utc|gmt)?[+-]\d{2}(?::?\d{2})?(?: ?\([a-z ]{1,40}\))?))?"
_CLOCK = rf"(?:(?:[t ]|, | at )(?P<clock>{_TIME}{_ZONE}))?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})"

_WRITTEN = [
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}(?P<sign>[-/.])(?P<month>\d{{1,2}})(?:(?P=sign){_DAY}{_CLOCK})?",  # 2020-01-31T10:00:00+01:00
        rf"{_YEAR}(?P<month>\d{{2}})(?P<day>\d{{2}})(?:t?(?P<hour>\d{{2}})(?P<minute>\d{{2}})(?P<second>\d{{2}})?{_ZONE})?",
        rf"(?P<first>\d{{1,2}})(?P<sign>[/.-])(?P<then>\d{{1,2}})(?P=sign){_YEAR}{_CLOCK}",  # 12/31/2019, 31.12.2019
        rf"{_WEEKDAY}{_DAY}[ -]{_MONTH}[ -]{_YEAR}{_CLOCK}",  # Tue, 05 Feb 2019 10:00:00 GMT
        rf"{_WEEKDAY}{_DAY}[ -]{_MONTH}[ -](?P<short>\d{{2}}){_CLOCK}",  # Sunday, 06-Nov-94 08:49:37 GMT
        rf"{_WEEKDAY}{_MONTH} +{_DAY},? +{_YEAR}{_CLOCK}",  # January 5, 2020
        rf"{_WEEKDAY}{_MONTH} +{_DAY} +(?P<clock>{_TIME}{_ZONE}) +{_YEAR}",  # Sun Nov  6 08:49:37 1994
        rf"(?:{_MONTH},? +)?{_YEAR}",  # 2020, January 2020
    )
]
_NUMBER = re.compile(r"-?\d{1,19}(\.\d{1,20})?(e[+]?\d{1,2})?", re.ASCII | re.IGNORECASE)
_ZONES = {"z": 0, "gmt": 0, "utc": 0, "ut": 0, "wet": 0, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "jst": 9}
_ZONES |= {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}


def instant(text: str, *, day_first: bool = False) -> str | None:
    """The form of a date; None where it cannot be read, or in two ways.

    Args:
        text: as written: ISO 8601, RFC 1123 and 850, asctime, numbers with slashes or dots, English months, or a number
            of seconds, milliseconds, microseconds or nanoseconds since 1970.
        day_first: of 03/04/2020 too the day comes first.
    """
    return text if _FORM.fullmatch(text) else _instant(text, day_first)


def of_epoch(value: int, per_second: int) -> str | None:
    """The form of a whole number of parts of a second since 1970; None outside of the years 1 to 9999."""
    seconds, rest = divmod(value, per_second)
    try:
        return _form(EPOCH + timedelta(seconds=seconds), f"{rest:0{len(str(per_second)) - 1}d}" if rest else "")
    except OverflowError:
        return None


@lru_cache(maxsize=4096)
def _instant(text: str, day_first: bool) -> str | None:
    text = " ".join(text[: MAX_CHARS + 1].split())
    if len(text) > MAX_CHARS:
        return None
    for pattern in _WRITTEN:
        if (match := pattern.fullmatch(text)) and (found := _calendar(match.groupdict(), day_first)):
            return found
    return _number(text) if _NUMBER.fullmatch(text) else None


def _calendar(parts: dict[str, str | None], day_first: bool) -> str | None:
    """The form of the parts of a date; None where there is no such day, time or zone."""
    year, month, day = parts.get("year"), parts.get("month") or "1", parts.get("day") or "1"
    if short := parts.get("short"):  # RFC 2822: 00 to 49 are of this century
        year = f"{20 if short < '50' else 19}{short}"
    if name := parts.get("name"):
        month = str(_MONTHS.index(name[:3].lower()) + 1)
    if first := parts.get("first"):
        then = parts["then"] or ""
        is_day = int(first) > 12 or (int(then) <= 12 and (day_first or parts["sign"] == "."))
        if parts["sign"] == "-" and not day_first and int(first) <= 12 and int(then) <= 12 and first != then:
            return None  # nobody agrees on 03-04-2020
        day, month = (first, then) if is_day else (then, first)
    hour, half = int(parts.get("hour") or 0), (parts.get("half") or "").lower()
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + 12 * (half == "p") if half else hour
    minute, second = int(parts.get("minute") or 0), int(parts.get("second") or 0)
    offset = _offset(parts.get("zone"))
    if hour > 24 or minute > 59 or second > 60 or offset is None or (hour == 24 and (minute or second)):
        return None
    try:
        at = datetime(int(year or 0), int(month), int(day), tzinfo=UTC)
        return _form(at + timedelta(hours=hour, minutes=minute, seconds=second) - offset, parts.get("fraction") or "")
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> timedelta | None:
    if not zone:
        return timedelta()
    zone = zone.lower().partition("(")[0].strip()
    if zone in _ZONES:
        return timedelta(hours=_ZONES[zone])
    sign = max(zone.find("+"), zone.find("-"))
    if sign < 0:
        return None
    digits = zone[sign + 1 :].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 18 or minutes > 59:
        return None
    return timedelta(hours=hours, minutes=minutes) * (-1 if zone[sign] == "-" else 1)


def _number(text: str) -> str | None:
    """Seconds since 1970, or as many thousandths, millionths or billionths as the size says."""
    whole, _, fraction = text.partition(".")
    if "e" in text.lower() or (fraction and fraction.strip("0")):
        value = float(text)
        return of_epoch(round(value * 10**6), 10**6) if MIN_SECONDS <= abs(value) < MAX_SECONDS else None
    value = int(whole)
    units = (10**n for n in (0, 3, 6, 9) if MIN_SECONDS * 10**n <= abs(value) < MAX_SECONDS * 10**n)
    per_second = next(units, None)
    return of_epoch(value, per_second) if per_second else None


def _form(at: datetime, fraction: str) -> str:
    text = f"{at.year:04d}-{at.month:02d}-{at.day:02d}T{at.hour:02d}:{at.minute:02d}:{at.second:02d}"
    fraction = fraction.rstrip("0")
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"
