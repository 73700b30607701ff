"""Errors that Prefect stores: without secrets, and otherwise as they are."""

from __future__ import annotations

import traceback

import pytest

from corpusmill.errors import MillError, Unavailable
from flows.run.faults import without_secrets


def test_an_error_of_a_library_that_names_a_secret_becomes_ours_without_it():
    with pytest.raises(MillError) as caught, without_secrets():
        raise ValueError("no http://me:CANARY@host/x?sig=CANARY")
    assert caught.value.what == "ValueError: no http://host/x?..."
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("err", [ConnectionError("reset"), Unavailable("http://me:CANARY@host/x")])
def test_other_errors_stay_what_they_are(err):
    with pytest.raises(type(err)) as caught, without_secrets():
        raise err
    assert caught.value is err
    assert "CANARY" not in str(caught.value)


def test_what_a_terminal_obeys_is_shown_as_escapes():
    with pytest.raises(Unavailable, match=r"file:///x\\x1b\[2J") as caught, without_secrets():
        raise Unavailable("file:///x\x1b[2J", "why\nmore")
    assert caught.value.why == "why\nmore"
