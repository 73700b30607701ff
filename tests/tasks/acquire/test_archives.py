"""Tarballs: what `tarfile` finds in sound ones, and bounded time and memory in others."""

from __future__ import annotations

import gzip
import io
import itertools
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.places import python_environment
from corpusmill.readers.text import clean_text
from tasks.acquire.streams import Damage
from tasks.acquire.tree.archives import BLOCK, MAX_HEADER, Entry, members
from tests.tasks.acquire.reading import outcomes

CODE = b"# SPDX-License-Identifier: MIT\nprint(1)\n"
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
NAMES = ["a.py", "d/", "d/b.py", "l" * 99, "m" * 90 + "/" + "n" * 80, "ü/漢.py", "p" * 200 + "/q.py", "e/" * 60 + "f"]


def head(name: str, size: int | bytes, kind: bytes = b"0", checksum: bytes | None = None) -> bytes:
    """A header of ustar."""
    block = bytearray(BLOCK)
    block[: len(name)] = name.encode()
    block[100:124] = b"0000644\0" + b"0000000\0" * 2
    block[124:136] = size.rjust(12) if isinstance(size, bytes) else b"%011o\0" % size
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = checksum or b"%06o\0 " % sum(block)
    return bytes(block)


def file(name: str, data: bytes = CODE, size: int | bytes | None = None) -> bytes:
    return head(name, len(data) if size is None else size) + data + bytes(-len(data) % BLOCK)


END = bytes(2 * BLOCK)


def by_tarfile(data: bytes) -> list[Entry]:
    found = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", errors="surrogateescape") as tar:
        for info in tar:
            kind = "file" if info.isreg() else "folder" if info.isdir() else "link"
            held = tar.extractfile(info) if kind == "file" else None
            content = held.read() if held else None
            found.append(Entry(clean_text(info.name)[0], info.offset, info.size, content, kind))
    return found


def cut(data: bytes, step: int) -> Iterator[bytes]:
    return (data[i : i + step] for i in range(0, len(data), step))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("step", [1, 511, 10**6])
def test_members_are_those_that_tarfile_finds(format: str, step: int) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=FORMATS[format], pax_headers={"comment": "c" * 600}) as tar:
        for i, name in enumerate(NAMES):
            info = tarfile.TarInfo(name.rstrip("/"))
            info.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.SYMTYPE if i == 3 else tarfile.REGTYPE
            info.size = 0 if info.type != tarfile.REGTYPE else 300 * i
            info.linkname = "x" * (150 if format != "ustar" else 50) if i == 3 else ""
            info.mtime = 1.5 if format == "pax" else 1
            try:
                tar.addfile(info, io.BytesIO(bytes([i]) * info.size))
            except ValueError:
                assert format == "ustar"  # names that do not fit
    assert list(members(cut(out.getvalue(), step), 10**6)) == by_tarfile(out.getvalue())


def test_members_of_real_tarballs_are_those_that_tarfile_finds(data_dir: Path) -> None:
    files = sorted((data_dir / "code").rglob("*.tar.gz"))
    for path in files[:12]:
        data = gzip.decompress(path.read_bytes())
        assert list(members(cut(data, 2**16), 2**30)) == by_tarfile(data), path


@given(st.binary(max_size=1500), st.integers(0, 2000), st.integers(1, 700))
def test_no_bytes_raise_anything_but_damage(noise: bytes, at: int, step: int) -> None:
    data = bytearray(file("a.py") + head("x", 20, b"x") + b"20 path=bb.py\n" + bytes(498) + file("b.py") + END)
    data[at : at + len(noise)] = noise
    try:
        found = list(members(cut(bytes(data), step), 10**6))
    except Damage:
        return
    assert all(entry.size >= 0 for entry in found)


@pytest.mark.parametrize("size", [b"-1", b"+5", b"1_0", b"0o7", "²".encode(), b"\xff" * 12, b"\x80" + b"\xff" * 11])
def test_a_size_that_is_no_number_is_damage(size: bytes) -> None:
    with pytest.raises(Damage, match="damaged"):
        list(members([file("a.py", size=size) + END], 10**6))
    pax = b"%d size=%s\n" % (9 + len(size), size)
    with pytest.raises(Damage):
        list(members([head("x", len(pax), b"x") + pax + bytes(-len(pax) % BLOCK) + file("a.py") + END], 10**6))


@pytest.mark.parametrize("size", [2**40, 2**62])
def test_a_size_beyond_the_end_is_truncated(size: int) -> None:
    stated = b"\x80" + size.to_bytes(11, "big")
    with pytest.raises(Damage, match="truncated"):
        list(members([file("a.py", size=stated) + END], 10**6))


def held_bytes(pieces: Iterator[bytes]) -> tuple[list[Entry], str, int]:
    """What is found, why it ends, and the most bytes that were held."""
    found: list[Entry] = []
    tracemalloc.start()
    try:
        why = ""
        try:
            for entry in members(pieces, 2**20):
                found.append(entry)
        except Damage as err:
            why = err.reason
        return found[:10], why, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ZEROS = bytes(2**20)


@pytest.mark.parametrize("kind", [b"x", b"X", b"g", b"L", b"K"])
def test_a_header_of_any_length_is_not_held_and_costs_its_member_at_most(kind: bytes) -> None:
    size = 256 * 2**20
    zeros = itertools.repeat(ZEROS, 256)
    rest = file("a.py") + file("b.py") + END
    found, why, held = held_bytes(itertools.chain([head("h", size, kind)], zeros, [rest]))
    assert ([entry.path for entry in found], why) == (["a.py", "b.py"], "")
    assert found[0].data == (CODE if kind == b"g" else None)
    assert found[1].data == CODE
    assert held < 4 * 2**20


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_rows_of_headers_are_read_without_recursion(kind: bytes) -> None:
    one = head("h", 512, kind) + b"20 comment=12345678\n".ljust(512, b"\0")
    found, why, held = held_bytes(itertools.chain(itertools.repeat(one, 3000), [file("a.py") + END]))
    assert (len(found), why) == (1, "")
    assert held < 2**20


def test_global_headers_do_not_pile_up() -> None:
    body = b"".join(b"%d k%06d=%s\n" % (1021, i, b"v" * 1007) for i in range(1000))
    assert len(body) < MAX_HEADER
    one = head("g", len(body), b"g") + body + bytes(-len(body) % BLOCK)
    found, why, held = held_bytes(itertools.chain(itertools.repeat(one, 50), [file("a.py") + END]))
    assert (len(found), why) == (1, "")
    assert held < 8 * 2**20


def test_maps_of_sparse_files_are_not_held() -> None:
    block = bytearray(head("s", 0, b"S"))
    block[482] = 1
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    more = (b"00000000001\0" * 42 + b"\x01").ljust(BLOCK, b"\0")
    rows = itertools.chain([bytes(block)], itertools.repeat(more, 5000), [bytes(BLOCK), file("a.py"), END])
    found, why, held = held_bytes(rows)
    assert [(entry.path, entry.kind) for entry in found] == [("s", "sparse"), ("a.py", "file")]
    assert why == ""
    assert held < 2**20


PEAK = """
import sys
from tests.tasks.acquire.reading import outcomes, reasons
keys = {"licences": ["*"]} if sys.argv[1] == "code" else {}
found = outcomes(sys.argv[1], sys.argv[2], **keys)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(reasons(found), int(peak) // 1024)
"""


@pytest.mark.parametrize("kind", ["code", "latex"])
def test_a_tarball_that_is_a_bomb_ends_without_being_held(kind: str, tmp_path: Path) -> None:
    parts = [gzip.compress(head("h", 400 * 2**20, b"x")), gzip.compress(ZEROS) * 400, gzip.compress(file("a.py") + END)]
    (tmp_path / "2301.00001.tar.gz").write_bytes(b"".join(parts))
    call = [sys.executable, "-c", PEAK, kind, str(tmp_path)]
    root = Path(__file__).parents[3]
    said = subprocess.run(call, cwd=root, env=python_environment(), capture_output=True, text=True, check=True).stdout
    assert "bomb" in said or "too_large" in said or "no_main_file" in said, said
    assert int(said.split()[-1]) < 300


def test_licence_files_by_the_thousand_are_not_held(tmp_path: Path) -> None:
    text = (b"word " * 200_000)[: 2**20]
    with gzip.open(tmp_path / "a.tar.gz", "wb", 1) as out:
        for i in range(50):
            out.write(file(f"d{i}/LICENSE", text))
        out.write(file("a.py") + END)
    tracemalloc.start()
    found = outcomes("code", tmp_path, licences=["*"], languages=["python"])
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [o.reason for o in found if o.source_id == "a.py"] == [None]
    assert held < 64 * 2**20
