"""Deduplication beside datatrove, rensa and datasketch: signatures, grouping, growth, verification.

Paired in one run, CPU seconds:

  signatures   text to signature, 5-word shingles, 112 permutations, texts in memory. datatrove as it comes (spaCy's
               tokenizer) and with words cut at spaces; rensa and datasketch with shingles made in Python
  grouping     from files of signatures to groups, 100,000 documents: datatrove's stages 2 and 3 on its own files; ours
               from the store's. Neither side verifies: every pair that meets counts as similar

Ours alone: growth of grouping with the number of documents, each in a process of its own, with its peak of memory
(the largest through the store, under a bound); verification in pairs per CPU second.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.common import REPOSITORY, Ratio, arguments, interleaved, judged, note, report, run
from bench.crawls import crawl_at, sample
from bench.dedup import signed
from bench.peer import Peer
from bench.peers.stopwatch import cpu_seconds
from corpusmill.kernels.duplicates import jaccard, minhash
from corpusmill.plain_text import human_bytes, table
from corpusmill.readers.outcomes import outcomes

NGRAM, NUM_PERM, BANDS, SEED = 5, 112, 14, 17
PEERS = ("datatrove", "datatrove, split", "rensa", "datasketch")
GROUPED = {False: 100_000, True: 20_000}
GROWTH = ((10_000, 2048), (100_000, 2048), (1_000_000, 2048), (10_000_000, 1024))
"""Documents, and memory_mb of the run."""
SIZES = {False: 3, True: 2}
REPEAT_BYTES = 64 * 2**20
"""Ours signs the same texts again until this many bytes are signed: once takes too short a time to be measured."""


@dataclass(frozen=True)
class Arm:
    """One run of one side."""

    cpu_s: float
    documents: int


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="the crawl whose texts are signed; else the test data's")
    parser.add_argument("--largest", action="store_true", help="growth to ten million: 5 GB of disk, some minutes")
    options = parser.parse_args(argv)
    repeats = options.repeats or (2 if options.quick else 3)
    with tempfile.TemporaryDirectory(prefix="bench-dedup-") as temporary, ExitStack() as peers:
        scratch = Path(temporary)
        texts = latin_texts(options.root, scratch, 120 if options.quick else 600)
        peer = None if options.no_peer else peers.enter_context(Peer("dedup_peers", scratch / "peer.log"))
        signing = interleaved(_signers(texts, peer, scratch), repeats, note)
        grouping = interleaved(_groupers(scratch, GROUPED[options.quick], peer), repeats, note)
        sizes = GROWTH if options.largest else GROWTH[: SIZES[options.quick]]
        growth = [grown(scratch / f"growth-{docs}", docs, memory) for docs, memory in sizes]
        return _report(options.quick, options.json, texts, signing, grouping, growth)


def latin_texts(root: Path | None, scratch: Path, most: int) -> list[str]:
    """Plain texts of a crawl's pages that are mostly in Latin letters: spaCy's English tokenizer is for such."""
    from resiliparse.extract.html2text import extract_plain_text

    crawl = sample(crawl_at(root, None), scratch / "sample", 12 * most)
    found: list[str] = []
    for file in crawl.files:
        for page in outcomes(crawl.root / file):
            if page.reason or not page.html:
                continue
            text = extract_plain_text(page.html, main_content=True)
            letters = sum(c.isalpha() for c in text)
            if len(text) > 500 and sum("a" <= c.lower() <= "z" for c in text) > 0.97 * letters:
                found.append(text)
    return found[:most]


def _signers(texts: Sequence[str], peer: Peer | None, scratch: Path) -> dict[str, Callable[[], Arm]]:
    column = pa.array(texts, pa.large_string())
    size = sum(len(text.encode()) for text in texts)
    times = max(1, REPEAT_BYTES // size)
    file = scratch / "texts.jsonl"
    file.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")

    def ours() -> Arm:
        minhash.signatures(column, ngram=NGRAM, num_perm=NUM_PERM, seed=SEED)
        began = cpu_seconds()
        for _ in range(times):
            minhash.signatures(column, ngram=NGRAM, num_perm=NUM_PERM, seed=SEED)
        return Arm((cpu_seconds() - began) / times, len(texts))

    def theirs(by: str) -> Callable[[], Arm]:
        request = {"what": "signatures", "by": by, "texts": str(file), "seed": SEED}

        def once() -> Arm:
            assert peer
            answer = peer.ask({**request, "ngram": NGRAM, "num_perm": NUM_PERM, "bands": BANDS})
            return Arm(answer["cpu_s"], answer["documents"])

        return once

    return {"ours": ours, **({by: theirs(by) for by in PEERS} if peer else {})}


def _groupers(scratch: Path, docs: int, peer: Peer | None) -> dict[str, Callable[[], Arm]]:
    raw = scratch / "signatures.bin"
    signed.shards(scratch / "grouping", docs, raw)
    signed.grouped(scratch / "grouping", docs, 2048)  # warm

    def ours() -> Arm:
        found = signed.grouped(scratch / "grouping", docs, 2048)
        return Arm(found.cpu_s, found.removed)

    def theirs() -> Arm:
        assert peer
        request = {"what": "group", "signatures": str(raw), "out": str(scratch / "datatrove")}
        answer = peer.ask({**request, "bands": BANDS, "rows": NUM_PERM // BANDS})
        return Arm(answer["cpu_s"], answer["removed"])

    return {"ours": ours, **({"datatrove": theirs} if peer else {})}


def grown(folder: Path, docs: int, memory_mb: int) -> dict[str, Any]:
    """Group a number of documents in a process of its own; the signatures are made before, and removed after."""
    note(f"growth: {docs:,} documents")
    signed.shards(folder / "store", docs)
    command = [sys.executable, "-m", "bench.dedup.signed", str(folder), str(docs), str(memory_mb)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    shutil.rmtree(folder)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def verified(texts: Sequence[str]) -> dict[str, float]:
    """Pairs per CPU second: of sets that are held, and of two texts from the words on."""
    column = pa.array(texts, pa.large_string())
    minhash.shingle_sets(column.slice(0, 2), NGRAM)
    began = cpu_seconds()
    sets = jaccard.Sets(*minhash.shingle_sets(column, NGRAM))
    making = (cpu_seconds() - began) / len(texts)
    held = signed.verification(100_000)
    mean = int(sets.offsets[-1]) / len(texts)
    return {"sets_held": held, "from_text": 1 / (2 * making + 1 / held), "mean_shingles": mean}


def _report(
    quick: bool,
    as_json: bool,
    texts: Sequence[str],
    signing: Mapping[str, Sequence[Arm]],
    grouping: Mapping[str, Sequence[Arm]],
    growth: Sequence[Mapping[str, Any]],
) -> int:
    size = sum(len(text.encode()) for text in texts)
    sign = {name: min(arms, key=lambda arm: arm.cpu_s) for name, arms in signing.items()}
    group = {name: min(arms, key=lambda arm: arm.cpu_s) for name, arms in grouping.items()}
    checks = verified(texts)
    ratios = {"signature_mb_s": size / 1e6 / sign["ours"].cpu_s}
    names = {"datatrove": "shipped", "datatrove, split": "tokenizer_free", "rensa": "rensa", "datasketch": "datasketch"}
    ratios |= {f"signatures_{names[by]}": arm.cpu_s / sign["ours"].cpu_s for by, arm in sign.items() if by in names}
    if "datatrove" in group:
        ratios["grouping"] = group["datatrove"].cpu_s / group["ours"].cpu_s
    for one in growth:
        if one["docs"] == 1_000_000:
            ratios["million_under_20_s"] = 20 / one["cpu_s"]
            ratios["million_under_1_gib"] = 2**30 / one["peak_bytes"]
        if one["docs"] == 10_000_000:
            ratios["ten_million_under_2_gib"] = 2**31 / one["peak_bytes"]
    rows = [(name, f"{arm.cpu_s:.3f}", f"{size / 1e6 / arm.cpu_s:.2f}", arm.documents) for name, arm in sign.items()]
    shown = [
        f"{len(texts)} texts, {size / 1e6:.2f} MB\n",
        table(("signatures", "CPU s", "MB/CPU s", "documents"), rows, numbers=(1, 2, 3)),
        "",
        table(
            ("grouping from files", "CPU s", "removed"),
            [(name, f"{arm.cpu_s:.3f}", arm.documents) for name, arm in group.items()],
            numbers=(1, 2),
        ),
        "",
        table(
            ("growth: documents", "CPU s", "pairs", "peak memory", "how"),
            [(g["docs"], f"{g['cpu_s']:.2f}", g["pairs"], human_bytes(g["peak_bytes"]), g["how"]) for g in growth],
            numbers=(0, 1, 2, 3),
        ),
        "",
        f"verification, pairs/CPU s: {checks['sets_held']:,.0f} of sets of 500 shingles that are held,",
        f"  {checks['from_text']:,.0f} from two texts of {checks['mean_shingles']:,.0f} shingles each",
    ]
    document = {
        "subject": "dedup",
        "quick": quick,
        "texts": len(texts),
        "text_bytes": size,
        "signatures": {name: [arm.cpu_s for arm in arms] for name, arms in signing.items()},
        "grouping": {name: [vars(arm) for arm in arms] for name, arms in grouping.items()},
        "growth": list(growth),
        "verification": checks,
        "versions": {"corpusmill": version("corpusmill")},
    }
    found: list[Ratio] = judged("dedup", ratios)
    return report(document, "\n".join(shown), found, as_json)


if __name__ == "__main__":
    run(main)
