"""Bounds decide the same as arrays (filter) and as SQL (what-if), one by one."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.rules.bounds import Bound, decide, looser
from tasks.queries.whatif.sql import broken

DB = duckdb.connect(config={"threads": 1})
LANGUAGES = ("en", "de", "it's")
NUMBERS = st.sampled_from([None, 0.0, 0.1, 0.3, 1.0, 50.0, 1e300])
LIMITS = st.tuples(NUMBERS, NUMBERS)
OWN = LIMITS.filter(lambda limits: limits != (None, None))
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([*LANGUAGES, "und", None])), max_size=12)
NUMERIC = st.builds(
    lambda limits, own, lists: Bound("filter", "r", "a", *limits, own, dict.fromkeys(lists, 'b"x'), rule=0),
    LIMITS,
    st.dictionaries(st.sampled_from(LANGUAGES), st.none() | OWN, max_size=2),
    st.sets(st.sampled_from(LANGUAGES), max_size=2),
)
AMONG = st.builds(
    lambda keep: Bound("language", "r", "language", None, None, among=tuple(keep), rule=0, shown=Bound(
        "language", "s", "a", 0.5, None)),
    st.sets(st.sampled_from(LANGUAGES), min_size=1),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(NUMERIC | AMONG, ROWS)
def test_arrays_and_sql_say_the_same_of_a_bound(
    bound: Bound, rows: list[tuple[float | None, float | None, str]]
) -> None:
    language = pa.array([row[2] for row in rows], pa.string())
    measures = pa.record_batch(
        {"a": pa.array([row[0] for row in rows], pa.float64()), 'b"x': pa.array([row[1] for row in rows], pa.float64())}
    )
    decided = decide(measures, [bound], language)
    DB.register("measures", measures.append_column("language", language))
    said = [row[0] for row in DB.execute(f"SELECT {broken(bound)} FROM measures").fetchall()]
    assert [bool(bits) for bits in decided.failed.to_pylist()] == said
    assert [reason is not None for reason in decided.reason.to_pylist()] == said


def test_the_first_bound_that_is_broken_decides_and_what_another_shows_stands_for_it() -> None:
    score = Bound("language", "uncertain", "score", 0.6, None, {"de": (0.8, None)})
    bounds = [Bound("language", "other", "language", None, None, among=("en", "de"), shown=score), score,
              Bound("filter", "few", "words", 50, None, rule=3)]  # fmt: skip
    measures = pa.record_batch({"score": [0.9, 0.7, 0.7, 0.9, 0.9], "words": pa.array([9.0, 99, 9, math.nan, 99])})
    found = decide(measures, bounds, pa.array(["fr", "de", "en", "en", "en"]))
    assert found.stage.to_pylist() == ["language", "language", "filter", "filter", None]
    assert found.reason.to_pylist() == ["other", "uncertain", "few", "few", None]
    assert found.failed.to_pylist() == [8, 0, 8, 8, 0]
    assert found.value.to_pylist() == [0.9, 0.7, 9, None, None]
    assert found.bound.to_pylist() == [0.6, 0.8, 50, 50, None]


def test_a_bound_of_one_language_may_not_be_looser_than_a_floor_either() -> None:
    floor = Bound("filter", "below_floor", "words", 50, 900)
    own = {"de": (40.0, None), "fr": (60.0, 1000.0), "it": None}
    assert list(looser(Bound("filter", "few", "words", 50, None, own, rule=0), floor)) == [
        "rule few in language de: min 40 is looser than the floor, min 50, of words",
        "rule few in language fr: max 1000 is looser than the floor, max 900, of words",
    ]
    assert not list(looser(Bound("filter", "few", "clean.words", 5, None, rule=0), floor))
