"""The loss ledger: what each row of each step lost, and which steps stand out."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from corpusmill.kernels.gather import IGNORED
from tests.training.toy import Toy
from training import parallel
from training.data import Loader
from training.evaluate import nll
from training.ledger import LEAST, Ledger, faulty, losses, outlying, packed, spikes
from training.parallel import Ranks
from training.run import RunSpec

SETTINGS = ("mixture.stage=[{steps=40}]", "mixture.max_epochs=99")


def test_a_ledger_takes_eight_bytes_a_row_and_gives_back_what_it_was_given(toy: Toy) -> None:
    rng, store, ledger = np.random.default_rng(5), toy.open(), Ledger()
    assert ledger.take("r" * 16, 1) == {}
    given = {}
    for step in range(1, 101):
        nll, labels = rng.random(100, np.float32), rng.integers(900, 1024, 100, np.int32)
        given[step] = nll, labels
        ledger.add(step, [packed(nll[:50], labels[:50]), packed(nll[50:], labels[50:])])
    (item,) = ledger.take("r" * 16, 1).items()
    assert item[0] == f"runs/{'r' * 16}/losses.1.00000100.parquet"
    assert len(item[1]) < 8 * 10_000
    assert ledger.take("r" * 16, 1) == {}
    store.create(*item)
    found = losses(store, "r" * 16)
    assert found.keys() == given.keys()
    assert all((found[s][0] == given[s][0]).all() and (found[s][1] == given[s][1]).all() for s in given)


def test_the_sum_of_the_labels_losses_has_the_gradients_of_the_summed_loss_to_the_bit(toy: Toy, ranks: Ranks) -> None:
    spec = toy.spec('name="ledger"', *SETTINGS)
    batch = Loader(spec.open(), spec.facts, spec.plan).batch(0)
    gradients = []
    for reduction in ("sum", "none"):
        model = parallel.build(spec.config, spec.vocab_size, ranks)
        loss = nll(model, batch, 10_000.0, spec.config, ranks, reduction).sum()
        (loss * 0.37).backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert len(gradients[0]) > 5
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_rows_without_a_finite_loss_are_named_with_their_ranks() -> None:
    labels = np.ones(3, np.int32)
    sound = packed(np.ones(3, np.float32), labels)
    assert faulty([sound, sound]) == ""
    assert (
        faulty([sound, packed(np.array([1, np.nan, np.inf], np.float32), labels)]) == "row 4 (rank 1), row 5 (rank 1)"
    )
    assert faulty([packed(np.full(20, np.nan, np.float32), np.ones(20, np.int32))]).endswith(
        "row 7 (rank 0) and 12 more"
    )


def test_a_step_stands_out_by_robust_deviations_of_the_steps_before() -> None:
    rng = np.random.default_rng(3)
    noisy = {step: 5 - step / 100 + 0.05 * rng.standard_normal() for step in range(1, 201)}
    assert max(outlying(noisy).values()) < 6
    assert outlying({**noisy, 120: noisy[120] + 1})[120] > 8
    assert LEAST not in outlying(noisy)
    assert outlying(dict.fromkeys(range(30), 2.0)) == dict.fromkeys(range(LEAST, 30), 0.0)


@pytest.fixture(scope="module")
def spec(toy: Toy) -> RunSpec:
    """A recorded run with metrics and ledger of 40 steps, step 31 planted: row 5 of it loses most."""
    made, store, ledger = toy.spec('name="spiked"', *SETTINGS), toy.open(), Ledger()
    made.record(store)
    lines, rows, rng = [], made.plan.global_batch, np.random.default_rng(1)
    for step in range(1, 41):
        nll, labels = 100 + rng.random(rows, np.float32), np.full(rows, 50, np.int32)
        nll[5] += 400 * (step == 31)
        ledger.add(step, [packed(nll, labels)])
        lines.append({"step": step, "loss": float(nll.sum()) / 50 / rows, "grad_norm": 1 + step % 3 / 10})
    store.create(f"runs/{made.run_id}/metrics.1.00000040.jsonl", "".join(json.dumps(x) + "\n" for x in lines).encode())
    for item in ledger.take(made.run_id, 1).items():
        store.create(*item)
    return made


def test_a_spike_names_its_rows_and_their_documents(spec: RunSpec) -> None:
    (found,) = spikes(spec)
    assert (found.step, found.rows[0][2].row) == (31, 5)
    assert found.by_loss > 6 > found.by_norm
    assert found.rows[0][0] == pytest.approx(10, abs=0.1)
    assert found.rows[0][2].pieces[0].doc_id
    assert spikes(spec, least=1e9) == []


def test_the_verb_shows_them(spec: RunSpec) -> None:
    command = [sys.executable, "-c", "from mill.cli import main; main()", "spikes", spec.run_id, "--store", spec.store]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "step 31: loss" in done.stdout
    assert "row 5: " in done.stdout
    told = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert [one["step"] for one in told["spikes"]] == [31]
    missing = subprocess.run([*command[:4], "0" * 16, *command[5:]], capture_output=True, text=True, check=False)
    assert missing.returncode > 0
    assert "Traceback" not in missing.stderr


def test_labels_are_counted_without_those_that_are_ignored(toy: Toy) -> None:
    spec = toy.spec('name="ledger"', *SETTINGS)
    batch = Loader(spec.open(), spec.facts, spec.plan).batch(0)
    assert (batch.labels != IGNORED).sum() == batch.counted
