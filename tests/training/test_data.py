"""Batches out of packed shards: the right rows, labels that stay inside documents, the same for any number of ranks."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from corpusmill.dataset.manifest import open_manifest
from corpusmill.errors import CheckFailed
from corpusmill.kernels.gather import IGNORED
from tests.training.packed import ROWS_PER_GROUP, SEQ_LEN
from tests.training.toy import Toy
from training.data import Loader, Partition, batch_digest


def partition(toy: Toy, name: str = "crawl") -> Partition:
    return Partition(toy.open(), open_manifest(toy.open(), toy.manifest).partitions[name])


def stored_rows(toy: Toy) -> tuple[np.ndarray, list[list[int]]]:
    """All rows of partition `crawl` and their piece lengths, read as an ordinary Parquet reader reads them."""
    store = toy.open()
    rows, lengths = [], []
    for shard in open_manifest(store, toy.manifest).partitions["crawl"].shards:
        table = pq.read_table(store.local_path(shard.tokens))
        rows += [np.frombuffer(raw, "<u2") for raw in table["tokens"].to_pylist()]
        lengths += store.table(shard.rows)["doc_lens"].to_pylist()
    return np.stack(rows).astype(np.int64), lengths


def test_mapped_rows_are_the_rows_that_parquet_reads(toy: Toy) -> None:
    rows, _ = stored_rows(toy)
    crawl = partition(toy)
    assert crawl.sequences == len(rows) > 3 * ROWS_PER_GROUP
    order = np.random.default_rng(0).permutation(len(rows))
    batch = crawl.batch(order)
    assert np.array_equal(batch.tokens, rows[order][:, :-1])
    assert batch.digests()[0] == hashlib.sha256(rows[order[0]].astype("<u4").tobytes()).digest()


def test_labels_are_the_next_token_of_the_same_document(toy: Toy) -> None:
    rows, lengths = stored_rows(toy)
    batch = partition(toy).batch(np.arange(len(rows)))
    assert any(sum(row) == SEQ_LEN + 1 for row in lengths)
    assert any(sum(row) < SEQ_LEN for row in lengths)  # padding is there
    for row, pieces, labels in zip(rows, lengths, batch.labels, strict=True):
        expected = np.full(SEQ_LEN, IGNORED)
        start = 0
        for n in pieces:
            expected[start : start + n - 1] = row[start + 1 : start + n]
            start += n
        assert np.array_equal(labels, expected)
    assert all(sum(row) == SEQ_LEN and min(row) > 0 for row in batch.lengths)


def test_text_bytes_of_all_rows_are_those_of_the_documents(toy: Toy) -> None:
    crawl = partition(toy)
    expected = open_manifest(toy.open(), toy.manifest).partitions["crawl"].text_bytes
    assert crawl.text_bytes(np.arange(crawl.sequences)) == pytest.approx(expected)
    assert crawl.text_bytes(np.array([], np.int64)) == 0


@pytest.mark.parametrize("world_size", [1, 2, 4, 8])
def test_ranks_share_one_global_batch(toy: Toy, world_size: int) -> None:
    spec = toy.spec()
    loader = Loader(toy.open(), spec.facts, spec.plan)
    for step in (0, 29, 30, 39):
        whole = loader.batch(step, 0, 1)
        shares = [loader.batch(step, rank, world_size) for rank in range(world_size)]
        assert np.array_equal(np.concatenate([s.rows for s in shares]), whole.rows)
        assert np.array_equal(np.concatenate([s.labels for s in shares]), whole.labels)
        assert [row for s in shares for row in s.lengths] == whole.lengths
        assert batch_digest([d for s in shares for d in s.digests()]) == batch_digest(whole.digests())


def test_parts_of_a_batch_are_batches(toy: Toy) -> None:
    crawl = partition(toy)
    numbers = np.array([40, 3, 3, 199, 7])
    whole, part = crawl.batch(numbers), crawl.batch(numbers[1:4])
    cut = whole.part(1, 4)
    assert np.array_equal(cut.tokens, part.tokens)
    assert np.array_equal(cut.labels, part.labels)
    assert cut.lengths == part.lengths
    assert cut.piece_row.tolist() == part.piece_row.tolist()
    assert cut.counted + whole.part(0, 1).counted + whole.part(4, 5).counted == whole.counted


def test_a_flipped_bit_in_a_shard_is_found_before_it_is_trained_on(toy: Toy, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(toy.uri, copy)
    damaged = Toy(str(copy), toy.manifest, toy.other)
    shard = open_manifest(damaged.open(), toy.manifest).partitions["crawl"].shards[0]
    path = copy / shard.tokens.name
    data = bytearray(path.read_bytes())
    data[shard.payload[1].offset + 100] ^= 4
    path.chmod(0o644)
    path.write_bytes(data)
    with pytest.raises(CheckFailed, match="damaged"):
        partition(damaged).batch(np.arange(50))


def test_shards_that_were_packed_without_pieces_give_the_same_batches(toy: Toy) -> None:
    """As pack wrote them before its version 4."""
    entry = open_manifest(toy.open(), toy.manifest).partitions["crawl"]
    older = replace(entry, shards=tuple(replace(shard, pieces=None) for shard in entry.shards))
    numbers = np.array([40, 3, 199, 7])
    one, other = partition(toy).batch(numbers), Partition(toy.open(), older).batch(numbers)
    assert np.array_equal(one.labels, other.labels)
    assert one.lengths == other.lengths


def test_any_order_of_steps_gives_the_batches_of_the_plan(toy: Toy) -> None:
    spec = toy.spec()
    loader = Loader(toy.open(), spec.facts, spec.plan)
    inorder = [batch_digest(loader.batch(step).digests()) for step in range(spec.plan.steps)]
    for step in (17, 3, 39, 4, 5, 0, 38):
        fresh = Loader(toy.open(), spec.facts, spec.plan)
        assert batch_digest(fresh.batch(step).digests()) == inorder[step]
        assert batch_digest(loader.batch(step).digests()) == inorder[step]
        fresh.close()
    loader.close()


def test_damage_that_is_met_ahead_is_an_error_of_its_batch(toy: Toy, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(toy.uri, copy)
    damaged = Toy(str(copy), toy.manifest, toy.other)
    spec = damaged.spec()
    for shard in spec.facts.partitions["crawl"].shards:
        path = copy / shard.tokens.name
        data = bytearray(path.read_bytes())
        for group in shard.payload:
            data[group.offset] ^= 1
        path.chmod(0o644)
        path.write_bytes(data)
    loader = Loader(damaged.open(), spec.facts, spec.plan)
    with pytest.raises(CheckFailed, match="row group"):
        [loader.batch(step) for step in range(spec.plan.steps)]
