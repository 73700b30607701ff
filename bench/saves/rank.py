"""One rank of the benchmark: saves of one model by both ways in turn."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import torch

from corpusmill.errors import CheckFailed
from corpusmill.store import open_store
from training import parallel
from training.checkpoints import commits
from training.checkpoints.saver import Saver
from training.config import Mixture, MixtureStage, Model, Run, TrainConfig

VOCAB = 32_768
MODEL = Model(dim=512, layers=12, heads=8, hidden=1408)
RUN_ID = "00112233aabbccdd"


def measured(rank: int, world: int, port: int, mode: str, repeats: int, scratch: Path) -> None:
    """Rank 0 leaves `found.json`: wall and CPU seconds that its training thread waited, of each save.

    Those of `all` return when they are committed, those of `background` when the state is copied.

    Raises:
        CheckFailed: the two ways stored different bytes.
    """
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = parallel.start(1)
    stage = MixtureStage(steps=1)
    config = TrainConfig(
        name="bench", model=MODEL, mixture=Mixture(stage=(stage,)), run=Run.model_validate({"mode": mode})
    )
    model = parallel.build(config, VOCAB, ranks)
    optimizer = parallel.optimizer_of(model, config)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    store = open_store(scratch / "store", create=True)
    savers = {
        kind: Saver(store, RUN_ID, model, optimizer, ranks, scratch, background=kind == "background")
        for kind in ("all", "background")
    }
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in savers}
    made = set[str]()
    for number in range(repeats + 1):
        for kind, saver in savers.items():
            parallel.sums(0)  # the ranks begin together
            wall, cpu = time.perf_counter(), time.thread_time()
            facts = {"step": number, "run_id": RUN_ID, "batch_chain": "", "kind": kind}
            name = saver.save(facts, damaged=commits.names(store, RUN_ID))  # each under a name of its own
            times[kind].append((time.perf_counter() - wall, time.thread_time() - cpu))
            saver.wait()
            parallel.sums(0)
            made.add(json.dumps(commits.read(store, name).facts["files"], sort_keys=True).replace(name, ""))
    if len(made) != 1:
        raise CheckFailed("the two ways stored different bytes")
    if rank == 0:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        found = {"times": times, "bytes": savers["background"].buffers.bytes, "parameters": parameters}
        (scratch / "found.json").write_text(json.dumps(found))
