"""A small made-up crawl and the content digest of every stage's output on it: `python -m tests.golden` prints them.

A stage whose output moves must raise its VERSION; tests/test_golden.py holds the digests of each version.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

from corpusmill.config import Recipe, parse_recipe
from corpusmill.store import open_store
from tasks import stages
from tasks.chain import build

GOLDEN = Path(__file__).parent / "golden.json"
SUBJECTS = ["river", "harbour", "garden", "library", "railway", "orchard", "village", "lighthouse"]
SENTENCES = [
    "The {s} was built by people who wanted to have a place that would outlast them.",
    "Every morning the keeper of the {s} walked along the wall and wrote down what he had seen with care.",
    "In winter the {s} was quiet, and only the sound of the wind was to be heard for many weeks.",
    "Visitors asked whether the {s} had always been there, and nobody could give them a good answer.",
    "A map of the {s} hangs in the hall, drawn by hand and coloured with the patience of a long evening.",
    "When the {s} was repaired, the old stones were numbered so that each could return to its place.",
]
QUESTION = "If a keeper counts forty seven lamps every night for nine weeks how many lamps does he count in all"


def page(subject: str, number: int, *, extra: str = "") -> str:
    paragraphs = [s.format(s=subject) for s in SENTENCES[number % 3 :] + SENTENCES[: number % 3]]
    body = "".join(f"<p>{p}</p>" for p in [*paragraphs, extra] if p)
    head = f"<html><head><title>{subject}</title></head><body><nav><a href='/'>Home</a></nav>"
    return f"{head}<main>{body}</main></body></html>"


def record(url: str, html: str, content_type: str = "text/html; charset=utf-8", status: str = "200 OK") -> bytes:
    body = html.encode("utf-8")
    http = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{abs(hash_of(url)):012d}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
    ).encode()
    return gzip.compress(head + http + b"\r\n\r\n", mtime=0)


def hash_of(url: str) -> int:
    return sum(ord(c) * 31**i for i, c in enumerate(url)) % 10**12


def write_crawl(root: Path) -> Path:
    """Two WARC files: pages, an exact and a near copy, a planted item, a redirect, a page without text, another
    language."""
    folder = root / "warc"
    folder.mkdir(parents=True)
    first = [record(f"https://a.example/{s}", page(s, i)) for i, s in enumerate(SUBJECTS)]
    first.append(record("https://a.example/gone", "moved", status="301 Moved Permanently"))
    first.append(record("https://a.example/empty", "<html><body><script>1</script></body></html>"))
    second = [
        record("https://b.example/copy", page("river", 0)),
        record("https://b.example/near", page("river", 0, extra="One more line about the river was added later.")),
        record("https://b.example/planted", page("market", 1, extra=QUESTION + ".")),
        record(
            "https://b.example/de",
            f"<html><body>{'<p>Der Fluß war im Winter sehr still und kalt.</p>' * 9}</body></html>",
        ),
        record("https://b.example/pdf", "%PDF-1.4 not a page"),
    ]
    (folder / "one.warc.gz").write_bytes(b"".join(first))
    (folder / "two.warc.gz").write_bytes(b"".join(second))
    (root / "bench.jsonl").write_text(json.dumps({"id": "q1", "question": QUESTION}) + "\n", encoding="utf-8")
    return root


def recipe(root: Path) -> Recipe:
    return parse_recipe(
        {
            "name": "golden",
            "source": {"made": {"kind": "files", "root": str(root), "pattern": "warc/*.warc.gz"}},
            "decontaminate": {
                "root": str(root),
                "benchmark": [{"name": "lamps", "file": "bench.jsonl", "fields": ["question"]}],
            },
            "deduplicate": {"min_jaccard": 0.7},
            "pack": {"seq_len": 64, "vocab_size": 512, "heldout_one_in": 4},
        },
        "golden",
    )


def digests(folder: Path) -> dict[str, object]:
    """stage -> {"version", "content"}: the content digests of all its outputs, in the order of the lineage table."""
    store = open_store(folder / "store", create=True)
    built = build(recipe(write_crawl(folder / "crawl")), store, lambda stage, fn, units: [fn(unit) for unit in units])
    rows = store.table(built.manifest.table("lineage")).to_pylist()
    contents: dict[str, list[str]] = {}
    for row in rows:
        contents.setdefault(row["stage"], []).append(row["content"] or row["digest"])
    contents["publish"] = [str(built.manifest.table("rejects").content)]
    return {name: {"version": stages.named(name).versions, "content": found} for name, found in contents.items()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(digests(Path(scratch)), indent=1, sort_keys=True))
