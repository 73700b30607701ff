"""The model: a packed row is its documents, whatever the attention's form; counts of parameters and operations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from corpusmill.kernels.gather import IGNORED
from training.config import Model
from training.model import GPT, Layout, _dense_mask, count_parameters, flops_per_token, init_weights

CONFIG = Model(dim=32, layers=2, heads=2, hidden=48)
CPU = torch.device("cpu")


def model(config: Model = CONFIG, seed: int = 1) -> GPT:
    gpt = GPT(config, 50)
    init_weights(gpt, config.layers, seed)
    return gpt


def layout(lengths: list[list[int]]) -> Layout:
    return Layout.of(np.concatenate(lengths), sum(lengths[0]), 16, 10_000, CPU)


def packed_row(lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and labels [1, T]; the last token of each piece has nothing to predict."""
    tokens = torch.from_numpy(np.random.default_rng(3).integers(0, 50, (1, sum(lengths))))
    labels = tokens.roll(-1)
    labels[0, np.cumsum(lengths) - 1] = IGNORED
    return tokens, labels


def test_packed_loss_is_the_loss_of_the_documents_alone() -> None:
    gpt, lengths = model(), [5, 1, 12, 7]
    tokens, labels = packed_row(lengths)
    gpt.requires_grad_(False)
    together = gpt(tokens, labels, layout([lengths]))
    alone = 0.0
    for start, n in zip(np.cumsum([0, *lengths[:-1]]), lengths, strict=True):
        part = slice(start, start + n)
        alone += float(gpt(tokens[:, part], labels[:, part], layout([[n]])))
    assert float(together) == pytest.approx(alone, rel=1e-5)
    leaking = gpt(tokens, labels, layout([[sum(lengths)]]))
    assert abs(float(leaking) - alone) > 1e-4 * alone


def test_dense_mask_and_loop_over_pieces_agree() -> None:
    gpt, lengths = model(), [[5, 1, 12, 6], [24], [3, 21]]
    tokens = torch.from_numpy(np.random.default_rng(3).integers(0, 50, (3, 24)))
    loop = layout(lengths)
    pieces = np.array([np.repeat(np.arange(len(row)), row) for row in lengths])
    dense = Layout([], loop.cos, loop.sin, _dense_mask(pieces))
    losses = []
    for way in (loop, dense):
        gpt.zero_grad()
        loss = gpt(tokens, tokens.roll(-1, 1), way)
        loss.backward()
        losses.append((loss.detach(), gpt.blocks[0].qkv.weight.grad.clone()))
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-4)


def test_activation_checkpointing_changes_no_gradient() -> None:
    tokens, labels = packed_row([5, 11])
    grads = []
    for again in (False, True):
        gpt = GPT(CONFIG, 50, activation_checkpointing=again)
        init_weights(gpt, 2, 1)
        gpt(tokens, labels, layout([[5, 11]])).backward()
        grads.append([p.grad for p in gpt.parameters()])
    torch.testing.assert_close(grads[0], grads[1], rtol=0, atol=0)


def test_initial_weights_depend_on_seed_and_name_only() -> None:
    first, again, other = model(), model(), model(seed=2)
    for name, weight in first.named_parameters():
        assert torch.equal(weight, again.get_parameter(name))
        assert weight.ndim < 2 or not torch.equal(weight, other.get_parameter(name))
    assert not torch.equal(first.blocks[0].proj.weight, first.blocks[1].proj.weight)


@pytest.mark.parametrize("tied", [True, False])
def test_parameters_are_counted(tied: bool) -> None:
    config = CONFIG.model_copy(update={"tied": tied})
    assert count_parameters(config, 50) == sum(p.numel() for p in GPT(config, 50).parameters())


def test_operations_follow_torchs_counter() -> None:
    """Its counter of matrix products: 6 a weight; attention is counted there in full, here as causal, so half of it."""
    from torch.utils.flop_counter import FlopCounterMode

    gpt, tokens = model(), torch.zeros(1, 64, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        gpt(tokens, tokens, layout([[64]])).backward()
    attention = 6 * CONFIG.layers * CONFIG.dim * 64
    matrices = flops_per_token(CONFIG, 50, 64) - attention
    assert matrices * 64 <= counter.get_total_flops() <= (matrices + 3 * attention) * 64
