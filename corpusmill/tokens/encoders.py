"""Encoders of documents: tokie, 13 to 23 times faster than `tokenizers`, gives the same ids or ends the unit.

tokie 0.1.4 splits some texts otherwise than tokenizers 0.23.3 (docs/notes/packing.md says which). That shows in ids
only where the vocabulary has a token over the boundary. So tokie is used where no token has one but parts of
contractions, and texts with what is left, or with the name of a special token, go to `tokenizers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from corpusmill.errors import MillError, Unavailable, UsageError
from corpusmill.store.scratch import temporary_folder
from corpusmill.tokens import round_trip
from corpusmill.tokens.tokenizer import Tokenizer, Tokens

COMPARED_ONE_IN = 1_000
"""One document of so many is encoded by both, counted over all that one encoder is given; the first one always is."""

# Characters whose class differs: those classed after Unicode 15.0, circled and squared letters, and numbers that are
# letters (Roman numerals). Found by trying all code points; the long tests try them again.
_BASIC = (
    "\u088f\u0897\u0c5c\u0cdc\u16ee-\u16f0\u2160-\u2182\u2185-\u2188\u24b6-\u24e9\u3007\u3021-\u3029\u3038-\u303a"
    "\ua6e6-\ua6ef\ua7ce\ua7cf\ua7d2\ua7d4\ua7f1"
)
_BEYOND = (
    "\U00010140-\U00010174\U00010341\U0001034a\U000103d1-\U000103d5\U00012400-\U0001246e"
    "\U00010940-\U00010959\U00010d69\U00010ec5-\U00010ec7\U00010efa-\U00010efc\U000113b8-\U000113ca\U000113cc-\U000113cd"
    "\U00011b60-\U00011b67\U00011db0-\U00011ddb\U00011de0-\U00011de9\U0001611e-\U0001612e\U00016ea0-\U00016eb8"
    "\U00016ebb-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff\U00018d09-\U00018d1e\U00018d80-\U00018df2"
    "\U0001e6c0-\U0001e6ff\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189\U0002b73a-\U0002b73f"
    "\U0002cea2-\U0002cead\U000323b0-\U00033479"
)
_MAYBE = re.compile(f"[{_BASIC}\U00010000-\U0010ffff]")  # one table: three times as fast as all the ranges
_CLASSED_OTHERWISE = re.compile(f"[{_BASIC}{_BEYOND}]")

_PART = re.compile("'(?:l(?!l)|[rv](?!e))")  # of 'll, 're, 've
_WORD_END = re.compile("[ \\n]")

_BLANKS = "\t\n\v\f\r \x1c\x85\u00a0\u2028\u3000"
PROBES = (
    *round_trip.SAMPLES,
    *(f"x{a}{b}{c}" for a in _BLANKS for b in _BLANKS for c in ("x", "1", ".", "'s")),
    *(f"We{mark}s we{mark}LL{a}{mark}ve don{mark}T" for mark in "'’" for a in ("", *_BLANKS)),
    *("7" * n + "a" * n + "!" * n + " " * n + "\n" * n + "é漢ก🙂" for n in range(1, 10)),
)
"""Texts that a tokenizer must encode alike in both before tokie encodes a document with it."""


class Differ(MillError):
    """The ids of a document differ; `number` is its place among the texts given."""

    number = 0


class Encoder(Protocol):
    """Tokens of documents."""

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """As `Tokenizer.encode`."""
        ...


def encoder(name: str, tokenizer: Tokenizer) -> Encoder:
    """The encoder that `pack.encoder` names.

    Raises:
        Unavailable: tokie is not installed.
        UsageError: tokie does not read this tokenizer, or gives other ids than `tokenizers`.
    """
    return Tokie(tokenizer) if name == "tokie" else tokenizer


def libraries(name: str) -> tuple[str, ...]:
    """Those whose release affects the ids.

    Raises:
        Unavailable: one is not installed.
    """
    if name == "tokie":
        _tokie()
    return ("tokenizers",) if name == "tokenizers" else ("tokenizers", name)


class Tokie:
    """Documents encoded by tokie, one in a thousand by `tokenizers` too.

    The library has no way to take the name of an added token as text, so it is given none: the caller's texts are text.
    """

    def __init__(self, tokenizer: Tokenizer, *, tried: bool = True) -> None:
        """Load a tokenizer and try it on PROBES, unless told not to; raises as `encoder`."""
        library = _tokie()
        if tried:
            _check_splits(tokenizer)
        self._exact = tokenizer
        self._seen = 0
        self._spells = _finder(tokenizer.special_names)
        with temporary_folder() as folder:
            file = folder / "tokenizer.json"
            file.write_text(tokenizer.without_added_tokens(), encoding="utf-8")
            try:
                self._fast = library.Tokenizer.from_json(str(file))
                found = self._fast_ids(PROBES if tried else ())
            except Exception as err:  # of its own class
                raise _unfit(f"tokie cannot read it: {type(err).__name__}: {err}") from err
        for text, fast, exact in zip(PROBES, found, tokenizer.encode(PROBES), strict=True) if tried else ():
            if not self._is_routed(text) and len(_pieces(text)) == 1 and not np.array_equal(fast, exact):
                raise _unfit(f"tokie gives other ids than tokenizers: {text!r} becomes {_at(fast, exact)}")

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokens of each document, EOS last; none at all where the text gives none.

        Raises:
            Differ: the ids of a compared document do.
        """
        cut = [((True, text),) if self._is_routed(text) else _pieces(text) for text in texts]
        compared = range(-self._seen % COMPARED_ONE_IN, len(texts), COMPARED_ONE_IN)
        given = [[piece for parts in cut for other, piece in parts if other == exact] for exact in (False, True)]
        found = iter(self._fast_ids(given[False])), iter(self._exact.encode(given[True]))
        out = [_joined([next(found[other]) for other, _ in parts]) for parts in cut]
        exact = dict(zip(compared, self._exact.encode([texts[number] for number in compared]), strict=True))
        for number in compared:
            if not np.array_equal(out[number], exact[number]):
                error = Differ(
                    f"tokie and tokenizers differ in the text that begins {texts[number][:60]!r}",
                    f"{_at(out[number], exact[number])}; one document in {COMPARED_ONE_IN:,} is encoded by both",
                    'Nothing of its window was stored. Set pack.encoder = "tokenizers", and please report this.',
                )
                error.number = number
                raise error
        self._seen += len(texts)
        return out

    def _is_routed(self, text: str) -> bool:
        """Whether tokie may differ: what is looked for is as cheap as it can be, since it is asked of each document."""
        if "\v" in text or "\f" in text or "\t'" in text or self._spells(text):
            return True
        return not text.isascii() and bool(_MAYBE.search(text)) and bool(_CLASSED_OTHERWISE.search(text))

    def _fast_ids(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokens of texts, EOS last."""
        if not texts:
            return []
        ids, lengths = self._fast.encode_batch_flat(list(texts), add_special_tokens=False)
        narrow, eos = ids.astype(self._exact.dtype), np.array([self._exact.eos_id], self._exact.dtype)
        ends = list(accumulate(lengths.tolist()))
        return [
            np.concatenate([narrow[begin:end], eos]) if end > begin else narrow[begin:end]
            for begin, end in zip([0, *ends[:-1]], ends, strict=True)
        ]


def _pieces(text: str) -> tuple[tuple[bool, str], ...]:
    """A text cut around words with what tokie may read as a contraction: (whether it is such a word, the piece).

    A word goes from the last space or line feed before it, with that, to the next one. The splitter of GPT-2 ends a
    piece at both places and looks no further back, so the pieces have the tokens of the whole: of blanks before a word
    the last one stands alone or with the word, the rest is one piece, as it is where a text ends.
    """
    found = _PART.search(text)
    if not found:
        return ((False, text),)
    parts, done = [], 0
    while found:
        begin = max(text.rfind(" ", done, found.start()), text.rfind("\n", done, found.start()), done)
        end = _WORD_END.search(text, found.end())
        parts += [(False, text[done:begin])] * (begin > done)
        done = end.start() if end else len(text)
        parts.append((True, text[begin:done]))
        found = _PART.search(text, done)
    return (*parts, *[(False, text[done:])] * (done < len(text)))


def _joined(parts: Sequence[Tokens]) -> Tokens:
    """The tokens of a text's pieces, of which each ends with EOS if it has any."""
    if len(parts) == 1:
        return parts[0]
    some = [part for part in parts if len(part)]
    return np.concatenate([part[:-1] for part in some[:-1]] + some[-1:]) if some else parts[0]


def _check_splits(tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer for which the differences may be others than those that are known."""
    from tokenizers import decoders, pre_tokenizers

    described = json.loads(tokenizer.without_added_tokens())
    model, splitter = described["model"], described["pre_tokenizer"] or {}
    if model["type"] != "BPE" or described["normalizer"] or splitter.get("type") != "ByteLevel":
        raise _unfit("it is used for byte-level BPE split as in GPT-2, without a normaliser")
    if not splitter.get("use_regex", True) or splitter["add_prefix_space"] or model.get("ignore_merges"):
        raise _unfit("it is used for byte-level BPE split as in GPT-2, with nothing added or left out")
    split, whole = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    for token in model["vocab"]:
        text = whole.decode([token])
        if "\ufffd" in text or token.startswith("\0") or _PART.fullmatch(text):
            continue  # bytes of a character, a hidden name, and what is looked for in every text
        if len(pieces := split.pre_tokenize_str(text)) > 1:
            raise _unfit(f"its token {text!r} is over a boundary of its own splitter, which gives {len(pieces)} pieces")


def _finder(names: Sequence[str]) -> Callable[[str], bool]:
    """Whether a text has one of these names; 257 names take no longer than one."""
    import ahocorasick_rs

    if not names:
        return lambda text: False
    compiled = ahocorasick_rs.AhoCorasick(list(names), store_patterns=False)
    return lambda text: bool(compiled.find_matches_as_indexes(text))


def _tokie() -> Any:  # the module, which has no types
    try:
        import tokie
    except ImportError as err:
        raise Unavailable(
            f"the encoder tokie cannot be imported: {err}",
            'pack.encoder is "tokie", and the other one is never taken silently',
            'pip install tokie, or set pack.encoder = "tokenizers": the same ids for 13 to 23 times the CPU.',
        ) from err
    return tokie


def _unfit(why: str) -> UsageError:
    return UsageError(
        "the encoder tokie does not fit this tokenizer",
        why,
        'Set pack.encoder = "tokenizers".',
    )


def _at(fast: Tokens, exact: Tokens) -> str:
    """Where two lists of ids part."""
    shared = min(len(fast), len(exact))
    position = int(np.argmax(np.append(fast[:shared] != exact[:shared], True)))
    return (
        f"from position {position:,} on {fast[position : position + 4].tolist()} by tokie, "
        f"{exact[position : position + 4].tolist()} by tokenizers"
    )
