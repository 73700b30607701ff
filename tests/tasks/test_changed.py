"""A source whose files change: touched ones are hashed again and nothing else, other bytes are read and named (B98)."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusmill import plugins
from corpusmill.config import Recipe, parse_recipe
from corpusmill.errors import Refused, Unavailable
from corpusmill.store import Store, open_store
from mill import cli
from tasks import acquire, extract, ingest
from tasks.acquire import notes
from tasks.acquire.fetch.stamps import COARSE_NS, FINE_NS, Stamp
from tasks.acquire.fetch.transport import tree_files
from tasks.chain import build
from tasks.sources import origins
from tests import datasets, golden
from tests.servers import S3Server
from tests.tasks.acquire.reading import recipe
from tests.tasks.acquire.server import serve
from tests.tasks.ingest.crawls import OLD, add_crawl, locator, run
from tests.tasks.ingest.crawls import recipe as crawl_recipe

SETTLED_S = FINE_NS / 1e9 + 0.05


def rows(word: str) -> bytes:
    return "".join(json.dumps({"text": f"{word} {i} lies by the river"}) + "\n" for i in range(3)).encode()


def table(word: str) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": [f"{word} lies by the river"]}), out, compression="none", use_dictionary=False)
    return out.getvalue()


def wiki(word: str) -> bytes:
    page = f"<page><title>A</title><ns>0</ns><id>1</id><revision><text>{word} flows.</text></revision></page>"
    return f"<mediawiki><siteinfo><base>https://w.example/wiki/Main</base></siteinfo>{page}</mediawiki>".encode()


def paper(word: str) -> bytes:
    return f"\\documentclass{{article}}\\begin{{document}}{word}\\end{{document}}".encode()


def sdist(word: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        data = f"# SPDX-License-Identifier: MIT\nprint('{word}')\n".encode()
        info = tarfile.TarInfo("a-1/a.py")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


KINDS: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "jsonl": ("a.jsonl", rows),
    "parquet": ("a.parquet", table),
    "text": ("a.txt", lambda word: f"{word} lies by the river.\n".encode()),
    "files": ("a.warc.gz", lambda word: golden.record("https://a.example/1", golden.page(word, 1))),
    "mediawiki": ("a.xml", wiki),
    "latex": ("a.tex", paper),
    "code": ("a.tar", sdist),
    "code, a folder": ("tree/a.py", lambda word: f"# SPDX-License-Identifier: MIT\nprint('{word}')\n".encode()),
    "own": ("a.tsv", lambda word: f"{word}\n".encode()),
}
OWN = """
from tasks.acquire.texts import document
VERSION = 1
def read(unit, file, config, options, facts):
    text = file.path.read_text()
    yield document(text, options, offset=0, record_type="row", extractor="text")
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def source(kind: str, root: Path | str) -> Recipe:
    kind, own = kind.partition(",")[0], {"module": "changing_source"} if kind == "own" else {}
    return recipe(kind, root, **own)


def read(made: Recipe, store: Store) -> tuple[bool, str]:
    """Whether the only unit was finished before, and the sha256 of what it read."""
    (unit,) = acquire.plan(made, store)
    source, documents = extract.extract_file(unit, made, store)
    assert documents.receipt.counters["extract.docs_out"] >= 1
    return documents.reused, str(extract.inputs_of(source.receipt)[0].sha256)


def is_noted(made: Recipe, store: Store) -> bool:
    (unit,) = acquire.plan(made, store)
    return notes.known(unit, store) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_kind_of_source_touched_files_are_reused_and_other_bytes_are_read(
    kind: str, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "changing_source.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "changing_source", raising=False)
    for cached in (plugins.module, plugins.identity):
        cached.cache_clear()
    name, bytes_of = KINDS[kind]
    file = tmp_path / "root" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes_of("river"))
    made = source(kind, tmp_path / "root")
    time.sleep(SETTLED_S)
    reused, first = read(made, store)
    assert not reused
    assert is_noted(made, store)
    assert read(made, store) == (True, first)

    file.touch()
    assert not is_noted(made, store)
    assert read(made, store) == (True, first)

    before = file.stat()
    file.write_bytes(bytes_of("towns"))  # of equal size, in place, and the time is set back
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size or kind == "files"
    reused, second = read(made, store)
    assert not reused
    assert second != first

    replaced = file.with_name("replaced")
    replaced.write_bytes(bytes_of("river"))
    shutil.copystat(file, replaced)
    replaced.replace(file)
    assert read(made, store) == (True, first), "what was made of these bytes is stored"


def test_edits_of_equal_size_within_a_tick_are_never_missed(tmp_path: Path, store: Store) -> None:
    made = source("text", tmp_path / "root")
    (tmp_path / "root").mkdir()
    file = tmp_path / "root" / "a.txt"
    seen = set()
    for number in range(40):
        file.write_bytes(f"text {number:02d}".encode())
        seen.add(read(made, store)[1])
        assert not is_noted(made, store) or time.time_ns() - file.stat().st_ctime_ns > FINE_NS
    assert len(seen) == 40
    time.sleep(SETTLED_S)
    assert read(made, store)[0]
    assert is_noted(made, store), "read again, the note may be trusted"


@pytest.mark.parametrize(
    ("last_ns", "tick"),
    [(5 * 10**9 + 1, FINE_NS), (5 * 10**9, COARSE_NS), (5 * 10**9 + 10_000_000, FINE_NS), (10**12, COARSE_NS)],
)
def test_a_stamp_vouches_for_bytes_that_were_read_after_its_tick(last_ns: int, tick: int) -> None:
    assert Stamp("", last_ns).settled(last_ns + tick + 1)
    assert not Stamp("", last_ns).settled(last_ns + tick)
    assert not Stamp("", last_ns).settled(last_ns)
    assert not Stamp("", last_ns).settled(last_ns - 10**12), "the clock was set back, or that of the file is ahead"


def test_a_file_that_is_written_to_while_it_is_read_is_said(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").mkdir()
    file = tmp_path / "root" / "a.jsonl"
    file.write_bytes(rows("river"))
    made = source("jsonl", tmp_path / "root")
    real = acquire.read

    def and_write(*args: Any) -> Any:
        yield from real(*args)
        file.write_bytes(rows("river") + rows("more"))

    monkeypatch.setattr(acquire, "read", and_write)
    (unit,) = acquire.plan(made, store)
    with pytest.raises(Unavailable, match=r"a\.jsonl of source 's' was written to while it was read"):
        extract.extract_file(unit, made, store)
    assert not store.list("receipts/extract/")
    monkeypatch.undo()
    assert not read(made, store)[0]


def test_a_damaged_note_is_none(tmp_path: Path, store: Store) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.jsonl").write_bytes(rows("river"))
    made = source("jsonl", tmp_path / "root")
    time.sleep(SETTLED_S)
    read(made, store)
    (name,) = store.list(notes.FOLDER)
    path = Path(store.uri) / name
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-9])
    assert not is_noted(made, store)
    assert read(made, store)[0]


def test_a_blocks_bytes_are_known_by_themselves(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.acquire.units.BLOCK_BYTES", 64)
    (tmp_path / "root").mkdir()
    file = tmp_path / "root" / "a.jsonl"
    file.write_bytes(rows("river"))
    made = source("jsonl", tmp_path / "root")

    def run() -> int:
        return sum(not extract.extract_file(unit, made, store)[1].reused for unit in acquire.plan(made, store))

    assert run() == 2
    data = file.read_bytes()
    file.write_bytes(data[:-20] + b'R"}\n'.rjust(20, b"x"))
    assert run() == 1, "the first block has the bytes that it had"


def test_in_a_bucket_another_etag_means_hash_again(
    tmp_path: Path, store: Store, s3_uri: str, s3_server: S3Server, brief_waits: None
) -> None:
    bucket, _, prefix = s3_uri.removeprefix("s3://").partition("/")
    client = s3_server.client()

    def put(data: bytes, **more: Any) -> None:
        client.put_object(Bucket=bucket, Key=f"{prefix}/a.jsonl", Body=data, **more)

    made = source("jsonl", s3_uri)
    put(rows("river"))
    reused, first = read(made, store)
    assert not reused
    assert is_noted(made, store)
    put(rows("towns"))
    assert not is_noted(made, store)
    reused, second = read(made, store)
    assert (reused, second == first) == (False, False)
    put(rows("river"), Metadata={"touched": "yes"})
    assert read(made, store) == (True, first)


def test_files_of_a_crawl_are_asked_for_their_etag_by_verify_alone(tmp_path: Path, store: Store) -> None:
    add_crawl(tmp_path / "tree", OLD)
    file = tmp_path / "tree" / locator(OLD, 1)
    with serve(tmp_path / "tree") as server:
        made = crawl_recipe(server.url, OLD)
        ((digest, manifest),) = run(made, store).published
        asked = server.sizes.total()
        assert run(made, store).published == ()
        assert server.sizes.total() == asked
        assert origins.changed_files(digest, manifest, store) == ((), ())
        file.write_bytes(golden.record("https://a.example/other", golden.page("tower", 1)))
        assert origins.changed_files(digest, manifest, store) == ((f"crawl/{locator(OLD, 1)}",), ())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A source of one file, and a recipe of it that was built and ingested into `store` beside it."""
    folder = tmp_path_factory.mktemp("changed")
    (folder / "source").mkdir()
    (folder / "source" / "a.jsonl").write_bytes(rows("river"))
    file = folder / "r.toml"
    file.write_text(
        f'name = "t"\n[source.s]\nkind = "jsonl"\nroot = "{folder}/source"\n[language]\nkeep = ["*"]\nmin_score = 0\n'
        f'[filter]\nrules = "{folder}/rules.toml"\n[pack]\nseq_len = 32\nvocab_size = 512\n'
    )
    (folder / "rules.toml").write_text(
        'version = 1\ndefinition = "datatrove"\n[[rule]]\nname = "too_few_words"\nmeasure = "word_count"\nmin = 1\n'
        'source = "a test"\nsays = "It has no word."\n'
    )
    time.sleep(SETTLED_S)
    return folder, file


def answer(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    assert cli.run([*map(str, argv), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_build_plan_and_verify_name_the_changed_files_and_ingest_refuses(
    built: tuple[Path, Path], capsys: pytest.CaptureFixture[str], data_dir: Path
) -> None:
    folder, file = built
    changing, at = folder / "source" / "a.jsonl", ("--store", str(folder / "store"))
    run = ("--create-store", "--workers", "1")

    first = answer(capsys, "build", file, *at, *run)
    assert first["changed"] == []
    assert answer(capsys, "ingest", file, *at, *run)["published"]
    changing.touch()
    assert answer(capsys, "plan", file, *at)["changed"] == []
    assert answer(capsys, "verify", "t", "--sources", *at)["changed"] == []
    again = answer(capsys, "build", file, *at, *run)
    assert (again["units_run"], again["manifest"], again["changed"]) == (0, first["manifest"], [])

    changing.write_bytes(rows("towns"))
    planned = answer(capsys, "plan", file, *at)
    assert (planned["changed"], planned["done"]) == (["s/a.jsonl"], 0)
    assert answer(capsys, "verify", "t", "--sources", *at)["changed"] == ["s/a.jsonl"]
    assert cli.run(["verify", "t", "--sources", *at]) == 0
    assert "1 source file has other bytes than in this dataset: s/a.jsonl" in capsys.readouterr().out
    assert cli.run(["plan", str(file), *at]) == 0
    assert "changed     1 source file has other bytes" in capsys.readouterr().out
    assert cli.run(["ingest", str(file), *at, *run]) == 5
    assert "s/a.jsonl" in capsys.readouterr().err

    second = answer(capsys, "build", file, *at, *run)
    assert second["changed"] == ["s/a.jsonl"]
    assert second["manifest"] != first["manifest"]
    assert answer(capsys, "verify", "t", "--sources", *at)["changed"] == []
    assert answer(capsys, "verify", first["manifest"], "--sources", *at)["changed"] == ["s/a.jsonl"]
    changing.rename(changing.with_name("b.jsonl"))
    assert answer(capsys, "verify", "t", "--sources", *at)["gone"] == ["s/a.jsonl"]


def test_a_dataset_whose_sources_nobody_noted_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    datasets.publish(tmp_path / "store")
    assert cli.run(["verify", "tiny", "--sources", "--store", str(tmp_path / "store")]) == 3
    assert "does not know where the files" in capsys.readouterr().err


def test_addresses_of_origins_keep_no_password(tmp_path: Path, store: Store) -> None:
    made = recipe("common-crawl", "https://user:CANARY@a.example/crawl?sig=CANARY", crawls=["CC-MAIN-2026-30"])
    origins.keep("0" * 64, made, [], store)
    (name,) = store.list("runs/origins/")
    assert b"CANARY" not in store.get(name)
    assert b"https://a.example/crawl" in store.get(name)


def test_ingest_refuses_only_what_it_published(tmp_path: Path, store: Store) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.jsonl").write_bytes(rows("river"))

    def run(**keys: Any) -> ingest.Ingested:
        made = parse_recipe(
            {"name": "t", "source": {"s": {"kind": "jsonl", "root": str(tmp_path / "root"), **keys}}}, "test"
        )
        return ingest.ingest(made, store, lambda stage, fn, units: [fn(unit) for unit in units])

    assert len(run().published) == 1
    (tmp_path / "root" / "b.jsonl").write_bytes(rows("towns"))
    assert len(run().published) == 1
    (tmp_path / "root" / "b.jsonl").write_bytes(rows("paths"))
    with pytest.raises(Refused, match=r"s/b\.jsonl"):
        run()
    assert len(run(snapshot="later").published) == 1
    assert run(snapshot="later").published == ()
    assert {name for name, _ in tree_files(tmp_path / "root")} == {"a.jsonl", "b.jsonl"}


def test_a_killed_build_reads_the_new_bytes(tmp_path: Path, store: Store) -> None:
    """What a run had extracted before it was killed stays stored, and no dataset mixes it with the new bytes."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.jsonl").write_bytes(rows("river"))
    made = source("jsonl", tmp_path / "root")

    def killed(stage: str, fn: Any, units: Any) -> list[Any]:
        for job in units:
            extract.extract_file(job.item, made, store)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(made, store, killed)
    (tmp_path / "root" / "a.jsonl").write_bytes(rows("towns"))
    reused, _ = read(made, store)
    assert not reused
