"""Copies of a model that are not equal to the bit are never saved; the rank is named. Two real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, torch, torch.distributed as dist
from corpusmill.errors import CheckFailed
from tests.training.toy import config
from training import parallel
from training.checkpoints import replicas
from training.parallel import Ranks
rank = int(sys.argv[1])
dist.init_process_group("gloo", store=dist.FileStore(sys.argv[2], 2), rank=rank, world_size=2)
made = config()
model = parallel.build(made, 97, Ranks(rank, rank, 2, torch.device("cpu")))
optimizer = parallel.optimizer_of(model, made)
for parameter in model.parameters():
    parameter.grad = torch.ones_like(parameter)
optimizer.step()
replicas.check(model, optimizer, 7)
last = list(model.parameters())[-1]
for tensor in (last.data, optimizer.state[last]["exp_avg_sq"]):
    bits, at = tensor.view(torch.int32).view(-1), 5
    bits[at] ^= rank  # one bit, of the second rank alone
    try:
        replicas.check(model, optimizer, 7)
    except CheckFailed as fault:
        print(fault.what)
    bits[at] ^= rank
replicas.check(model, optimizer, 7)
dist.barrier()
"""


@pytest.mark.timeout(120)
def test_one_bit_of_one_rank_is_found_by_all(tmp_path: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for rank in (0, 1)
    ]
    for rank in ranks:
        out, err = rank.communicate()
        assert rank.returncode == 0, err
        assert out.splitlines() == ["step 7: the copies of the model differ on rank 1"] * 2
