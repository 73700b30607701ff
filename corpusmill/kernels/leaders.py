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

import numba
import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.lsh import Keys, buckets

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.uint64]

COMPACT_PAIRS = 1 << 23
"""Candidate pairs found in several bands are held so many at a time before repeats are dropped."""


@dataclass(frozen=True)
class Keepers:
    """The outcome, one entry per document of the input."""

    keeper: Ints
    """int64[N]: the kept document it is a copy of; -1 where it is kept itself."""
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
    ids = np.frombuffer(b"".join(doc_ids), ">u8").reshape(-1, 2)
    order = np.lexsort((ids[:, 1], ids[:, 0], date_code, -np.asarray(text_bytes, np.int64)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


@dataclass(frozen=True)
class _Crowd:
    """Buckets of one band: members by rank, ascending in each bucket, and which of them were pivots."""

    members: Ints
    offsets: Ints
    pivot: Flags

    def only(self, chosen: Flags) -> _Crowd:
        """The same buckets with some of their members."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])
        return _Crowd(self.members[chosen], before[self.offsets], self.pivot[chosen])

    def crowded(self) -> _Crowd:
        """The buckets that have members who were no pivots."""
        sizes = np.diff(self.offsets)
        pivots = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.pivot)])
        kept = np.diff(pivots[self.offsets]) < sizes
        members = np.repeat(kept, sizes)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[kept])])
        return _Crowd(self.members[members], offsets, self.pivot[members])


class KeeperSearch:
    """The search, one round at a time: `next_pairs` says what to compare, `settle` takes the similarities.

        search = KeeperSearch(keys, rank, shingles, min_jaccard=0.8)
        while len(pairs := search.next_pairs()):
            search.settle(verify(pairs, ...))       # kernels.jaccard.verify, or anything exact
        keepers = search.result()

    Memory besides the keys given: as much again while they are bucketed, then 16 bytes a member of a crowded bucket and
    24 bytes a verified pair.
    """

    def __init__(
        self,
        keys: Keys,
        rank: Ints,
        shingles: NDArray[np.integer],
        *,
        min_jaccard: float,
        max_pivots: int = 4,
        max_rounds: int = 8,
    ) -> None:
        """Prepare a search.

        Args:
            keys: uint64[N, B] of lsh.band_keys.
            rank: int64[N] of preference_rank.
            shingles: [N], size of each document's shingle set; a document with none does not take part.
            min_jaccard: similarity from which a document is a copy.
            max_pivots: new pivots of a bucket in each round.
            max_rounds: bound on the rounds.
        """
        self._by_rank = np.argsort(rank, kind="stable")
        self._keys = keys
        self._crowded: list[_Crowd] | None = None
        self._sizes = np.asarray(shingles, np.int64)[self._by_rank]
        self._min_jaccard, self._max_pivots, self._max_rounds = min_jaccard, max_pivots, max_rounds
        self._removed = np.zeros(len(rank), np.bool_)
        self._settled: Codes = np.zeros(0, np.uint64)  # codes of all pairs ever looked at, ascending
        self._open: Codes = np.zeros(0, np.uint64)  # codes of the pairs handed out
        self._edges: Codes = np.zeros(
            0, np.uint64
        )  # codes of the pairs found similar, ascending: by later, then by earlier
        self._similarity = np.zeros(0)
        self._rounds = self._comparisons = 0
        self._complete = False

    def next_pairs(self) -> Ints:
        """Pairs (document, pivot) to verify in this round, int64[M, 2] of input positions; none = the search is over.

        Pairs whose set sizes alone put them under the threshold are settled without a comparison.
        """
        assert not len(self._open), "settle the pairs handed out before asking for more"
        while not len(self._open) and self._rounds < self._max_rounds and not self._complete:
            self._open, new_pivots = self._candidates(mark=True)
            self._complete = not len(self._open) and not new_pivots
            self._rounds += not self._complete
        return self._by_rank[np.stack(_decode(self._open), axis=1)]

    def settle(self, similarity: Floats) -> None:
        """Take the exact similarities of the pairs last handed out, float64[M], and decide anew who is kept."""
        assert len(similarity) == len(self._open), (len(similarity), len(self._open))
        similar = similarity >= self._min_jaccard
        edges = np.concatenate([self._edges, self._open[similar]])
        order = np.argsort(edges, kind="stable")
        self._edges = edges[order]
        self._similarity = np.concatenate([self._similarity, similarity[similar]])[order]
        self._settled = np.union1d(self._settled, self._open)
        self._comparisons += len(self._open)
        self._open = self._open[:0]
        self._removed = _independent_set(len(self._removed), *_decode(self._edges))

    def result(self) -> Keepers:
        """The outcome so far; final when `next_pairs` gave none."""
        n = len(self._removed)
        best, similarity = _best_keepers(self._removed, *_decode(self._edges), self._similarity)
        keeper = np.full(n, -1, np.int64)
        gone = np.flatnonzero(self._removed)
        keeper[self._by_rank[gone]] = self._by_rank[best[gone]]
        exact = np.full(n, np.nan)
        exact[self._by_rank[gone]] = similarity[gone]
        cluster = np.where(keeper >= 0, keeper, np.arange(n))
        open_pairs, new_pivots = (self._open, False) if self._complete else self._candidates(mark=False)
        return Keepers(
            keeper=keeper,
            similarity=exact,
            cluster=cluster,
            cluster_size=np.bincount(cluster, minlength=n)[cluster],
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
        crowded: list[_Crowd] = []
        new_pivots = False
        for crowd in self._first_buckets() if self._crowded is None else self._crowded:
            surviving = ~self._removed[crowd.members]
            here = crowd.only(surviving)
            pivot = here.pivot.copy()
            parts.append(_pairs(here.members, here.offsets, pivot, self._sizes, self._max_pivots, self._min_jaccard))
            new_pivots |= bool((pivot != here.pivot).any())
            if sum(map(len, parts)) > COMPACT_PAIRS:
                parts = [np.unique(np.concatenate(parts))]
            if mark:
                crowd.pivot[surviving] = pivot
                crowded.append(crowd if self._crowded is not None else crowd.crowded())
        if mark:
            self._crowded, self._keys = crowded, self._keys[:0]
        found = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
        return np.setdiff1d(found, self._settled, assume_unique=True), new_pivots

    def _first_buckets(self) -> Iterator[_Crowd]:
        """All buckets of each band, in ranks; documents without shingles are in none."""
        taking_part = np.flatnonzero(self._sizes > 0)
        by_band = np.ascontiguousarray(self._keys[self._by_rank[taking_part]].T)
        for keys in by_band:
            groups = buckets(keys)
            yield _Crowd(taking_part[groups.members], groups.offsets, np.zeros(len(groups.members), np.bool_))


def _decode(codes: Codes) -> tuple[Ints, Ints]:
    """Ranks (later, earlier) of pair codes later << 32 | earlier."""
    return (codes >> np.uint64(32)).astype(np.int64), (codes & np.uint64(0xFFFFFFFF)).astype(np.int64)


@numba.njit(cache=True, nogil=True)
def _pairs(members: Ints, offsets: Ints, pivot: Flags, sizes: Ints, max_pivots: int, min_jaccard: float) -> Codes:
    """Pairs of each bucket's members with its known pivots and its next `max_pivots`, which are flagged in `pivot`."""
    capacity = 1024
    codes, count = np.empty(capacity, np.uint64), 0
    for b in range(len(offsets) - 1):
        begin, end = offsets[b], offsets[b + 1]
        if end - begin < 2:
            continue
        fresh = max_pivots
        for i in range(begin, end):
            if fresh > 0 and not pivot[i]:
                pivot[i] = True
                fresh -= 1
        for i in range(begin, end):
            if not pivot[i]:
                continue
            for j in range(begin, end):
                if j == i or (pivot[j] and j < i):
                    continue  # two pivots: once
                few, many = min(sizes[members[i]], sizes[members[j]]), max(sizes[members[i]], sizes[members[j]])
                if few / many < min_jaccard:
                    continue
                if count == capacity:
                    codes = np.concatenate((codes, np.empty(capacity, np.uint64)))
                    capacity *= 2
                later, earlier = max(members[i], members[j]), min(members[i], members[j])
                codes[count] = np.uint64(later) << np.uint64(32) | np.uint64(earlier)
                count += 1
    return codes[:count]


@numba.njit(cache=True, nogil=True)
def _independent_set(n: int, later: Ints, earlier: Ints) -> Flags:
    """Removed documents, bool[n]: those with a kept neighbour before them; edges ascend by `later`."""
    removed = np.zeros(n, np.bool_)
    for e in range(len(later)):
        if not removed[earlier[e]]:  # final: all edges of a document before this one have been seen
            removed[later[e]] = True
    return removed


@numba.njit(cache=True, nogil=True)
def _best_keepers(removed: Flags, later: Ints, earlier: Ints, similarity: Floats) -> tuple[Ints, Floats]:
    """Most similar kept neighbour of each removed document, ties to the preferred one."""
    keeper, best = np.full(len(removed), -1, np.int64), np.zeros(len(removed))
    for e in range(len(later)):
        for document, other in ((later[e], earlier[e]), (earlier[e], later[e])):
            if not removed[document] or removed[other]:
                continue
            tie = similarity[e] == best[document] and other < keeper[document]
            if keeper[document] < 0 or similarity[e] > best[document] or tie:
                keeper[document], best[document] = other, similarity[e]
    return keeper, best
