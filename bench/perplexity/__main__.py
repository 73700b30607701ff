"""Memory and CPU of training a language model on a large text: 1 GB by default, under 4 GB of memory.

The text is made from those of `bench/texts.py` by a seeded walk. It follows a text word by word; after each word it may
go on behind another occurrence of the same word; and in the place of a word it may put one drawn by a Pitman-Yor
process: an earlier draw again, or, with probability (D W + 1) / (n + 1) after n draws of W words, a new one. The
vocabulary of that grows with n ** D, as that of natural text does with a power of its length. So there are ever more
different n-grams, which copies of the texts would not have; the report shows them by length.

Training runs in a process of its own, whose largest resident set is what counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from bench.common import arguments, judged, note, report, run
from bench.texts import texts
from corpusmill.plain_text import table
from corpusmill.processes import peak_bytes

MB = 1000
QUICK_MB = 10
SEED = 17
T = TypeVar("T")

LEAVE, DRAWN, GROWTH = 0.25, 0.1, 0.8
"""Chance to go on elsewhere after a word; that a drawn word takes a word's place; D of the growth. With them 10 MB have
about as many different n-grams as as much real text (docs/notes/perplexity.md)."""
WORDS = 1 << 20
"""Words that are made at a time."""
LINE_END = 0


def main(argv: Sequence[str]) -> int:
    """Make the text, train, print, and say whether the floor holds."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--mb", type=int, help=f"megabytes of text; {MB} by default")
    parser.add_argument("--keep", type=Path, help="a folder for the text and the model, which stay there")
    options = parser.parse_args(argv)
    size = (options.mb or (QUICK_MB if options.quick else MB)) * 10**6
    with tempfile.TemporaryDirectory(prefix="bench-perplexity-") as folder:
        work = options.keep or Path(folder)
        text = work / "text.txt"
        note(f"making {size / 1e6:,.0f} MB of text")
        alone(write, text, size)
        note("training")
        found = alone(train, text, work / "model")
    seen, words = found["card"]["ngrams"]["seen"], found["card"]["data"]["words"]
    rows = [(k, f"{n:,}", f"{n / words:.3f}") for k, n in enumerate(seen, 1)]
    shown = "\n\n".join(
        (
            table(("words", "different n-grams", "a word"), rows, (0, 1, 2)),
            f"{words:,} words, {found['card']['data']['sentences']:,} lines, {sum(seen):,} different n-grams",
            f"{found['cpu_s']:,.0f} CPU seconds, {found['peak'] / 1e9:.2f} GB of memory at most",
        )
    )
    ratios = {"train_memory": 4e9 / found["peak"]} if size >= MB * 10**6 else {}
    return report({"subject": "perplexity", "bytes": size, **found}, shown, judged("perplexity", ratios), options.json)


def alone(work: Callable[..., T], *args: Any) -> T:
    """The result of a function, called in a process of its own, so that memory is that of this work."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def train(text: Path, model: Path) -> dict[str, Any]:
    """The card of a model, and the CPU seconds and the most memory of this process."""
    from tasks.models import corpus, perplexity

    began = time.process_time()
    card = perplexity.train(corpus.texts([str(text)], "", by_line=True), model)
    return {"card": card, "cpu_s": round(time.process_time() - began, 1), "peak": peak_bytes()}


def write(path: Path, size: int) -> None:
    """Write about a given number of bytes of text."""
    spelling = [""]
    known: dict[str, int] = {}
    source = []
    for text in texts():
        for line in text.split("\n"):
            for word in line.split():
                source.append(known.setdefault(word, len(spelling)))
                if source[-1] == len(spelling):
                    spelling.append(word)
            source.append(LINE_END)
    walk = Walk(np.array(source, np.int64), len(spelling))
    made = 0
    with path.open("w", encoding="utf-8") as file:
        while made < size:
            words = [spelling[i] if i < len(spelling) else spelled(i) for i in walk.words(WORDS).tolist()]
            made += file.write(" ".join(words).replace("  ", "\n"))


class Walk:
    """The seeded walk through a source, as word numbers; drawn words have numbers from `known` on."""

    def __init__(self, source: NDArray[np.int64], known: int) -> None:
        self._source = source
        self._order = np.argsort(source, kind="stable")
        self._begins = np.searchsorted(source[self._order], np.arange(known + 1))
        self._drawn, self._state = np.zeros(1 << 20, np.int64), np.array([0, 0, known])
        _seed(SEED)

    def words(self, number: int) -> NDArray[np.int64]:
        """The next words, a given number."""
        if self._state[1] + number > len(self._drawn):
            self._drawn = np.concatenate([self._drawn, np.zeros_like(self._drawn)])
        out = np.empty(number, np.int64)
        _walk(self._source, self._order, self._begins, self._drawn, self._state, out)
        return out


@numba.njit
def _seed(seed: int) -> None:
    np.random.seed(seed)


@numba.njit
def _walk(
    source: NDArray[np.int64],
    order: NDArray[np.int64],
    begins: NDArray[np.int64],
    drawn: NDArray[np.int64],
    state: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """State: place in the source, words drawn so far, number of the next new word."""
    first_new = len(begins) - 1
    for i in range(len(out)):
        word = source[state[0]]
        out[i] = word
        begin, end = begins[word], begins[word + 1]
        if word != LINE_END and np.random.random() < DRAWN:
            draws, different = state[1], state[2] - first_new
            if np.random.random() * (draws + 1) < GROWTH * different + 1:
                drawn[draws] = state[2]
                state[2] += 1
            else:
                drawn[draws] = drawn[np.random.randint(draws)]
            out[i] = drawn[draws]
            state[1] += 1
        if np.random.random() < LEAVE:
            state[0] = order[begin + np.random.randint(end - begin)]
        state[0] = (state[0] + 1) % len(source)


def spelled(number: int) -> str:
    """A word of three letters and more for a number, another for each."""
    letters = []
    number += 26 * 26
    while number:
        number, letter = divmod(number, 26)
        letters.append(chr(97 + letter))
    return "".join(letters)


if __name__ == "__main__":
    run(main)
