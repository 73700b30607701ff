"""Earlier snapshots: which dataset's index counts as kept before, and reading from it.

An index has three tables for each build that made it. `keepers` (stored as `leaders`), in the order of preference: a
row per kept document. `keys`, ascending: its band keys (a key's hash knows its band), so each range of
keys lies together. `sets`: its shingles, sorted, by which candidates are verified without reading the earlier text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.dataset.manifest import Index, open_manifest
from corpusmill.errors import NotFound, Refused
from corpusmill.kernels.duplicates import jaccard
from corpusmill.kernels.duplicates.minhash import Shingling
from corpusmill.store import Output, Store
from corpusmill.store.parquet import open_parquet
from tasks.acquire import SourceUnit
from tasks.shards import Shard

Ints = NDArray[np.int64]

KEEPERS = pa.schema(
    [
        pa.field("doc_id", schema.DOC_ID, nullable=False),
        pa.field("text_digest", schema.DIGEST16, nullable=False),
        pa.field("shingles", pa.int32(), nullable=False),
        pa.field("set_row", pa.int64(), nullable=False),  # row in the table of sets
    ]
)
KEYS = pa.schema([pa.field("key", pa.uint64(), nullable=False), pa.field("leader", pa.uint32(), nullable=False)])
SETS = pa.schema([pa.field("hashes", pa.large_list(pa.field("item", pa.uint64(), nullable=False)), nullable=False)])
SET_GROUP_BYTES = 1 << 18
"""Row groups of the sets: what is read to get one of them."""

KEYS_BAND = "murmur3 over the rows of a band"


@dataclass(frozen=True)
class Part:
    """The index of one build."""

    manifest: str
    """Digest of the dataset that the build made."""
    keepers: Output
    keys: Output
    sets: Output

    @property
    def tables(self) -> tuple[Output, Output, Output]:
        """In the order of `index.KINDS`."""
        return self.keepers, self.keys, self.sets


@dataclass(frozen=True)
class Earlier:
    """The index of a dataset and of those it was built against."""

    manifest: str
    """Digest of that dataset."""
    snapshots: tuple[str, ...]
    """Those in it, as `source/snapshot`."""
    parts: tuple[Part, ...]

    @property
    def identity(self) -> list[list[str]]:
        """What decides the outcome, for unit keys."""
        return [[part.manifest, *(str(table.content) for table in part.tables)] for part in self.parts]


def shingling(recipe: Recipe) -> Shingling:
    """What a shingle is."""
    config = recipe.deduplicate
    return Shingling(config.ngram, config.shingle, config.fold_digits)


def settings(recipe: Recipe) -> dict[str, object]:
    """What two indexes must share to be compared."""
    config = recipe.deduplicate
    return {
        **shingling(recipe).identity,
        "view": "clean",
        "num_perm": config.num_perm,
        "bands": config.bands,
        "seed": recipe.seed,
        "keys": KEYS_BAND,
    }


def snapshots(shards: Sequence[Shard | SourceUnit]) -> list[str]:
    """`source/snapshot` of all shards, or of the files they are made of; sorted."""
    return sorted({f"{shard.source}/{shard.snapshot}" for shard in shards})


def earlier(recipe: Recipe, shards: Sequence[Shard | SourceUnit], store: Store) -> Earlier | None:
    """The index that this build is compared with: None where the recipe asks for none, or none is there yet.

    A bare name means the newest dataset of that name that holds none of this build's snapshots: so a snapshot that is
    built again is compared with what it was compared with before, and comes out the same.

    Raises:
        NotFound: no such dataset, or it has no index.
        Refused: its index was made with other settings, or it holds a snapshot of this build.
    """
    ref = recipe.deduplicate.against
    if ref is None:
        return None
    ours = set(snapshots(shards))
    if ref == recipe.name and ref not in store.names():
        return None  # the first snapshot of its own history
    name, newest = store.resolve(ref)
    digests = [newest] if ref != name else [str(entry["manifest"]) for entry in reversed(store.history(name))]
    for digest in digests:
        index = open_manifest(store, digest, name).index
        if index is None:
            raise NotFound(
                f"dataset {name}@{digest[:12]} has no index of its kept documents",
                "deduplicate.against needs one",
                "Build it with deduplicate.index = true, or name another dataset.",
            )
        if not ours & set(index.snapshots):
            return _opened(digest, index, recipe, name)
        if ref != name:
            raise Refused(
                f"dataset {name}@{digest[:12]} contains snapshots of this build",
                f"both have {', '.join(sorted(ours & set(index.snapshots)))}",
                f"Name the dataset before it, or just {name!r}, which finds it.",
            )
    return None


def _opened(digest: str, index: Index, recipe: Recipe, name: str) -> Earlier:
    wanted, found = settings(recipe), index.settings
    if wanted != found:
        keys = sorted(key for key in {**found, **wanted} if found.get(key) != wanted.get(key))
        raise Refused(
            f"the index of {name}@{digest[:12]} was made with other settings",
            "; ".join(f"{key}: {found.get(key)!r} there, {wanted.get(key)!r} here" for key in keys),
            "Use the same settings of deduplicate and seed, or build the earlier dataset again.",
        )
    parts = tuple(Part(part.manifest or digest, part.keepers, part.keys, part.sets) for part in index.parts)
    return Earlier(digest, index.snapshots, parts)


def batches(output: Output, columns: Sequence[str], store: Store) -> Iterator[pa.RecordBatch]:
    """A table of the index, a million rows at a time."""
    return store.batches(output, columns=columns, batch_rows=1 << 20)


def rows_of(output: Output, rows: Ints, columns: Sequence[str], store: Store) -> pa.Table:
    """Some rows (ascending) of a table; only row groups that hold one of them are read."""
    with open_parquet(store.local_path(output), output.name) as file:
        ends = np.cumsum([file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)])
        groups = np.searchsorted(ends, rows, side="right")
        parts = []
        for group in np.unique(groups).tolist():
            table = file.read_row_group(group, columns=list(columns), use_threads=False)
            parts.append(table.take(pa.array(rows[groups == group] - (ends[group] - table.num_rows))))
        empty = file.schema_arrow.empty_table().select(list(columns))
    return pa.concat_tables([empty, *parts])


def stored_sets(part: Part, keepers: Ints, store: Store) -> jaccard.Sets:
    """Shingle sets of some keepers, in the order given."""
    where = rows_of(part.keepers, np.unique(keepers), ["set_row"], store).column("set_row").to_numpy()
    rows, back = np.unique(where[np.searchsorted(np.unique(keepers), keepers)], return_inverse=True)
    column = rows_of(part.sets, rows, ["hashes"], store).column("hashes").combine_chunks()
    values = column.values.to_numpy()
    return jaccard.take(jaccard.Sets(column.offsets.to_numpy().astype(np.int64), values), back)
