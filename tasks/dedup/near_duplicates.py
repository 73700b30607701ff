"""Near duplicates: candidates by LSH, verified by exact Jaccard, first-in-preference keepers.

Where everything fits the memory that the recipe grants, one unit does all; else the work goes through the store in
parts (parts/search.py), with the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.config import Recipe
from corpusmill.kernels.duplicates import jaccard, lsh, minhash
from corpusmill.kernels.duplicates.keepers import Keepers, KeeperSearch, KeptBefore
from corpusmill.store import Draft, Receipt, Store, Unit
from tasks import stages
from tasks.dedup import index, proof
from tasks.dedup.documents import Alive, Ints, Placed, alive, attribute, digests_column, salts, scores_read
from tasks.dedup.history import Earlier, batches, rows_of, settings, shingling, stored_sets
from tasks.dedup.outcome import Old, Outcome, commit
from tasks.shards import Shard, fixed_binary
from tasks.units import Done, content_of, once

SIGNATURE_ROWS = 1 << 14

Keys = NDArray[np.uint64]


def unit_of(shards: Sequence[Shard], exact: Receipt, recipe: Recipe, earlier: Earlier | None) -> Unit:
    """The unit of near duplicates of a build: how it is cut into parts is no part of it."""
    config = recipe.deduplicate
    what: dict[str, object] = {
        **settings(recipe),
        "min_jaccard": config.min_jaccard,
        "max_pivots": config.max_pivots,
        "prefer": list(config.prefer),
        "policy": config.policy,
        "snapshots": [] if config.policy == "across" else [f"{s.source}/{s.snapshot}" for s in shards],
        "index": config.index,
        "against": earlier.identity if earlier else [],
    }
    inputs = tuple(
        item for s in shards for item in (content_of(s.decided, "decisions"), digests_of(s), *s.view_inputs("clean"))
    )
    made_of = (content_of(exact, "found"), *inputs, *scores_read(shards, config))
    return stages.NEAR.unit(what, made_of)


def digests_of(shard: Shard) -> str:
    """Content digest of the signatures and what lies beside them."""
    return content_of(shard.groups["digests"], "digests")


def near(shards: Sequence[Shard], exact: Receipt, recipe: Recipe, store: Store, earlier: Earlier | None = None) -> Done:
    """Near duplicates in one unit.

    Raises:
        CheckFailed: the signatures do not collide as their theory says; nothing was removed.
    """
    unit = unit_of(shards, exact, recipe, earlier)
    return once(store, unit, lambda: _near(unit, shards, exact, recipe, store, earlier))


def left_by_exact(shards: Sequence[Shard], exact: Receipt, recipe: Recipe, store: Store) -> Alive:
    """Documents that exact deduplication left, ranked among themselves."""
    docs = alive(shards, recipe.deduplicate, store)
    found = store.table(exact.outputs["found"], columns=["shard", "row", "keeper"])
    gone = found.filter(found.column("keeper").is_valid())
    places = gone.column("shard").to_numpy() << 32 | gone.column("row").to_numpy()
    left = docs.only(~np.isin(docs.place, places))
    rank = np.empty(len(left), np.uint32)
    rank[np.argsort(left.rank, kind="stable")] = np.arange(len(left), dtype=np.uint32)
    return Alive(left.shard, left.row, left.doc_id, left.text_bytes, left.words, rank)


@dataclass
class Sample:
    """Verified pairs with the smallest hashes: the same ones in whatever parts the pairs come."""

    size: int
    codes: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    similarity: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def add(self, codes: Keys, similarity: NDArray[np.float64]) -> None:
        """More pairs, as codes of ranks."""
        codes, similarity = np.concatenate([self.codes, codes]), np.concatenate([self.similarity, similarity])
        smallest = np.argsort(lsh.spread(codes), kind="stable")[: self.size]
        self.codes, self.similarity = codes[smallest], similarity[smallest]


def _near(
    unit: Unit, shards: Sequence[Shard], exact: Receipt, recipe: Recipe, store: Store, earlier: Earlier | None
) -> Receipt:
    config = recipe.deduplicate
    gate = proof.identity(recipe)
    docs = left_by_exact(shards, exact, recipe, store)
    n = len(docs)
    shingles = attribute(shards, docs, digests_column("shingles", store), np.int32)
    keys = band_keys(shards, docs, recipe, store)
    if config.policy == "within":
        keys ^= salts(shards, config)[docs.shard][:, None]
    kept, keepers, parts = _kept_before(keys, earlier, store)
    search = KeeperSearch(
        keys, docs.rank, shingles, min_jaccard=config.min_jaccard, max_pivots=config.max_pivots, kept=kept
    )
    shard = np.concatenate([docs.shard.astype(np.int64), len(shards) + parts])
    sizes = np.concatenate([shingles.astype(np.int64), kept.shingles.astype(np.int64)])
    load = loader(shards, docs, keepers, earlier, recipe, store)
    sample = Sample(proof.SAMPLE_PAIRS)
    while len(pairs := search.next_pairs()):
        similarity = jaccard.verify(pairs, shard, sizes, load, max_values=config.memory_mb * 2**20 // 32)
        search.settle(similarity)
        new = (pairs < n).all(axis=1)
        ranks = docs.rank[pairs[new]].astype(np.uint64).reshape(-1, 2)
        sample.add(ranks.max(axis=1, initial=0) << np.uint64(32) | ranks.min(axis=1, initial=2**32), similarity[new])
    result = search.result()
    old = old_documents(keepers, parts, earlier, store)
    outcome = Outcome(result.keeper, result.similarity, np.zeros(n, np.int8), ("near_duplicate",), old)
    facts = facts_of(result, search.largest_bucket, search.crowded_buckets, len(set(result.keeper[result.keeper >= n])))
    facts["proof"] = proofs(gate, shards, docs, sample, recipe, store)
    more: dict[str, Draft] = {}
    if config.index:
        left = docs.only(result.keeper < 0)
        of_left = shingles[result.keeper < 0]
        entries = index.entries_of(keys[result.keeper < 0], index.keeper_of_rank(left), of_left)
        more = index.write(shards, left, of_left, entries, recipe, store)
    return commit(unit, "near", docs, outcome, facts, store, every=True, more=more)


def facts_of(found: Keepers, largest: int, crowded: int, old: int) -> dict[str, Any]:
    """How the search went: rounds, pairs compared, and the buckets too crowded to compare all pairs of."""
    return {
        "rounds": found.rounds,
        "comparisons": found.comparisons,
        "complete": found.complete,
        "largest_bucket": largest,
        "crowded_buckets": crowded,
        "kept_before": old,
    }


def proofs(
    gate: dict[str, object], shards: Sequence[Shard], docs: Alive, sample: Sample, recipe: Recipe, store: Store
) -> dict[str, object]:
    """The run's own proof, for its receipt."""
    by_rank = np.argsort(docs.rank, kind="stable")
    pairs = by_rank[np.stack([sample.codes >> np.uint64(32), sample.codes & np.uint64(2**32 - 1)], 1).astype(np.int64)]
    texts = proof.documents(shards, docs, store)
    return {
        "identity": gate,
        "oracle": proof.oracle(texts, recipe),
        "s_curve": proof.s_curve(shards, docs, pairs, sample.similarity, recipe, store),
        "planted": proof.planted(texts, recipe),
    }


def loader(
    shards: Sequence[Shard], docs: Placed, keepers: Ints, earlier: Earlier | None, recipe: Recipe, store: Store
) -> jaccard.Load:
    """Shingle sets of documents: of a shard from its texts, of an earlier build from its index."""

    def load(number: int, members: Ints) -> jaccard.Sets:
        if number >= len(shards):
            assert earlier
            return stored_sets(earlier.parts[number - len(shards)], keepers[members - len(docs)], store)
        texts = shards[number].texts(docs.row[members].astype(np.int64), store)
        return jaccard.Sets(*minhash.shingle_sets(texts, shingling(recipe)))

    return load


def band_keys(shards: Sequence[Shard], docs: Alive, recipe: Recipe, store: Store) -> Keys:
    """uint64[N, bands]."""
    config = recipe.deduplicate
    keys = np.empty((len(docs), config.bands), np.uint64)
    for number, (begin, end) in enumerate(pairwise(docs.bounds(len(shards)).tolist())):
        if end > begin:
            keys[begin:end] = signed_keys(shards[number], docs.row[begin:end], recipe, store)
    return keys


def signed_keys(shard: Shard, rows: NDArray[np.int32], recipe: Recipe, store: Store) -> Keys:
    """uint64[R, bands] of some rows of a shard, ascending."""
    config = recipe.deduplicate
    keys = np.empty((len(rows), config.bands), np.uint64)
    for part, found in signatures_of(shard, rows, recipe, store):
        keys[part] = lsh.band_keys(found, config.bands, config.num_perm // config.bands)
    return keys


def signatures_of(
    shard: Shard, rows: NDArray[np.int32], recipe: Recipe, store: Store
) -> Iterator[tuple[slice, NDArray[np.uint32]]]:
    """Signatures of some rows of a shard, ascending, and which of the rows they are: in batches, the largest thing
    here."""
    width = recipe.deduplicate.num_perm
    begin = done = 0
    for batch in store.batches(shard.attribute("digests"), ["signature"], SIGNATURE_ROWS):
        after = int(np.searchsorted(rows, begin + batch.num_rows))
        column = batch.column("signature")
        found = np.frombuffer(column.buffers()[1], "<u4", len(column) * width, column.offset * width * 4)
        if after > done:
            yield slice(done, after), found.reshape(-1, width)[rows[done:after] - begin]
        begin, done = begin + batch.num_rows, after


def _kept_before(keys: Keys, earlier: Earlier | None, store: Store) -> tuple[KeptBefore, Ints, Ints]:
    """Old documents that share a key with one of these; their numbers among the keepers and their parts."""
    if earlier is None:
        return KeptBefore.none(), np.zeros(0, np.int64), np.zeros(0, np.int64)
    flat = keys.ravel()
    order = lsh.sort_by_key(flat)
    ascending = flat[order]
    found: list[tuple[Keys, Ints, Ints]] = []  # key, band, part << 32 | keeper
    for number, part in enumerate(earlier.parts):
        for batch in batches(part.keys, ["key", "leader"], store):
            key = batch.column("key").to_numpy()
            place = np.searchsorted(ascending, key)
            place[place == len(ascending)] = 0
            hit = ascending[place] == key if len(ascending) else np.zeros(len(key), bool)
            keeper = batch.column("leader").to_numpy()[hit].astype(np.int64)
            found.append((key[hit], order[place[hit]] % keys.shape[1], number << 32 | keeper))
    key, band, who = (np.concatenate(column) for column in zip(*found, strict=True))
    known, document = np.unique(who, return_inverse=True)
    parts, keepers = known >> 32, known & 2**32 - 1
    shingles = np.concatenate(
        [np.zeros(0, np.int32)]
        + [_keeper_column("shingles", part, keepers[parts == i], store) for i, part in enumerate(earlier.parts)]
    )
    return KeptBefore(shingles, key, band, document), keepers, parts


def _keeper_column(name: str, part: Any, keepers: Ints, store: Store) -> NDArray[Any]:
    column = rows_of(part.keepers, keepers, [name], store).column(name)
    return fixed_binary(column) if name == "doc_id" else column.to_numpy()


def old_documents(keepers: Ints, parts: Ints, earlier: Earlier | None, store: Store) -> Old:
    """Documents of earlier builds by their parts (ascending) and their numbers among the keepers of these."""
    if earlier is None or not len(keepers):
        return Old.none()
    ids = [_keeper_column("doc_id", part, keepers[parts == i], store) for i, part in enumerate(earlier.parts)]
    return Old(np.concatenate(ids), tuple(earlier.parts[i].manifest for i in parts.tolist()))
