"""Copies of a few documents among many: those with an equal text, and those with a verified similarity.

Equal is what has the same normalised text, as documents are compared (view `clean`) or as they are packed (`final`).
Memory: some 60 bytes a document of the many, and what an index of `FEW` takes.

Arrays: N documents of this build; L that earlier builds held out, numbered N to N + L - 1; F few of both, M pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill.config import Recipe
from corpusmill.dataset.manifest import HELDOUT, open_manifest
from corpusmill.kernels.duplicates import few_to_many, jaccard, minhash
from corpusmill.kernels.duplicates.text_digest import text_digest
from corpusmill.store import Store
from tasks import views
from tasks.dedup.documents import Flags, Ints, attribute, digests_column
from tasks.dedup.history import Earlier, settings, stored_sets
from tasks.dedup.near_duplicates import digests_of, loader, signatures_of
from tasks.shards import Shard, fixed_binary

Floats = NDArray[np.float64]
Signatures = NDArray[np.uint32]

FEW = 1 << 17
"""Documents of an index, which then takes some 150 MB; more are taken in turn."""
PAIRS = 1 << 22
"""Pairs that are verified at a time."""


@dataclass(frozen=True)
class Places:
    """Documents of this build, by shard and row."""

    shard: NDArray[np.int32]
    """int32[N]."""
    row: NDArray[np.int32]
    """int32[N]."""
    doc_id: NDArray[np.void]
    """V16[N]."""

    def __len__(self) -> int:
        return len(self.row)

    def bounds(self, shards: int) -> Ints:
        """int64[shards + 1]: where the documents of each shard begin."""
        return np.searchsorted(self.shard, np.arange(shards + 1))


@dataclass(frozen=True)
class HeldBefore:
    """What the datasets of an index held out: L documents, by part and by their numbers among its keepers."""

    part: Ints
    """int64[L]: number of the part, ascending."""
    keeper: Ints
    """int64[L]: row in the part's table of keepers."""
    doc_id: NDArray[np.void]
    text_digest: NDArray[np.void]
    shingles: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.part)

    @classmethod
    def of(cls, earlier: Earlier | None, store: Store) -> HeldBefore:
        """Read the documents of each part's partition `heldout`."""
        nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), *[np.zeros(0, "V16")] * 2, np.zeros(0, np.int32))
        parts: list[tuple[NDArray, ...]] = [nothing]
        for number, part in enumerate(earlier.parts if earlier else ()):
            if (packed := open_manifest(store, part.manifest).partitions.get(HELDOUT)) is None:
                continue
            ids = [store.table(shard.docs, columns=["doc_id"]).column("doc_id") for shard in packed.shards]
            held = pa.chunked_array([chunk for column in ids for chunk in column.chunks], ids[0].type)
            keepers = store.table(part.keepers, columns=["doc_id", "text_digest", "shingles"])
            rows = np.flatnonzero(pc.is_in(keepers.column("doc_id"), held).to_numpy())
            found = keepers.take(rows)
            digests = (fixed_binary(found.column(name)) for name in ("doc_id", "text_digest"))
            parts.append((np.full(len(rows), number), rows, *digests, found.column("shingles").to_numpy()))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def inputs_of(shards: Sequence[Shard]) -> tuple[str, ...]:
    """Contents that a search reads of shards."""
    return tuple(item for shard in shards for item in (digests_of(shard), *shard.view_inputs("final")))


def compared(recipe: Recipe, earlier: Earlier | None) -> dict[str, object]:
    """What decides the outcome of a search, beside its inputs."""
    against = earlier.identity if earlier else []
    return {**settings(recipe), "min_jaccard": recipe.deduplicate.min_jaccard, "against": against}


class Neighbours:
    """The documents that a few are searched among."""

    def __init__(
        self, shards: Sequence[Shard], docs: Places, recipe: Recipe, store: Store, earlier: Earlier | None
    ) -> None:
        self._shards, self._docs, self._recipe, self._store, self._earlier = shards, docs, recipe, store, earlier
        self.before = HeldBefore.of(earlier, store)
        """What earlier builds held out."""
        self.ids = np.concatenate([docs.doc_id, self.before.doc_id])
        """V16[N + L]."""
        self.comparisons = 0
        """Pairs verified so far."""
        clean = attribute(shards, docs, digests_column("text_digest", store), "V16")
        texts = [clean, final] if (final := self._as_packed(clean)) is not None else [clean]
        self._texts = [np.concatenate([text, self.before.text_digest]) for text in texts]
        shingles = attribute(shards, docs, digests_column("shingles", store), np.int32)
        self._shingles = np.concatenate([shingles, self.before.shingles])

    def of(self, few: Ints, among: Flags) -> tuple[Ints, Ints, Floats]:
        """Copies of some documents.

        Args:
            few: int64[F], of this build or of earlier ones.
            among: bool[N], where to search; none of the few is there.

        Returns:
            the copies, ascending; of each the most similar of the few (in a tie that with the smallest id), and how
            similar it is.
        """
        few = few[np.argsort(self.ids[few], kind="stable")]
        whose, similarity = np.full(len(self._docs), len(few), np.int64), np.zeros(len(self._docs))
        for text in self._texts:
            equal, which = _equal(text[: len(self._docs)], among, [known[few] for known in self._texts])
            whose[equal], similarity[equal] = np.minimum(whose[equal], which), 1.0
        for pairs in self._met(few, among & (similarity < 1)):
            self._verify(pairs, few, whose, similarity)
        copies = np.flatnonzero(whose < len(few))
        return copies, few[whose[copies]], similarity[copies]

    def _verify(self, pairs: Ints, few: Ints, whose: Ints, similarity: Floats) -> None:
        """Take what is similar enough of pairs (document, place among the few), where it is the best so far."""
        shard = np.concatenate([self._docs.shard.astype(np.int64), len(self._shards) + self.before.part])
        load = loader(self._shards, self._docs, self.before.keeper, self._earlier, self._recipe, self._store)
        known = np.stack([pairs[:, 0], few[pairs[:, 1]]], axis=1)
        most = self._recipe.deduplicate.memory_mb * 2**20 // 32
        found = jaccard.verify(known, shard, self._shingles.astype(np.int64), load, max_values=most)
        self.comparisons += len(pairs)
        enough = np.flatnonzero(found >= self._recipe.deduplicate.min_jaccard)
        best = enough[np.lexsort((-pairs[enough, 1], found[enough], pairs[enough, 0]))]  # of a document the last
        best = best[np.diff(pairs[best, 0], append=-1) != 0]
        docs, which, how = pairs[best, 0], pairs[best, 1], found[best]
        better = (how > similarity[docs]) | ((how == similarity[docs]) & (which < whose[docs]))
        whose[docs[better]], similarity[docs[better]] = which[better], how[better]

    def _met(self, few: Ints, among: Flags) -> Iterator[Ints]:
        """Pairs (document, place among the few) that may be near, some millions at a time."""
        taking_part = np.flatnonzero(self._shingles[few] > 0)
        among = among & (self._shingles[: len(among)] > 0)
        parts, count = [np.zeros((0, 2), np.int64)], 0
        for begin in range(0, len(taking_part), FEW):
            places = taking_part[begin : begin + FEW]
            index = few_to_many.Few(self._signatures(few[places]), self._recipe.deduplicate.min_jaccard)
            for documents, signatures in self._batches(among):
                for found in index.near(signatures):
                    parts.append(np.stack([documents[found[:, 0]], places[found[:, 1]]], axis=1))
                    count += len(found)
                    if count > PAIRS:
                        yield np.concatenate(parts)
                        parts, count = parts[:1], 0
        if count:
            yield np.concatenate(parts)

    def _batches(self, among: Flags) -> Iterator[tuple[Ints, Signatures]]:
        """Documents of this build, ascending, and their signatures."""
        for number, (begin, end) in enumerate(pairwise(self._docs.bounds(len(self._shards)).tolist())):
            here = begin + np.flatnonzero(among[begin:end])
            if len(here):
                for part, found in signatures_of(self._shards[number], self._docs.row[here], self._recipe, self._store):
                    yield here[part], found

    def _signatures(self, few: Ints) -> Signatures:
        """uint32[F, K] of any documents."""
        config, n = self._recipe.deduplicate, len(self._docs)
        made = np.empty((len(few), config.num_perm), np.uint32)
        place = np.full(n, -1, np.int64)
        ours = np.flatnonzero(few < n)
        place[few[ours]] = ours
        for documents, signatures in self._batches(place >= 0):
            made[place[documents]] = signatures
        permutations = minhash.permutations(config.num_perm, self._recipe.seed)
        for number, part in enumerate(self._earlier.parts if self._earlier else ()):
            theirs = np.flatnonzero(few >= n)
            theirs = theirs[self.before.part[few[theirs] - n] == number]
            if len(theirs):
                sets = stored_sets(part, self.before.keeper[few[theirs] - n], self._store)
                made[theirs] = minhash.sign(minhash.ShingleSets(sets.offsets, sets.values), *permutations).signature
        return made

    def _as_packed(self, clean: NDArray[np.void]) -> NDArray[np.void] | None:
        """V16[N], digests of the texts in view `final`; None where no document differs there."""
        made = None
        for number, (begin, end) in enumerate(pairwise(self._docs.bounds(len(self._shards)).tolist())):
            shard = self._shards[number]
            later = shard.layers("final")[len(shard.layers("clean")) :]
            spans = views.overlay(later, self._store).spans if end > begin else None
            if spans is None:
                continue
            rows = self._docs.row[begin:end].astype(np.int64)
            touched = np.flatnonzero(pc.list_value_length(spans).take(pa.array(rows)).to_numpy())
            if len(touched):
                texts = shard.texts(rows[touched], self._store, view="final")
                made = clean.copy() if made is None else made
                made[begin + touched] = fixed_binary(pa.chunked_array([text_digest(texts)]))
        return made


def _equal(texts: NDArray[np.void], among: Flags, few: Sequence[NDArray[np.void]]) -> tuple[Ints, Ints]:
    """Documents with a text that one of the few has in any view, and which: the first of those that have it.

    Args:
        texts: V16[N]. among: bool[N].
        few: V16[F] of each view.
    """
    known, first = np.unique(np.concatenate(few), return_index=True)
    first %= max(1, len(few[0]))
    here = np.flatnonzero(among)
    place = np.minimum(np.searchsorted(known, texts[here]), max(0, len(known) - 1))
    hit = known[place] == texts[here] if len(known) else np.zeros(len(here), np.bool_)
    return here[hit], first[place[hit]]
