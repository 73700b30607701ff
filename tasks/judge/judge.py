"""Judge: narrow attribute shards beside the documents, a group each, same rows, same order; nothing is decided here.

Each group has its own unit key, so another language model recomputes the languages alone. One pass over the text serves
all groups that are missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.config import Floor, Recipe
from corpusmill.kernels.edits import spans
from corpusmill.kernels.words.table import slices
from corpusmill.store import Receipt, Store, Unit
from tasks.judge.groups import Group, Judge, Texts, groups_of
from tasks.units import Done, begin, content_of

BATCH_ROWS = 1024


def judge_shard(documents: Receipt, recipe: Recipe, store: Store, *, without: Collection[str] = ()) -> dict[str, Done]:
    """The attribute groups of one documents shard, by name. Safe to run twice: finished groups are returned."""
    groups = {name: group for name, group in groups_of(recipe).items() if name not in without}
    units = {name: group_unit(group, documents) for name, group in groups.items()}
    done = {name: Done(receipt, reused=True) for name, unit in units.items() if (receipt := store.receipt(unit))}
    missing = [group for name, group in groups.items() if name not in done]
    if not missing:
        return done
    begin()
    work = Pass(groups, missing, recipe)
    words = 0
    with ExitStack() as stack:
        writers = {g.name: stack.enter_context(store.table_writer(g.schema)) for g in missing}
        for batch in store.batches(documents.outputs["documents"], columns=["text"], batch_rows=BATCH_ROWS):
            for made in work.over(batch.column("text")):
                for name, writer in writers.items():
                    writer.write(made[name])
                if "measures" in writers:
                    words += pc.sum(made["measures"].column("word_total")).as_py() or 0
    for group in missing:
        counters = {"docs": documents.outputs["documents"].rows or 0}
        if group.name == "measures":
            counters["words"] = words
        receipt = store.commit(
            units[group.name],
            {group.name: writers[group.name].draft},
            counters=counters,
            facts={"locator": documents.facts["locator"]},
        )
        done[group.name] = Done(receipt, reused=False)
    return {name: done[name] for name in groups}


def group_unit(group: Group, documents: Receipt) -> Unit:
    """The unit of one attribute group of one shard."""
    return group.stage.unit({"group": group.name, **group.config}, (content_of(documents, "documents"),), group.models)


class Pass:
    """One pass over the text: the groups that are missing, and those that these are computed from."""

    def __init__(self, groups: Mapping[str, Group], missing: list[Group], recipe: Recipe) -> None:
        wanted = {group.name for group in missing}
        if any(group.view == "clean" for group in missing) and "edits" in groups:
            wanted.add("edits")  # made anew rather than read: it costs less than the text it is cut from
        self.floors = recipe.judge.floors if any(group.costly for group in missing) else {}
        if self.floors:
            wanted.add("measures")
        self.groups = [group for name, group in groups.items() if name in wanted]
        self.groups.sort(key=lambda group: group.costly)
        self.judges: dict[str, Judge] = {group.name: group.load() for group in self.groups}

    def over(self, text: pa.LargeStringArray) -> Iterator[dict[str, pa.RecordBatch]]:
        """What every group says of a batch of texts, by consecutive slices."""
        for _, part in slices(text):
            yield self._judged(part)

    def _judged(self, text: pa.LargeStringArray) -> dict[str, pa.RecordBatch]:
        made: dict[str, pa.RecordBatch] = {}
        clean = raw = Texts(text)
        for group in self.groups:
            texts = clean if group.view == "clean" else raw
            judge = self.judges[group.name]
            if group.costly and self.floors:
                made[group.name] = _spared(texts.text, judge, group.schema, above_floors(made["measures"], self.floors))
            else:
                made[group.name] = judge(texts)
            if group.name == "edits":
                cut = spans.apply(text, made["edits"].column("spans"))
                clean = raw if cut is text else Texts(cut)
        return made


def above_floors(measured: pa.RecordBatch, floors: Mapping[str, Floor]) -> np.ndarray:
    """bool[n]: which documents are within every floor."""
    within = np.ones(measured.num_rows, bool)
    for name, floor in sorted(floors.items()):
        values = measured.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
        within &= (values >= (-np.inf if floor.min is None else floor.min)) & (
            values <= (np.inf if floor.max is None else floor.max)
        )
    return within


def _spared(text: pa.LargeStringArray, judge: Judge, columns: pa.Schema, within: np.ndarray) -> pa.RecordBatch:
    """A judge's answer about the documents within the floors; null about the others."""
    rows = np.flatnonzero(within)
    answer = judge(Texts(text.take(pa.array(rows))))
    place = np.full(len(text), -1, np.int64)
    place[rows] = np.arange(len(rows))
    indices = pa.array(place, mask=~within)
    return pa.record_batch([column.take(indices) for column in answer.columns], schema=columns)
