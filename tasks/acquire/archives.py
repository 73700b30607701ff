"""Files of a tree: a folder, or a tarball in whatever compression, member by member, each with bounded bytes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpusmill.readers.text import clean_text
from tasks.acquire.fetch.transport import tree_files
from tasks.acquire.streams import Damage, pieces

TAR = r"\.(tar|tgz|tbz2|txz|tar\.(gz|bz2|xz|zst))$"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree.

    Attributes:
        path: as the tree has it, "/"-separated.
        offset: of its header in the decompressed tarball; of its first byte in a folder's files laid end to end.
        size: in bytes.
        data: None where it is larger than was asked for, or was not wanted.
        kind: `file`, or what else the member is: counted, no document.
    """

    path: str
    offset: int
    size: int
    data: bytes | None
    kind: str = "file"


def entries(path: Path, limit: int, wanted: Callable[[str], bool] = lambda path: True) -> Iterator[Entry]:
    """Every member of a tarball in its order, or file of a folder in the order of paths.

    Args:
        path: of the tarball or folder.
        limit: larger files come without data.
        wanted: whether the data of the file at a path is to be read.

    Raises:
        Damage: the tarball cannot be read on.
        OSError: a file of the folder cannot be read.
    """
    if path.is_dir():
        yield from _folder(path, limit, wanted)
    else:
        yield from members(pieces(path), limit, wanted)


def _folder(path: Path, limit: int, wanted: Callable[[str], bool]) -> Iterator[Entry]:
    offset = 0
    for name, file in tree_files(path):
        size = file.stat().st_size
        data = file.read_bytes() if size <= limit and wanted(name) else None
        yield Entry(clean_text(name)[0], offset, size, data)
        offset += size


def members(stream: Iterable[bytes], limit: int, wanted: Callable[[str], bool] = lambda path: True) -> Iterator[Entry]:
    """Members of a tarball that comes as decompressed pieces; as `entries`."""
    try:
        whole = Pieces(stream)
        with tarfile.open(fileobj=whole, mode="r|", errors="surrogateescape") as tar:
            while (info := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # else a large tarball's headers pile up
                kind = "file" if info.isreg() else "folder" if info.isdir() else "link"
                data = None
                if kind == "file" and info.size <= limit and wanted(info.name):
                    file = tar.extractfile(info)
                    data = file.read() if file else None
                yield Entry(clean_text(info.name)[0], info.offset, info.size, data, kind)
            _expect_end(tar, whole)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as err:
        raise Damage("truncated" if "unexpected end" in str(err) or "truncated" in str(err) else "damaged") from err


def _expect_end(tar: tarfile.TarFile, whole: Pieces) -> None:
    """tarfile takes a broken or cut header for the end. Behind the real end are only zeros, and blocks are whole.

    Raises:
        Damage: it is not the end.
    """
    assert tar.fileobj is not None
    while data := tar.fileobj.read(2**16):
        if data.strip(b"\0"):
            raise Damage("damaged")
    if whole.count % tarfile.BLOCKSIZE:
        raise Damage("truncated")


class Pieces(io.RawIOBase):
    """Pieces of bytes as a stream to read forward."""

    def __init__(self, stream: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces, self._held = iter(stream), b""
        self.count = 0
        """Bytes taken from the pieces so far."""

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes: as many as asked for, fewer at the end."""
        parts, length = [self._held], len(self._held)
        while size < 0 or length < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            parts.append(piece)
            length += len(piece)
            self.count += len(piece)
        data = b"".join(parts)
        size = len(data) if size < 0 else size
        self._held = data[size:]
        return data[:size]
