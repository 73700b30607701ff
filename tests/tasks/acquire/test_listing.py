"""What a source lists: links followed, files of tools left out and counted, all that a kind reads (B96, B97, B102)."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusmill.errors import NotFound, Unavailable, UsageError
from corpusmill.readers.warc import FileFacts
from corpusmill.store import open_store
from mill import cli
from tasks import acquire
from tasks.acquire.tree import names
from tasks.acquire.tree.listing import Listing, reported
from tasks.acquire.tree.pointers import is_pointer
from tasks.chain import build
from tests import golden
from tests.servers import S3Server
from tests.tasks.acquire.reading import outcomes, reasons, recipe

ROW = b'{"text": "The river is wide."}\n'
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab12" * 16 + b"\nsize 73400320\n"


def put(root: Path, *paths: str, data: bytes = ROW) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(data) if path.endswith(".gz") else data)


def listed(kind: str, root: Path | str, **keys: Any) -> tuple[list[str], dict[str, dict[str, int]]]:
    """Locators of the files that are read, and what is left out."""
    keys |= {"module": "json"} if kind == "own" else {}
    with reported() as reports:
        found = [unit.locator for unit in acquire.single(recipe(kind, root, **keys))]
    (report,) = reports
    assert sum(report.to_json()["matched"].values()) == len(report.sizes)
    return found, report.to_json()["left_out"]


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/c.jsonl", "elsewhere/deep/d.jsonl", "blobs/b1", "root/plain/a.jsonl")
    (tmp_path / "root/linked").symlink_to("../elsewhere")
    (tmp_path / "root/b.jsonl").symlink_to("../blobs/b1")
    (tmp_path / "root/plain/up").symlink_to("../../root")
    (tmp_path / "elsewhere/here").symlink_to(".")
    found, left = listed("jsonl", tmp_path / "root")
    assert found == ["b.jsonl", "linked/c.jsonl", "linked/deep/d.jsonl", "plain/a.jsonl"]
    assert left == {"loop": {"folder": 2}}
    assert listed("jsonl", tmp_path / "root", pattern="**/*.jsonl")[0] == found
    assert listed("jsonl", tmp_path / "root", pattern="linked/*.jsonl")[0] == ["linked/c.jsonl"]
    assert len(outcomes("jsonl", tmp_path / "root")) == 4


@pytest.mark.parametrize("name", ["gone.jsonl", "gone", "plain/gone.jsonl.gz"])
def test_a_link_to_nothing_is_an_error(tmp_path: Path, name: str) -> None:
    put(tmp_path, "plain/a.jsonl")
    (tmp_path / name).symlink_to("../nowhere/x")
    with pytest.raises(Unavailable, match=f"{name} is a link to nothing") as raised:
        listed("jsonl", tmp_path)
    assert "nowhere/x" in raised.value.why


@pytest.mark.parametrize("name", ["gone.txt", ".#a.jsonl", "a.jsonl.lock"])
def test_a_link_to_nothing_that_nobody_reads_is_none(tmp_path: Path, name: str) -> None:
    """As editors leave them to mark a file that is open."""
    put(tmp_path, "a.jsonl")
    (tmp_path / name).symlink_to("user@host.1234")
    assert listed("jsonl", tmp_path)[0] == ["a.jsonl"]


def test_a_file_of_git_annex_that_was_not_fetched_says_how(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to(".git/annex/objects/xx/yy/SHA256E-s9--0.jsonl")
    with pytest.raises(Unavailable) as raised:
        listed("jsonl", tmp_path)
    assert "git annex get" in raised.value.do


TOOLS = {
    "hidden": ["._a.jsonl", ".a.jsonl.swp"],
    "unfinished": ["b.jsonl.tmp", "b.jsonl.part", "b.jsonl.crdownload", "b.jsonl.gz.incomplete", "B.JSONL.PART"],
    "backup": ["a.jsonl~", "a.jsonl.bak", "#a.jsonl#", "a.jsonl.orig"],
    "checksum": ["a.jsonl.md5", "a.jsonl.sha256", "MD5SUMS", "sha256sums.txt", "a.jsonl.asc", "a.jsonl.sha256sum"],
    "index": ["a.jsonl.idx", "a.jsonl.gz.index", "a.cdxj.gz"],
    "mark": ["_SUCCESS", "Thumbs.db", "_metadata"],
}


@pytest.mark.parametrize("pattern", [None, "**/*", "**/*.jsonl*", "*"])
def test_files_of_tools_are_left_out_and_counted(tmp_path: Path, pattern: str | None) -> None:
    put(tmp_path, "a.jsonl", "b.jsonl.gz", *(name for found in TOOLS.values() for name in found))
    put(tmp_path, ".ipynb_checkpoints/a-checkpoint.jsonl", "__MACOSX/x.jsonl", "_temporary/0/y.jsonl")
    found, left = listed("jsonl", tmp_path, **({"pattern": pattern} if pattern else {}))
    assert found == ["a.jsonl", "b.jsonl.gz"]
    counts = {why: sum(n for suffix, n in by.items() if suffix != "folder") for why, by in left.items()}
    assert counts == {why: len(found) for why, found in TOOLS.items()}
    assert (left["hidden"]["folder"], left["mark"]["folder"]) == (1, 2)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [("*.tmp", "b.jsonl.tmp"), (".hidden/*.jsonl", ".hidden/c.jsonl"), ("**/.d.jsonl", ".d.jsonl"), ("*.md5", "a.md5")],
)
def test_a_pattern_may_ask_for_them(tmp_path: Path, pattern: str, wanted: str) -> None:
    put(tmp_path, "a.jsonl", "b.jsonl.tmp", ".hidden/c.jsonl", ".d.jsonl", "a.md5", "a.idx")
    assert listed("jsonl", tmp_path, pattern=pattern)[0] == [wanted]


READ = {
    "jsonl": ["a.jsonl", "a.JSONL", "a.ndjson.gz", "a.jsonlines", "a.jsonl.zst", "a.jsonl.bz2", "c4.json.gz"],
    "parquet": ["a.parquet", "a.PARQUET", "a.pq"],
    "text": ["a.txt", "a.txt.gz", "a.text.xz", "pg1.txt.utf-8", "A.TXT"],
    "files": [
        *("a.warc", "a.warc.gz", "a.warc.zst", "a.warc.lz4", "a.arc", "a.arc.gz", "a.wet.gz", "A.WARC.GZ"),
        *("CC-1.warc.wet.gz", "a.arc.lz4", "a.wet"),
    ],
    "mediawiki": ["w.xml", "w-articles1.xml-p1p9.bz2", "w.xml.gz", "w.xml.zst", "w.XML.xz"],
    "latex": ["a.tex", "a.tar", "a.gz", "a.tgz", "a.tar.zst"],
    "code": ["a.tar", "a.tgz", "a.tar.gz", "A.TAR.XZ"],
}
OTHERS = {
    "jsonl": ["dataset_info.json", "README.md", "a.jsonl.zip"],
    "parquet": ["a.csv", "a.arrow"],
    "text": ["a.md", "a.pdf"],
    "files": ["a.warc.bz2", "a.warc.xz", "a.wat.gz", "warc.paths.gz"],
    "mediawiki": ["w.sql.gz", "index.txt.bz2"],
    "latex": ["a.pdf", "a.zip"],
    "code": ["a.whl", "a.zip", "notes.txt"],
}


@pytest.mark.parametrize("kind", READ)
def test_without_a_pattern_all_names_that_the_kind_reads_are_listed_and_the_others_counted(
    kind: str, tmp_path: Path
) -> None:
    put(tmp_path, *READ[kind], *OTHERS[kind])
    found, left = listed(kind, tmp_path)
    assert found == sorted(READ[kind])
    assert sum(left["other"].values()) == len(OTHERS[kind])
    put(tmp_path, *(f"deep/er/{name}" for name in READ[kind]))
    deep, _ = listed(kind, tmp_path)
    assert len(deep) == (2 * len(found) if kind != "code" else len(found) + 1)


def test_all_archives_of_the_samples_are_listed(data_dir: Path) -> None:
    root = data_dir / "warc-samples"
    found, left = listed("files", root)
    assert len(found) >= 38
    assert len(found) + sum(sum(by.values()) for by in left.values()) == sum(p.is_file() for p in root.rglob("*"))
    assert {suffix for suffix in left["other"] if "arc" in suffix or "wet" in suffix} == set()


def test_a_bucket_is_listed_as_a_folder(tmp_path: Path, s3_uri: str, s3_server: S3Server, brief_waits: None) -> None:
    paths = ["a.jsonl", "d/b.jsonl.gz", "a.jsonl.md5", ".h/c.jsonl", "d/._b.jsonl", "n.txt", "b.jsonl.tmp", "x/a.tar"]
    put(tmp_path, *paths)
    bucket, _, prefix = s3_uri.removeprefix("s3://").partition("/")
    for path in paths:
        s3_server.client().put_object(Bucket=bucket, Key=f"{prefix}/{path}", Body=(tmp_path / path).read_bytes())
    (here, left), (there, gone) = listed("jsonl", tmp_path), listed("jsonl", s3_uri)
    assert here == there == ["a.jsonl", "d/b.jsonl.gz"]
    assert gone == {**left, "hidden": {".jsonl": 2}}  # a bucket has no folders: the file in one is counted
    assert listed("code", s3_uri, pattern="x/*")[0] == ["x/a.tar"]


def test_folders_are_trees_of_code_and_are_not_entered(tmp_path: Path) -> None:
    put(tmp_path, "one/a.py", "one/inner/b.py", "two.tar", ".git/config", "readme.txt")
    assert listed("code", tmp_path) == (["one", "two.tar"], {"hidden": {"folder": 1}, "other": {".txt": 1}})
    assert listed("code", tmp_path, pattern="**/*")[0] == ["one", "two.tar"]
    assert listed("code", tmp_path, pattern="one/*")[0] == ["one/inner"]
    assert listed("code", tmp_path, pattern=".")[0] == ["."]


def test_pipes_and_odd_names_are_counted(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", "back\\slash.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))).write_bytes(ROW)
    found, left = listed("jsonl", tmp_path)
    assert found == ["a.jsonl"]
    assert left == {"odd name": {".jsonl": 2}, "special": {".jsonl": 1}}


@pytest.mark.parametrize("pattern", ["", "/x", "a/../b", "x/**", "**"])
def test_a_pattern_that_is_no_glob_below_the_root_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="pattern"):
        listed("jsonl", tmp_path, pattern=pattern)


def test_samples_are_drawn_of_the_files_that_are_read(tmp_path: Path) -> None:
    put(tmp_path, *(f"{i}.tex" for i in range(5)), *(f"{i}.pdf" for i in range(50)))
    assert len(listed_drawn(tmp_path, 5)) == 5


def listed_drawn(root: Path, most: int) -> list[str]:
    return [unit.locator for unit in acquire.single(recipe("latex", root, max_files=most))]


def test_suffixes() -> None:
    assert [names.suffix(n) for n in ("a/b.jsonl.gz", "x.warc.GZ", "a.txt", "a.b/c", "a", "v1.2.tar.zst")] == [
        *(".jsonl.gz", ".warc.gz", ".txt", "(none)", "(none)", ".tar.zst")
    ]


POINTERS = {
    "Git LFS": POINTER,
    "with CRLF": POINTER.replace(b"\n", b"\r\n"),
    "with an extension": POINTER.replace(b"oid ", b"ext-0-foo sha256:" + b"cd34" * 16 + b"\noid "),
    "of the first version": POINTER.replace(b"git-lfs.github.com", b"hawser.github.com"),
    "git-annex": b"/annex/objects/SHA256E-s73400320--ab12.jsonl\n",
}


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("text", "p.txt"), ("jsonl", "p.jsonl"), ("jsonl", "p.jsonl.zst"), ("parquet", "p.parquet")),
        *(("files", "p.warc"), ("mediawiki", "p.xml"), ("latex", "p.tex"), ("code", "tree/p.json"), ("code", "p.tar")),
    ],
)
def test_a_pointer_is_no_document_of_any_kind(kind: str, name: str, pointer: str, tmp_path: Path) -> None:
    put(tmp_path, name, data=POINTERS[pointer])
    facts = FileFacts()
    assert reasons(outcomes(kind, tmp_path, facts)) == {"pointer": 1}
    assert (facts.counts["pointer"] == 1) == (name != "tree/p.json")


def test_what_speaks_of_pointers_is_none() -> None:
    assert not is_pointer(b"# About\n" + POINTER)
    assert not is_pointer(POINTER + b"x" * 1024)
    assert not is_pointer(b"version https://git-lfs.github.com/spec/v1\nis the first line of a pointer.\n")
    assert not is_pointer(b"/annex/objects/ is where git-annex keeps files.\n")
    assert not is_pointer(b"")


def test_an_input_of_a_paper_that_is_a_pointer_is_not_put_into_it(tmp_path: Path) -> None:
    main = b"\\documentclass{a}\\begin{document}One.\\input{two}\\end{document}"
    with tarfile.open(tmp_path / "p.tar", "w") as tar:
        for name, data in (("main.tex", main), ("two.tex", POINTER)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    (paper,) = outcomes("latex", tmp_path)
    assert "git-lfs" not in str(paper.text)


def inline(stage: str, fn: Callable[[Any], Any], units: Any) -> list[Any]:
    return [fn(unit) for unit in units]


def test_plan_and_funnel_say_what_was_matched_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "root", "a.warc", data=gzip.decompress(golden.record("https://a.example/", golden.page("river", 1))))
    put(tmp_path / "root", "a.warc.md5", "notes.txt")
    file = tmp_path / "r.toml"
    file.write_text(f'name = "t"\n[source.s]\nkind = "files"\nroot = "{tmp_path}/root"\n[pack]\nvocab_size = 512\n')
    at = ("--store", str(tmp_path / "store"))
    told = [{"source": "s", "matched": {".warc": 1}, "left_out": {"checksum": {".md5": 1}, "other": {".txt": 1}}}]
    assert cli.run(["plan", str(file), *at, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["listings"] == told
    made = recipe("files", tmp_path / "root")
    store = open_store(tmp_path / "store", create=True)
    first = build(made, store, inline)
    for _ in range(2):
        assert cli.run(["funnel", "t", *at, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["listings"] == told
    assert cli.run(["funnel", "t", *at]) == 0
    assert "left out    s: 1 .md5 (checksum), 1 .txt (other)" in capsys.readouterr().out
    put(tmp_path / "root", "b.txt")
    again = build(made, store, inline)
    assert (again.digest, again.units_run) == (first.digest, {}), "what is left out is no part of a dataset"
    told[0]["left_out"] = {"checksum": {".md5": 1}, "other": {".txt": 2}}
    assert cli.run(["funnel", "t", *at, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["listings"] == told


def test_where_nothing_is_read_the_error_says_what_lies_there(tmp_path: Path) -> None:
    put(tmp_path / "source", "a.csv", "b.csv")
    with pytest.raises(NotFound, match="its sources list no file") as raised:
        build(recipe("jsonl", tmp_path / "source"), open_store(tmp_path / "store", create=True), inline)
    assert "left out s: 2 .csv (other)" in raised.value.why


def test_a_listing_counts_by_suffix() -> None:
    listing = Listing("s", {"a.jsonl": 1, "b/c.jsonl": 2, "d.jsonl.gz": 3})
    listing.left_out["hidden", ".txt"] += 2
    assert listing.to_json() == {
        "source": "s",
        "matched": {".jsonl": 2, ".jsonl.gz": 1},
        "left_out": {"hidden": {".txt": 2}},
    }
