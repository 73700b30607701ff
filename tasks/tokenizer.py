"""The tokenizer of a dataset: given by the recipe, or trained.

It learns from extracted, unfiltered text of the wanted languages, so moving a rule's bound changes no token id.
A given one is read and tried before a page is: one that loses text, or does not say what ends a document, is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from corpusmill.canonical import sha256
from corpusmill.config import Recipe
from corpusmill.errors import NotFound, UsageError
from corpusmill.store import Receipt, Store, Unit
from corpusmill.tokens import encoders
from corpusmill.tokens.tokenizer import EOS, Tokenizer, train_tokenizer
from tasks import stages
from tasks.filter import in_languages
from tasks.shards import Shard
from tasks.units import Done, content_of, once

EXAMPLES = 3
"""Texts that do not come back which a receipt keeps as examples."""


def given(recipe: Recipe, store: Store) -> Done | None:
    """The tokenizer that the recipe gives, once it is read and tried; None where one is to be trained.

    Its output `tokenizer` is a tokenizer.json; facts give vocab_size, eos, eos_id, and `changed`: how many sample texts
    do not come back from their tokens, with examples.

    Raises:
        NotFound: there is no such file.
        UsageError: it is no tokenizer, does not have the token that ends a document, loses text and the recipe does
            not say that it may, or is not one for the encoder that the recipe names.
        Unavailable: that encoder is not installed.
    """
    if recipe.pack.tokenizer is None:
        encoders.libraries(recipe.pack.encoder)
        return None
    data = _read(recipe)
    config = {"given": sha256(data)} | ({"eos": recipe.pack.eos} if recipe.pack.eos else {})
    unit = stages.TOKENIZER.unit(config)

    def work() -> Receipt:
        read = Tokenizer(data, recipe.pack.eos)
        changed = read.changed()
        facts = {"texts": len(changed), "examples": [list(pair) for pair in changed[:EXAMPLES]]}
        _check_lossless(facts, recipe)
        return _commit(unit, data, read, store, facts={"changed": facts})

    done = once(store, unit, work)
    facts: dict[str, Any] = dict(done.receipt.facts)
    _check_lossless(facts["changed"], recipe)  # which another recipe may have accepted
    encoders.encoder(recipe.pack.encoder, Tokenizer(data, recipe.pack.eos))
    return done


def check(recipe: Recipe) -> None:
    """Read and try the tokenizer that the recipe gives, if it gives one; nothing is written.

    Raises:
        as `given`.
    """
    encoders.libraries(recipe.pack.encoder)
    if recipe.pack.tokenizer is not None:
        tokenizer = Tokenizer(_read(recipe), recipe.pack.eos)
        changed = tokenizer.changed()
        _check_lossless({"texts": len(changed), "examples": changed[:1]}, recipe)
        encoders.encoder(recipe.pack.encoder, tokenizer)


def trained(shards: Sequence[Shard], recipe: Recipe, store: Store) -> Done:
    """The tokenizer that is trained: output and facts as those of a given one, which loses no text."""
    config = {
        "vocab_size": recipe.pack.vocab_size,
        "sample_bytes": recipe.pack.sample_bytes,
        "languages": recipe.language.what(),
        "seed": recipe.seed,
    } | ({"eos": recipe.pack.eos} if recipe.pack.eos else {})
    inputs = tuple(
        content
        for shard in shards
        for content in (*shard.view_inputs("final"), content_of(shard.groups["language"], "language"))
    )
    unit = stages.TOKENIZER.unit(config, inputs)

    def work() -> Receipt:
        texts, eos = _sample(shards, recipe, store), recipe.pack.eos or EOS
        data = train_tokenizer(texts, recipe.pack.vocab_size, eos)
        return _commit(unit, data, Tokenizer(data, eos), store, sampled=len(texts))

    return once(store, unit, work)


def _read(recipe: Recipe) -> bytes:
    named = str(recipe.pack.tokenizer)  # as it is written: a path makes one slash of two
    file = Path(named)
    if not file.is_file():
        inside = file / "tokenizer.json"
        raise NotFound(
            f"no tokenizer {named}{': it is a folder' if file.is_dir() else ''}",
            "pack.tokenizer names a tokenizer.json on this machine",
            f"Did you mean {inside}?"
            if inside.is_file()
            else "Check the path, or remove the key to train a tokenizer.",
        )
    return file.read_bytes()


def _check_lossless(changed: Mapping[str, Any], recipe: Recipe) -> None:
    if not changed["texts"] or recipe.pack.lossy:
        return
    text, back = (value if len(value) <= 100 else value[:100] + "…" for value in changed["examples"][0])
    raise UsageError(
        f"the tokenizer {recipe.pack.tokenizer} loses text: {text!r} comes back from its tokens as {back!r}",
        f"{changed['texts']} of the texts that are tried before a build come back changed",
        "Use a tokenizer without a normaliser that loses text (such as NFKC, lower case, strip accents), or accept the "
        "loss: pack.lossy = true.",
    )


def _commit(
    unit: Unit, data: bytes, read: Tokenizer, store: Store, sampled: int = 0, facts: Mapping[str, object] = {}
) -> Receipt:
    return store.commit(
        unit,
        {"tokenizer": store.draft_bytes(data)},
        counters={"sampled_documents": sampled},
        facts={"vocab_size": read.vocab_size, "eos": read.eos, "eos_id": read.eos_id, **facts},
        versions=dict(unit.libraries),
    )


def _sample(shards: Sequence[Shard], recipe: Recipe, store: Store) -> list[str]:
    """Texts with the smallest keyed hash of doc_id, in that order, until sample_bytes are full."""
    key = f"tokenizer|{recipe.seed}".encode()
    candidates: list[tuple[bytes, int, int, int]] = []
    for number, shard in enumerate(shards):
        ids = store.table(shard.documents.outputs["documents"], columns=["doc_id"]).column("doc_id").to_pylist()
        sizes = store.table(shard.attribute("measures"), columns=["text_bytes"]).column("text_bytes").to_pylist()
        spoken = store.table(shard.attribute("language"))
        wanted = pc.and_(
            in_languages(spoken.column("language"), recipe.language.keep),
            pc.greater_equal(spoken.column("language_score_e4"), round(recipe.language.min_score * 10_000)),
        ).to_pylist()
        for row, doc_id in enumerate(ids):
            if wanted[row]:
                order = hashlib.blake2b(doc_id, digest_size=16, key=key).digest()
                candidates.append((order, number, row, sizes[row]))
    candidates.sort()
    total, chosen = 0, []
    for order, number, row, size in candidates:
        if total >= recipe.pack.sample_bytes:
            break
        chosen.append((order, number, row))
        total += size
    found: dict[tuple[int, int], str] = {}
    for number, shard in enumerate(shards):
        rows = np.array(sorted(row for _, n, row in chosen if n == number), np.int64)
        for row, text in zip(rows.tolist(), shard.texts(rows, store, view="final").to_pylist(), strict=True):
            found[number, row] = text
    return [found[number, row] for _, number, row in chosen]
