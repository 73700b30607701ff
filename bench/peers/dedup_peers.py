"""Signatures by datatrove, rensa and datasketch, and datatrove's grouping; runs in the peers' venv.

Requests:
  {"what": "signatures", "by": "datatrove" | "datatrove, split" | "rensa" | "datasketch", "texts", "ngram", "num_perm",
   "bands", "seed"}: `texts` is a file of JSON strings, a line each. Answer: {"cpu_s", "documents"}. Reading is not
   measured, writing does not take place: only text to signature. rensa and datasketch get their shingles from Python,
   as they come.
  {"what": "group", "signatures", "out", "bands", "rows"}: `signatures` is a file of uint32[N, bands * rows]. Answer:
   {"cpu_s", "removed"}: datatrove's stages 2 and 3 over its own files of these signatures.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from datasketch import MinHash
from datatrove.pipeline.dedup import MinhashConfig, MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupSignature
from datatrove.utils.hashing import HashConfig
from datatrove.utils.logging import logger
from datatrove.utils.word_tokenizers import WordTokenizer
from rensa import RMinHash
from serve import serve
from stopwatch import cpu_seconds

VERSIONS = ("datatrove", "rensa", "datasketch", "spacy")


class PlainWords(WordTokenizer):
    """Words as `str.split` gives them, in place of spaCy's."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    answer = signatures(request) if request["what"] == "signatures" else group(request)
    return {**answer, "versions": {name: version(name) for name in VERSIONS}}


def signatures(request: dict[str, Any]) -> dict[str, Any]:
    """Sign the texts once, after one text to warm up."""
    texts = [json.loads(line) for line in Path(request["texts"]).read_bytes().split(b"\n") if line]
    sign = SIGNERS[request["by"]](request)
    sign(texts[0])
    began = cpu_seconds()
    for text in texts:
        sign(text)
    return {"cpu_s": cpu_seconds() - began, "documents": len(texts)}


def _datatrove(request: dict[str, Any], words: str | WordTokenizer) -> Callable[[str], Any]:
    config = MinhashConfig(request["ngram"], request["bands"], request["num_perm"] // request["bands"])
    step = MinhashDedupSignature("/tmp/unused", config=config, language=words)
    loaded = step.word_tokenizer

    def sign(text: str) -> Any:
        shingles = step.get_shingles(text)
        return step.get_signature(shingles) if shingles.size else None

    step.word_tokenizer = loaded
    return sign


def _shingles(text: str, ngram: int) -> list[str]:
    words = text.lower().split()
    return [" ".join(words[i : i + ngram]) for i in range(len(words) - ngram + 1)]


def _rensa(request: dict[str, Any]) -> Callable[[str], Any]:
    def sign(text: str) -> Any:
        made = RMinHash(num_perm=request["num_perm"], seed=request["seed"])
        made.update(_shingles(text, request["ngram"]))
        return made.digest()

    return sign


def _datasketch(request: dict[str, Any]) -> Callable[[str], Any]:
    def sign(text: str) -> Any:
        made = MinHash(num_perm=request["num_perm"], seed=request["seed"])
        made.update_batch([shingle.encode() for shingle in _shingles(text, request["ngram"])])
        return made.digest()

    return sign


SIGNERS: dict[str, Callable[[dict[str, Any]], Callable[[str], Any]]] = {
    "datatrove": lambda request: _datatrove(request, "en"),
    "datatrove, split": lambda request: _datatrove(request, PlainWords()),
    "rensa": _rensa,
    "datasketch": _datasketch,
}


def group(request: dict[str, Any]) -> dict[str, Any]:
    """Write the signatures as datatrove's stage 1 does (not measured), then its buckets and clusters."""
    out, bands, rows = Path(request["out"]), request["bands"], request["rows"]
    shutil.rmtree(out, ignore_errors=True)
    config = MinhashConfig(5, bands, rows, hash_config=HashConfig(precision=32))
    raw = np.fromfile(request["signatures"], "<u4").reshape(-1, bands * rows)
    for band in range(bands):
        folder = out / "signatures" / f"bucket_{band:03d}"
        folder.mkdir(parents=True)
        records = np.empty(len(raw), [*((f"h{i}", "<u4") for i in range(rows)), ("doc", "<u4")])
        for i in range(rows):
            records[f"h{i}"] = raw[:, band * rows + i]
        records["doc"] = np.arange(len(raw))
        (folder / "00000.minhash.sig").write_bytes(np.sort(records, order=records.dtype.names).tobytes())
    began = cpu_seconds()
    for band in range(bands):
        MinhashDedupBuckets(str(out / "signatures"), str(out / "buckets"), config=config).run(None, band, bands)
    MinhashDedupCluster(str(out / "buckets"), str(out / "remove"), config=config).run(None, 0, 1)
    spent = cpu_seconds() - began
    removed = sum(path.stat().st_size for path in (out / "remove").rglob("*.remove")) // 4
    return {"cpu_s": spent, "removed": removed}


if __name__ == "__main__":
    logger.remove()
    serve(handle)
