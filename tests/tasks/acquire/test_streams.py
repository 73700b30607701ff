"""Compressed streams: frames without text are passed over; windows, dictionaries and ratios are bounded."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from corpusmill.readers.warc import FileFacts
from tasks.acquire import streams
from tasks.acquire.streams import Damage, decompressed
from tests.tasks.acquire.reading import outcomes, reasons

ROWS = [json.dumps({"id": f"r{i}", "text": f"text {i}"}).encode() + b"\n" for i in range(30)]
FRAMES = [zstandard.compress(b"".join(ROWS[i : i + 10])) for i in (0, 10, 20)]


def skip(payload: bytes, kind: int = 0) -> bytes:
    """A skippable frame."""
    return struct.pack("<II", 0x184D2A50 + kind, len(payload)) + payload


LAYOUTS: dict[str, list[bytes]] = {
    "sizes before each, as pzstd writes them": [part for f in FRAMES for part in (skip(struct.pack("<I", len(f))), f)],
    "a note in the middle": [FRAMES[0], skip(b"a note"), *FRAMES[1:]],
    "a seek table at the end": [*FRAMES, skip(b"\0" * 41, 14)],
    "all sixteen kinds, empty": [*(skip(b"", kind) for kind in range(16)), *FRAMES],
    "two and more in a row": [skip(b"one"), skip(b"two", 3), FRAMES[0], skip(b""), skip(b"x" * 7, 9), *FRAMES[1:]],
    "one that is longer than a piece": [FRAMES[0], skip(b"z" * 1_000_000), *FRAMES[1:], skip(bytes(300_000))],
    "one that holds the head of a frame": [skip(FRAMES[0][:4] * 3), *FRAMES],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("piece", [7, 2**18])
def test_frames_without_text_lose_no_row(layout, piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "READ_BYTES", piece)
    (tmp_path / "a.jsonl.zst").write_bytes(b"".join(LAYOUTS[layout]))
    assert [o.text for o in outcomes("jsonl", tmp_path)] == [json.loads(row)["text"] for row in ROWS]


@pytest.mark.parametrize("place", ["begin", "middle", "end"])
def test_b93_thirty_rows_in_three_frames_are_thirty_documents(place: str, data_dir: Path, tmp_path: Path) -> None:
    name = f"B93-{place}.jsonl.zst"
    (tmp_path / name).write_bytes((data_dir / "hostile" / name).read_bytes())
    assert reasons(outcomes("jsonl", tmp_path)) == {None: 30}


@pytest.mark.parametrize(
    ("tail", "reason"),
    [(skip(b"cut off")[:-3], "truncated"), (skip(b"")[:6], "truncated"), (skip(b"note") + b"no frame", "damaged")],
)
def test_a_broken_frame_without_text_is_said_behind_the_rows(tail: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.zst").write_bytes(b"".join(FRAMES) + tail)
    assert reasons(outcomes("jsonl", tmp_path)) == {None: 30, reason: 1}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
@pytest.mark.parametrize("zeros", [1, 512, 600_000])
def test_zeros_between_members_lose_no_row(pack: Callable[[bytes], bytes], zeros: int) -> None:
    packed = pack(b"one\n") + bytes(zeros) + pack(b"two\n") + bytes(zeros)
    assert b"".join(decompressed(io.BytesIO(packed))) == b"one\ntwo\n"
    with pytest.raises(Damage, match="damaged"):
        list(decompressed(io.BytesIO(packed + b"x")))


def zstd_bomb(window_log: int, mebibytes: int) -> bytes:
    """A frame of blocks of one repeated byte, with a window of 2 ** window_log."""
    block = struct.pack("<I", 1 << 1 | 128 * 1024 << 3)[:3] + b"a"
    last = struct.pack("<I", 1 | 1 << 1 | 1 << 3)[:3] + b"\n"
    return struct.pack("<I", 0xFD2FB528) + bytes([0, (window_log - 10) << 3]) + block * (8 * mebibytes) + last


def xz_of(dictionary: int, data: bytes) -> bytes:
    return lzma.compress(data, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": dictionary}])


BIG: dict[str, tuple[Callable[[], bytes], str]] = {
    "zstd, a window of 2 GiB": (lambda: zstd_bomb(31, 2100), "too_large"),
    "zstd, a window of 256 MiB behind a good frame": (lambda: FRAMES[0] + zstd_bomb(28, 300), "too_large"),
    "zstd, a window of 2 GiB behind a note": (lambda: skip(b"note") + zstd_bomb(31, 300), "too_large"),
    "zstd, a window of 128 MiB": (lambda: zstd_bomb(27, 700), "bomb"),
    "gzip": (lambda: gzip.compress(bytes(2**24), 9) * 18, "bomb"),
    "bzip2": (lambda: bz2.compress(bytes(2**24)) * 17, "bomb"),
    "xz": (lambda: xz_of(2**20, bytes(2**24)) * 18, "bomb"),
}


@pytest.mark.parametrize("name", BIG)
def test_a_bomb_ends_with_its_reason_in_bounded_memory(name: str, tmp_path: Path) -> None:
    make, reason = BIG[name]
    (tmp_path / "bomb").write_bytes(make())
    code = (
        "import sys; from pathlib import Path; from tasks.acquire.streams import Damage, pieces\n"
        "try:\n    for piece in pieces(Path(sys.argv[1])): assert len(piece) < 2**25\n"
        "except Damage as err: print(err.reason)\n"
        "print(next(int(line.split()[1]) // 1024 for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "bomb"], capture_output=True, text=True, check=True)
    said, mebibytes = done.stdout.split()
    assert said == reason
    assert int(mebibytes) < 400


def test_a_dictionary_of_xz_above_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = xz_of(64 * 2**20, b"as the strongest preset writes it\n")
    assert b"".join(decompressed(io.BytesIO(data))) == b"as the strongest preset writes it\n"
    monkeypatch.setattr(streams, "XZ_MEMORY", 2**20)
    with pytest.raises(Damage, match="too_large"):
        list(decompressed(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("kind", "name", "data", "needs"),
    [
        ("jsonl", "a.jsonl.zst", zstd_bomb(31, 1), "a zstd window of 2.0 GiB, at most 128.0 MiB"),
        ("jsonl", "a.jsonl.zst", b"".join(FRAMES) + zstd_bomb(28, 1), "a zstd window of 256.0 MiB, at most 128.0 MiB"),
        ("jsonl", "a.jsonl.xz", xz_of(2**29, b'{"text": "a"}\n'), "an xz dictionary of 512.0 MiB, at most 128.0 MiB"),
        ("text", "a.txt.zst", zstd_bomb(29, 1), "a zstd window of 512.0 MiB, at most 128.0 MiB"),
        ("mediawiki", "a.xml.zst", zstd_bomb(30, 1), "a zstd window of 1.0 GiB, at most 128.0 MiB"),
        ("code", "a.tar.zst", zstd_bomb(31, 1), "a zstd window of 2.0 GiB, at most 128.0 MiB"),
        ("latex", "a.tex.xz", xz_of(2**30, b"a"), "an xz dictionary of 1.0 GiB, at most 128.0 MiB"),
    ],
)
def test_what_takes_too_much_memory_says_how_much(
    kind: str, name: str, data: bytes, needs: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    facts = FileFacts()
    found = reasons(outcomes(kind, tmp_path, facts))
    assert found["too_large"] == 1
    assert set(found) <= {"too_large", None}
    assert facts.counts[f"memory:{needs}"] >= 1


def test_what_repeats_as_much_as_people_write_is_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FREE_BYTES", 2**16)
    lines = b"".join(b"%d a line that many pages of a site have\n" % i for i in range(40_000))
    for packed in (gzip.compress(lines), bz2.compress(lines), lzma.compress(lines), zstandard.compress(lines)):
        assert b"".join(decompressed(io.BytesIO(packed))) == lines
