"""Personal data: found where it is, left alone where it only looks so, whatever stands around it."""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from html import unescape
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from stdnum import luhn
from stdnum.iban import calc_check_digits

from corpusmill import schema
from corpusmill.config import PersonalData, PersonalKind
from corpusmill.kernels.edits import spans as edits
from corpusmill.kernels.pii import scan
from corpusmill.kernels.pii.find import KINDS, MASKS, find
from tests.corpusmill.kernels import reference_pii
from tests.corpusmill.kernels.texts import column, texts

KEY = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
PIECES = [
    *("ada@mail.example.org", "user@host", "a@b.co", "@", "müller@bücher.de", "x.y+z@aa.bb.cc.", "logo@2x.png"),
    *("203.0.113.17", "8.8.8.8", "10.2.3.4", "1.2.3.4.5", "2001:db8::16", "2a00:1450::1", "std::vector", "12:30:45"),
    *(
        "+1 (555) 555-0116",
        "+44 20 7946 0016",
        "(212) 555-0199",
        "01 23 45 67 89",
        "tel: 030/123456",
        "电话：13812345678",
    ),
    *("4111 1111 1111 1111", "4111111111111111", "3782 822463 10005", "GB82 WEST 1234 5698 7654 32", "987-65-4321"),
    *(
        "DE89370400440532013000",
        "111.444.777-35",
        "RSSMRA85T10A562S",
        "DNI 12345678Z",
        "PESEL 44051401359",
        "bsn 123456782",
    ),
    *(
        KEY,
        "AKIA" + "Q4TZ7NWXJ2RLM5VD",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.",
        "x" * 40,
    ),
    *(
        "1 22 12 75 101 123 45",
        "900101-1234567",
        "11010519491231002X",
        "2026-07-01",
        "978-3-16-148410-0",
        "a" * 25 + "1",
    ),
    *(
        "phone",
        "Tel.",
        "call me at",
        "no",
        "fax:",
        " ",
        "  ",
        "\n",
        ". ",
        "-",
        "/",
        "+",
        "(",
        ")",
        "\u00a0",
        "\u2013",
        "0",
        "12",
        "345",
    ),
]


def pii_texts() -> st.SearchStrategy[str]:
    """Personal data, look-alikes and what stands about them, in any order."""
    return st.lists(st.one_of(st.sampled_from(PIECES), texts(2)), max_size=10).map("".join)


def found(text: str, **options: Any) -> list[tuple[str, str]]:
    row = find(column([text], 1), **options).to_pylist()[0]
    return [(span["kind"], text.encode()[span["start"] : span["end"]].decode()) for span in row["spans"]]


def masked(text: str) -> str:
    array = column([text])
    return edits.apply(array, find(array).column("spans"), MASKS)[0].as_py()


@settings(max_examples=150)
@given(pii_texts())
def test_places_are_those_of_plain_python(text: str) -> None:
    made = scan.places(column([text], 2))
    rows = list(zip(made.kind, made.start, made.stop, made.facts, made.cue, strict=True))
    assert [tuple(map(int, row)) for row in rows] == reference_pii.places(text.encode())
    assert not len(made.doc) or set(made.doc.tolist()) == {0}


@settings(max_examples=120)
@given(st.lists(pii_texts(), max_size=4))
def test_spans_are_sorted_apart_and_counted(values: list[str]) -> None:
    batch = find(column(values, 1))
    assert batch.schema == schema.pii_group(KINDS)
    for text, row in zip(values, batch.to_pylist(), strict=True):
        data, before = text.encode(), 0
        for span in row["spans"]:
            assert before <= span["start"] < span["end"] <= len(data)
            assert data[span["start"] : span["end"]].decode()  # whole characters
            before = span["end"]
        kinds = [span["kind"] for span in row["spans"]]
        assert {kind: row[f"pii_{kind}"] for kind in KINDS} == {kind: kinds.count(kind) for kind in KINDS}
        assert row["pii_total"] == len(kinds)
    assert batch == find(column([*values, "x"])).slice(0, len(values))


@settings(max_examples=100)
@given(pii_texts(), st.lists(st.sampled_from(KINDS), unique=True))
def test_a_kind_does_not_depend_on_the_others_asked_for(text: str, kinds: list[str]) -> None:
    assert found(text, kinds=tuple(kinds)) == [one for one in found(text) if one[0] in kinds]


def test_recipes_name_the_same_kinds() -> None:
    assert get_args(PersonalKind) == KINDS
    with pytest.raises(ValidationError, match="kinds"):
        PersonalData.model_validate({"kinds": ["name"]})


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match=r"unknown kinds .*'name'.* known are email"):
        find(column(["x"]), ("email", "name"))
    with pytest.raises(ValueError, match="large_string"):
        find(column(["x"]).cast("string"))


def test_masks_are_no_personal_data() -> None:
    for before in ("", " ", "tel: ", "api_key = ", "IBAN "):
        assert found(" ".join(before + mask for mask in MASKS.values())) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("email", "john.smith+news@mail.company.co.uk"),
        ("email", "müller@bücher.de"),
        ("email", "12345@qq.com"),
        ("email", "XN@xn--bcher-kva.xn--p1ai"),
        ("ip", "93.184.216.34"),
        ("ip", "2606:2800:220:1:248:1893:25c8:1946"),
        ("ip", "2a00:1450:4001:81b::200e"),
        ("phone", "+49 (0)40 / 49 07 11 06"),
        ("phone", "+14155552671"),
        ("phone", "+1-415-555-2671"),
        ("phone", "+33 1 42 68 53 00"),
        ("phone", "+86 138 1234 5678"),
        ("phone", "(212) 555-0199"),
        ("phone", "1-800-555-0199"),
        ("phone", "212.555.0199"),
        ("phone", "01 42 68 53 00"),
        ("card", "4111-1111-1111-1111"),
        ("card", "5555555555554444"),
        ("card", "3782 822463 10005"),
        ("card", "6011 1111 1111 1117"),
        ("iban", "DE89370400440532013000"),
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("iban", "NO93 8601 1117 947"),
        ("national_id", "536-90-4399"),
        ("national_id", "1 85 05 78 006 084 91"),
        ("national_id", "295109912611193"),
        ("national_id", "RCCMNL83S18D969H"),
        ("national_id", "390.533.447-05"),
        ("national_id", "360426199101010071"),
        ("national_id", "971013-9019902"),
        ("api_key", KEY),
        ("api_key", "sk-ant-api03-Zq3" + "vT9mXw2LkP8sRd5NbY7hJc4Gf6QaE1uVxKzMn"),
        ("api_key", "AIza" + "SyD9mXw2LkP8sRd5NbY7hJc4Gf6QaE1uVxK"),
        ("api_key", "xoxb-2048" + "17260945-2048172609461-Zq3vT9mXw2LkP8sRd5NbY7hJ"),
        ("api_key", "hf_" + "qWvTmXwLkPsRdNbYhJcGfQaEuVxKzMnBtD"),
        ("api_key", "SG." + "Zq3vT9mXw2LkP8sRd5NbY7.hJc4Gf6QaE1uVxKzMnZq3vT9mXw2LkP8sRd5NbY7hJc"),
        ("api_key", "110201543:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawQ"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "see {} there", "({})", "«{}»", "\n{}\n", "{}, {}", "是{}。", "x: {}."])
def test_values_are_found_whole(kind: str, value: str, around: str) -> None:
    text = around.replace("{}", value)
    if around == "是{}。" and kind in ("email", "phone", "ip"):
        text = text.replace("是", "是 ")
    assert set(found(text)) == {(kind, value)}
    assert len(found(text)) == around.count("{}")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Aadhaar number 2341 2341 2346", "national_id", "2341 2341 2346"),
        ("PESEL: 44051401359", "national_id", "44051401359"),
        ("IdNr 36 574 261 809", "national_id", "36 574 261 809"),
        ("BSN 1112.22.333", "national_id", "1112.22.333"),
        ("mit DNI 54362315K", "national_id", "54362315K"),
        ("NIE: X2482300W", "national_id", "X2482300W"),
        ("Tel. 030 / 123 456-0", "phone", "030 / 123 456-0"),
        ("please call us at 7946 0016 today", "phone", "7946 0016"),
        ("联系电话：13812345678", "phone", "13812345678"),
        ("тел. 495 123-45-67", "phone", "495 123-45-67"),
        ('api_key = "k9Zq3vT9mXw2LkP8sRd5NbY7"', "api_key", "k9Zq3vT9mXw2LkP8sRd5NbY7"),
        ("Authorization: Bearer k9Zq3vT9mXw2LkP8sRd5NbY7", "api_key", "k9Zq3vT9mXw2LkP8sRd5NbY7"),
    ],
)
def test_numbers_after_a_telling_word_are_found(text: str, kind: str, value: str) -> None:
    assert found(text) == [(kind, value)]


LOOKALIKES = [
    *("Version 10.2.3.4 of the tool", "Chrome/91.0.4472.124", "v4.33.2.90", "release 93.184.216.34", "1.2.3.4 Scope"),
    *(
        "section 93.18.21.3",
        "192.168.1.1",
        "127.0.0.1:8080",
        "172.20.10.4",
        "0.0.0.0",
        "255.255.255.0",
        "300.200.100.50",
    ),
    *("93.184.216.0/24", "1.93.184.216.34", "93.184.216.34.5", "093.184.216.034", "2001:db8::/32", "fe80::1", "::1"),
    *("12:30:45", "00:1a:2b:3c:4d:5e", "std::vector<int>", "2001::dead:beef", "2026: the year", "a2b3:cafe"),
    *("ISBN 978-3-16-148410-0", "ISBN 0-306-40615-2", "ISSN 2049-3630", "2026-07-01 12:30:45", "07/01/2026 10:15"),
    *("arXiv:2306.01116", "10.1145/1234567.1234568", "doi:10.1000/182", "RFC 2606", "1234567890123456 items"),
    *(
        "$1,234,567.89",
        "12 345 678",
        "1.234.567,00 €",
        "3.14159265358979323846",
        "555-0",
        "Order 4111-22",
        "0123456789",
    ),
    *("4111 1111 1111 1112", "4111111111111112", "file-4111111111111111", "/t/4111111111111111", "0.4111111111111111"),
    *("1111 1111 1111 1111", "0000 0000 0000 0000", "4111 1111 1111 1111 1111 1111", "4006381333931"),
    *(
        "DE89 3704 0044 0532 0130 01",
        "GB82 WEST 1234",
        "ABCD1234",
        "000-12-3456",
        "666-12-3456",
        "987-66-0000",
        "123-45-67890",
    ),
    *("111.444.777-36", "RSSMRA85T10A562X", "12345678Z", "44051401359", "123456782", "110105194912310021"),
    *("user@host", "user@example.com", "john.doe@example.org", "git@github.com:a/b.git", "logo@2x.png", "react@16.8.0"),
    *("ssh://me@host.example.net/", "root@box.local", "@handle", "a@b", "x @ y.com", "foo@.com", "50@100"),
    *("https://www.w3.org/TR/2011/REC-xml-20110101/", "call 911", "phone 2 000 000 people", "tel: 2026-07-01"),
    *("da39a3ee5e6b4b0d3255bfef95601890afd80709", "550e8400-e29b-41d4-a716-446655440000", "sha256:" + "9f86d081" * 8),
    *("AKIAIOSFODNN7EXAMPLE", "ghp_" + "x" * 36, "sk_live_" + "a1" * 12, "api_key = YOUR_API_KEY_GOES_HERE_1234"),
    *(
        "api_key = 'aaaaaaaaaaaaaaaaaaaaaaaa1'",
        "how-to-install-debian-12-on-a-raspberry-pi",
        "-----BEGIN PUBLIC KEY-----",
    ),
    *(
        "+1 2026",
        "+10 000 000",
        "GMT+0100",
        "C++ 11",
        "+1 (555) 555",
        "2^31 = 2147483648",
        "+999 123 456 789",
        "0x1234567890",
    ),
    *("timestamp 1767225600", "id=1767225600123", "538 538 1075 free", "page 100-200-3000", "01.02.03.04.05.06"),
    *(" ".join(["4111 1111 1111 1111"] * 15), "7 8 9 " * 60),
]


@pytest.mark.parametrize("text", LOOKALIKES)
@pytest.mark.parametrize("around", ["{}", "see {} there", "({}),"])
def test_lookalikes_are_not_touched(text: str, around: str) -> None:
    assert found(around.replace("{}", text)) == []


def test_values_for_examples_may_be_left() -> None:
    text = "ada.lovelace@example.com user@example.com 203.0.113.17 2001:db8::16 93.184.216.34 eve@company.com"
    assert [value for _, value in found(text)] == text.replace("user@example.com ", "").split(" ")
    assert [value for _, value in found(text, reserved=False)] == ["93.184.216.34", "eve@company.com"]


def test_a_private_key_is_one_find() -> None:
    block = (
        "-----BEGIN RSA PRIVATE KEY-----\n" + "Zq3vT9mXw2LkP8sRd5NbY7hJc4Gf6Q\n" * 20 + "-----END RSA PRIVATE KEY-----"
    )
    assert found(f"key:\n{block}\nend") == [("api_key", block)]
    assert found(block.replace("-----END", "----END")) == []


@settings(max_examples=80)
@given(st.randoms(use_true_random=False), texts(6), texts(6))
def test_made_values_are_found_in_any_text(chance: random.Random, before: str, after: str) -> None:
    digits = "".join(chance.choice("0123456789") for _ in range(14))
    card = "4" + digits
    card += luhn.calc_check_digit(card)
    account = "".join(chance.choice("0123456789") for _ in range(18))
    iban = f"DE{calc_check_digits('DE00' + account)}{account}"
    address = f"{chance.choice('abcdef')}{digits[:4]}@mail{digits[4:7]}.net"
    for kind, value in (("card", card), ("iban", iban), ("email", address)):
        text = f"{before}\n{value}\n{after}"
        place = len(f"{before}\n".encode())
        spans = find(column([text])).to_pylist()[0]["spans"]
        assert {"start": place, "end": place + len(value), "kind": kind} in spans
        array = column([text])
        assert f"\n{MASKS[kind]}\n" in edits.apply(array, find(array).column("spans"), MASKS)[0].as_py()


@pytest.mark.parametrize(
    "unit",
    [
        "a@",
        "a.b@c.d.",
        "1.2.3.4.",
        "12 345 ",
        "4111 1111 ",
        "+1 555 ",
        "eyJa.eyJb.",
        "-----BEGIN ",
        "GB82 WEST ",
        "0-",
        "a1" * 50 + ".",
    ],
)
def test_the_time_grows_with_the_text_only(unit: str) -> None:
    """No input makes a check look at the same bytes again and again: 100 kB in seconds, not hours."""
    text = column([unit * (100_000 // len(unit))])
    find(column([unit]))
    began = time.process_time()
    find(text)
    assert time.process_time() - began < 8


def crawl_pages(data_dir: Path, kind: str) -> list[tuple[list[str], str]]:
    """(planted values, visible text) of the sample crawl's pages of a kind."""
    root, pages = data_dir / "mini-crawl", []
    with gzip.open(root / "truth.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["kind"] == kind]
    for row in rows:
        with (root / row["warc"]).open("rb") as file:
            file.seek(row["offset"])
            record = gzip.decompress(file.read(row["length"]))
        html = record.split(b"\r\n\r\n", 2)[2].decode("utf-8")
        pages.append(([one["value"] for one in row["pii"]], unescape(re.sub(r"<[^>]*>", "\n", html))))
    return pages


def test_all_planted_values_of_the_sample_crawl_are_masked(data_dir: Path) -> None:
    pages = crawl_pages(data_dir, "pii")
    assert len(pages) == 40
    missed = [value for values, text in pages for value in values if value not in text or value in masked(text)]
    assert (sum(len(values) for values, _ in pages), missed) == (138, [])


def test_nothing_on_the_lookalike_pages_of_the_sample_crawl_is_touched(data_dir: Path) -> None:
    pages = crawl_pages(data_dir, "pii-lookalike")
    assert len(pages) == 12
    assert [one for _, text in pages for one in found(text)] == []
