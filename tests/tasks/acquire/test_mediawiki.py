"""Dumps of MediaWiki: articles as text, each page with one outcome, cut anywhere."""

from __future__ import annotations

import bz2
import gzip
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.readers.parsers.wikitext import TooDeep, most_open, plain
from corpusmill.readers.warc import FileFacts
from tasks.acquire import units
from tasks.acquire.mediawiki import Piece, pages
from tests.tasks.acquire.reading import by_unit, outcomes, reasons, recipe

HIDDEN = frozenset(("file", "image", "category", "datei", "kategorie"))
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <base>https://de.wikipedia.example/wiki/Wikipedia:Hauptseite</base>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""
ARTICLE = """{{Infobox|name=Main|bild={{klein}}}}
'''Main''' is a [[River (water)|river]] in [[Bavaria]].&lt;ref&gt;A [[book]], p. 7.&lt;/ref&gt; It is {{convert|527|km}}
long.
[[Datei:Main.jpg|mini|The Main with [[Frankfurt]]]]
== Course ==
* From the [[Fichtelgebirge]]
* to [https://mainz.example Mainz]
{| class="wikitable"
! Town !! km
|-
| Bamberg || 384
|}
&lt;!-- nobody sees this --&gt;__NOTOC__
[[Kategorie:River]]"""


def page(number: int, text: str, *, title: str = "", ns: int = 0, extra: str = "") -> str:
    return f"""  <page>
    <title>{title or f"Page {number}"}</title>
    <ns>{ns}</ns>
    <id>{number}</id>
    {extra}<revision>
      <id>{number + 1000}</id>
      <timestamp>2026-01-0{number % 9 + 1}T00:00:00Z</timestamp>
      <text bytes="9" xml:space="preserve">{text}</text>
    </revision>
  </page>
"""


def dump() -> list[str]:
    return [
        page(1, ARTICLE, title="Main (river) &amp; more"),
        page(2, "A talk.", ns=1),
        page(3, "#REDIRECT [[Main]]", extra='<redirect title="Main" />\n    '),
        page(4, "{{only|a template}}"),
        page(5, "bad &nosuch; entity"),
        page(6, "Plain text with &lt;page&gt; in it."),
    ]


@pytest.mark.parametrize("suffix", ["", ".bz2", ".gz"])
def test_each_page_has_one_outcome(tmp_path: Path, suffix: str) -> None:
    data = (HEAD + "".join(dump()) + "</mediawiki>\n").encode()
    pack = {"": bytes, ".bz2": bz2.compress, ".gz": gzip.compress}[suffix]
    (tmp_path / f"dewiki-pages-articles.xml{suffix}").write_bytes(pack(data))
    found = outcomes("mediawiki", tmp_path)
    assert [o.reason for o in found] == [None, "other_namespace", "redirect", "empty_body", "bad_row", None]
    first = found[0]
    assert (first.source_id, first.date, first.extractor) == ("1", "2026-01-02T00:00:00Z", "mediawiki")
    assert first.url == "https://de.wikipedia.example/wiki/Main_(river)_&_more"
    river = "Main is a river in Bavaria. It is 527 km\nlong."
    assert first.text == f"Main (river) & more\n\n{river}\n\nCourse\nFrom the Fichtelgebirge\nto Mainz"
    assert found[5].text == "Page 6\n\nPlain text with <page> in it."
    if suffix != ".bz2":
        assert [o.offset for o in found] == [data.index(f"<title>{t}".encode()) - 11 for t in titles(data)]
    assert reasons(outcomes("mediawiki", tmp_path, namespaces=[0, 1]))[None] == 3


def titles(data: bytes) -> list[str]:
    import re

    return re.findall(r"<title>(.*?)<", data.decode())


@pytest.mark.parametrize("suffix", ["", ".bz2"])
@pytest.mark.parametrize("size", [700, 701, 1500])
def test_blocks_hold_each_page_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, size: int) -> None:
    """Streams of a compressed dump end where they like: also inside a page and inside a tag."""
    texts = [page(i, f"Article number {i} " + "word " * (i % 23)) for i in range(200)]
    data = (HEAD + "".join(texts) + "</mediawiki>").encode()
    if suffix:
        data = b"".join(bz2.compress(data[i : i + 3001]) for i in range(0, len(data), 3001))
    (tmp_path / f"w.xml{suffix}").write_bytes(data)
    whole = outcomes("mediawiki", tmp_path)
    assert [o.source_id for o in whole] == [str(i) for i in range(200)]
    monkeypatch.setattr(units, "BLOCK_BYTES", size)
    blocks = by_unit(recipe("mediawiki", tmp_path))
    assert len(blocks) > 2
    assert [o for _, found in blocks for o in found] == whole


def test_damage_costs_the_pages_it_hits(tmp_path: Path) -> None:
    parts = [HEAD, *(page(i, "Text " * 50 + str(i)) for i in range(30))]
    streams = [bytearray(bz2.compress(part.encode())) for part in parts]
    streams[11][40:50] = bytes(10)
    (tmp_path / "w.xml.bz2").write_bytes(b"".join(streams)[:-20])
    facts = FileFacts()
    found = outcomes("mediawiki", tmp_path, facts)
    assert reasons(found) == {None: 28, "damaged": 1, "truncated": 1}
    assert [o.source_id for o in found if o.text] == [str(i) for i in range(29) if i != 10]
    assert facts.counts["damaged"] == facts.counts["truncated"] == 1
    (tmp_path / "w.xml.bz2").unlink()
    (tmp_path / "w.xml").write_bytes("".join(parts).encode()[:-60])
    assert reasons(outcomes("mediawiki", tmp_path)) == {None: 29, "truncated": 1}


@given(
    st.lists(st.sampled_from(["<page>", "</page>", "x", "<pa", "ge>", "</", "<page><page>"]), max_size=20), st.data()
)
def test_pages_do_not_depend_on_the_pieces(parts: list[str], draw: st.DataObject) -> None:
    data = "".join(parts).encode()
    step = draw.draw(st.integers(1, 9))
    want = list(pages(iter([Piece(0, data)] if data else []), 1000))
    found = list(pages((Piece(i, data[i : i + step]) for i in range(0, len(data), step)), 1000))
    assert [p for p in found if not p.damage] == [p for p in want if not p.damage]
    assert [(p.offset, p.size) for p in found] == [(p.offset, p.size) for p in want]


def test_long_pages_are_not_held() -> None:
    text = b"<page>" + b"a" * 100_000 + b"</page><page>b</page>"
    found = list(pages((Piece(i, text[i : i + 999]) for i in range(0, len(text), 999)), 5000))
    assert [(p.size, p.data) for p in found] == [(100_013, b""), (14, b"<page>b</page>")]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a [[b]] c", "a b c"),
        ("a [[File:x.jpg|thumb|words [[l]]]] c", "a c"),
        ("a<ref name=x>r</ref> b<ref name=y/>", "a b"),
        ("''i'' '''b'''", "i b"),
        ("<nowiki>[[x]]</nowiki>", "[[x]]"),
        ("x &nbsp; &amp; y", "x \xa0 & y"),
        ("{{a|{{b}}}}", ""),
        ("{{unclosed", "{{unclosed"),
        ("[[unclosed", "[[unclosed"),
    ],
)
def test_markup_goes_and_words_stay(source: str, text: str) -> None:
    assert plain(source, HIDDEN) == text


OPEN = {
    "ref": "<ref>", "address": "[http://a ", "table": "{|\n", "bold-link": "<b>[[{{", "nowiki": "<nowiki>",
    "comment": "<!--", "argument": "{{a|", "link-argument": "[[a|{{b|", "args": "{{{a|", "attribute": '<span a="',
    "cells": "{|\n|-\n|a\n", "mail": "[mailto:a ", "protocol-relative": "[//a ", "tags": "<i><u><s>", "math": "<math>",
    "half": "<b [[", "list item": "<li a", "crossed": "{{[[}}",
}  # fmt: skip


@pytest.mark.parametrize("mark", OPEN.values(), ids=OPEN)
def test_wikitext_that_opens_and_never_closes_is_too_deep_at_once(mark: str) -> None:
    begin = time.process_time()
    for times in (1000, 4000, 20_000):
        with pytest.raises(TooDeep):
            plain(mark * times, HIDDEN)
    assert time.process_time() - begin < 3
    assert isinstance(plain(mark * 30, HIDDEN), str)


def test_marks_that_need_no_end_or_have_one_are_not_counted() -> None:
    many = [
        "<br>", "<br/>", "<li>a", "{{a|}}", "{{{a|}}}", "[[a|b]]", "[http://a b]", "{|\n|a\n|}\n",
        "<nowiki>[[</nowiki>", "<!-- {{ -->", "<math>{{a}b}</math>", "'" * 3, "* a\n", "<ref name=a/>", "<ref>a</ref>",
        "[[File:a|[http://b c]]]", "a[1]", "}}", "]]", "|}", "</ref>",
    ]  # fmt: skip
    for mark in many:
        assert most_open(mark * 3000) <= 3, mark


def test_a_page_that_is_too_deep_or_too_long_costs_itself_only(tmp_path: Path) -> None:
    texts = ["{{a|" * 4000, "Good.", "a" * 17 * 2**20, "Good too."]
    made = "".join(page(i, text) for i, text in enumerate(texts))
    (tmp_path / "a.xml.gz").write_bytes(gzip.compress((HEAD + made).encode(), 1))
    assert [o.reason for o in outcomes("mediawiki", tmp_path)] == ["too_deep", None, "too_large", None]


def test_a_page_above_its_time_limit_is_a_timeout_and_the_next_is_read(tmp_path: Path) -> None:
    slow = "<ref>" * 90 + "Some words, [[a link|b]] and ''more'' {{x|y}}. " * 2000
    (tmp_path / "a.xml").write_text(HEAD + page(1, slow.replace("<", "&lt;")) + page(2, "Good."))
    ((_, found),) = by_unit(recipe("mediawiki", tmp_path), timeout_s=0.5)
    assert [o.reason for o in found] == ["timeout", None]


def test_pieces_of_a_long_page_are_joined_once() -> None:
    text = b"<page>" + b"a" * 40 * 2**20 + b"</page>"
    begin = time.process_time()
    (found,) = pages((Piece(i, text[i : i + 2**14]) for i in range(0, len(text), 2**14)), 2**26)
    assert found.data == text
    assert time.process_time() - begin < 2  # 2,560 copies of 20 MiB take 10
