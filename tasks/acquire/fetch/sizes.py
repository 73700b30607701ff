"""Sizes of the files of a source, without reading them; sizes from servers are kept in the store.

Large archives on servers are cut into blocks, so a plan needs sizes. Each size is requested once: a receipt of
stage `sizes`, one for each set of files that a plan named, stores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from corpusmill.canonical import digest_of
from corpusmill.errors import NotFound, Unavailable
from corpusmill.store import Output, Unit
from corpusmill.store.receipts import unseal
from tasks import stages
from tasks.acquire.fetch import http, rate_limit
from tasks.acquire.fetch.transport import folder_of, is_remote, tree_files, url_of

if TYPE_CHECKING:
    from corpusmill.store import Store

STAGE = stages.SIZES.name
THREADS = 8
"""Requests at once; the rate limit bounds how many per second."""
SCHEMA = pa.schema([pa.field("locator", pa.string(), nullable=False), pa.field("size", pa.int64())])

Sizes = dict[str, int | None]
"""locator -> bytes; None where the server does not say."""


def size_of(root: str, locator: str) -> int | None:
    """Bytes of a file or tree below a root, None if unknown; on a server this costs one request of one byte.

    Raises:
        Unavailable: it is listed but not there, or the server does not answer.
    """
    try:
        if is_remote(root):
            return http.length(url_of(root, locator))
        path = folder_of(root) / locator
        if path.is_dir():
            return sum(file.stat().st_size for _, file in tree_files(path))
        return path.stat().st_size
    except (NotFound, OSError) as err:
        raise Unavailable(
            f"file {locator} is missing at {root}", str(err), "Restore the file, or remove it from the list."
        ) from err


def known(root: str, source: str, snapshot: str, locators: Sequence[str], store: Store | None) -> Sizes:
    """Sizes of the files that cost no request: all in a folder, on a server those requested before."""
    if is_remote(root):
        return _remembered(source, snapshot, locators, store) if store else {}
    sizes: Sizes = {}
    for locator in locators:
        try:
            sizes[locator] = (folder_of(root) / locator).stat().st_size
        except OSError:
            continue  # whoever reads it will say so, when all others are read
    return sizes


def asked(root: str, source: str, snapshot: str, locators: Sequence[str], store: Store | None) -> Sizes:
    """Sizes of all files; unknown ones are requested once, and kept in the store.

    A missing file has none: reading it will fail after all others are read.

    Raises:
        Unavailable: the server does not answer.
    """
    sizes = known(root, source, snapshot, locators, store)
    todo = [locator for locator in locators if locator not in sizes]
    if not is_remote(root) or not todo:
        return sizes
    sizes.update(_from_server(root, todo))
    unit = _unit(source, snapshot, locators)
    if store and store.receipt(unit) is None:
        rows = {"locator": sorted(sizes), "size": [sizes[locator] for locator in sorted(sizes)]}
        table = pa.table(rows, schema=SCHEMA)
        store.commit(unit, {STAGE: store.draft_table(table)})
    return sizes


def _from_server(root: str, locators: Sequence[str]) -> Sizes:
    def ask(locator: str) -> tuple[Sizes, rate_limit.Traffic]:
        with rate_limit.watched() as traffic:
            try:
                return {locator: http.length(url_of(root, locator))}, traffic
            except NotFound:
                return {}, traffic

    sizes: Sizes = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for found, traffic in pool.map(ask, locators):
            sizes.update(found)
            rate_limit.count(**traffic.__dict__)
    return sizes


def _unit(source: str, snapshot: str, locators: Iterable[str]) -> Unit:
    """The unit of a set of files: the same files, the same receipt."""
    config = {"source": source, "snapshot": snapshot, "files": digest_of(sorted(locators))}
    return stages.SIZES.unit(config)


def _remembered(source: str, snapshot: str, locators: Sequence[str], store: Store) -> Sizes:
    if receipt := store.receipt(_unit(source, snapshot, locators)):
        return _sizes_in(receipt.outputs[STAGE], store)
    wanted, sizes = set(locators), Sizes()
    for name in store.list(f"receipts/{STAGE}/"):  # another choice of the same files
        value = unseal(store.get(name), name)
        config = value["unit"]["config"]
        if (config["source"], config["snapshot"]) == (source, snapshot):
            sizes.update(_sizes_in(Output.from_json(value["outputs"][STAGE]), store))
    return {locator: size for locator, size in sizes.items() if locator in wanted}


def _sizes_in(output: Output, store: Store) -> Sizes:
    table = store.table(output)
    return dict(zip(table.column("locator").to_pylist(), table.column("size").to_pylist(), strict=True))
