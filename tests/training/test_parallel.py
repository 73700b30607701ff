"""Modes, precision, accumulation and recomputation change how a step is computed, not what it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.training.packed import VOCAB
from tests.training.toy import Toy, config
from training import parallel
from training.data import Loader
from training.evaluate import Heldout, nll
from training.parallel import Ranks


def gradients(toy: Toy, ranks: Ranks, *overrides: str, micro_batch: int = 8) -> tuple[float, list[torch.Tensor]]:
    """Summed loss and whole gradients of the first global batch."""
    made = config(*overrides)
    model = parallel.build(made, VOCAB, ranks)
    spec = toy.spec()
    batch = Loader(toy.open(), spec.facts, spec.plan).batch(0)
    total = 0.0
    for start in range(0, len(batch), micro_batch):
        with parallel.accumulating(model, last=start + micro_batch >= len(batch)):
            loss = nll(model, batch.part(start, start + micro_batch), 10_000, made, ranks)
            loss.backward()
        total += float(loss.detach())
    grads = [p.grad for p in model.parameters()]
    return total, [g.full_tensor() if hasattr(g, "full_tensor") else g for g in grads if g is not None]


@pytest.mark.parametrize(
    ("overrides", "micro_batch", "tolerance"),
    [
        (['run.mode="fsdp2"'], 8, 0.0),
        ([], 2, 1e-5),
        (['run.mode="fsdp2"'], 3, 1e-5),
        (["run.activation_checkpointing=true"], 8, 0.0),
        (['run.mode="fsdp2"', "run.activation_checkpointing=true"], 8, 0.0),
        (['dtype="bfloat16"'], 8, 0.02),
        (['run.mode="fsdp2"', 'dtype="bfloat16"'], 8, 0.02),
    ],
)
def test_a_step_is_the_same_however_it_is_computed(
    overrides: list[str], micro_batch: int, tolerance: float, toy: Toy, ranks: Ranks
) -> None:
    loss, grads = gradients(toy, ranks)
    other_loss, other_grads = gradients(toy, ranks, *overrides, micro_batch=micro_batch)
    assert other_loss == pytest.approx(loss, rel=tolerance / 10)
    assert len(grads) == len(other_grads)
    for left, right in zip(grads, other_grads, strict=True):
        assert (left - right).norm() <= tolerance * left.norm()


def test_bits_per_byte_of_a_model_that_knows_nothing(toy: Toy, ranks: Ranks) -> None:
    """Every token is as likely as any other: log2(vocabulary) bits for each label, over four bytes of text a token."""
    made = config("heldout_sequences=0")
    model = parallel.build(made, VOCAB, ranks)
    for parameter in model.parameters():
        parameter.data.zero_()
    facts = toy.spec().facts
    heldout = Heldout(toy.open(), facts, made)
    entry = facts.partitions["heldout"]
    labels = heldout._partition.batch(np.arange(entry.sequences)).counted
    expected = labels * np.log2(VOCAB) / entry.text_bytes
    assert heldout.bits_per_byte(model, 10_000, ranks).all == pytest.approx(expected, rel=1e-5)
    drawn = Heldout(toy.open(), facts, config("heldout_sequences=5"))
    assert drawn.bits_per_byte(model, 10_000, ranks).all == pytest.approx(expected, rel=0.2)
