"""Attribute groups: what is measured of every document, each group with its own key, view, model and kernel.

To add one: a kernel, a line in `groups_of`, and its columns in the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import plugins, schema
from corpusmill.config import Deduplicate, Own, Recipe
from corpusmill.errors import UsageError
from corpusmill.file_state import while_unchanged
from corpusmill.kernels.duplicates import minhash, text_digest
from corpusmill.kernels.language import identify
from corpusmill.kernels.measures import measures
from corpusmill.kernels.measures.families import MeasureSpec
from corpusmill.kernels.rules.rules import RuleSet
from corpusmill.kernels.words.plain_form import plain
from corpusmill.kernels.words.table import WordTable, word_table
from corpusmill.models import loading, model_digest, model_path
from corpusmill.rulebook import rules_of
from tasks import stages
from tasks.views import View


class Texts:
    """A few texts on their way through all judges, and their words, which are looked for once."""

    def __init__(self, text: pa.LargeStringArray) -> None:
        self.text = text

    def __len__(self) -> int:
        return len(self.text)

    @cached_property
    def words(self) -> WordTable:
        """The word table of the texts."""
        return word_table(self.text)


Judge = Callable[[Texts], pa.RecordBatch]


@dataclass(frozen=True)
class Group:
    """One attribute group of a recipe."""

    name: str
    schema: pa.Schema
    load: Callable[[], Judge]
    """The kernel, with its model in memory."""
    config: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    view: View = "raw"
    costly: bool = False
    """Whether documents outside a floor are spared; their values are null."""
    version: int | None = None

    @property
    def kind(self) -> str:
        """The name before its colon."""
        return self.name.partition(":")[0]

    @property
    def stage(self) -> stages.Stage:
        """Its part of stage `judge`, whose name all groups' units have: which one it is stands in their config."""
        if self.version is not None:
            return replace(stages.JUDGE, version=self.version)
        return replace(stages.JUDGE.part(self.kind), name=stages.JUDGE.name)


def digest_of_model(setting: str) -> str:
    """sha256 of the model file that a setting names."""
    return _digest(model_path(setting))


_digest = while_unchanged(16)(model_digest)


def groups_of(recipe: Recipe) -> dict[str, Group]:
    """The groups a recipe needs, in the order in which they are computed.

    Raises:
        NotFound: no such rules, model or function. UsageError: faults in them.
    """
    rules, judge = rules_of(recipe.filter.rules), recipe.judge
    clean: View = "clean" if rules.edits else "raw"
    edited = {"edits": rules.edits_digest, "edits_version": stages.JUDGE.part("edits").version} if rules.edits else {}
    floors = {name: floor.what() for name, floor in sorted(judge.floors.items())}
    spared = {"floors": floors, "measures_version": stages.JUDGE.part("measures").version} if floors else {}
    groups = [
        Group(
            "language",
            schema.LANGUAGE,
            lambda: _language(model_path(recipe.language.model)),
            models={"language": digest_of_model(recipe.language.model)},
        ),
        _measures_group("measures", rules.measured("raw", judge.floors), {}, "raw"),
        Group(
            "digests",
            schema.signature_group(recipe.deduplicate.num_perm),
            lambda: _fingerprints(recipe.deduplicate, recipe.seed),
            {**_shingling(recipe.deduplicate), "seed": recipe.seed, **edited},
            view=clean,
        ),
    ]
    if rules.edits:
        groups.insert(0, Group("edits", schema.EDITS, lambda: _line_edits(rules), edited))
        if rules.needs()["clean"]:
            groups.append(_measures_group("measures:clean", rules.measured("clean"), edited, "clean"))
    if kinds := judge.personal_data.kinds:
        reserved = judge.personal_data.reserved
        config = {"kinds": list(kinds), "reserved": reserved}
        groups.append(Group("pii", schema.pii_group(kinds), lambda: _personal_data(kinds, reserved), config))
    for name, setting in sorted(judge.quality.items()):
        groups.append(
            Group(
                f"quality:{name}",
                pa.schema([pa.field(f"quality_{name}_e6", pa.int32())]),
                partial(_scores, f"quality_{name}_e6", _classifier, setting.model),
                {**edited, **spared},
                {"quality": classifier_identity(model_path(setting.model))},
                clean,
                costly=True,
            )
        )
    if judge.perplexity is not None:
        groups.append(
            Group(
                "perplexity",
                schema.PERPLEXITY,
                partial(_scores, "perplexity_bits_e4", _perplexity, judge.perplexity.model),
                {**edited, **spared},
                {"perplexity": digest_of_model(judge.perplexity.model)},
                clean,
                costly=True,
            )
        )
    for name, own in sorted(judge.own.items()):
        groups.append(own_group(name, own, edited if own.view == "clean" else {}))
    return {group.name: group for group in groups}


def _measures_group(name: str, spec: MeasureSpec, edited: Mapping[str, Any], view: View) -> Group:
    return Group(
        name,
        spec.schema,
        lambda: lambda texts: measures.measures(texts.text, spec, texts.words),
        {**edited, **spec.config()},
        view=view,
    )


def model_digests(recipe: Recipe) -> dict[str, str]:
    """group -> sha256 of its model file."""
    return {name: digest for name, group in groups_of(recipe).items() for digest in group.models.values()}


def _shingling(dedup: Deduplicate) -> dict[str, Any]:
    other = dedup.shingle != "word" or dedup.fold_digits
    kind = {"shingle": dedup.shingle, "fold_digits": dedup.fold_digits} if other else {}
    return {"ngram": dedup.ngram, "num_perm": dedup.num_perm, **kind}


@while_unchanged(2)
def _language_model(path: Path) -> identify.LanguageModel:
    with loading(path):
        return identify.LanguageModel(path)


def _language(path: Path) -> Judge:
    model = _language_model(path)
    return lambda texts: model.identify(texts.text)


def _fingerprints(dedup: Deduplicate, seed: int) -> Judge:
    kind = minhash.Shingling(dedup.ngram, dedup.shingle, dedup.fold_digits)
    of_words = dedup.shingle == "word" and not dedup.fold_digits

    def of_plain(text: pa.LargeStringArray, words: WordTable) -> tuple[pa.Array, minhash.Signatures]:
        table = words if of_words else None
        made = minhash.signatures(text, ngram=kind.n, num_perm=dedup.num_perm, seed=seed, shingling=kind, table=table)
        return text_digest.text_digest(text, words), made

    def fingerprints(texts: Texts) -> pa.RecordBatch:
        digests, made = of_plain(texts.text, texts.words)
        forms, changed = plain(texts.text)
        if rows := list(changed):  # few: most texts are their plain form, whose words are known
            again = forms.take(pa.array(rows))
            others, (made.shingles[rows], made.signature[rows]) = of_plain(again, word_table(again))
            mask = np.zeros(len(texts), np.bool_)
            mask[rows] = True
            digests = pc.replace_with_mask(digests, pa.array(mask), others)
        packed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(4 * dedup.num_perm), len(texts), [None, pa.py_buffer(made.signature.astype("<u4").tobytes())]
        )
        return pa.record_batch(
            [digests, pa.array(made.shingles, pa.int32()), packed], schema=schema.signature_group(dedup.num_perm)
        )

    return fingerprints


def _line_edits(rules: RuleSet) -> Judge:
    from corpusmill.kernels.edits.lines import line_edits

    return lambda texts: line_edits(texts.text, rules.edits, texts.words)


def _personal_data(kinds: tuple[str, ...], reserved: bool) -> Judge:
    from corpusmill.kernels.pii.find import find

    return lambda texts: find(texts.text, kinds, reserved=reserved)


def _scores(column: str, load: Callable[[Path], Callable[[Any], pa.Array]], model: str) -> Judge:
    """A kernel of one int32 column whose model is a file."""
    score = load(model_path(model))
    return lambda texts: pa.record_batch([score(texts.text)], names=[column])


def _card(path: Path) -> Path:
    from corpusmill.kernels.quality.classifier import card_path

    return card_path(path)


@while_unchanged(16, _card)
def classifier_identity(path: Path) -> str:
    """sha256 of the model and of how its card says it is asked."""
    from corpusmill.kernels.quality.classifier import identity

    with loading(path):
        return identity(path)


@while_unchanged(4, _card)
def _classifier(path: Path) -> Callable[[Any], pa.Array]:
    from corpusmill.kernels.quality.classifier import Classifier

    with loading(path):
        return Classifier(path).scores_e6


@while_unchanged(2)
def _perplexity(path: Path) -> Callable[[Any], pa.Array]:
    from corpusmill.kernels.perplexity.score import Model

    with loading(path):
        return Model(path).log2_e4


def own_group(name: str, own: Own, edited: Mapping[str, Any]) -> Group:
    """A measure of the user's own as a group.

    Raises:
        NotFound: no such function. UsageError: its module has faults.
    """
    function = plugins.named(own.function)
    identity = {**plugins.identity(own.function.partition(":")[0]), "function": own.function}
    column = f"own_{name}"

    def judge(texts: Texts) -> pa.RecordBatch:
        text = texts.text
        try:
            values = pa.array(np.asarray(function(text), np.float64), from_pandas=True)
        except Exception as err:
            raise UsageError(
                f"{own.function} failed on a batch of {len(text)} texts",
                f"{type(err).__name__}: {err}",
                "Correct the function.",
            ) from err
        if len(values) != len(text):
            raise UsageError(
                f"{own.function} returned {len(values)} numbers for {len(text)} texts", "expected one number per text"
            )
        return pa.record_batch([values], names=[column])

    return Group(
        f"own:{name}",
        pa.schema([pa.field(column, pa.float64())]),
        lambda: judge,
        {**edited, "own": identity},
        view=own.view,
        version=identity["version"],
    )
