"""Loaders of token rows by others, in the venv of their own: each writes the rows in its format, then reads an epoch.

Rows come as a file of uint16[rows, width]. What an epoch is asked for is the same of all: every row once, shuffled, in
batches of int64 rows and int64 labels (a copy of the rows from their second token on), in one process.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from serve import serve
from stopwatch import cpu_seconds

Array = Any
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)


def parts(raw: Array, shards: int) -> list[Array]:
    """The rows as `numpy.array_split` divides them."""
    return np.array_split(raw, shards)


def write_files(raw: Array, folder: Path, shards: int) -> None:
    """A file of uint16 a shard."""
    for number, part in enumerate(parts(raw, shards)):
        part.tofile(folder / f"{number:05}.bin")


class Files:
    """Rows in mapped files, by number: what people write as a map-style dataset over `numpy.memmap`."""

    def __init__(self, folder: Path, width: int) -> None:
        self.folder, self.width = folder, width
        sizes = [path.stat().st_size // (2 * width) for path in sorted(folder.glob("*.bin"))]
        self.starts = np.cumsum([0, *sizes])

    @cached_property
    def maps(self) -> list[Array]:
        return [np.memmap(path, np.uint16, "r").reshape(-1, self.width) for path in sorted(self.folder.glob("*.bin"))]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, number: int) -> Array:
        file = int(np.searchsorted(self.starts, number, side="right")) - 1
        return np.array(self.maps[file][number - self.starts[file]])


def torch_epoch(folder: Path, width: int, batch: int) -> Iterator[Array]:
    """A torch `DataLoader` over mapped files."""
    generator = torch.Generator().manual_seed(1)
    loader = torch.utils.data.DataLoader(Files(folder, width), batch, shuffle=True, generator=generator)
    return (rows.long() for rows in loader)


def grain_epoch(folder: Path, width: int, batch: int) -> Iterator[Array]:
    """Grain over the same files: global shuffle, batch."""
    import grain

    dataset = grain.MapDataset.source(Files(folder, width)).shuffle(seed=1).batch(batch)
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=16)
    return (torch.from_numpy(rows.astype(np.int64)) for rows in dataset.to_iter_dataset(options))


def streaming() -> Any:
    """MosaicML's package. It imports torchvision, whose wheel is for CUDA: with a torch for CPU, its operations are not
    there to be registered."""
    register, torch.library.register_fake = torch.library.register_fake, lambda *_, **__: lambda fn: fn
    try:
        import torchvision  # noqa: F401
    finally:
        torch.library.register_fake = register
    import streaming

    return streaming


def write_mosaicml(raw: Array, folder: Path, shards: int) -> None:
    """MDS shards with an array of uint16 a sample."""
    width = raw.shape[1]
    size = (2 * width + 8) * -(-len(raw) // shards) + 1000
    with streaming().MDSWriter(out=str(folder), columns={"tokens": f"ndarray:uint16:{width}"}, size_limit=size) as out:
        for row in raw:
            out.write({"tokens": np.array(row)})


def mosaicml_epoch(folder: Path, width: int, batch: int) -> Iterator[Array]:
    """`StreamingDataset` as it comes (shuffle py1e), and its loader."""
    package = streaming()
    package.base.util.clean_stale_shared_memory()
    dataset = package.StreamingDataset(local=str(folder), shuffle=True, batch_size=batch, shuffle_seed=1)
    return (found["tokens"].long() for found in package.StreamingDataLoader(dataset, batch_size=batch, num_workers=0))


def write_litdata(raw: Array, folder: Path, shards: int) -> None:
    """Chunks of tokens, as `optimize` writes them with a `TokensLoader`."""
    from litdata.streaming.cache import Cache
    from litdata.streaming.item_loader import TokensLoader

    width = raw.shape[1]
    cache = Cache(str(folder), chunk_size=width * -(-len(raw) // shards), item_loader=TokensLoader(block_size=width))
    for number, row in enumerate(raw):
        cache[number] = torch.from_numpy(np.array(row))
    cache.done()
    cache.merge(1)


def litdata_epoch(folder: Path, width: int, batch: int) -> Iterator[Array]:
    """`StreamingDataset` with `TokensLoader`, and its loader."""
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(str(folder), item_loader=TokensLoader(block_size=width), shuffle=True, seed=1)
    return (rows.long() for rows in StreamingDataLoader(dataset, batch_size=batch, num_workers=0))


Epoch = Callable[[Path, int, int], Iterator[Array]]
LOADERS: dict[str, tuple[Callable[[Array, Path, int], None], Epoch]] = {
    "torch": (write_files, torch_epoch),
    "grain": (write_files, grain_epoch),
    "mosaicml": (write_mosaicml, mosaicml_epoch),
    "litdata": (write_litdata, litdata_epoch),
}


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Write, or read an epoch: its CPU seconds, rows, and the sum of the first tokens of its rows."""
    write, epoch = LOADERS[request["loader"]]
    folder, width = Path(request["folder"]), request["width"]
    if "raw" in request:
        raw = np.memmap(request["raw"], np.uint16, "r").reshape(-1, width)
        folder.mkdir(parents=True)
        write(raw, folder, request["shards"])
        return {"files": sum(path.suffix in (".bin", ".mds") for path in folder.iterdir())}
    if request.get("batches") == 1:  # imports, and what is done once
        next(epoch(folder, width, request["batch"]))
        return {"cpu_seconds": 0}
    began, rows, total = cpu_seconds(), 0, 0
    for batch in epoch(folder, width, request["batch"]):
        batch[:, 1:].clone()
        rows, total = rows + len(batch), total + int(batch[:, 0].sum())
    return {"cpu_seconds": cpu_seconds() - began, "rows": rows, "first_tokens": total}


if __name__ == "__main__":
    serve(handle)
