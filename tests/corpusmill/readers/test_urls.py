"""URL rules: what an address is judged by, and what of a rule file is its identity."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.errors import NotFound, UsageError
from corpusmill.readers.outcomes import ReadOptions, outcomes
from corpusmill.readers.urls import KINDS, UrlRules, load_url_rules
from tasks.stages import REASONS
from tests.golden import page, record

SAMPLE = load_url_rules("sample")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://blocked.example/", "url_domain"),
        ("http://user:pw@WWW.Blocked.example.:8080/x?y#z", "url_domain"),
        ("https://notblocked.example/", None),
        ("https://blocked.example.org/", None),
        ("https://cdn.ads.example/", "url_domain"),
        ("https://forum.example/Off-Topic/12?page=3", "url_domain"),
        ("https://www.forum.example/off-topic", "url_domain"),
        ("https://forum.example/off-topical", None),
        ("https://forum.example/on/off-topic", None),
        ("https://a.example/best-casino.html", "url_word"),
        ("https://casino.example/", "url_word"),
        ("https://a.example/?q=CASINO", "url_word"),
        ("https://a.example/%63asino", "url_word"),
        ("https://a.example/casinos", None),
        ("https://ä.example/über-casino", "url_word"),
        ("https://a.example/übercasino", None),
        ("https://myonlinecasinos.example/", "url_word"),
        ("https://a.example/free/bonus", "url_soft_words"),
        ("https://a.example/free/free", None),
        ("https://a.example/freedom/bonuses", None),
        ("https://a.example/free/casino", "url_word"),
        ("https://[2001:db8::1]:80/casino", "url_word"),
        ("https://[broken/casino", "url_word"),
        ("dns:blocked.example", None),
        ("", None),
        (None, None),
    ],
)
def test_an_address_is_judged_by_host_and_by_whole_words(url: str | None, reason: str | None) -> None:
    assert SAMPLE.reason(url) == reason
    assert reason is None or REASONS[reason].row == "acquire"


@given(st.text())
def test_no_address_is_too_strange(url: str) -> None:
    assert SAMPLE.reason(url) in (None, "url_domain", "url_word", "url_soft_words")


WORDS = st.text("abc", min_size=1, max_size=3)


@given(st.frozensets(WORDS), st.frozensets(WORDS), st.frozensets(WORDS), st.lists(WORDS, max_size=5))
def test_the_automaton_finds_what_a_plain_search_finds(
    words: frozenset[str], soft: frozenset[str], parts: frozenset[str], path: list[str]
) -> None:
    rules = UrlRules("x", 1, words=words, soft_words=soft, substrings=parts)
    host, found = "d.d", set(path)
    text = "/".join([host, *path])
    expected = None
    if words & found or any(part in text for part in parts):
        expected = "url_word"
    elif len((soft - words) & found) >= 2:
        expected = "url_soft_words"
    assert rules.reason(f"https://{text}") == expected


def test_international_hosts_are_one_however_they_are_written() -> None:
    rules = UrlRules("x", 1, domains=frozenset({"xn--mnchen-3ya.example"}))
    assert rules.reason("https://www.münchen.example/") == "url_domain"
    assert rules.reason("https://xn--mnchen-3ya.example/") == "url_domain"


def write(folder: Path, name: str = "rules", **lists: str) -> Path:
    folder.mkdir(exist_ok=True)
    lines = ["version = 3"]
    for kind, text in lists.items():
        (folder / f"{name}-{kind}.txt.gz").write_bytes(gzip.compress(text.encode()))
        lines.append(f'{kind} = ["{name}-{kind}.txt.gz"]')
    (folder / f"{name}.toml").write_text("\n".join(lines))
    return folder / f"{name}.toml"


def test_the_digest_is_that_of_the_entries(tmp_path: Path) -> None:
    one = load_url_rules(str(write(tmp_path / "one", domains="https://B.example/\n*.a.example", words="x\ny")))
    two = load_url_rules(
        str(write(tmp_path / "two", "other", words="# two\ny\n\nX # once\nx", domains=".a.example\nb.example."))
    )
    assert one.domains == two.domains == {"a.example", "b.example"}
    assert one.digest == two.digest
    assert one.digest != load_url_rules(str(write(tmp_path / "three", words="x\ny"))).digest
    assert (
        one.digest
        != load_url_rules(str(write(tmp_path / "four", domains="a.example\nb.example", soft_words="x\ny"))).digest
    )


def test_faults_of_a_rule_file_are_said_together(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('domain = ["x"]\nwords = "y"\n')
    with pytest.raises(UsageError) as err:
        load_url_rules(str(file))
    for said in ("unknown key 'domain'", "version is not", "words is not a list"):
        assert said in err.value.why
    with pytest.raises(NotFound, match=r"no URL rules 'nowhere'"):
        load_url_rules("nowhere")
    (tmp_path / "missing.toml").write_text('version = 1\nwords = ["gone.txt"]\n')
    with pytest.raises(NotFound, match=r"no list .*gone\.txt"):
        load_url_rules(str(tmp_path / "missing.toml"))


def test_a_page_ends_by_its_address_before_its_body_is_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "a.warc.gz"
    urls = [
        "https://a.example/river",
        "https://a.example/casino",
        "https://blocked.example/",
        "https://a.example/free-bonus",
    ]
    file.write_bytes(
        b"".join(record(url, page("river", 0)) for url in urls)
        + record("https://blocked.example/gone", "moved", status="301 Moved Permanently")
    )
    found = list(outcomes(file, ReadOptions(urls=SAMPLE)))
    assert [one.reason for one in found] == [None, "url_word", "url_domain", "url_soft_words", "redirect"]
    assert all(one.payload_digest is None and one.html is None for one in found[1:])
    assert {one.reason for one in outcomes(file)} == {None, "redirect"}


def test_the_sample_has_every_kind_of_list() -> None:
    assert all(getattr(SAMPLE, kind) for kind in KINDS)
