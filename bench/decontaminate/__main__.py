"""The benchmark screen beside datatrove's: 13-grams of a million keys, paired in one run, CPU seconds.

Items are made up (plain words, so that every tokenizer cuts them alike); in one text of a hundred one is planted.
Texts are a crawl's, in memory on either side; making and loading the index is not measured. datatrove's filter as it
comes (spaCy's tokenizer) and with words cut at spaces. Both must name the very texts in which an item was planted.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from bench.common import Ratio, arguments, interleaved, judged, note, report, run
from bench.dedup.__main__ import latin_texts
from bench.peer import Peer
from bench.peers.stopwatch import cpu_seconds
from corpusmill.errors import CheckFailed
from corpusmill.kernels.screen import screen
from corpusmill.plain_text import table

NGRAM, FLOOR, SEED = 13, 8, 17
WORDS = 62
"""Words of an item: 50 n-grams."""
KEYS = {False: 1_000_000, True: 100_000}
EVERY = 100
REPEAT_BYTES = 64 * 2**20
"""Ours screens the same texts again until this many bytes are screened: once takes too short a time to be measured."""
PEERS = {"datatrove": "shipped", "datatrove, split": "tokenizer_free"}


@dataclass(frozen=True)
class Arm:
    """One run of one side."""

    cpu_s: float
    found: tuple[int, ...]


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="the crawl whose texts are screened; else the test data's")
    options = parser.parse_args(argv)
    repeats = options.repeats or (2 if options.quick else 3)
    with tempfile.TemporaryDirectory(prefix="bench-decontaminate-") as temporary, ExitStack() as peers:
        scratch = Path(temporary)
        keys = KEYS[options.quick]
        items = made_up(keys // (WORDS - NGRAM + 1), SEED)
        clean = latin_texts(options.root, scratch, 120 if options.quick else 400)
        texts = [f"{text}\n{items[i // EVERY]}" if i % EVERY == 0 else text for i, text in enumerate(clean)]
        peer = None if options.no_peer else peers.enter_context(Peer("datatrove_decont", scratch / "peer.log"))
        arms = interleaved(_arms(items, texts, peer, scratch), repeats, note)
        check(arms, tuple(range(0, len(texts), EVERY)))
        return _report(options.quick, options.json, keys, texts, arms)


def made_up(count: int, seed: int) -> list[str]:
    """Items of WORDS plain words each."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    vocabulary = ["".join(rng.choices(syllables, k=3)) for _ in range(20_000)]
    return [" ".join(rng.choices(vocabulary, k=WORDS)) for _ in range(count)]


def _arms(items: Sequence[str], texts: Sequence[str], peer: Peer | None, scratch: Path) -> dict[str, Callable[[], Arm]]:
    column = pa.array(texts, pa.large_string())
    members = [(str(i), item) for i, item in enumerate(items)]
    short = [(f"short{i}", " ".join(item.split()[:10])) for i, item in enumerate(made_up(1500, SEED + 1))]
    by_length = {
        "ours": screen.build_index([screen.Source("made-up", members, NGRAM)]),
        "ours, short items too": screen.build_index([screen.Source("made-up", members + short, NGRAM, FLOOR)]),
    }
    size = sum(len(text.encode()) for text in texts)
    times = max(1, REPEAT_BYTES // size)

    def ours(index: screen.Index) -> Callable[[], Arm]:
        def once() -> Arm:
            found = screen.screen(column, index)
            began = cpu_seconds()
            for _ in range(times):
                screen.screen(column, index)
            return Arm((cpu_seconds() - began) / times, tuple(sorted(set(found.column("row").to_pylist()))))

        return once

    files = {"items": scratch / "items.jsonl", "texts": scratch / "texts.jsonl"}
    for name, values in (("items", items), ("texts", texts)):
        files[name].write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")

    def theirs(by: str) -> Callable[[], Arm]:
        def once() -> Arm:
            assert peer
            answer = peer.ask({"by": by, "ngram": NGRAM, **{name: str(file) for name, file in files.items()}})
            return Arm(answer["cpu_s"], tuple(answer["found"]))

        return once

    mine = {name: ours(index) for name, index in by_length.items()}
    return {**mine, **({by: theirs(by) for by in PEERS} if peer else {})}


def check(arms: Mapping[str, Sequence[Arm]], planted: tuple[int, ...]) -> None:
    """Raises CheckFailed where a side names other texts than those in which an item was planted."""
    for name, runs in arms.items():
        if any(arm.found != planted for arm in runs):
            raise CheckFailed(
                f"{name} names {len(runs[0].found)} texts",
                f"an item was planted in {len(planted)}",
                "The sides do not do the same work: figures would say nothing.",
            )


def _report(quick: bool, as_json: bool, keys: int, texts: Sequence[str], arms: Mapping[str, Sequence[Arm]]) -> int:
    size = sum(len(text.encode()) for text in texts)
    best = {name: min(arm.cpu_s for arm in runs) for name, runs in arms.items()}
    ratios = {
        "mb_per_s": size / 1e6 / best["ours"],
        "mb_per_s_short_items": size / 1e6 / best["ours, short items too"],
        **{PEERS[name]: spent / best["ours"] for name, spent in best.items() if name in PEERS},
    }
    rows = [
        (name, f"{spent:.3f}", f"{size / 1e6 / spent:.2f}", len(arms[name][0].found)) for name, spent in best.items()
    ]
    shown = [
        f"{len(texts)} texts, {size / 1e6:.2f} MB, {keys:,} keys\n",
        table(("screen", "CPU s", "MB/CPU s", "texts with an item"), rows, numbers=(1, 2, 3)),
    ]
    document = {
        "subject": "decontaminate",
        "quick": quick,
        "keys": keys,
        "texts": len(texts),
        "text_bytes": size,
        "cpu_s": {name: [arm.cpu_s for arm in runs] for name, runs in arms.items()},
        "versions": {"corpusmill": version("corpusmill")},
    }
    found: list[Ratio] = judged("decontaminate", ratios)
    return report(document, "\n".join(shown), found, as_json)


if __name__ == "__main__":
    run(main)
