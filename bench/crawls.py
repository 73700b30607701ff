"""Crawls to measure on: a given one, a sample of one, or the demo crawl that any machine can make."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.common import REPOSITORY
from corpusmill.config import Recipe, load_recipe
from corpusmill.errors import NotFound, UsageError

PIECE = 2**20
HEAD = 2000
"""Bytes of a record in which its type is looked for."""
READ_AT_MOST = 64 * 2**20
"""Bytes of a file that a sample is drawn from: a Common Crawl file has a gigabyte."""


@dataclass(frozen=True)
class Crawl:
    """A recipe with one source on this machine, and the files it reads, relative to the source's root."""

    recipe: Recipe
    root: Path
    files: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Compressed size of the files."""
        return sum((self.root / file).stat().st_size for file in self.files)


def crawl_at(root: Path | None, recipe: str | None, overrides: Sequence[str] = ()) -> Crawl:
    """The crawl below a folder under a recipe; without one, that of the test data, else the demo's.

    Args:
        root: what the recipe's source reads.
        recipe: a file, or a name in recipes/.
        overrides: `key.path=value`, as of `mill build --set`.

    Raises:
        NotFound: the recipe's files are not there. UsageError: the recipe has more than one source.
    """
    settings: list[str] = []
    if root is None:
        data = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
        root, benchmarks = data / "mini-crawl", data / "benchmarks"
        if not root.is_dir():
            from mill.demo.crawl import make

            root, recipe = make(REPOSITORY / ".corpusmill" / "demo"), recipe or "demo"
            benchmarks = root / "benchmarks"
        settings = [f"decontaminate.root={benchmarks}"]
    root = root.resolve()
    name = only_source(load_recipe(recipe or "crawl"))
    return planned(load_recipe(recipe or "crawl", [f"source.{name}.root={root}", *settings, *overrides]), root)


def planned(recipe: Recipe, root: Path) -> Crawl:
    """The recipe's files as it would read them."""
    from tasks import acquire

    files = tuple(dict.fromkeys(unit.locator for unit in acquire.plan(recipe)))  # a large file has several units
    if not files:
        raise NotFound(f"no files for recipe {recipe.name!r} below {root}", "its source lists none")
    return Crawl(recipe, root, files)


def only_source(recipe: Recipe) -> str:
    """The name of the one source that a recipe has."""
    if len(recipe.source) != 1:
        raise UsageError(
            f"recipe {recipe.name!r} has {len(recipe.source)} sources",
            "a paired run reads one",
            "Name another with --recipe.",
        )
    return next(iter(recipe.source))


def with_settings(recipe: Recipe, **sections: Mapping[str, object]) -> Recipe:
    """A recipe with some keys of its sections changed."""
    return recipe.model_copy(
        update={name: getattr(recipe, name).model_copy(update=dict(keys)) for name, keys in sections.items()}
    )


def sample(crawl: Crawl, out: Path, responses: int) -> Crawl:
    """A small crawl of the same shape: `responses` records, evenly spaced over the first file of each snapshot.

    Few files, because a file costs both sides something that its thousands of pages share in earnest.

    Raises:
        UsageError: a file is not compressed record by record, as a WARC file should be.
    """
    files = _first_of_each(crawl)
    each = -(-responses // len(files))
    for file in files:
        found = [member for _, member in _responses(crawl.root / file, READ_AT_MOST)]
        picked = found if len(found) <= each else [found[i * len(found) // each] for i in range(each)]
        _write(out / file, picked)
    return _moved(crawl, out, files)


def only(crawl: Crawl, out: Path, offsets: Mapping[str, Collection[int]]) -> Crawl:
    """The crawl with those response records alone that begin at the offsets given per file."""
    files = [file for file in crawl.files if offsets.get(file)]
    for file in files:
        _write(out / file, [m for offset, m in _responses(crawl.root / file) if offset in offsets[file]])
    return _moved(crawl, out, files)


def _write(path: Path, members: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(members))


def _moved(crawl: Crawl, out: Path, files: Sequence[str]) -> Crawl:
    """The crawl's recipe over some of its files at another root."""
    name = only_source(crawl.recipe)
    source = crawl.recipe.source[name]
    changed: dict[str, object] = {"root": str(out), "max_files": None, "fraction": None}  # the draw has been made
    if source.kind == "common-crawl":
        changed["crawls"] = _write_lists(out, files)
    moved = source.model_copy(update=changed)
    return planned(crawl.recipe.model_copy(update={"source": {name: moved}}), out)


def _first_of_each(crawl: Crawl) -> list[str]:
    """The first file of each snapshot."""
    from tasks import acquire

    first: dict[str, str] = {}
    for unit in acquire.plan(crawl.recipe):
        first.setdefault(unit.snapshot, unit.locator)
    return list(first.values())


def _write_lists(out: Path, files: Sequence[str]) -> tuple[str, ...]:
    """`crawl-data/<crawl>/warc.paths.gz` of each crawl, which is the second part of a locator; returns the crawls."""
    crawls = tuple(dict.fromkeys(file.split("/")[1] for file in files))
    for crawl in crawls:
        listed = "".join(f"{file}\n" for file in files if file.split("/")[1] == crawl)
        with (out / "crawl-data" / crawl / "warc.paths.gz").open("wb") as to:
            to.write(gzip.compress(listed.encode(), mtime=0))
    return crawls


def _responses(path: Path, limit: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Gzip members of a WARC file that hold a response record, as they are, with their offsets; up to an offset."""
    with path.open("rb") as file:
        data, offset = b"", 0
        while limit is None or offset < limit:
            inflate, member, head = zlib.decompressobj(31), bytearray(), bytearray()
            while not inflate.eof:
                data = data or file.read(PIECE)
                if not data:
                    return
                try:
                    text = inflate.decompress(data)
                except zlib.error as err:
                    raise UsageError(f"{path}: not gzip members", str(err), "Give a crawl of .warc.gz files.") from err
                head += text[: max(0, HEAD - len(head))]
                member += data[: len(data) - len(inflate.unused_data)]
                data = inflate.unused_data
            if b"WARC-Type: response" in head:
                yield offset, bytes(member)
            offset += len(member)
