"""Packing: nothing lost, nothing cut that fits, the same rows from any order of the documents."""

from __future__ import annotations

import hashlib
import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels import packing

EOS = 0


def best_fit_reference(lengths: list[int], capacity: int) -> list[list[tuple[int, int, int]]]:
    """Plain best-fit-decreasing: rows of (document, start, length), in the order of opening."""
    pieces = [(d, s, min(n - s, capacity)) for d, n in enumerate(lengths) for s in range(0, n, capacity)]
    rows: list[list[tuple[int, int, int]]] = []
    rooms: list[tuple[int, int, int]] = []  # (room, -time the room came about, row)
    for when, piece in enumerate(sorted(pieces, key=lambda p: -p[2])):
        fitting = [r for r in rooms if r[0] >= piece[2]]
        if fitting:
            chosen = min(fitting)
            rooms.remove(chosen)
            room, _, row = chosen
        else:
            room, row = capacity, len(rows)
            rows.append([])
        rows[row].append(piece)
        if room > piece[2]:
            rooms.append((room - piece[2], -when, row))
    return [sorted(row) for row in rows]


def as_rows(layout: packing.Layout) -> list[list[tuple[int, int, int]]]:
    pieces = list(zip(layout.doc.tolist(), layout.start.tolist(), layout.length.tolist(), strict=True))
    return [pieces[a:b] for a, b in zip(layout.row_offsets[:-1], layout.row_offsets[1:], strict=True)]


def window(
    lengths: list[int], order: list[int] | None = None, seed: int = 5, seq_len: int = 16
) -> packing.PackedWindow:
    """A window whose token i of document d is d * 1000 + i + 1, given in `order`."""
    order = list(range(len(lengths))) if order is None else order
    tokens = [np.arange(lengths[d], dtype=np.uint32) + np.uint32(d * 1000 + 1) for d in order]
    return packing.pack_window(
        [doc_id(d) for d in order],
        np.concatenate([*tokens, np.zeros(0, np.uint32)]),
        np.concatenate([[0], np.cumsum([lengths[d] for d in order])]).astype(np.int64),
        np.array([lengths[d] * 4 for d in order], np.int64),
        [f"https://example.org/{d}" if d % 2 else None for d in order],
        seq_len=seq_len,
        seed=seed,
        pad_id=EOS,
    )


def doc_id(d: int) -> bytes:
    return hashlib.sha256(str(d).encode()).digest()[:16]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 24))
def test_best_fit_equals_the_plain_algorithm(lengths, capacity):
    layout = packing.best_fit(np.array(lengths, np.int64), capacity)
    assert as_rows(layout) == best_fit_reference(lengths, capacity)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=50), st.integers(1, 24))
def test_every_token_lies_in_one_row_and_only_long_documents_are_cut(lengths, capacity):
    layout = packing.best_fit(np.array(lengths, np.int64), capacity)
    for row in as_rows(layout):
        assert 0 < sum(n for _, _, n in row) <= capacity
    for d, n in enumerate(lengths):
        pieces = sorted((s, m) for row in as_rows(layout) for e, s, m in row if e == d)
        assert [s for s, _ in pieces] == list(range(0, n, capacity))
        assert sum(m for _, m in pieces) == n


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_window_does_not_depend_on_the_order_of_its_documents(lengths, random):
    order = list(range(len(lengths)))
    random.shuffle(order)
    one, other = window(lengths), window(lengths, order)
    assert np.array_equal(one.tokens, other.tokens)
    assert one.rows.equals(other.rows)
    assert one.docs.equals(other.docs)
    assert one.stats == other.stats


def test_rows_and_side_tables_tell_the_whole_story():
    lengths = [3, 17, 0, 40, 5, 1]
    packed = window(lengths)
    seen: dict[int, list[int]] = {d: [] for d in range(len(lengths))}
    for tokens, lens, refs in zip(
        packed.tokens, packed.rows["doc_lens"].to_pylist(), packed.rows["doc_refs"].to_pylist(), strict=True
    ):
        at = 0
        for n, ref in zip(lens, refs, strict=True):
            document = packed.docs["doc_id"][ref].as_py()
            seen[next(d for d in seen if doc_id(d) == document)] += tokens[at : at + n].tolist()
            at += n
        assert tokens[at:].tolist() == [EOS] * (17 - at)
    assert {d: sorted(t) for d, t in seen.items()} == {
        d: list(range(d * 1000 + 1, d * 1000 + 1 + n)) for d, n in enumerate(lengths)
    }
    assert packed.stats == {
        "documents": 5,
        "empty_documents": 1,
        "split_documents": 1,
        "text_bytes": 4 * 66,
        "tokens": 66,
        "padding": packed.tokens.size - 66,
        "sequences": len(packed.tokens),
    }
    assert packed.docs["tokens"].to_pylist() == [lengths[int(t)] for t in _document_numbers(packed)]


def _document_numbers(packed: packing.PackedWindow) -> list[int]:
    numbers = {doc_id(d): d for d in range(6)}
    return [numbers[i] for i in packed.docs["doc_id"].to_pylist()]


def test_window_without_tokens_is_empty():
    packed = window([0, 0])
    assert packed.tokens.shape == (0, 17)
    assert packed.stats["empty_documents"] == 2
    assert packed.rows.num_rows == packed.docs.num_rows == 0


def test_hostile_counts_add_up(data_dir):
    lines = (data_dir / "hostile" / "B52-pack-counts.jsonl").read_text(encoding="utf-8").strip().split("\n")
    texts = [json.loads(line)["text"] for line in lines]
    lengths = np.array([len(t.encode()) + 1 if t else 0 for t in texts], np.int64)  # a token a byte and one separator
    layout = packing.best_fit(lengths, 16)
    assert layout.length.sum() == 38
    assert layout.rows == 3  # 17 is cut into 16 + 1; 11 + 2 + 1; 8
    assert sorted(layout.length.tolist()) == [1, 2, 8, 11, 16]


def test_seed_changes_documents_and_rows_but_not_the_sums():
    lengths = [3 + i % 11 for i in range(200)]
    one, other = window(lengths, seed=1), window(lengths, seed=2)
    assert one.stats["tokens"] == other.stats["tokens"]
    assert not np.array_equal(one.tokens, other.tokens)


def test_length_order_does_not_leak_into_the_order_of_rows():
    rng = np.random.default_rng(1)
    lengths = np.minimum(rng.lognormal(4, 1, 20_000), 5000).astype(np.int64) + 1
    layout = packing.best_fit(lengths, 257)
    shuffled = packing.reorder(layout, packing.row_order(layout.rows, 3))
    longest = np.maximum.reduceat(shuffled.length, shuffled.row_offsets[:-1])
    position = np.arange(len(longest))
    assert abs(np.corrcoef(position, longest)[0, 1]) < 0.03
    opened = np.maximum.reduceat(layout.length, layout.row_offsets[:-1])
    assert np.corrcoef(position, opened)[0, 1] < -0.5  # what would leak otherwise


@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_row_order_is_a_permutation_keyed_by_seed_and_tweak(rows):
    assert sorted(packing.row_order(rows, 7, "a").tolist()) == list(range(rows))
    if rows > 2:
        assert packing.row_order(rows, 7, "a").tolist() != packing.row_order(rows, 7, "b").tolist()
        assert packing.row_order(rows, 7, "a").tolist() != packing.row_order(rows, 8, "a").tolist()


def test_orders_and_windows_are_frozen():
    """Moving one of these values re-orders every dataset: raise the VERSION of the pack stage with it."""
    assert packing.shuffle_key(17, bytes(16)) == SHUFFLE_KEY
    assert packing.shuffle_order(17, [bytes([i]) * 16 for i in range(8)]).tolist() == SHUFFLE_ORDER
    assert packing.row_order(8, 17, "crawl").tolist() == ROW_ORDER
    assert [packing.window_of(f"shard-{i}", 8) for i in range(8)] == WINDOWS


def test_twice_as_many_windows_split_each_window_in_two():
    for i in range(100):
        assert packing.window_of(f"s{i}", 16) % 8 == packing.window_of(f"s{i}", 8)
    with pytest.raises(ValueError, match="power of two, got 12"):
        packing.window_of("s", 12)


def test_a_million_pieces_take_at_most_four_seconds():
    lengths = np.random.default_rng(0).integers(1, 1500, 1_000_000)
    packing.best_fit(lengths[:10], 1025)
    began = time.process_time()
    packing.best_fit(lengths, 1025)
    assert time.process_time() - began < 4.0


SHUFFLE_KEY = 18111716618801878578
SHUFFLE_ORDER = [7, 4, 3, 6, 5, 2, 1, 0]
ROW_ORDER = [2, 7, 1, 3, 5, 0, 6, 4]
WINDOWS = [4, 2, 2, 6, 6, 3, 6, 3]
