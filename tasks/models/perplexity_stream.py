"""Text as a stream of numbered words on disk, for training a language model.

Arrays as long as the text or its n-grams are files, mapped into memory and let go of block by block.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.errors import UsageError
from corpusmill.kernels.perplexity.counts import BEGIN_ID, FIRST_WORD
from corpusmill.kernels.perplexity.estimate import move_words, number_words
from corpusmill.kernels.perplexity.tokens import BEGIN, BEGIN_TEXT, END, END_TEXT, sentences, words_of
from corpusmill.kernels.words.table import word_table

BATCH_CHARS = 1 << 20


class Scratch:
    """Arrays as files that are gone when nobody holds them any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._maps: list[weakref.ref[np.memmap]] = []

    def array(self, length: int, dtype: Any) -> NDArray:
        """Zeros."""
        if length == 0:
            return np.zeros(0, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            file.truncate(length * np.dtype(dtype).itemsize)
            made = np.memmap(file, dtype, "r+", shape=(length,))
        self._maps = [*(ref for ref in self._maps if ref() is not None), weakref.ref(made)]
        return np.asarray(made)

    def release(self) -> None:
        """Let go of the memory that arrays take; what they hold is in their files, and comes back when it is read."""
        for ref in self._maps:
            if (held := ref()) is not None and hasattr(mmap, "MADV_DONTNEED"):
                held._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Stream:
    """A tokenised text."""

    tokens: NDArray[np.uint32]
    hashes: NDArray[np.uint64]
    """Hash of each word by its id."""
    spelling: list[str]
    """Words by id, where they are wanted."""
    facts: dict[str, Any]


class Vocabulary:
    """Words by their hash, numbered as they come."""

    def __init__(self) -> None:
        self.known = 0
        self._hashes = [np.array([0, BEGIN, END], np.uint64)]
        self._slot_hash, self._slot_id = np.zeros(1 << 16, np.uint64), np.zeros(1 << 16, np.uint32)
        marks = np.array([BEGIN, END], np.uint64)
        number_words(marks, self._slot_hash, self._slot_id, BEGIN_ID - FIRST_WORD, *_room(2))

    def ids(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Ids of words, and the places of those that are new."""
        size = len(self._slot_hash)
        while 2 * (self.known + len(hashes) + 2) > size:
            size *= 2
        if size > len(self._slot_hash):
            slot_hash, slot_id = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
            move_words(self._slot_hash, self._slot_id, slot_hash, slot_id)
            self._slot_hash, self._slot_id = slot_hash, slot_id
        ids, new = _room(len(hashes))
        found = number_words(hashes, self._slot_hash, self._slot_id, self.known, ids, new)
        self.known += found
        self._hashes.append(hashes[new[:found]])
        return ids, new[:found]

    def hashes(self) -> NDArray[np.uint64]:
        """Hash of each word by its id."""
        return np.concatenate(self._hashes)


def _room(n: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    return np.empty(n, np.uint32), np.empty(n, np.int64)


def tokenized(texts: Iterable[str], scratch: Scratch, spell: bool) -> Stream:
    """The token stream of some texts.

    Args:
        spell: keep the spelling of words.
    """
    vocabulary, spelling = Vocabulary(), ["", BEGIN_TEXT, END_TEXT]
    known, documents, lines, size = hashlib.sha256(), 0, 0, 0
    path = scratch.folder / "tokens"
    with path.open("wb") as file:
        for batch, begun in _batches(texts):
            documents += begun
            text = pa.array(batch, pa.large_string())
            table = word_table(text)
            found = sentences(text, table)
            ids, new = vocabulary.ids(found.hashes)
            if spell:
                spelling += words_of(text, table, found.token[new])
            known.update(found.hashes.astype("<u8").tobytes())
            lines += int((found.hashes == BEGIN).sum())
            size += len(ids)
            file.write(ids.tobytes())
    if not size:
        raise UsageError("no word in the texts", f"{documents:,} documents given", "Check the files and --field.")
    if size >= 2**32:
        raise UsageError(f"too much text: {size:,} tokens", f"at most {2**32 - 1:,}", "Train on a sample.")
    facts = {
        "documents": documents,
        "sentences": lines,
        "words": size - 2 * lines,
        "vocabulary": vocabulary.known,
        "sha256": known.hexdigest(),
    }
    tokens = np.asarray(np.memmap(path, np.uint32, "r"))
    path.unlink()
    return Stream(tokens, vocabulary.hashes(), spelling, facts)


def _batches(texts: Iterable[str]) -> Iterator[tuple[list[str], int]]:
    """Batches of about BATCH_CHARS, and how many texts begin in each."""
    batch: list[str] = []
    size = begun = 0
    for text in texts:
        begun += 1
        for piece in _pieces(text):
            batch.append(piece)
            size += len(piece)
            if size >= BATCH_CHARS:
                yield batch, begun
                batch, size, begun = [], 0, 0
    if batch:
        yield batch, begun


def _pieces(text: str) -> Iterator[str]:
    """A text, cut at newlines where it is long."""
    begin = 0
    while len(text) - begin > BATCH_CHARS and (end := text.find("\n", begin + BATCH_CHARS)) >= 0:
        yield text[begin:end]
        begin = end
    yield text[begin:]
