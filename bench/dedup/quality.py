"""Near-duplicate detection on texts with all their pairs known: candidates, removals and precision at several settings.

Truth is the exact similarity of every pair of documents, computed here by comparing all sets of shingles; where the
data set lists similarities of its own, removals are judged by these too (its idea of a word differs a little).

  candidates   share of the pairs at or above the threshold that meet in a band, over SEEDS seeds, beside the S-curve's
               expectation; `z` is their distance in standard errors, found by drawing documents anew (pairs of one
               document are not independent)
  removals     share of those pairs of which at most one document is kept
  precision    share of removals that are at or above the threshold: by our own sets, and by the data set's list

Then the mini-crawl, exact and near at the default setting, by how pages are akin: of pairs at or above the threshold
how many have at most one document kept, and of those below how many have both (a page may go for a third one).
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from resiliparse.extract.html2text import extract_plain_text

from bench.common import REPOSITORY, arguments, judged, note, report, run
from corpusmill.errors import NotFound
from corpusmill.kernels.duplicates import jaccard, lsh, minhash, text_digest
from corpusmill.kernels.duplicates.keepers import KeeperSearch, preference_rank
from corpusmill.plain_text import table
from corpusmill.readers.outcomes import outcomes

THRESHOLD = 0.8
SETTINGS = ((112, 14), (112, 28), (100, 20), (256, 32), (260, 20), (128, 8))
"""Permutations and bands: the default, others at their defaults, and two chosen for recall (28 x 4, 32 x 8)."""
FOR_RECALL = (112, 28)
SEEDS = 5
DRAWS = 200

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Corpus:
    """Texts, and the data set's own similarities by pair of ids."""

    name: str
    ids: Sequence[str]
    texts: Sequence[str]
    listed: Mapping[frozenset[str], float]
    ngram: int


@dataclass(frozen=True)
class Measured:
    """One corpus at one setting; shares over all seeds."""

    corpus: str
    num_perm: int
    bands: int
    pairs: int
    expected: float
    candidates: float
    z: float
    removal_recall: float
    removed: int
    precision: float
    precision_listed: float


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="folder neardup of the test data")
    options = parser.parse_args(argv)
    data = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    root = options.root or data / "neardup"
    if not root.is_dir():
        raise NotFound(f"no folder {root}", "it holds texts with all their pairs", "Name another, or set its place.")
    corpora = [revisions(root / "doc-revisions")]
    if not options.quick:
        corpora.append(reuters(root / "ndd-r8"))
    seeds = range(17, 17 + (2 if options.quick else SEEDS))
    found = [one for corpus in corpora for one in measured(corpus, list(seeds))]
    first = [one for one in found if one.corpus == corpora[0].name]
    recall = next(one for one in first if (one.num_perm, one.bands) == FOR_RECALL)
    ratios = {
        "precision": min(one.precision for one in found),
        "removal_recall": recall.removal_recall,
        "candidates_within": 4.0 / max(1e-9, max(abs(one.z) for one in found)),
    }
    rows = [
        (
            one.corpus,
            f"{one.bands} x {one.num_perm // one.bands}",
            one.pairs,
            f"{one.expected:.4f}",
            f"{one.candidates:.4f}",
            f"{one.z:+.2f}",
            f"{one.removal_recall:.4f}",
            one.removed,
            f"{one.precision:.4f}",
            f"{one.precision_listed:.4f}",
        )
        for one in found
    ]
    heads = (
        "corpus",
        "bands",
        "pairs",
        "expected",
        "met",
        "z",
        "removal recall",
        "removed",
        "precision",
        "by its list",
    )
    text = f"similarity from {THRESHOLD}, {len(seeds)} seeds\n\n" + table(heads, rows, numbers=tuple(range(2, 10)))
    akin: list[Kinship] = []
    if not options.quick and (data / "mini-crawl").is_dir():
        akin = by_kinship(data / "mini-crawl")
        cells = [(k.kind, k.pairs, k.similar, k.one_kept, k.pairs - k.similar, k.both_kept) for k in akin]
        heads = ("mini-crawl", "pairs", "similar", "at most one kept", "not similar", "both kept")
        text += "\n\n" + table(heads, cells, numbers=(1, 2, 3, 4, 5))
    document = {
        "subject": "dedup_quality",
        "quick": options.quick,
        "found": [asdict(one) for one in found],
        "mini_crawl": [asdict(one) for one in akin],
    }
    return report(document, text, judged("dedup_quality", ratios), options.json)


@dataclass(frozen=True)
class Kinship:
    """Pairs of pages of one kind: how many are similar, and what deduplication made of them."""

    kind: str
    pairs: int
    similar: int
    one_kept: int
    both_kept: int


def by_kinship(root: Path) -> list[Kinship]:
    """Akin pages of the mini-crawl."""
    note("mini-crawl: texts")
    texts: list[str] = []
    place: dict[tuple[str, str], int] = {}
    for path in sorted(root.glob("crawl-data/*/segments/*/warc/*.warc.gz")):
        for page in outcomes(path):
            if page.html and not page.reason:
                place[path.relative_to(root).as_posix(), page.url or ""] = len(texts)
                texts.append(extract_plain_text(page.html, main_content=True))
    keeper, sets = _deduplicated(texts)
    urls: dict[str, list[int]] = {}
    for (_, url), number in place.items():
        urls.setdefault(url, []).append(number)
    found: dict[str, list[tuple[int, int]]] = {}
    for row in lines(root / "truth.jsonl.gz"):
        one = place.get((row["warc"], row["url"]))
        for key in ("mirror_of_url", "revision_of_url", "sibling_of_url", "transcoded_from"):
            other = next((n for n in urls.get(row.get(key) or "", []) if n != one), None)
            if one is not None and other is not None:
                kind = key.removesuffix("_of_url").replace("_", " ")
                kind = f"{kind}, {row['mirror']}" if kind == "mirror" else kind
                found.setdefault(kind, []).append((one, other))
    made = []
    for kind, pairs in sorted(found.items()):
        array = np.array(sorted(set(pairs)), np.int64)
        similar = jaccard.jaccard(sets, sets, array) >= THRESHOLD
        kept = (keeper[array] < 0).all(axis=1)
        one_kept, both = int((similar & ~kept).sum()), int((~similar & kept).sum())
        made.append(Kinship(kind, len(array), int(similar.sum()), one_kept, both))
    return made


def _deduplicated(texts: Sequence[str]) -> tuple[NDArray[np.int64], jaccard.Sets]:
    """Keeper of each text (-1: kept), exact and near at the default settings; and their shingle sets."""
    column = pa.array(texts, pa.large_string())
    sets = jaccard.Sets(*minhash.shingle_sets(column, 5))
    ids = [int(i).to_bytes(16, "big") for i in range(len(texts))]
    rank = preference_rank(np.array([len(t.encode()) for t in texts]), [None] * len(ids), ids)
    keeper = np.full(len(texts), -1, np.int64)
    first: dict[bytes, int] = {}
    digest = text_digest.text_digest(column).to_pylist()
    for i in np.argsort(rank).tolist():
        if first.setdefault(digest[i], i) != i:
            keeper[i] = first[digest[i]]
    left = np.flatnonzero(keeper < 0)
    signed = minhash.signatures(column.take(pa.array(left)), ngram=5, num_perm=112, seed=17)
    search = KeeperSearch(lsh.band_keys(signed.signature, 14, 8), rank[left], signed.shingles, min_jaccard=THRESHOLD)
    while len(wanted := search.next_pairs()):
        search.settle(jaccard.jaccard(sets, sets, left[wanted]))
    near = search.result().keeper
    keeper[left[near >= 0]] = left[near[near >= 0]]
    return keeper, sets


def lines(path: Path) -> list[dict]:
    """Rows of a file of JSON lines; texts hold other line breaks than the line feed."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).split(b"\n") if line]


def revisions(folder: Path) -> Corpus:
    """Debian documentation in several releases, 5-word shingles."""
    docs = lines(folder / "docs.jsonl.gz")
    pairs = lines(folder / "pairs_j5_ge_0.2.jsonl.gz")
    listed = {frozenset((p["a"], p["b"])): p["jaccard"] for p in pairs}
    return Corpus("doc-revisions", [d["id"] for d in docs], [d["text"] for d in docs], listed, 5)


def reuters(folder: Path) -> Corpus:
    """Short news, 3-word shingles."""
    docs = lines(folder / "docs.jsonl.gz")
    pairs = lines(folder / "pairs_j3_ge_0.3.jsonl.gz")
    listed = {frozenset((str(p["a"]), str(p["b"]))): p["jaccard"] for p in pairs}
    return Corpus("ndd-r8", [str(d["id"]) for d in docs], [d["text"] for d in docs], listed, 3)


def measured(corpus: Corpus, seeds: Sequence[int]) -> list[Measured]:
    """A corpus at every setting."""
    text = pa.array(corpus.texts, pa.large_string())
    sets = jaccard.Sets(*minhash.shingle_sets(text, corpus.ngram))
    left, right = np.triu_indices(len(sets), 1)
    exact = jaccard.jaccard(sets, sets, np.stack([left, right], axis=1))
    similar = exact >= THRESHOLD
    pairs = np.stack([left[similar], right[similar]], axis=1)
    found = []
    for num_perm, bands in SETTINGS:
        note(f"{corpus.name}: {bands} bands of {num_perm // bands} rows")
        found.append(_at(corpus, text, sets, pairs, exact[similar], num_perm, bands, seeds))
    return found


def _at(
    corpus: Corpus,
    text: pa.LargeStringArray,
    sets: jaccard.Sets,
    pairs: NDArray[np.int64],
    exact: Floats,
    num_perm: int,
    bands: int,
    seeds: Sequence[int],
) -> Measured:
    chances = np.array([lsh.collision_probability(float(j), bands, num_perm // bands) for j in exact])
    met = np.zeros(len(pairs))
    both_kept = removed = right = listed = 0
    sizes = np.diff(sets.offsets)
    hashed = minhash.ShingleSets(sets.offsets, sets.values)
    ids = [int(i).to_bytes(16, "big") for i in range(len(sets))]
    rank = preference_rank(np.array([len(t.encode()) for t in corpus.texts]), [None] * len(ids), ids)
    for seed in seeds:
        signed = minhash.sign(hashed, *minhash.permutations(num_perm, seed)).signature
        keys = lsh.band_keys(signed, bands, num_perm // bands)
        met += (keys[pairs[:, 0]] == keys[pairs[:, 1]]).any(axis=1)
        search = KeeperSearch(keys, rank, sizes, min_jaccard=THRESHOLD)
        while len(wanted := search.next_pairs()):
            search.settle(jaccard.jaccard(sets, sets, wanted))
        keeper = search.result().keeper
        both_kept += int(((keeper[pairs[:, 0]] < 0) & (keeper[pairs[:, 1]] < 0)).sum())
        gone = np.flatnonzero(keeper >= 0)
        removed += len(gone)
        for d in gone.tolist():
            a, b = (set(sets.values[sets.offsets[i] : sets.offsets[i + 1]].tolist()) for i in (d, keeper[d]))
            right += len(a & b) / len(a | b) >= THRESHOLD
            named = frozenset((corpus.ids[d], corpus.ids[int(keeper[d])]))
            listed += corpus.listed.get(named, 0.0) >= THRESHOLD
    return Measured(
        corpus.name,
        num_perm,
        bands,
        len(pairs),
        float(chances.mean()),
        float(met.mean() / len(seeds)),
        _z(met / len(seeds) - chances, pairs, len(seeds)),
        1 - both_kept / (len(pairs) * len(seeds)),
        removed // len(seeds),
        right / max(1, removed),
        listed / max(1, removed),
    )


def _z(excess: Floats, pairs: NDArray[np.int64], seeds: int) -> float:
    """Mean excess in standard errors, these by drawing documents with replacement: a pair counts as often as both are
    drawn."""
    rng = np.random.default_rng(1)
    documents = np.unique(pairs)
    left, right = np.searchsorted(documents, pairs[:, 0]), np.searchsorted(documents, pairs[:, 1])
    means = []
    for _ in range(DRAWS):
        drawn = np.bincount(rng.integers(0, len(documents), len(documents)), minlength=len(documents))
        weight = drawn[left] * drawn[right]
        means.append(float((excess * weight).sum() / max(1, weight.sum())))
    spread = float(np.std(means))
    return float(excess.mean()) / spread if spread else 0.0


if __name__ == "__main__":
    run(main)
