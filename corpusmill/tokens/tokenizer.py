"""Tokenizers: byte-level BPE that we train, and a tokenizer.json that is given, both read so that a page is only text.

Byte-level BPE: Sennrich et al. 2016 (arXiv:1508.07909) over bytes as in GPT-2, by the library `tokenizers`.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.errors import UsageError
from corpusmill.tokens import round_trip

Tokens = NDArray[np.unsignedinteger]

EOS = "<|endoftext|>"
"""End of a document in the tokenizers that we train, unless the recipe names another; its id is 0."""

KNOWN_EOS = (EOS, "<|end_of_text|>", "</s>", "<eos>", "[EOS]")
"""Names under which given tokenizers have it, unless the recipe names theirs."""

MAX_TRAINED_RUN = 256
"""Longer runs of letters, digits, spaces or symbols are cut off in training: each merge would walk all of them."""

ENCODE_BYTES = 1 << 21
"""Texts are encoded in batches of about this many characters: the library holds some 80 bytes a token meanwhile."""

NAMES_TRIED = 256
"""Names of added tokens that are tried as text; some tokenizers have thousands, all made alike."""

_RUN = MAX_TRAINED_RUN + 1
_LONG_RUN = re.compile(rf"[^\W\d_]{{{_RUN},}}|\d{{{_RUN},}}|\s{{{_RUN},}}|(?:[^\w\s]|_){{{_RUN},}}")
_LONG_SPACE = re.compile(rf"\s\s{{{MAX_TRAINED_RUN},}}")  # a first character of its own is found four times faster


def train_tokenizer(texts: Iterable[str], vocab_size: int, eos: str = EOS) -> bytes:
    """Train byte-level BPE: a tokenizer.json.

    The same texts give the same bytes, in any order and with any number of threads.

    Args:
        texts: the sample.
        vocab_size: tokens at most, with the 256 bytes and EOS; a small sample may give fewer.
        eos: name of the token that ends a document; two characters or more, since each byte has a token of one.
    """
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, trainers

    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[eos],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(map(_without_long_runs, texts), trainer)
    return tokenizer.to_str().encode("utf-8")


class Tokenizer:
    """A tokenizer.json, ready to encode documents: the same ids each time, and no added token but the final EOS.

    What a document spells is text, also where it spells an added token, special or not.
    """

    def __init__(self, data: bytes, eos: str | None = None) -> None:
        """Load a tokenizer.json.

        Args:
            data: the file.
            eos: name of the token that ends a document; None: the first of KNOWN_EOS among its added tokens.

        Raises:
            UsageError: the file is no tokenizer, or has no such token.
        """
        import tokenizers  # not above: readers of shards, and builds with nothing to do, do without

        try:
            given = json.loads(data)
            names = [str(token["content"]) for token in given["added_tokens"]]
            special = {str(token["content"]) for token in given["added_tokens"] if token["special"]}
            pieces = _pieces(given["model"])
        except Exception as err:
            raise _unreadable(err) from err
        self.eos = _end_of_text(eos, names, pieces)
        try:
            hidden = _plain_text_only(given, self.eos)
            self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(given))
        except Exception as err:  # the library raises bare Exception
            raise _unreadable(err) from err
        self._tokenizer.encode_special_tokens = True  # text that looks like a special token is text
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values()) + 1
        self.eos_id: int = vocabulary[hidden.get(self.eos, self.eos)]
        self.dtype = np.dtype("<u2" if self.vocab_size <= 65_535 else "<u4")
        self._names = sorted(name for name in {*names, self.eos} if name)
        self.special_names = sorted(name for name in {*special, self.eos} if name)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokens of each document, EOS last; none at all where the text gives none."""
        encoded: list[Tokens] = []
        for batch in _batches(texts, ENCODE_BYTES):
            for encoding in self._tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                ids = encoding.ids
                encoded.append(np.array([*ids, self.eos_id] if ids else ids, self.dtype))
        return encoded

    def decode(self, ids: Iterable[int]) -> str:
        """Text of tokens; EOS leaves none."""
        return self._tokenizer.decode([int(i) for i in ids if i != self.eos_id], skip_special_tokens=False)

    def without_added_tokens(self) -> str:
        """A tokenizer.json for which every text is only text: as it is encoded here, without added tokens."""
        described = json.loads(self._tokenizer.to_str())
        described["added_tokens"] = []
        return json.dumps(described)

    def has_special_text(self, text: str) -> bool:
        """Whether a document spells one of the tokenizer's added tokens; `encode` takes it as text."""
        return any(name in text for name in self._names)

    def changed(self) -> list[tuple[str, str]]:
        """Sample texts that do not come back from their tokens, each with what came back.

        Two things are no change: one space at the beginning, which many tokenizers put there, and another form of the
        same characters (NFC and NFD: é as one character or as two).
        """
        texts = (*round_trip.SAMPLES, *(f"A page says {name} here." for name in self._names[:NAMES_TRIED]))
        found = []
        for text, ids in zip(texts, self.encode(texts), strict=True):
            back = self.decode(ids.tolist())
            if _same_for_readers(text) != _same_for_readers(back):
                found.append((text, back))
        return found


def _same_for_readers(text: str) -> str:
    return unicodedata.normalize("NFC", text.removeprefix(" "))


def _pieces(model: Any) -> set[str]:
    """What the vocabulary of a model holds; Unigram's is a list of pieces with scores."""
    vocabulary = model["vocab"]
    return set(vocabulary) if isinstance(vocabulary, dict) else {piece for piece, _ in vocabulary}


def _end_of_text(eos: str | None, names: Sequence[str], pieces: set[str]) -> str:
    """The name of the token that ends a document."""
    if eos is None:
        for name in KNOWN_EOS:
            if name in names:
                return name
        raise UsageError(
            "the tokenizer has no end-of-text token of a known name",
            f"its added tokens are {_some(names)}; known names: {', '.join(KNOWN_EOS)}",
            'Name the one that ends a document: pack.eos = "..."; or remove pack.tokenizer to train one.',
        )
    if eos in names or eos in pieces:
        return eos
    near = difflib.get_close_matches(eos, names, n=1)
    raise UsageError(
        f"the tokenizer has no token {eos!r}, which pack.eos names" + (f"; did you mean {near[0]!r}?" if near else ""),
        f"its added tokens are {_some(names)}",
        "Give the name as it stands in tokenizer.json.",
    )


def _some(names: Sequence[str], most: int = 10) -> str:
    """Some of these names, those first that look like an end."""
    looks = re.compile(r"end|eo[sdt]|stop|sep|/s", re.IGNORECASE)
    ordered = sorted(names, key=lambda name: not looks.search(name))
    shown = ", ".join(map(repr, ordered[:most])) or "none"
    return shown + (f", and {len(names) - most:,} more" if len(names) > most else "")


def _plain_text_only(given: dict[str, Any], eos: str) -> dict[str, str]:
    """Change a parsed tokenizer.json so that it encodes texts as they are; ids stay what they were.

    Off: dropout (other ids each time), truncation, padding, templates. Added tokens are all special, which
    `encode_special_tokens` skips. That is not enough where the model itself knows their names: a Unigram model holds
    `</s>` as its best piece, a BPE model with `ignore_merges` takes a whole word. There the name is hidden.

    Returns:
        the new name of each token whose name was hidden.
    """
    model, added = given["model"], given["added_tokens"]
    if model.get("dropout") is not None:
        model["dropout"] = None
    given["truncation"] = given["padding"] = given["post_processor"] = None
    vocabulary = model["vocab"]
    if eos not in {token["content"] for token in added}:
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        added.append({"id": _number_of(eos, vocabulary), "content": eos, **flags, "special": True})
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model.get("merges") or ()]
    prefix = model.get("continuing_subword_prefix") or ""
    made = {left + right.removeprefix(prefix) for left, right in merges}
    pieces = _pieces(model)
    # What merges make, such as a run of line breaks, and one character alone are ordinary pieces too, unless special.
    control = {token["content"] for token in added if token["special"]} | {eos}
    known = {token["content"] for token in added if token["content"] in pieces}
    ordinary = {name for name in known if name in made or len(name) == 1} - control
    hidden = {name: f"\0added token {name}\0" for name in known - ordinary}
    for token in added:
        token["special"] = True
        token["content"] = hidden.get(token["content"], token["content"])
    if isinstance(vocabulary, dict):
        model["vocab"] = {hidden.get(piece, piece): number for piece, number in vocabulary.items()}
    else:
        model["vocab"] = [[hidden.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") in hidden:
        model["unk_token"] = hidden[model["unk_token"]]
    if not made.isdisjoint(hidden):
        triples = ((left, right, left + right.removeprefix(prefix)) for left, right in merges)
        model["merges"] = [
            [left, right] for left, right, both in triples if hidden.keys().isdisjoint((left, right, both))
        ]
    return hidden


def _number_of(piece: str, vocabulary: Any) -> int:
    if isinstance(vocabulary, dict):
        return int(vocabulary[piece])
    return next(number for number, (name, _) in enumerate(vocabulary) if name == piece)


def _unreadable(err: Exception) -> UsageError:
    return UsageError("the tokenizer file cannot be read", f"{type(err).__name__}: {err}", "Expected a tokenizer.json.")


def _without_long_runs(text: str) -> str:
    """The text with long runs cut off. Nearly all texts have none, and that is seen in a tenth of the time."""
    has_none = max(map(len, text.split()), default=0) <= MAX_TRAINED_RUN and not _LONG_SPACE.search(text)
    return text if has_none else _LONG_RUN.sub(_cut, text)


def _cut(run: re.Match[str]) -> str:
    return run.group()[:MAX_TRAINED_RUN]


def _batches(texts: Sequence[str], limit: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > limit:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
