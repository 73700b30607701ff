"""The verb `warm`: compile every kernel before somebody waits for it.

Kernels are compiled for the types that they are called with, so they are called: a small workload goes through every
family, in as many processes as there are cores. A test builds after it and finds that nothing is compiled any more.
"""

from __future__ import annotations

import ast
import gzip
import json
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from os.path import isfile  # False also where it may not be seen
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import corpusmill
from corpusmill import compiled
from corpusmill.errors import Unavailable
from corpusmill.places import SHIPPED
from corpusmill.plain_text import human_bytes
from mill.common import Output, note

RECIPE = """
[source.made]
kind = "jsonl"

[language]
keep = ["*"]

[[decontaminate.benchmark]]
name = "b"
file = "bench.jsonl"
fields = ["question"]

[judge.personal_data]
kinds = ["email", "ip", "phone", "card", "iban", "national_id", "api_key"]

[pack]
seq_len = 128
vocab_size = 512
heldout_one_in = 4
"""
EVERY_S = 20.0
"""Seconds between lines where no terminal is."""


def warm(
    *,
    workers: Annotated[int | None, Parameter(help="Processes; default: the cores.")] = None,
    options: Output = Output(),
) -> None:
    """Compile all kernels, and remove code that nobody used for 30 days. Where all is there, nothing is done."""
    from mill.build import processes

    began, removed = time.monotonic(), compiled.prune()
    mark = f"all-{compiled.stamp_of_all()[:40]}.done"  # beside the code: all of these sources was compiled there
    ready = removed == 0 and any(isfile(folder / mark) for folder in compiled.folders())  # noqa: PTH113
    if not ready:
        folder = compiled.writable()
        if folder is None:
            raise Unavailable(
                "no folder can be written, so nothing would be kept",
                f"looked at {', '.join(map(str, compiled.folders())) or 'none: HOME is not set'}",
                f"Name one: {compiled.KERNELS}=/a/folder mill warm",
            )
        with _shown():
            _compile_all(processes(workers))
        (folder / mark).touch()
    count, size = compiled.stored()
    seconds = time.monotonic() - began
    said = {"compiled": not ready, "kernels": count, "bytes": size, "removed": removed, "seconds": round(seconds, 1)}
    what = "nothing to do" if ready else f"compiled in {seconds:.0f} s"
    options.answer(said, f"{what}: {count} kernels, {human_bytes(size)} in {', '.join(map(str, compiled.folders()))}")


def _compile_all(workers: int) -> None:
    from corpusmill.engine.local import Engine
    from corpusmill.store.scratch import temporary_folder

    with temporary_folder() as folder, Engine(workers) as engine:
        engine.map(_part, [(name, str(folder)) for name in PARTS])


def _part(item: tuple[str, str]) -> None:
    name, folder = item
    PARTS[name](Path(folder) / name)


@cache
def texts() -> list[str]:
    """English prose that every installation has: docstrings of the library, a file each, some of them twice."""
    found = []
    for path in sorted(Path(corpusmill.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_bytes())
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)]
        said = [doc for node in nodes if (doc := ast.get_docstring(node)) and len(doc.split()) >= 15]
        found.append("\n\n".join(said[:12]))
    long = [text for text in found if len(text.split()) > 80][:60]
    return [*long, *(f"{text}\n\nOne more line stands here." for text in long[:20])]


def _build(folder: Path) -> None:
    """Build texts as recipes of users do: one in one unit, one in parts with everything else that can be asked for."""
    from corpusmill.config import parse_recipe
    from corpusmill.store import open_store
    from tasks.chain import build

    (folder / "data").mkdir(parents=True)
    rows = (json.dumps({"text": text + "\nmail someone@corpus-mill.org, +49 30 901820"}) for text in texts())
    (folder / "data" / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (folder / "bench.jsonl").write_text(json.dumps({"id": "q", "question": texts()[0][:300]}) + "\n")
    base = tomllib.loads(RECIPE)
    base["source"]["made"]["root"], base["decontaminate"]["root"] = str(folder / "data"), str(folder)
    archive: dict[str, Any] = {**base, "source": {"made": {"kind": "files", "root": str(folder), "pattern": "*.gz"}}}
    (folder / "one.warc.gz").write_bytes(gzip.compress(_record(_page())))
    everything: dict[str, Any] = {
        **base,
        "name": "everything",
        "filter": {"rules": "fineweb"},
        "decontaminate": {**base["decontaminate"], "exempt_contexts": 5},
        "deduplicate": {"memory_mb": 1, "lines": "line", "substring_words": 50, "index": True},
    }
    store = open_store(folder / "store", create=True)
    for made in ({**base, "name": "plain"}, {**archive, "name": "archive"}, everything):
        build(parse_recipe(made, "warm"), store, lambda _, unit, items: [unit(item) for item in items])


def _extract(folder: Path) -> None:
    """Extract a page in every mode of our own."""
    from corpusmill import extract

    for mode in ("fast", "auto", "union"):
        extract(_page(), mode=mode)


def _record(page: str) -> bytes:
    """A response as crawls keep it."""
    body = page.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    about = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: https://corpus-mill.org/\r\n"
        "WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(head) + len(body)}\r\n\r\n"
    )
    return b"".join((about.encode(), head, body, b"\r\n\r\n"))


def _page() -> str:
    told = texts()[1:9]  # the first is a benchmark's
    body = "".join(f"<h2>Part {n}</h2><p>{text}</p><ul><li>{text[:60]}</li></ul>" for n, text in enumerate(told))
    table = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
    product = '<script type="application/ld+json">{"@type": "Product", "description": "A lamp of brass"}</script>'
    return f"<html><head><title>Lamps</title>{product}</head><body><nav><a href='/'>Home</a></nav>{body}{table}</body>"


def _measure(folder: Path) -> None:
    """Measure and edit by every rule file."""
    import pyarrow as pa

    from corpusmill import rulebook
    from corpusmill.kernels.edits.lines import line_edits
    from corpusmill.kernels.measures.measures import measures

    text = pa.array(texts(), pa.large_string())
    for file in sorted((SHIPPED / "rules").glob("*.toml")):
        rules = rulebook.rules_of(str(file))
        for view in ("raw", "clean"):
            measures(text, rules.measured(view))
        if rules.edits:
            line_edits(text, rules.edits)


def _models(folder: Path) -> None:
    """Train and ask a quality classifier and a language model."""
    import pyarrow as pa

    from corpusmill.kernels.perplexity.score import Model
    from corpusmill.kernels.quality.classifier import Classifier
    from tasks.models import perplexity, quality

    folder.mkdir(parents=True)
    good, text = texts(), pa.array(texts(), pa.large_string())
    quality.train(good, [text[::-1] for text in good], folder / "q.bin", quality.Training(epoch=1, bucket=1000))
    Classifier(folder / "q.bin").scores_e6(text)
    perplexity.train(good, folder / "p.lm", perplexity.Training(order=3), folder / "p.arpa")
    perplexity.convert(folder / "p.arpa", folder / "again.lm")
    Model(folder / "p.lm")


PARTS = {"build": _build, "extract": _extract, "measure": _measure, "models": _models}
"""The longest first."""


@contextmanager
def _shown() -> Iterator[None]:
    """On stderr, how many kernels have been compiled so far."""
    before, ended = compiled.stored()[0], threading.Event()
    note("compiling kernels: a minute or two of CPU, once on this machine")

    def show() -> None:
        line = "\r{} kernels" if sys.stderr.isatty() else "{} kernels\n"
        while not ended.wait(1.0 if sys.stderr.isatty() else EVERY_S):
            print(line.format(compiled.stored()[0] - before), end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if sys.stderr.isatty():
            print("\r", end="", file=sys.stderr)
