"""Which charset a page is in, and who says so; text fit to be stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.readers.charset import canonical_name, decode
from corpusmill.readers.text import clean_text

GERMAN = "<p>Die Brücke über den Fluß ist für Möwen und Schäfer gebaut, größer als früher.</p>"
RUSSIAN = "<p>Река течёт через старый город, и люди гуляют по её берегам каждый вечер.</p>"
CZECH = "<p>Žluťoučký kůň úpěl ďábelské ódy, příliš dlouhá řeka teče přes město a šumí.</p>" * 5
JAPANESE = "<p>この川は山の間から流れて、古い町を通り、海に出ます。</p>" * 3
KOREAN = "<p>강은 산 사이에서 흘러 오래된 도시를 지나 바다로 나갑니다.</p>" * 3


@pytest.mark.parametrize(
    ("text", "codec", "header", "meta", "charset", "origin"),
    [
        (GERMAN, "utf-8", "utf-8", None, "utf-8", "header"),
        (GERMAN, "utf-8", None, "UTF8", "utf-8", "meta"),
        (GERMAN, "utf-8", "iso-8859-1", "utf-16", "utf-8", "detected"),
        (GERMAN, "utf-8-sig", "iso-8859-1", None, "utf-8", "bom"),
        (GERMAN, "utf-16-le", None, None, "utf-16le", "detected"),
        (GERMAN, "utf-16-be", "UTF-16", None, "utf-16be", "header"),
        (GERMAN, "cp1252", "utf-8", None, "windows-1252", "detected"),
        (GERMAN, "latin-1", "ISO-8859-1", None, "windows-1252", "header"),
        (GERMAN, "latin-1", None, "latin1", "windows-1252", "meta"),
        (RUSSIAN, "cp1251", "iso-8859-1", None, "windows-1251", "detected"),
        (RUSSIAN, "koi8-r", None, "koi8-r", "koi8-r", "meta"),
        (RUSSIAN, "cp1251", "utf-8", "windows-1251", "windows-1251", "meta"),
        (CZECH, "iso8859-2", "utf-8", None, "iso-8859-2", "detected"),
        (CZECH, "cp1250", None, None, "windows-1250", "detected"),
        (JAPANESE, "cp932", None, "x-sjis", "shift_jis", "meta"),
        (JAPANESE, "euc_jp", None, None, "euc-jp", "detected"),
        (JAPANESE, "iso2022_jp", "iso-2022-jp", None, "iso-2022-jp", "header"),
        (KOREAN, "cp949", "utf-8", None, "euc-kr", "detected"),
        ("<p>plain</p>", "ascii", None, None, "utf-8", "default"),
        ("<p>plain</p>", "ascii", "utf-8", None, "utf-8", "header"),
    ],
)
def test_the_bytes_decide(
    text: str, codec: str, header: str | None, meta: str | None, charset: str, origin: str
) -> None:
    page = (f'<html><head><meta charset="{meta}"></head>' if meta else "<html>") + text + "</html>"
    found = decode(page.encode(codec), f"text/html; charset={header}" if header else "text/html")
    assert (found.text, found.charset, found.origin, found.repairs) == (page, charset, origin, 0)


def test_a_claim_in_a_comment_or_behind_much_else_is_judged_rightly() -> None:
    late = f"<html><head><!-- <meta charset=koi8-r> -->{'<link>' * 700}<meta charset=windows-1251></head>{RUSSIAN}"
    assert decode(late.encode("cp1251")).origin == "meta"
    assert decode(late.encode("cp1251")).text == late


def test_a_few_broken_bytes_do_not_make_utf_8_something_else() -> None:
    page = (GERMAN * 20).encode("utf-8")
    found = decode(page[:300] + b"\xff" + page[300:-1] + b"\xc3")
    assert (found.charset, found.repairs) == ("utf-8", 2)
    assert "Brücke über den Fluß" in found.text


def test_controls_are_dropped_and_counted() -> None:
    found = decode(b"<p>a\x00b\x07c\td\r\ne\rf\x0cg</p>")
    assert (found.text, found.repairs) == ("<p>abc\td\ne\nf\ng</p>", 2)


def test_labels_mean_what_browsers_mean() -> None:
    labels = {"ISO-8859-1": "windows-1252", " gb2312 ": "gbk", "tis-620": "windows-874", "ks_c_5601-1987": "euc-kr"}
    assert {label: canonical_name(label) for label in labels} == labels
    assert canonical_name("no-such-charset") is None


@given(st.binary(max_size=400), st.sampled_from((None, "text/html; charset=shift_jis", "text/html; charset=x")))
def test_any_bytes_give_text_fit_to_be_stored(data: bytes, content_type: str | None) -> None:
    found = decode(data, content_type)
    assert clean_text(found.text) == (found.text, 0)
    found.text.encode("utf-8")


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200))
def test_cleaning_is_idempotent_and_leaves_good_text_alone(text: str) -> None:
    cleaned, repairs = clean_text(text)
    cleaned.encode("utf-8")
    assert not {c for c in cleaned if c < " " and c not in "\t\n"}
    assert clean_text(cleaned)[0] == cleaned.removeprefix("\ufeff")
    if repairs == 0:
        assert sorted(cleaned.replace("\n", "")) == sorted(
            c for c in text.removeprefix("\ufeff") if c not in "\r\n\x0b\x0c"
        )


def test_documents_with_nul_and_lone_surrogates_are_repaired(data_dir: Path) -> None:
    repaired = {}
    for name in ("B17-nul-documents.jsonl", "B18-lone-surrogates.jsonl"):
        for line in (data_dir / "hostile" / name).read_bytes().split(b"\n"):
            if line.strip():
                row = json.loads(line)
                text, repairs = clean_text(row["text"])
                text.encode("utf-8")
                assert "\x00" not in text
                repaired[name, clean_text(str(row["id"]))[0]] = repairs
    assert len(repaired) == 6
    assert sum(bool(n) for (name, _), n in repaired.items() if name.startswith("B18")) == 2
