"""The language model's kernels: words, table, logarithm, percentiles; its training stands in tests/tasks."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.perplexity import table as tables
from corpusmill.kernels.perplexity import tokens as tokens
from corpusmill.kernels.perplexity.estimate import MOST_E6, bits_e6
from corpusmill.kernels.perplexity.score import Bounds, Model, bucket, per_word_e4, percentile_bounds
from corpusmill.kernels.words.table import word_table
from tests.corpusmill.kernels import reference
from tests.corpusmill.kernels.perplexity import kneser_ney
from tests.corpusmill.kernels.texts import batches, column


def test_hashes_of_marks_are_those_of_their_spelling() -> None:
    for known, text in ((tokens.BEGIN, "<s>"), (tokens.END, "</s>"), (tokens.NUMBER, "0")):
        assert int(known) == reference.hash_bytes(text.encode())


@settings(max_examples=80)
@given(batches(), st.integers(0, 2))
def test_sentences_and_their_hashes_equal_plain_python(values: list[str], before: int) -> None:
    text = column(values, before)
    found = tokens.sentences(text, word_table(text))
    for i, value in enumerate(values):
        words = [w for line in kneser_ney.sentences_of(value) for w in ("<s>", *line, "</s>")]
        got = found.hashes[found.offsets[i] : found.offsets[i + 1]].tolist()
        assert got == [reference.hash_bytes(word.encode()) for word in words]
    assert tokens.spelled(text) == [line for value in values for line in kneser_ney.sentences_of(value)]
    assert all(word and not word.isspace() and " " not in word for line in tokens.spelled(text) for word in line)


def test_words_are_folded_numbers_are_one_word_and_marks_cannot_be_written() -> None:
    text = column(["The Mill's\r\n\n1,000.5 x2 ½ <s> Straße\n \n"])
    assert tokens.spelled(text) == [["the", "mills"], ["0", "x2", "0", "<", "s", ">", "straße"]]


def built(keys: list[int], slots_are: int | None = None, order: int = 3) -> bytes:
    """A model with these keys; the value of key k is (k % 1000, -(k % 7))."""
    unique = np.array(sorted(keys), np.uint64)
    prob, backoff = (unique % np.uint64(1000)).astype(np.int32), -(unique % np.uint64(7)).astype(np.int32)
    file = io.BytesIO()
    header = {"order": order, "counts": [slots_are or len(unique)], "unknown_e6": 5}
    half = len(unique) // 2
    values = tables.pack(prob, backoff)
    tables.write_table(file, header, [(unique[:half], values[:half]), (unique[half:], values[half:])])
    return file.getvalue()


KEYS = st.one_of(
    st.integers(1, 2**64 - 1),
    st.integers(0, 40).map(lambda low: 2**64 - 1 - low),  # all want the last slot, and stand behind it
    st.integers(0, 40).map(lambda low: (7 << 60) + low),
    st.integers(1, 40),
)


@settings(max_examples=60)
@given(st.sets(KEYS, max_size=120))
def test_every_entry_of_a_table_is_found_and_nothing_else(tmp_path_factory, keys: set[int]) -> None:
    path = tmp_path_factory.mktemp("table") / "m"
    path.write_bytes(built(sorted(keys)))
    table = tables.read_table(path)
    rows = [np.concatenate(column) for column in zip(*tables.entries(table), strict=True)]
    assert rows[0].tolist() == sorted(keys)
    assert rows[1].tolist() == [key % 1000 for key in sorted(keys)]
    assert rows[2].tolist() == [-(key % 7) for key in sorted(keys)]
    # A single word alone: its key is its hash; unknown words cost 5.
    asked = [k for k in {*keys, *(k ^ 1 for k in keys), 12345} if k not in (0, int(tokens.BEGIN))]
    hashes = np.array(asked, np.uint64)
    bits, words = tables.bits_of(table, hashes, np.arange(len(asked) + 1))
    assert words.tolist() == [1] * len(asked)
    assert bits.tolist() == [key % 1000 if key in keys else 5 for key in asked]


def test_a_key_that_comes_twice_stays_as_it_came_first(tmp_path: Path) -> None:
    keys, values = np.array([5, 5, 9], np.uint64), np.array([1, 2, 3], np.uint64)
    file = io.BytesIO()
    tables.write_table(
        file, {"order": 2, "counts": [3], "unknown_e6": 0}, [(keys[:1], values[:1]), (keys[1:], values[1:])]
    )
    (tmp_path / "m").write_bytes(file.getvalue())
    table = tables.read_table(tmp_path / "m")
    assert table.header["merged"] == 1
    assert [part[0].tolist() for part in tables.entries(table)] == [[5, 9]]
    assert np.asarray(table.rows)[:, 1].max() == 3
    assert 2 not in np.asarray(table.rows)[:, 1].tolist()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda data: b"", "not a language model of ours"),
        (lambda data: b"PK" + data[2:], "not a language model of ours"),
        (lambda data: data[:12] + b"x" + data[13:], "its header is damaged"),
        (lambda data: data[:-16], "expected"),
        (lambda data: data + b"\0", "expected"),
        (lambda data: data[:40], "damaged"),
        (lambda data: data.replace(b'"order":3', b'"order":9'), "expected"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, spoil, says: str) -> None:
    (tmp_path / "m").write_bytes(spoil(built([1, 2, 3])))
    with pytest.raises(ValueError, match=says):
        Model(tmp_path / "m")


def test_texts_without_words_have_no_perplexity(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(built([int(tokens.BEGIN), int(tokens.END)]))
    model = Model(tmp_path / "m")
    assert model.log2_e4(column([])).to_pylist() == []
    assert model.log2_e4(column(["", "\n\n", " \u200b\t", "word"])).is_null().to_pylist() == [True, True, True, False]
    with pytest.raises(ValueError, match="nulls"):
        model.log2_e4(pa.array([None], pa.large_string()))


@given(st.floats(1e-40, 1.0, exclude_min=True))
def test_the_logarithm_is_right_to_a_millionth(value: float) -> None:
    expected = min(-math.log2(value) * 1e6, MOST_E6)
    assert abs(int(bits_e6(np.array([value]))[0]) - expected) <= 0.5001


def test_logarithms_at_the_ends() -> None:
    assert bits_e6(np.array([0.0, 1.0, 0.5, 1.0000000001, 2**-100, 1e-300])).tolist() == [
        MOST_E6,
        0,
        1_000_000,
        0,
        MOST_E6,
        MOST_E6,
    ]


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**6)), min_size=1, max_size=5))
def test_bits_a_word_are_rounded_half_up(pairs: list[tuple[int, int]]) -> None:
    pairs = [(bits % (100_000_000 * max(words, 1)), words) for bits, words in pairs]
    got = per_word_e4(*(np.array(side, np.int64) for side in zip(*pairs, strict=True)))
    assert got.to_pylist() == [math.floor(bits / 100 / words + 0.5) if words else None for bits, words in pairs]


LANGUAGES = st.sampled_from(["en", "de", None])
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 50)), LANGUAGES), max_size=40)


@given(ROWS, st.integers(1, 99), st.integers(1, 99))
def test_percentiles_of_each_language_are_by_nearest_rank(rows, a: int, b: int) -> None:
    head, tail = min(a, b), max(a, b)
    bits, languages = pa.array([r[0] for r in rows], pa.int32()), pa.array([r[1] for r in rows], pa.string())
    expected = {}
    for language in ("de", "en"):
        values = sorted(v for v, name in rows if name == language and v is not None)
        if values:
            ranks = [math.ceil(len(values) * p / 100) for p in (head, tail)]
            expected[language] = Bounds(values[ranks[0] - 1], values[ranks[1] - 1], len(values))
    found = percentile_bounds(bits, languages, head, tail)
    assert found == expected
    assert percentile_bounds(pa.chunked_array([bits[:3], bits[3:]]), pa.chunked_array([languages]), head, tail) == found
    names = bucket(bits, languages, found)
    assert names.type == pa.string()
    for (value, language), name in zip(rows, names.to_pylist(), strict=True):
        if value is None or language is None:
            assert name is None
        else:
            known = found[language]
            assert name == ("head" if value < known.low else "tail" if value > known.high else "middle")


def test_ccnets_thirds() -> None:
    bits, languages = pa.array(range(100), pa.int32()), pa.array(["en"] * 100, pa.string())
    names = bucket(bits, languages, percentile_bounds(bits, languages)).to_pylist()
    assert [names.count(name) for name in ("head", "middle", "tail")] == [29, 31, 40]
    assert bucket(bits[:1], pa.array(["xx"]), {}).to_pylist() == [None]
    for head, tail in ((0, 60), (60, 30), (30, 100)):
        with pytest.raises(ValueError, match="percentiles"):
            percentile_bounds(bits, languages, head, tail)
