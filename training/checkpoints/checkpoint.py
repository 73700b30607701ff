"""Checkpoints: written by torch's DCP into scratch, uploaded, committed last; read only after every digest was checked.

Parameters go by their plain names, so that DDP, FSDP2 and any number of ranks load each other's files. DCP's
`.metadata` is a pickle: it is opened only when the sha256 of its bytes is the one in COMMIT.json.
"""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.metadata import StorageMeta
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save
from torch.optim import Optimizer

from corpusmill.errors import CheckFailed, NotFound, Unavailable
from corpusmill.store import Store
from training.checkpoints import commits
from training.checkpoints.agreement import together
from training.checkpoints.commits import Commit
from training.parallel import Ranks


class _Writer(FileSystemWriter):
    """DCP's, whose `.metadata` would hold a random id and the path of the scratch folder: equal states, equal bytes."""

    def storage_meta(self) -> StorageMeta:
        return StorageMeta()


def state_of(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Weights and optimizer state by plain names, of every rank its part: the tensors themselves, not copies."""
    optimizer.zero_grad()  # DCP would otherwise save an empty optimizer state in silence (pytorch#140898)
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optim": moments}


def write(
    store: Store,
    name: str,
    facts: Mapping[str, Any],
    state: dict[str, Any],
    ranks: Ranks,
    scratch: Path,
    group: dist.ProcessGroup | None,
    extra: Mapping[str, bytes],
) -> None:
    """Store a checkpoint of all ranks.

    Every rank uploads what it wrote; rank 0 commits when all are done. It succeeds on all ranks or fails on all.

    Args:
        facts: the content of COMMIT.json besides the files.
        state: what `state_of` returned, or a copy of it in host memory.
        scratch: a local folder that all ranks of this machine share.
        group: for all that the ranks exchange here.
        extra: name in the store -> content of what this rank stores before the commit.
    """
    folder = scratch / f"save-{facts['step']:08d}"
    try:
        dcp_save(state, storage_writer=_Writer(folder), process_group=group)
    except CheckpointException as err:  # which is no Exception
        rank, (fault, _) = next(iter(err.failures.items()))
        raise Unavailable(
            f"rank {rank} could not write {name} into {folder}", f"{type(fault).__name__}: {fault}"
        ) from None

    def upload() -> list[dict[str, object]]:
        own = [".metadata"] if ranks.rank == 0 else []
        own += sorted(path.name for path in folder.glob(f"__{ranks.rank}_*"))
        files = [_upload(store, name, folder / file) for file in own]
        for stored, data in extra.items():
            store.put(stored, data)
        return files

    def commit() -> None:
        if ranks.rank == 0:
            listed = sorted((file for files in parts for file in files), key=lambda file: str(file["file"]))
            commits.write(store, name, {**facts, "files": listed})

    parts = together(group, upload)
    together(group, commit)
    if ranks.local_rank == 0:
        shutil.rmtree(folder, ignore_errors=True)


def _upload(store: Store, name: str, path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    stored = f"{name}/{digest}"
    if not store.create_file(stored, path):
        raise CheckFailed(f"{stored} is damaged: the store has other bytes under this digest.")
    return {"file": path.name, "name": stored, "sha256": digest, "size": path.stat().st_size}


def _fetch(store: Store, commit: Commit, folder: Path) -> str:
    """Copy all files of a checkpoint into a folder; returns the first error, or an empty string."""
    for file in commit.facts["files"]:
        path = folder / file["file"]
        try:
            store.get_file(file["name"], path)
        except NotFound:
            return f"{file['name']} of checkpoint {commit.name} is gone"
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        if digest != file["sha256"]:
            return f"{file['name']} is damaged: expected sha256 {file['sha256']}, read {digest}"
    return ""


def load(
    store: Store, commit: Commit, model: nn.Module, optimizer: Optimizer | None, ranks: Ranks, scratch: Path
) -> None:
    """Fetch a checkpoint, check every file against COMMIT.json, then load weights and optimizer state.

    The optimizer keeps its settings (decay of moments and weights, eps): they are the config's, not the checkpoint's.

    Args:
        optimizer: None: its state is not loaded.

    Raises:
        CheckFailed: a file is missing, or is not the committed one.
    """
    folder = scratch / f"load-{commit.step:08d}"
    fault = ""
    if ranks.local_rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        fault = _fetch(store, commit, folder)
    faults: list[str] = [""] * ranks.world_size
    dist.all_gather_object(faults, fault)  # all ranks stop, or none
    if fault := next(filter(None, faults), ""):
        raise CheckFailed(fault, do="Resume from an earlier checkpoint: --resume RUN/STEP.")
    if optimizer is None:  # its state is not even touched: to read it would set its count of steps to 1
        weights = get_model_state_dict(model)
        dcp_load({"model": weights}, checkpoint_id=folder)
        set_model_state_dict(model, weights)
    else:
        settings = [{key: group[key] for key in group if key != "params"} for group in optimizer.param_groups]
        weights, moments = get_state_dict(model, optimizer)
        dcp_load({"model": weights, "optim": moments}, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        for group, own in zip(optimizer.param_groups, settings, strict=True):
            group.update(own)
    dist.barrier()
    if ranks.local_rank == 0:
        shutil.rmtree(folder, ignore_errors=True)


def load_weights(store: Store, commit: Commit, weights: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The weights of a checkpoint alone, in one process without ranks; every file is checked first.

    Args:
        weights: tensors of the right names and shapes, which are filled.
        folder: an empty one.

    Raises:
        CheckFailed: a file is missing, or is not the committed one.
    """
    if fault := _fetch(store, commit, folder):
        raise CheckFailed(fault, do="Use another checkpoint: RUN/STEP.")
    with warnings.catch_warnings(action="ignore"):  # it says that there are no ranks
        dcp_load({"model": weights}, checkpoint_id=folder, no_dist=True)
    return weights
