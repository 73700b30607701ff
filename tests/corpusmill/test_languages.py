"""Codes that match nothing are refused wherever a recipe takes them, with the nearest that is known."""

from __future__ import annotations

import struct
from pathlib import Path

import fasttext
import pytest

from corpusmill.config import load_recipe, read_recipe
from corpusmill.errors import NotFound, UsageError
from corpusmill.kernels.language.codes import TWO_LETTERS
from corpusmill.kernels.language.ftz_model import MAGIC, labels_of
from corpusmill.languages import INDEX_CODES, NAMES, codes_of, fault, may_be_given, nearest
from corpusmill.models import model_path
from tasks import checks

LID = codes_of("lid.176.ftz")
MEANT = {
    "en": ["EN", "En", "eng", "ENG", "en-US", "en_GB", "en-", " en ", "eng_Latn", "english", "English", "enlgish"],
    "de": ["german", "German", "germn", "deu", "Deutsch", "de-AT", "DE_de"],
    "zh": [
        "zh-cn",
        "zh_CN",
        "zh-Hans",
        "zh-Hant-TW",
        "ZH",
        "zho",
        "cmn",
        "cmn_Hani",
        "chinese",
        "Simplified Chinese",
        "cn",
    ],
    "no": ["nb", "nob", "nb-NO", "norwegian", "Bokmål"],
    "he": ["iw", "heb", "hebrew"],
    "sr": ["sr-Latn", "srp_Cyrl", "SR"],
    "ja": ["jp", "jpn", "japanese"],
    "pt": ["pt-BR", "PT_br", "por", "português"],
    "tl": ["fil", "tgl", "filipino"],
    "nds": ["low german", "Low_German"],
}


@pytest.mark.parametrize(("code", "words"), MEANT.items(), ids=MEANT)
def test_the_nearest_code_is_the_one_that_is_meant(code: str, words: list[str]) -> None:
    assert {word: nearest(word, LID or ()) for word in words} == dict.fromkeys(words, code)


@pytest.mark.parametrize("word", ["", "*", "xx", "qqq", "_", "klingon?", "9"])
def test_where_nothing_is_near_nothing_is_said(word: str) -> None:
    assert nearest(word, LID or ()) is None


def test_the_table_is_that_of_the_model() -> None:
    try:
        path = model_path("lid.176.ftz")
    except NotFound as err:
        pytest.skip(str(err))
    assert codes_of(str(path)) == LID
    assert len(NAMES) == 176


def test_no_known_code_has_another_one_that_stands_for_it() -> None:
    for code in NAMES:
        assert nearest(code, LID or ()) == code
        assert may_be_given(code)
        if len(code) == 2:
            assert TWO_LETTERS.get(code) is None


def check(*overrides: str) -> None:
    read = read_recipe("crawl", ["decontaminate.use=[]", *overrides])
    if found := checks.faults(read.found.section, read.found.dropped):
        raise read.error(found)
    read.section()


def refused(*overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        check(*overrides)
    return str(caught.value)


def test_codes_that_match_nothing_are_refused_with_all_other_faults_at_once() -> None:
    said = refused(
        'language.keep=["eng", "german", "EN", "de", "xx"]',
        "language.min_scores={zh_CN = 0.5, fr = 0.5}",
        'source.crawl.select.languages=["en", "zzx", "deu", "cmn", "sr-Latn"]',
        "pack.seq_len=1",
    )
    assert "4 faults" in said
    assert (
        'language.keep: lid.176.ftz knows no language "eng" (did you mean "en"?), "german" (did you mean "de"?), '
        '"EN" (did you mean "en"?), "xx"\n'
    ) in said
    assert 'language.min_scores: lid.176.ftz knows no language "zh_CN" (did you mean "zh"?)\n' in said
    assert (
        'no language "en" (did you mean "eng"?), "zzx", "cmn" (did you mean "zho"?), "sr-Latn" (did you mean "srp"?)'
        in said
    )


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            'extract.languages=["english"]',
            'extract.languages: lid.176.ftz knows no language "english" (did you mean "en"?)',
        ),
        ('extract.languages=["*"]', 'extract.languages: lid.176.ftz knows no language "*"'),
        ('language.keep=[""]', 'language.keep: lid.176.ftz knows no language ""'),
        ('language.keep=["*", "EN"]', '"EN" (did you mean "en"?)'),
        ('language.keep=["en,de"]', '"en,de" (did you mean "en"?)'),
        ("language.min_scores={nob=0.4}", '"nob" (did you mean "no"?)'),
    ],
)
def test_each_key_is_named(override: str, said: str) -> None:
    assert said in refused(override)


@pytest.mark.parametrize("codes", ['["*"]', '["en"]', '["und", "zh"]', '["als", "arz", "nds"]'])
def test_codes_of_the_model_are_let_in(codes: str) -> None:
    load_recipe("crawl", [f"language.keep={codes}", 'extract.languages=["en", "pl"]'])


def model_of(folder: Path, *labels: str) -> Path:
    """The beginning of a fastText model that gives some labels."""
    words = [("the", 0), *((f"__label__{label}", 1) for label in labels)]
    entries = b"".join(word.encode() + b"\0" + struct.pack("<qb", 1, kind) for word, kind in words)
    file = folder / "own.bin"
    file.write_bytes(struct.pack("<ii12id3i2q", MAGIC, 12, *[0] * 12, 0.0, len(words), 1, len(labels), 1, -1) + entries)
    return file


def whole_model_of(folder: Path, *labels: str) -> Path:
    """A fastText model of two dimensions."""
    lines, file = folder / "lines.txt", folder / "whole.bin"
    lines.write_text("".join(f"__label__{label} one word\n" for label in labels) * 5)
    fasttext.train_supervised(str(lines), epoch=1, dim=2, bucket=10, thread=1, verbose=0).save_model(str(file))
    return file


def test_a_model_of_ones_own_is_asked_for_its_codes(tmp_path: Path) -> None:
    file = model_of(tmp_path, "eng_Latn", "cmn_Hani", "ceb_Latn", "klingon")
    assert labels_of(file)[-1] == "__label__klingon"
    assert codes_of(str(file)) == {"en", "zh", "ceb", "klingon", "und"}
    assert "whose end is missing" in refused(f"language.model={file}", 'language.keep=["klingon"]')
    file = whole_model_of(tmp_path, "eng_Latn", "cmn_Hani", "ceb_Latn", "klingon")
    assert codes_of(str(file)) == {"en", "zh", "ceb", "klingon", "und"}
    model = f"language.model={file}"
    check(model, 'language.keep=["klingon", "zh", "ceb"]')
    said = refused(model, 'language.keep=["de", "ENG"]', 'extract.languages=["eng_Latn"]')
    assert f'language.keep: {file} knows no language "de", "ENG" (did you mean "en"?)' in said
    assert "extract.languages: " in said


def test_a_model_that_is_no_model_or_not_here_says_so_later(tmp_path: Path) -> None:
    (tmp_path / "empty.bin").write_bytes(b"")
    (tmp_path / "text.bin").write_text("no model at all, but long enough to be read as numbers")
    file = model_of(tmp_path, "en")
    (tmp_path / "short.bin").write_bytes(file.read_bytes()[:-8])
    for name in ("empty.bin", "text.bin", "short.bin", "none.bin"):
        assert fault(["x"], str(tmp_path / name)) == ""


def test_tables_of_a_rule_file_name_languages(tmp_path: Path) -> None:
    rules = (Path("rules") / "gopher.toml").read_text(encoding="utf-8")
    for codes, said in (
        (
            ("eng", "German", "zh-Hans"),
            '"eng" (did you mean "en"?), "German" (did you mean "de"?), "zh-Hans" (did you mean "zh"?)',
        ),
        (("de", "fil", "ceb", "nno"), '"fil" (did you mean "tl"?), "nno" (did you mean "nn"?)'),
    ):
        tables = "".join(f"\n[language.{code}]\nstop_words = ['x']\n" for code in codes)
        file = tmp_path / f"{codes[0]}.toml"
        file.write_text(rules + tables, encoding="utf-8")
        assert f"no model knows a language {said}" in refused(f"filter.rules={file}")


def test_the_index_has_codes_of_three_letters() -> None:
    assert {"eng", "deu", "zho", "nor", "srp", "hbs", "war", "bih"} <= INDEX_CODES
    assert not {"en", "cmn", "arb", "zzx"} & INDEX_CODES
    assert all(len(code) == 3 for code in INDEX_CODES)


CODE = ['source={b={kind="code", root="x"}}']


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ('source.b.languages=["python", "Python"]', 'languages "Python" (did you mean "python"?)'),
        (
            'source.b.languages=["py", "C++", "golang"]',
            '"py" (did you mean "python"?), "C++" (did you mean "cpp"?), "golang"',
        ),
        ('source.b.licences=["mit"]', 'ids: "mit" (did you mean "MIT"?)'),
        ('source.b.licences=["Apache 2.0", "MIT"]', 'ids: "Apache 2.0" (did you mean "Apache-2.0"?)'),
    ],
)
def test_languages_and_licences_of_code_are_checked_with_the_recipe(override: str, said: str) -> None:
    assert said in refused(*CODE, override)


def test_what_the_code_reader_gives_is_let_in() -> None:
    languages = (
        '["python", "c", "m4", "perl", "r", "rust", "cpp", "text", "markdown", "restructuredtext", "tex", "bibtex"]'
    )
    check(*CODE, f"source.b.languages={languages}")
