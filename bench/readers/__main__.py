"""Reading and decoding: pages per CPU second beside datatrove's WARC reader, and what either finds.

Paired in one run on the same WARC files, once as Common Crawl writes them (each response says what type of payload it
has), once as other crawlers do (without: datatrove then asks libmagic). The arms take turns file by file; the least CPU
of each file counts, summed over the files: a file takes a tenth of a second, and other work on the machine finds it
harder to disturb each of its repeats than those of all files. Three arms:

  ours           records read, transfer and content encodings undone, media type judged, text decoded and cleaned:
                 what datatrove's reader does, for every response whatever its status
  ours, acquire  all that `mill build` does before extraction: besides, a digest of each payload, the owner's
                 objections, one reason for every record
  datatrove      its WarcReader, on one process
"""

from __future__ import annotations

import re
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench.common import Ratio, arguments, interleaved, judged, note, report, run
from bench.crawls import Crawl, crawl_at, sample
from bench.peer import Peer
from corpusmill.plain_text import table
from corpusmill.readers.bodies import decode_body
from corpusmill.readers.charset import decode
from corpusmill.readers.outcomes import outcomes
from corpusmill.readers.scan import survey
from corpusmill.readers.screen import classify, is_blank
from corpusmill.readers.warc import read_records

QUICK_RESPONSES = 1500
OURS, ACQUIRE, PEER = "ours", "ours, acquire", "datatrove"
TYPED, UNTYPED = "typed", "untyped"
MAX_BYTES = 16 * 2**20
_PAYLOAD_TYPE = re.compile(rb"WARC-Identified-Payload-Type:[^\n]*\n", re.IGNORECASE)


@dataclass(frozen=True)
class Arm:
    """One run of one side over a file, or the sum over files."""

    cpu_s: float
    pages: int
    characters: int


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="the crawl; else the test data's, else the demo's")
    parser.add_argument("--recipe", help="whose source it is (default: crawl)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bench-readers-") as temporary, ExitStack() as peers:
        scratch = Path(temporary)
        crawl = crawl_at(options.root, options.recipe)
        if options.quick:
            crawl = sample(crawl, scratch / "sample", QUICK_RESPONSES)
        crawls = {kind: rewritten(crawl, scratch / kind, kind == TYPED) for kind in (TYPED, UNTYPED)}
        peer = None if options.no_peer else peers.enter_context(Peer("datatrove_reader", scratch / "peer.log"))
        readers: dict[str, Callable[[Path], Arm]] = {OURS: _ours(decoded), ACQUIRE: _ours(acquired)}
        if peer:
            readers[PEER] = _theirs(peer)
        note("warm-up")
        for read in readers.values():
            read(crawls[TYPED] / crawl.files[0])
        paired: dict[str, list[list[Arm]]] = defaultdict(list)
        for number, file in enumerate(crawl.files):
            note(f"file {number + 1} of {len(crawl.files)}")
            arms = {
                f"{name}: {kind}": partial(read, crawls[kind] / file)
                for kind in crawls
                for name, read in readers.items()
            }
            for name, runs in interleaved(arms, options.repeats or 7, lambda text: None).items():
                paired[name].append(runs)
        return _report(crawl, paired, options.quick, options.json)


def decoded(path: Path) -> tuple[int, int]:
    """(pages, characters) of a file: every response with HTML in it, whatever its status; WET texts too."""
    pages = characters = 0
    for record in read_records(path):
        if record.fault or record.type not in ("response", "conversion"):
            continue
        body = decode_body(record.payload, record.http, MAX_BYTES)
        if body.reason or is_blank(body.data):
            continue
        declared, signs = record.http.content_type, survey(body.data)
        if record.type == "response" and classify(body.data, declared, signs).kind != "html":
            continue
        pages += 1
        characters += len(decode(body.data, declared, signs=signs).text)
    return pages, characters


def acquired(path: Path) -> tuple[int, int]:
    """(pages, characters) of a file that go on to extraction."""
    texts = [len(one.html or one.text or "") for one in outcomes(path) if one.reason is None]
    return len(texts), sum(texts)


def rewritten(crawl: Crawl, out: Path, typed: bool) -> Path:
    """The crawl's files with or without the header that says what type a payload has; returns their root.

    Both are written anew, so that they are compressed alike and lie on the same disk.
    """
    for file in crawl.files:
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        data, parts = (crawl.root / file).read_bytes(), []
        while data:
            inflate = zlib.decompressobj(31)
            head, blank, rest = inflate.decompress(data).partition(b"\r\n\r\n")
            data = inflate.unused_data
            pack = zlib.compressobj(6, wbits=31)
            head = head if typed else _PAYLOAD_TYPE.sub(b"", head + b"\n")[:-1]
            parts += [pack.compress(head + blank + rest), pack.flush()]
        (out / file).write_bytes(b"".join(parts))
    return out


def _ours(read: Callable[[Path], tuple[int, int]]) -> Callable[[Path], Arm]:
    def once(path: Path) -> Arm:
        began = time.process_time()
        found = read(path)
        return Arm(time.process_time() - began, *found)

    return once


def _theirs(peer: Peer) -> Callable[[Path], Arm]:
    def once(path: Path) -> Arm:
        answer = peer.ask({"root": str(path.parent), "files": [path.name]})
        return Arm(answer["cpu_s"], answer["pages"], answer["characters"])

    return once


def _sum(paired: Sequence[Sequence[Arm]], choose: Callable[..., Arm]) -> Arm:
    """The least or greatest run of each file, summed."""
    chosen = [choose(runs, key=lambda arm: arm.cpu_s) for runs in paired]
    return Arm(sum(a.cpu_s for a in chosen), sum(a.pages for a in chosen), sum(a.characters for a in chosen))


def _ratios(least: Mapping[str, Arm]) -> list[Ratio]:
    """Pages per CPU second, ours to theirs; and pages found, which may not be fewer."""
    found: dict[str, float] = {}
    for kind in (TYPED, UNTYPED):
        ours, peer = least[f"{OURS}: {kind}"], least.get(f"{PEER}: {kind}")
        if peer is None:
            return []
        found[kind] = peer.cpu_s / ours.cpu_s * ours.pages / peer.pages
        found[f"{kind}_acquire"] = peer.cpu_s / least[f"{ACQUIRE}: {kind}"].cpu_s
        found[f"{kind}_pages"] = ours.pages / peer.pages
    return judged("readers", found)


def _report(crawl: Crawl, paired: Mapping[str, Sequence[Sequence[Arm]]], quick: bool, as_json: bool) -> int:
    least = {name: _sum(files, min) for name, files in paired.items()}
    rows = [
        (
            name,
            f"{arm.cpu_s:.3f}",
            f"{_sum(paired[name], max).cpu_s:.3f}",
            f"{arm.pages / arm.cpu_s:,.0f}",
            arm.pages,
            f"{arm.characters / 1e6:.2f}",
        )
        for name, arm in least.items()
    ]
    head = f"{len(crawl.files)} files, {crawl.bytes / 1e6:.1f} MB compressed"
    heads = ("reading and decoding", "CPU s", "most", "pages/CPU s", "pages", "M characters")
    below = "CPU s: the least of the runs of each file; most: the greatest."
    text = f"{head}\n\n{table(heads, rows, numbers=(1, 2, 3, 4, 5))}\n{below}"
    document = {
        "subject": "readers",
        "quick": quick,
        "files": len(crawl.files),
        "file_bytes": crawl.bytes,
        "paired": {
            name: {
                **asdict(arm),
                "pages_per_cpu_s": arm.pages / arm.cpu_s,
                "runs_cpu_s": [[run.cpu_s for run in runs] for runs in paired[name]],
            }
            for name, arm in least.items()
        },
        "versions": {name: version(name) for name in ("corpusmill", "fastwarc", "resiliparse")},
    }
    return report(document, text, _ratios(least), as_json)


if __name__ == "__main__":
    run(main)
