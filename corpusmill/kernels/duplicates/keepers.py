"""Verified keepers: which near-duplicates go, and which kept document each of them is a copy of.

Method: candidates from LSH buckets are compared only with pivots, the documents of a bucket that come first in the
order of preference; pairs whose exact similarity reaches the threshold are edges; the first-in-preference independent
set on the edges is kept (greedy maximal independent set in a fixed order). In crowded buckets the survivors are given
new pivots, round by round. So every removed document has a kept one that it is verified to be similar to; there is no
chain drift, and no bucket costs quadratic time.

Everything inside works on ranks (position in the order of preference), which depend on the documents alone: the answer
is the same for any order or partition of the input.

Arrays: N documents, B bands, M pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.duplicates.crowded_buckets import Bounds, Codes, CrowdedBuckets, decode, next_round, unique
from corpusmill.kernels.duplicates.lsh import Keys, buckets

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MAX_ROUNDS = 8
"""Rounds after which a search ends, and says so."""
COMPACT_PAIRS = 1 << 23
"""Candidate pairs found in several bands are held up to this number before repeats are dropped."""


@dataclass(frozen=True)
class Keepers:
    """The outcome, one entry per document of the input."""

    keeper: Ints
    """int64[N]: the kept document it is a copy of (N and above: one kept before); -1 where it is kept itself."""
    similarity: Floats
    """float64[N]: exact similarity to the keeper; NaN where kept."""
    cluster: Ints
    """int64[N]: the kept document of its cluster: its keeper, or itself."""
    cluster_size: Ints
    """int64[N]: documents in its cluster, the kept one included."""
    rounds: int
    """Rounds in which buckets were given new pivots."""
    comparisons: int
    """Pairs verified."""
    complete: bool
    """False where the last round permitted ended with pairs still to look at."""


def preference_rank(text_bytes: Ints, dates: Sequence[str | None], doc_ids: Sequence[bytes]) -> Ints:
    """Place of each document in the order of preference: longest text, then earliest date (none last), then doc_id.

    Returns:
        int64[N], a permutation of 0 to N - 1; 0 is preferred to all others.
    """
    known = {date: i for i, date in enumerate(sorted({d for d in dates if d is not None}))}
    date_code = np.array([len(known) if d is None else known[d] for d in dates], np.int64)
    return rank_by(np.frombuffer(b"".join(doc_ids), "V16"), [-np.asarray(text_bytes, np.int64), date_code])


def rank_by(doc_id: NDArray[np.void], columns: Sequence[Ints]) -> Ints:
    """Place of each document in an order: ascending in the columns, the first of them counting most, then in doc_id.

    Args:
        doc_id: V16[N].
    """
    ids = np.ascontiguousarray(doc_id).view(">u8").reshape(-1, 2)
    order = np.lexsort((ids[:, 1], ids[:, 0], *reversed(columns)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


@dataclass(frozen=True)
class KeptBefore:
    """Documents that an earlier search kept and that share a band's key with a document of this one; L of them.

    They are preferred to all others, are not compared with one another, and stay. They are numbered as documents N to
    N + L - 1, in their own order of preference.
    """

    shingles: NDArray[np.int32]
    """int32[L]."""
    keys: Keys
    """uint64[E]: a key of a document and band."""
    band: Ints
    document: Ints
    """int64[E]: 0 to L - 1."""

    @classmethod
    def none(cls) -> KeptBefore:
        """No such document."""
        nothing = np.zeros(0, np.int64)
        return cls(np.zeros(0, np.int32), np.zeros(0, np.uint64), nothing, nothing)

    def __len__(self) -> int:
        return len(self.shingles)

    def of_band(self, band: int) -> tuple[Keys, Ints]:
        """Keys and documents, ascending, of one band."""
        here = np.flatnonzero(self.band == band)
        here = here[np.argsort(self.document[here], kind="stable")]
        return self.keys[here], self.document[here]


class KeeperSearch:
    """The search, one round at a time: `next_pairs` says what to compare, `settle` takes the similarities.

        search = KeeperSearch(keys, rank, shingles, min_jaccard=0.8)
        while len(pairs := search.next_pairs()):
            search.settle(verify(pairs, ...))       # kernels.jaccard.verify, or anything exact
        keepers = search.result()

    Memory besides the keys given: 24 bytes a document, twice that while a band is bucketed, 13 bytes a member of a
    crowded bucket and 24 bytes a verified pair.
    """

    def __init__(
        self,
        keys: Keys,
        rank: NDArray[np.integer],
        shingles: NDArray[np.integer],
        *,
        min_jaccard: float,
        max_pivots: int = 4,
        max_rounds: int = MAX_ROUNDS,
        kept: KeptBefore | None = None,
    ) -> None:
        """Prepare a search.

        Args:
            keys: uint64[N, B] of lsh.band_keys.
            rank: integer[N] of preference_rank.
            shingles: [N], size of each document's shingle set; a document with none does not take part.
            min_jaccard: similarity from which a document is a copy.
            max_pivots: new pivots of a bucket in each round.
            max_rounds: bound on the rounds.
            kept: documents of an earlier search.
        """
        self._kept = kept or KeptBefore.none()
        self._n, old = len(rank), len(self._kept)
        self._by_rank = np.concatenate([self._n + np.arange(old), np.argsort(rank, kind="stable")])
        self._keys = keys
        self._crowded: list[CrowdedBuckets] | None = None
        self._sizes = np.concatenate([np.asarray(shingles, np.int32), self._kept.shingles])[self._by_rank]
        self._bounds, self._max_rounds = Bounds(min_jaccard, max_pivots, old), max_rounds
        self._removed = np.zeros(self._n + old, np.bool_)
        self._settled: Codes = np.zeros(0, np.uint64)  # codes of all pairs ever looked at, ascending
        self._open: Codes = np.zeros(0, np.uint64)  # codes of the pairs handed out
        self._edges: Codes = np.zeros(
            0, np.uint64
        )  # codes of the pairs found similar, ascending: by later, then by earlier
        self._similarity = np.zeros(0)
        self._rounds = self._comparisons = 0
        self._complete = False
        self.largest_bucket = self.crowded_buckets = 0

    def next_pairs(self) -> Ints:
        """Pairs (document, pivot) to verify in this round, int64[M, 2] of input positions; none = the search is over.

        Pairs whose set sizes alone put them under the threshold are settled without a comparison.
        """
        assert not len(self._open), "settle the pairs handed out before asking for more"
        while not len(self._open) and self._rounds < self._max_rounds and not self._complete:
            self._open, new_pivots = self._candidates(mark=True)
            self._complete = not len(self._open) and not new_pivots
            self._rounds += not self._complete
        return self._by_rank[np.stack(decode(self._open), axis=1)]

    def settle(self, similarity: Floats) -> None:
        """Take the exact similarities of the pairs last handed out, float64[M], and decide anew who is kept."""
        assert len(similarity) == len(self._open), (len(similarity), len(self._open))
        similar = similarity >= self._bounds.min_jaccard
        edges = np.concatenate([self._edges, self._open[similar]])
        order = np.argsort(edges, kind="stable")
        self._edges = edges[order]
        self._similarity = np.concatenate([self._similarity, similarity[similar]])[order]
        self._settled = np.union1d(self._settled, self._open)
        self._comparisons += len(self._open)
        self._open = self._open[:0]
        self._removed = np.zeros(len(self._removed), np.bool_)
        independent_set(self._removed, *decode(self._edges))

    def result(self) -> Keepers:
        """The outcome so far; final when `next_pairs` gave none."""
        n = len(self._removed)
        best, similarity = np.full(n, -1, np.int64), np.zeros(n)
        best_keepers(self._removed, *decode(self._edges), self._similarity, best, similarity)
        keeper = np.full(n, -1, np.int64)
        gone = np.flatnonzero(self._removed)
        keeper[self._by_rank[gone]] = self._by_rank[best[gone]]
        exact = np.full(n, np.nan)
        exact[self._by_rank[gone]] = similarity[gone]
        cluster = np.where(keeper >= 0, keeper, np.arange(n))
        open_pairs, new_pivots = (self._open, False) if self._complete else self._candidates(mark=False)
        return Keepers(
            keeper=keeper[: self._n],
            similarity=exact[: self._n],
            cluster=cluster[: self._n],
            cluster_size=np.bincount(cluster, minlength=n)[cluster][: self._n],
            rounds=self._rounds,
            comparisons=self._comparisons,
            complete=not len(open_pairs) and not new_pivots,
        )

    def _candidates(self, *, mark: bool) -> tuple[Codes, bool]:
        """Codes of unsettled pairs among the survivors, ascending, and whether any bucket has new pivots.

        `mark` makes these pivots known to later rounds. The first round looks at all buckets; those that then consist
        of pivots only are done with.
        """
        parts: list[Codes] = []
        crowded: list[CrowdedBuckets] = []
        new_pivots = False
        for some in self._first_buckets() if self._crowded is None else self._crowded:
            found, new, after = next_round(some, self._removed, self._bounds)
            parts.append(found)
            new_pivots |= new
            if sum(map(len, parts)) > COMPACT_PAIRS:
                parts = [unique(np.concatenate(parts))]
            if mark:
                crowded.append(after if self._crowded is not None else after.crowded())
        if mark:
            self._crowded, self._keys = crowded, self._keys[:0]
        found = unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
        return np.setdiff1d(found, self._settled, assume_unique=True), new_pivots

    def _first_buckets(self) -> Iterator[CrowdedBuckets]:
        """All buckets of each band, in ranks; documents without shingles are in none."""
        old = len(self._kept)
        taking_part = old + np.flatnonzero(self._sizes[old:] > 0)
        rows = self._by_rank[taking_part]
        for band in range(self._keys.shape[1]):
            keys = self._keys[rows, band]  # one band at a time: all of them in the order of ranks are as much again
            old_keys, old_documents = self._kept.of_band(band)
            groups = buckets(np.concatenate([old_keys, keys]))
            members = np.concatenate([old_documents, taking_part])[groups.members]
            sizes = np.diff(groups.offsets)
            self.largest_bucket = max(self.largest_bucket, int(sizes.max(initial=0)))
            self.crowded_buckets += int((sizes > self._bounds.max_pivots + 1).sum())
            yield CrowdedBuckets.fresh(members, self._sizes[members], groups.offsets)


@kernel
def independent_set(removed: Flags, later: Ints, earlier: Ints) -> None:
    """Flag the documents that have a kept neighbour before them; edges ascend by `later`.

    Edges may come in several calls, each with later documents than the one before: no more than a flag a document is
    held between them.
    """
    for e in range(len(later)):
        if not removed[earlier[e]]:  # final: all edges of a document before this one have been seen
            removed[later[e]] = True


@kernel
def best_keepers(
    removed: Flags, later: Ints, earlier: Ints, similarity: Floats, keeper: NDArray[np.int64], best: Floats
) -> None:
    """Write the most similar kept neighbour of each removed document to `keeper`, which holds -1 before, and its
    similarity to `best`; ties go to the preferred one. Edges may come in several calls, in any order."""
    for e in range(len(later)):
        for document, other in ((later[e], earlier[e]), (earlier[e], later[e])):
            if not removed[document] or removed[other]:
                continue
            tie = similarity[e] == best[document] and other < keeper[document]
            if keeper[document] < 0 or similarity[e] > best[document] or tie:
                keeper[document], best[document] = other, similarity[e]
