"""The adapters in the real Grain and torchtitan, each in an environment of its own: saved at 4 ranks, resumed at 3."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corpusmill.canonical import canonical_json
from tests.corpusmill.adapters.conftest import GLOBAL_BATCH, Served

REPOSITORY = Path(__file__).resolve().parents[3]
PLAN = """
import json, sys
from corpusmill.tokens.order import Plan, Stage
store, dataset, out, given = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
stages = tuple(Stage(s["sequences"], s["weights"], s["rope_base"], tuple(s["lr"])) for s in given["stages"])
plan = Plan(given["seed"], given["global_batch"], given["sizes"], stages, given["block"], max_epochs=9)
"""
GRAIN = f"""{PLAN}
import grain, numpy as np
from corpusmill.adapters.grain import Steps
from corpusmill.adapters.shares import Shares

def iterator(rank, world_size, workers=0):
    source = Steps(Shares(store, dataset, plan, rank, world_size))
    batches = grain.MapDataset.source(source).to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=3))
    return iter(batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else batches)

def step(iterators):
    parts = [next(it) for it in iterators]
    return {{key: np.concatenate([part[key] for part in parts]) for key in parts[0]}}

if __name__ == "__main__":
    four = [iterator(rank, 4) for rank in range(4)]
    found = [step(four) for _ in range(5)]
    states = [it.get_state() for it in four]
    assert all(state == states[0] for state in states), states
    three = [iterator(rank, 3) for rank in range(3)]
    for it in three:
        it.set_state(json.loads(json.dumps(states[0])))
    found += [step(three) for _ in range(plan.steps - 5)]
    assert all(next(it, None) is None for it in three)
    inside = [item["inputs"] for item in iterator(1, 4, workers=2)]
    np.savez(out, inside=inside, **{{key: [batch[key] for batch in found] for key in found[0]}})
"""
TORCHTITAN = f"""{PLAN}
import os
from dataclasses import dataclass
import numpy as np, torch
import torch.distributed as dist, torch.distributed.checkpoint as dcp
from torchtitan.components.dataloader import BaseDataLoader
from corpusmill.adapters.torchtitan import PackedBatches

class Packed(PackedBatches, BaseDataLoader):
    tensor = staticmethod(torch.from_numpy)

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        plan: Plan

dist.init_process_group("gloo")
rank, world_size, phase, checkpoint = dist.get_rank(), dist.get_world_size(), sys.argv[5], sys.argv[6]
loader = Packed.Config(dataset_path=store, dataset=dataset, plan=plan).build(
    dp_world_size=world_size, dp_rank=rank, tokenizer=None, seq_len=int(sys.argv[7]), local_batch_size=4,
    snapshot_every_n_steps=None)
assert isinstance(loader, BaseDataLoader)
states = {{"dataloader": loader}}
if phase == "resume":
    dcp.load(states, checkpoint_id=checkpoint)
batches, found, micro = iter(loader), [], plan.global_batch // world_size // 4
for _ in range(5 if phase == "save" else plan.steps - 5):
    parts = [next(batches) for _ in range(micro)]
    assert all(tensor.dtype == torch.int64 for inputs, labels in parts for tensor in (*inputs.values(), labels))
    joined = [torch.cat([part[0][key] for part in parts]) for key in ("input", "positions")]
    found.append(torch.stack([*joined, torch.cat([part[1] for part in parts])]).numpy())
if phase == "save":
    dcp.save(states, checkpoint_id=checkpoint)
else:
    assert next(batches, None) is None
np.save(f"{{out}}-{{phase}}-{{rank}}.npy", np.stack(found))
dist.barrier()
os._exit(0)
"""


def environment(folder: Path, *wanted: str) -> Path:
    """Python with our library, as this checkout has it, and these packages."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    ours = ["--constraint", str(REPOSITORY / "constraints.txt"), "--editable", str(REPOSITORY)]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *ours], check=True)
    return python


def arguments(served: Served, out: Path) -> list[str]:
    return [served.store, served.dataset, str(out), canonical_json(served.plan.as_json()).decode()]


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.long
def test_grain_serves_the_batches_of_our_loader_and_goes_on_at_three_ranks(served: Served, tmp_path: Path) -> None:
    python, program = environment(tmp_path / "venv", "grain==0.2.18"), tmp_path / "program.py"
    program.write_text(GRAIN)
    run(python, program, *arguments(served, tmp_path / "found.npz"))
    found = np.load(tmp_path / "found.npz")
    assert len(found["inputs"]) == served.plan.steps
    for step, batch in enumerate(served.batches):
        assert np.array_equal(found["inputs"][step], batch.tokens)
        counts = found["targets_segmentation"][step] > 0
        assert np.array_equal(np.where(counts, found["targets"][step], -100), batch.labels)
        assert np.array_equal(found["inside"][step], batch.tokens[12:24])  # rank 1 of 4, in two worker processes


@pytest.mark.long
def test_torchtitan_serves_the_batches_of_our_loader_and_goes_on_at_three_ranks(served: Served, tmp_path: Path) -> None:
    """Its base class builds the loader and torch's distributed checkpoints keep the state, with one process a rank."""
    python, program = environment(tmp_path / "venv", "torchtitan==0.3.0", "torch==2.13.0"), tmp_path / "program.py"
    program.write_text(TORCHTITAN)
    for phase, ranks in (("save", 4), ("resume", 3)):
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(program)]
        rest = [phase, str(tmp_path / "checkpoint"), str(served.seq_len)]
        run(python, *launch, *arguments(served, tmp_path / "found"), *rest)
    whole = []
    for phase, ranks in (("save", 4), ("resume", 3)):
        parts = [np.load(tmp_path / f"found-{phase}-{rank}.npy") for rank in range(ranks)]
        whole += list(np.concatenate(parts, axis=2))
    assert whole[0].shape == (3, GLOBAL_BATCH, served.seq_len)
    assert len(whole) == served.plan.steps
    for (tokens, positions, labels), batch in zip(whole, served.batches, strict=True):
        assert np.array_equal(tokens, batch.tokens)
        assert np.array_equal(labels, batch.labels)
        assert positions.tolist() == [[i for length in lengths for i in range(length)] for lengths in batch.lengths]
