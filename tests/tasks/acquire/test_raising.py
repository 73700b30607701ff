"""Whatever a reader raises on a record costs that record: it is counted, and the records around it are read."""

from __future__ import annotations

import gzip
import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusmill import plugins
from corpusmill.errors import UsageError
from corpusmill.readers import outcomes as archives
from corpusmill.readers.outcomes import Outcome
from corpusmill.readers.warc import FileFacts
from tasks.acquire.index import cdx
from tests.corpusmill.readers.archives import members, page, pages, record
from tests.tasks.acquire import test_latex, test_mediawiki
from tests.tasks.acquire.reading import outcomes, reasons

BAD = "RAISES"
TEXTS = ["a first text", f"{BAD} in the middle", "a last text"]


def papers(texts: list[str]) -> bytes:
    made = {f"2301.0000{i}.gz": gzip.compress(f"\\documentclass{{a}} {t}".encode()) for i, t in enumerate(texts)}
    return test_latex.tar(made)


def rows(texts: list[str], file: Path) -> None:
    pq.write_table(pa.table({"text": texts}), file)


WRITERS: dict[str, tuple[str, Callable[[list[str], Path], Any]]] = {
    "jsonl": ("a.jsonl", lambda t, f: f.write_text("".join(json.dumps({"text": one}) + "\n" for one in t))),
    "parquet": ("a.parquet", rows),
    "mediawiki": (
        "a.xml",
        lambda t, f: f.write_text(
            test_mediawiki.HEAD + "".join(test_mediawiki.page(i, one) for i, one in enumerate(t))
        ),
    ),
    "latex": ("a.tar", lambda t, f: f.write_bytes(papers(t))),
    "code": ("a.tar", lambda t, f: f.write_bytes(test_latex.tar({f"{i}.py": one.encode() for i, one in enumerate(t)}))),
    "text": ("*.txt", lambda t, f: [(f.parent / f"{i}.txt").write_text(one) for i, one in enumerate(t)]),
}


@pytest.mark.parametrize("error", [ValueError, RecursionError, MemoryError, OSError, KeyError])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_record_on_which_its_reader_raises_is_counted_alone(
    kind: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, write = WRITERS[kind]
    write(TEXTS, tmp_path / name)
    module = importlib.import_module(f"tasks.acquire.{'rows.fields' if kind in ('jsonl', 'parquet') else kind}")
    document = module.document

    def raising(text: str, *options: Any, **known: Any) -> Outcome:
        if BAD in text:
            raise error("odd")
        return document(text, *options, **known)

    monkeypatch.setattr(module, "document", raising)
    facts, keys = FileFacts(), {"licences": ["*"]} if kind == "code" else {}
    found = outcomes(kind, tmp_path, facts, pattern=name, **keys)
    assert [o.reason for o in found] == [None, "crashed", None]
    assert [fault["error"] for fault in facts.faults] == [error.__name__]


@pytest.mark.parametrize("container", ["plain", "gzip"])
def test_a_record_of_an_archive_likewise(container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = archives.decode_body

    def raising(payload: bytes, *options: Any) -> Any:
        if b"number 1," in payload:
            raise IndexError
        return decode(payload, *options)

    monkeypatch.setattr(archives, "decode_body", raising)
    (tmp_path / "a.warc").write_bytes(members(pages(3)) if container == "gzip" else b"".join(pages(3)))
    assert [o.reason for o in outcomes("files", tmp_path, pattern="*.warc")] == [None, "crashed", None]


def test_a_fault_of_the_disk_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(archives, "decode_body", failing)
    (tmp_path / "a.warc").write_bytes(record())
    with pytest.raises(OSError, match="Input/output"):
        outcomes("files", tmp_path, pattern="*.warc")


READ = "def read(unit, file, config, options, facts):\n    "
OWN = """
from tasks.acquire.texts import document, ended
from corpusmill.readers.outcomes import Outcome
VERSION = 1
def text(options, n, **known):
    return document(f"text {n}", options, **{"offset": n, "record_type": "row", "extractor": "mine", **known})
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[list[Outcome], FileFacts]]]:
    """Reads a file by a module with this code."""
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("x")

    def read(code: str) -> tuple[list[Outcome], FileFacts]:
        name = f"mine_{abs(hash(code))}"
        (tmp_path / "mine" / f"{name}.py").write_text(OWN + code)
        importlib.invalidate_caches()
        facts = FileFacts()
        return outcomes("own", tmp_path / "root", facts, module=name), facts

    yield read
    for cached in (plugins.module, plugins.identity):
        cached.cache_clear()


@pytest.mark.parametrize(
    "fails",
    ["int('²')", "1 / 0", "{}['a']", "b'\\xff'.decode()", "assert False", "next(iter(()))", "raise SyntaxError('x')"],
)
def test_a_generator_of_the_users_that_raises_costs_the_record_and_what_is_behind(own: Any, fails: str) -> None:
    found, facts = own(f"{READ}yield text(options, 3)\n    {fails}\n    yield text(options, 9)")
    assert [(o.offset, o.reason) for o in found] == [(3, None), (4, "crashed")]
    assert facts.counts["crashed"] == 1


def test_an_iterator_of_the_users_goes_on_behind_it(own: Any) -> None:
    found, _ = own(READ + "return (text(options, 6 // n) for n in (0, 1))")
    assert [o.reason for o in found] == ["crashed"]
    found, _ = own(READ + "return map(lambda n: text(options, 6 // n), (3, 0, 1))")
    assert [(o.offset, o.reason) for o in found] == [(2, None), (3, "crashed"), (6, None)]
    found, _ = own(READ + "return [text(options, 0), 1 / 0]")
    assert [o.reason for o in found] == ["crashed"]


def test_a_reader_that_raises_for_ever_ends(own: Any) -> None:
    found, _ = own(
        "class Rows:\n    def __iter__(self): return self\n    def __next__(self): raise ValueError\n"
        "def read(*_): return Rows()"
    )
    assert reasons(found) == {"crashed": 100}


@pytest.mark.parametrize(
    "outcome",
    [
        "Outcome(-1, 0, 'row', None, None, text='a', extractor='x')",
        "Outcome(2**63, 0, 'row', None, None, text='a', extractor='x')",
        "Outcome(1.5, 0, 'row', None, None, text='a', extractor='x')",
        "Outcome(1, 0, 'row', None, None, text=b'a', extractor='x')",
        "Outcome(1, 0, 'row', 7, None, text='a', extractor='x')",
        "Outcome(1, 0, 'row', None, None, text='a')",
        "Outcome(1, 0, 'row', None, None)",
        "Outcome(1, 0, 'row', None, None, text='a', html='b', extractor='x')",
        "Outcome(1, 0, 'row', None, None, stage='acquire', reason='no_such_reason')",
        "Outcome(1, 0, 'row', None, None, text='a', extractor='x', payload_bytes=None)",
        "Outcome(1, 0, 'row', None, None, text='a', extractor='x', payload_digest=b'short')",
        "Outcome(1, 0, 'row', None, None, text='a', extractor='x', status=2**40)",
    ],
)
def test_an_outcome_that_cannot_be_stored_costs_its_record(own: Any, outcome: str) -> None:
    found, _ = own(f"{READ}yield {outcome}\n    yield text(options, 5)")
    assert [o.reason for o in found] == ["crashed"] + [None] * (len(found) - 1)
    assert found[-1].offset == 5


def test_texts_of_a_users_reader_are_cleaned(own: Any) -> None:
    (found,), _ = own(
        "def read(*_):\n    yield Outcome(1, 0, 'row', 'u\\ud800', None, text='a\\0b\\ud800', extractor='x')"
    )
    assert (found.url, found.text) == ("u\ufffd", "ab\ufffd")


def test_what_is_no_outcome_at_all_is_the_modules_fault(own: Any) -> None:
    with pytest.raises(UsageError, match="expected Outcome, got dict"):
        own("def read(*_):\n    yield {}")


NAMESPACES = ["--5", "²", "9" * 5000, "-", "+0", "٠", "1e3", "0x0", "0_0", "٣", "0.0", "NaN", "1" * 30, "－1"]


def test_namespaces_that_are_no_numbers_are_counted(tmp_path: Path, data_dir: Path) -> None:
    made = "".join(
        test_mediawiki.page(2 * i, "odd").replace("<ns>0<", f"<ns>{ns}<") + test_mediawiki.page(2 * i + 1, "good")
        for i, ns in enumerate(NAMESPACES)
    )
    (tmp_path / "a.xml").write_text(test_mediawiki.HEAD + made, encoding="utf-8")
    assert [o.reason for o in outcomes("mediawiki", tmp_path)] == ["bad_row", None] * len(NAMESPACES)
    found = outcomes("mediawiki", data_dir / "hostile", pattern="B129-namespace-numbers.xml")
    assert [o.reason for o in found] == ["bad_row", None] * 6
    assert all(f"B129G{i}-END" in (o.text or "") for i, o in enumerate(found[1::2]))


def test_negative_namespaces_are_other_ones(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(test_mediawiki.HEAD + test_mediawiki.page(1, "Special", ns=-1), encoding="utf-8")
    assert [o.reason for o in outcomes("mediawiki", tmp_path)] == ["other_namespace"]
    assert [o.reason for o in outcomes("mediawiki", tmp_path, namespaces=[-1])] == [None]


@pytest.mark.parametrize("length", ["²", "-5", "+5", "1_0", "٣", "9" * 30, "9" * 5000, "0x10", "1e3", "5 5", ""])
@pytest.mark.parametrize("container", ["plain", "gzip"])
def test_a_length_that_is_no_number_costs_at_most_its_record(tmp_path: Path, length: str, container: str) -> None:
    made = [pages(3)[0], record("http://example.org/odd", page(1), length=length), pages(3)[2]]
    (tmp_path / "a.warc").write_bytes(members(made) if container == "gzip" else b"".join(made))
    found = outcomes("files", tmp_path, pattern="*.warc")
    assert {o.url for o in found if o.html} >= {"http://example.org/0", "http://example.org/2"}
    assert len(found) == 3


def by_index(folder: Path, lines: list[dict[str, str]]) -> dict[str | None, int]:
    """Reasons of the lines of an index, all of them selected."""
    (folder / "c.gz").write_bytes(gzip.compress(b"".join(b"k 1 " + json.dumps(x).encode() + b"\n" for x in lines)))
    select: Any = SimpleNamespace(statuses=(), mimes=(), languages=(), domains=())
    file: Any = SimpleNamespace(path=folder / "c.gz", size=1)
    return reasons(list(cdx.read(file, select, lambda *_: b"12345", archives.ReadOptions(), FileFacts())))


def test_places_of_an_index_that_are_no_numbers_are_bad_rows(tmp_path: Path) -> None:
    places = [("²", "5"), ("٣", "5"), ("0", "1_0"), ("0", "-5"), ("9" * 30, "5"), ("0", "0")]
    lines = [{"filename": "a", "offset": offset, "length": length} for offset, length in places]
    lines += [{"filename": name, "offset": "0", "length": "5"} for name in ("\ud800", "a\0", "../a", "/a", "a\\b")]
    assert by_index(tmp_path, lines) == {"bad_row": len(lines)}


def test_an_index_that_names_a_place_with_and_without_a_url_is_read(tmp_path: Path) -> None:
    place = {"filename": "a", "offset": "0", "length": "5"}
    assert by_index(tmp_path, [{**place, "url": "http://a.example/"}, place]) == {"damaged": 2}


def test_a_character_reference_of_any_length_is_read(tmp_path: Path) -> None:
    from corpusmill.extractor.meta import meta
    from corpusmill.readers.text import unescaped

    number = "9" * 5000
    assert unescaped(f"a &#{number}; b &amp; &#65;") == "a \ufffd b & A"
    assert meta(f'<title>T</title><meta name="author" content="x&#{number};">').author == "x\ufffd"
