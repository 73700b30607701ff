"""Dates in one form, whatever they are written in; what has no single reading has none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.readers.dates import instant, of_epoch

FORMS = {
    "2020-01-31T10:00:00Z": (
        "2020-01-31T10:00:00Z",
        "2020-01-31 10:00:00",
        "2020-01-31T10:00",
        "2020-01-31t10:00:00z",
        "2020-01-31T11:00:00+01:00",
        "2020-01-31T11:00:00+0100",
        "2020-01-31T11+01",
        "2020-01-31T19:00:00 +09:00",
        "2020-01-31 04:30:00 -0530",
        "2020-01-31T10:00:00.000Z",
        "2020-01-31 10:00:00 UTC",
        "2020/01/31 10:00:00",
        "2020.1.31 10:00",
        "20200131T100000Z",
        "20200131100000",
        "202001311000",
        "Fri, 31 Jan 2020 10:00:00 GMT",
        "31 Jan 2020 10:00:00 +0000 (Coordinated Universal Time)",
        "Fri, 31 Jan 2020 05:00:00 EST",
        "Friday, 31-Jan-20 10:00:00 GMT",
        "Fri Jan 31 10:00:00 2020",
        "Fri Jan 31 10:00:00 UTC 2020",
        "January 31, 2020 at 10:00 AM",
        "Jan 31st, 2020 10 a.m.",
        "31 january 2020, 10:00",
        "1/31/2020 10:00:00",
        "31/01/2020 10:00",
        "31.01.2020 10:00",
        "31-01-2020 10:00",
        "01-31-2020 10:00",
        "1580464800",
        "1580464800.0",
        "1.5804648e9",
        "1580464800000",
        "1580464800000000",
        "1580464800000000000",
        " 2020-01-31\n10:00:00 ",
    ),
    "2019-12-31T00:00:00Z": ("2019-12-31", "20191231", "12/31/2019", "31 December 2019", "Tue, 31 Dec 2019"),
    "2020-01-01T00:00:00Z": ("2020", "2020-01", "January 2020", "2019-12-31T24:00:00Z", "2019-12-31T23:59:60Z"),
    "2020-01-31T10:00:00.25Z": ("2020-01-31T10:00:00.250Z", "2020-01-31T10:00:00,25", "1580464800.25", "1580464800250"),
    "2020-03-04T00:00:00Z": ("03/04/2020", "04.03.2020", "4 Mar 2020"),
    "2020-03-03T12:00:00Z": ("03-03-2020 12:00 pm", "03/03/2020 12 PM"),
    "1994-11-06T08:49:37Z": ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"),
}
NONE = [
    "", "yesterday", "n/a", "0", "17", "-1", "true", "2020-13-01", "2020-02-30", "31/31/2020", "12:30", "25:00",
    "03-04-2020", "19/12/31", "12/31/19", "2020-01-31T25:00:00Z", "2020-01-31 10:00 Mars/Olympus",
    "99999999999999999999",
    "2020-01-31T10:00:00+99:00", "0000-01-01", "10000-01-01", "1e99", "2020-01-31 13:00 pm", "²", "x" * 10**6,
    "9" * 5000, "2020-01-31T10:00:00Z 2020-01-31T10:00:00Z", "123456.5", "20201301", "20201301000000",
]  # fmt: skip


@pytest.mark.parametrize(("form", "text"), [(form, text) for form, texts in FORMS.items() for text in texts])
def test_a_date_has_one_form(form: str, text: str) -> None:
    assert instant(text) == form
    assert instant(form) == form


@pytest.mark.parametrize("text", NONE)
def test_what_cannot_be_read_in_one_way_has_no_form(text: str) -> None:
    assert instant(text) is None


def test_a_source_may_say_that_the_day_comes_first() -> None:
    assert [instant(text, day_first=True) for text in ("03/04/2020", "03-04-2020", "12/31/2019", "31/12/2019")] == [
        "2020-04-03T00:00:00Z",
        "2020-04-03T00:00:00Z",
        "2019-12-31T00:00:00Z",
        "2019-12-31T00:00:00Z",
    ]


@given(st.text())
def test_any_text_has_a_form_or_none(text: str) -> None:
    form = instant(text)
    assert form is None or instant(form) == form


@given(st.lists(st.tuples(st.integers(-60 * 10**9, 250 * 10**9), st.integers(0, 999_999)), min_size=2, max_size=2))
def test_forms_without_their_z_sort_by_time(pair: list[tuple[int, int]]) -> None:
    forms = [of_epoch(seconds * 10**6 + micros, 10**6) for seconds, micros in pair]
    assert None not in forms
    assert [pair[0] < pair[1], pair[0] == pair[1]] == [forms[0][:-1] < forms[1][:-1], forms[0] == forms[1]]
    assert forms[0] == instant(datetime.fromtimestamp(0, UTC).isoformat()) or pair[0] != (0, 0)


def test_numbers_outside_of_the_calendar_have_no_form() -> None:
    assert of_epoch(99_999_999_999_999, 1) is None
    assert of_epoch(-(10**20), 10**9) is None
    assert of_epoch(2**63 - 1, 1) is None
    assert of_epoch(1_700_000_000_000_000_001, 10**9) == "2023-11-14T22:13:20.000000001Z"
