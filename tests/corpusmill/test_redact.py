"""Secrets in text: none is left, and what says where something failed stays."""

from __future__ import annotations

import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.errors import MillError, Unavailable
from corpusmill.redact import Redacted, guard_logs, redacted

KEPT = {
    "http://user:CANARY@127.0.0.1:9/a/b cannot be read": "http://127.0.0.1:9/a/b cannot be read",
    "https://CANARY@host/x": "https://host/x",
    "http://user:p@CANARY@host/x@y": "http://host/x@y",
    "http://user:pa/CAN?A#CANARY@host/x": "http://host/x",
    "http:/user:CANARY@host/x": "http:/host/x",
    r"http:\\user:CANARY@host\x": r"http:\\host\x",
    "//user:CANARY@host/x": "//host/x",
    "Invalid URL 'user:CANARY@host:80'": "Invalid URL 'host:80'",
    "s3://KEY:CANARY@bucket/x": "s3://bucket/x",
    "s3://anonymous@bucket/x": "s3://anonymous@bucket/x",
    "postgresql+asyncpg://u:CANARY@db:5432/prefect": "postgresql+asyncpg://db:5432/prefect",
    "go=http%3A%2F%2Fu%3ACANARY%40host%2Fx": "go=http%3A%2F%2Fhost%2Fx",
    "see http://host:8080/a@b, then http://host:80 or a@b": "see http://host:8080/a@b, then http://host:80 or a@b",
}
QUERIES = (
    "X-Amz-Signature=CANARY&X-Amz-Credential=CANARY%2F20260101&X-Amz-Security-Token=CANARY",
    "AWSAccessKeyId=AK&Signature=CANARY&Expires=1",
    "X-Goog-Signature=CANARY&X-Goog-Credential=CANARY",
    "GoogleAccessId=CANARY&Signature=CANARY",
    "sv=2024-01-01&sp=r&sig=CANARY%2B%3D",
    "Policy=CANARY&Key-Pair-Id=CANARY",
    "token=CANARY",
    "CANARY",
    "unheard-of=CANARY",
    "a=1&amp;sig=CANARY",
    "x=it'CANARY",
)
HEADERS = (
    "Authorization: Bearer CANARY",
    "{'Authorization': 'Basic CANARYdXNlcg=='}",
    "authorization=AWS4-HMAC-SHA256 Credential=CANARY/20260101, SignedHeaders=host, Signature=CANARY",
    "Cookie: session=CANARY; other=CANARY",
    "x-amz-security-token: CANARY",
    "SharedKey account:CANARY",
    '{"aws_secret_access_key": "CANARY"}',
    "aws_session_token = CANARY",
    "password: CANARY",
    "AccountName=x;AccountKey=CANARY==;EndpointSuffix=y",
    "SharedAccessSignature=CANARY",
    "-----BEGIN RSA PRIVATE KEY-----\nCANARY\nCANARY\n-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize(("text", "left"), KEPT.items())
def test_what_stands_before_the_host_goes_and_host_and_path_stay(text, left):
    assert redacted(text) == left


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "frame",
    [
        "https://host/path?{} cannot be read",
        "'https://host/path?{}', because",
        '{{"url": "https://host/path?{}", "n": 1}}',
        "<https://host/path?{}>",
        "HTTPConnectionPool(host='host', port=9): Max retries exceeded with url: /path?{} (Caused by x)",
        "b'https://host/path?{}\\n'",
    ],
)
def test_of_a_query_nothing_is_left(query, frame):
    if frame.startswith("HTTPConnectionPool") and "=" not in query:
        pytest.skip("no query that can be told from a question")
    left = redacted(frame.format(query))
    assert "CANARY" not in left
    assert "host" in left
    assert "/path?..." in left


@pytest.mark.parametrize("text", HEADERS)
def test_headers_and_named_values_go(text):
    assert "CANARY" not in redacted(f"{text}\nnext line stays")
    assert "next line stays" in redacted(f"{text}\nnext line stays")


@pytest.mark.parametrize(
    "text",
    [
        "pack.eos_token: expected text",
        "tokens=4096, tokenizer = 'x'",
        "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), and their permissions.",
        "Resume with that dataset (NAME@DIGEST), or start a new run; web-en@51aa03c9 is there",
        "keep it, drop it, skip, quit [k/d/s/q]? a=b",
        "--set 'decontaminate.use=[]'.",
        "sources 'part-?.jsonl' and **/*.warc.gz; Basic authentication failed; sk-short",
    ],
)
def test_plain_words_stay(text):
    assert redacted(text) == text


def test_values_of_secret_variables_and_passwords_of_proxies_go_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "CANARY/one+two")
    monkeypatch.setenv("HF_TOKEN", "CANARYtoken")
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "mill:CANARYauth")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:CANARY%40proxy@proxy:3128")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    for said in ("CANARY/one+two", "CANARY%2Fone%2Btwo", "CANARYtoken", "CANARYauth", "CANARY@proxy", "CANARY%40proxy"):
        assert redacted(f"it is {said}!") == "it is ***!"
    assert redacted("/tmp/agent") == "/tmp/agent"


@given(
    st.lists(
        st.sampled_from([*KEPT, *HEADERS, *(f"http://h/?{q}" for q in QUERIES), "?", "=", "@", ":", " ", "'", "//"])
    )
)
def test_twice_is_once(parts):
    once = redacted("".join(parts))
    assert redacted(once) == once


def test_an_error_has_no_secret_wherever_it_goes():
    err = Unavailable("http://u:CANARY@h/x", "/x?sig=CANARY", "Authorization: Bearer CANARY")
    for form in (str(err), repr(err), repr(err.args), repr(vars(err)), str(pickle.loads(pickle.dumps(err)))):
        assert "CANARY" not in form
    assert isinstance(pickle.loads(pickle.dumps(err)), MillError)


def test_log_records_have_none_in_message_arguments_or_traceback(caplog):
    before = logging.getLogRecordFactory()
    guard_logs()
    try:
        log = logging.getLogger("of.a.library")
        log.warning("Failed to parse headers (url=%s)", "http://u:CANARY@h/x?sig=CANARY")
        try:
            try:
                raise ValueError("http://u:CANARY@h/")
            except ValueError as err:
                raise RuntimeError("token=CANARY") from err
        except RuntimeError:
            log.exception("after %s", "http://h/?sig=CANARY")
        assert "CANARY" not in caplog.text
        assert "RuntimeError: token=***" in caplog.text
        assert all(isinstance(record, Redacted) for record in caplog.records)
    finally:
        logging.setLogRecordFactory(before)
