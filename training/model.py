"""A GPT: RMSNorm before each part, rotary positions, SwiGLU, attention that stays inside a document.

A packed row holds pieces of several documents. Positions start anew at each piece and attention does not cross pieces,
so the loss of a packed row is that of its documents alone (tests/training/test_model.py).

Shapes: B rows, T tokens a row, H heads, D width of a head.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils.checkpoint import checkpoint

from corpusmill.kernels.gather import IGNORED
from corpusmill.tokens.order import Ints
from training.config import Model

NORM_EPS = 1e-6
"""Added to the mean square by all norms."""


@dataclass(frozen=True)
class Layout:
    """Where documents lie in the rows of a batch, and what attention needs to know about it.

    Args:
        lengths: token counts of the pieces, row after row; no piece crosses rows.
        cos, sin: float32[B, T, D / 2], the rotation at each token's position inside its piece.
        mask: bool[B, 1, T, T], which token sees which; None: the pieces are walked one by one.
    """

    lengths: list[int]
    cos: Tensor
    sin: Tensor
    mask: Tensor | None

    @staticmethod
    def of(lengths: Ints, seq_len: int, head_dim: int, rope_base: float, device: torch.device) -> Layout:
        """The layout of a batch of rows of seq_len tokens.

        On a CPU a loop over the pieces took half the time of full causal attention and a third of that of a dense mask
        (1,024 tokens, 4 pieces). A GPU gets the dense mask: many small calls would leave it idle.
        """
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions = torch.from_numpy((np.arange(len(starts)) - starts).reshape(-1, seq_len)).to(device)
        frequencies = rope_base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32, device=device) / head_dim)
        angle = positions[..., None].float() * frequencies
        mask = _dense_mask(starts.reshape(-1, seq_len)).to(device) if device.type == "cuda" else None
        return Layout(lengths.tolist(), angle.cos(), angle.sin(), mask)


def _dense_mask(piece: Ints) -> Tensor:
    """Which token sees which, bool[B, 1, T, T], from a number for each token's piece, [B, T]."""
    of = torch.from_numpy(piece)
    return torch.tril(of[:, :, None] == of[:, None, :])[:, None]


class GPT(nn.Module):
    """The model: the architecture of Llama, q, k, v and gate, up of a block one matrix each (training/use/llama.py).

    `forward` gives the loss, so that in training logits never leave it.
    """

    def __init__(self, config: Model, vocab_size: int, activation_checkpointing: bool = False) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(vocab_size, config.dim)
        self.blocks = nn.ModuleList(Block(config, activation_checkpointing) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.dim, eps=NORM_EPS)
        self.head = None if config.tied else nn.Linear(config.dim, vocab_size, bias=False)

    def forward(self, tokens_BT: Tensor, labels_BT: Tensor, layout: Layout, reduction: str = "sum") -> Tensor:
        """Sum of the negative log-likelihoods (nats, float32) of all labels that count.

        Args:
            reduction: "none" gives them label by label, [B, T], with 0 where none counts.
        """
        logits = self.logits(tokens_BT, layout).flatten(0, 1).float()
        loss = F.cross_entropy(logits, labels_BT.flatten(), ignore_index=IGNORED, reduction=reduction)
        return loss if reduction == "sum" else loss.view_as(labels_BT)

    def logits(self, tokens_BT: Tensor, layout: Layout) -> Tensor:
        """What is expected after each token, [B, T, vocabulary]."""
        x = self.embed(tokens_BT)
        for block in self.blocks:
            x = block(x, layout)
        x = self.norm(x)
        logits: Tensor = F.linear(x, self.embed.weight) if self.head is None else self.head(x)
        return logits


class Block(nn.Module):
    """Attention and feed-forward, each added to the stream."""

    def __init__(self, config: Model, activation_checkpointing: bool) -> None:
        super().__init__()
        self.heads, self.activation_checkpointing = config.heads, activation_checkpointing
        self.norm_1 = nn.RMSNorm(config.dim, eps=NORM_EPS)
        self.qkv = nn.Linear(config.dim, 3 * config.dim, bias=False)
        self.proj = nn.Linear(config.dim, config.dim, bias=False)
        self.norm_2 = nn.RMSNorm(config.dim, eps=NORM_EPS)
        self.gate_up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        # Inside the block, below the hooks of FSDP2: its parameters are gathered once for recomputation and backward.
        if self.activation_checkpointing and self.training:
            again: Tensor = checkpoint(self._forward, x, layout, use_reentrant=False)
            return again
        return self._forward(x, layout)

    def _forward(self, x: Tensor, layout: Layout) -> Tensor:
        x = x + self._attention(self.norm_1(x), layout)
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, dim=-1)
        out: Tensor = x + self.down(F.silu(gate) * up)
        return out

    def _attention(self, x: Tensor, layout: Layout) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # each [B, H, T, D]
        q, k = _rotate(q, layout), _rotate(k, layout)
        if layout.mask is not None:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=layout.mask)
        else:
            out = _by_piece(q, k, v, layout.lengths)
        merged: Tensor = self.proj(out.transpose(1, 2).flatten(2))
        return merged


def _rotate(x: Tensor, layout: Layout) -> Tensor:
    """Turn each pair of channels (i, i + D / 2) by the angle of its position (Su et al. 2021)."""
    first, second = x.float().chunk(2, dim=-1)
    cos, sin = layout.cos[:, None], layout.sin[:, None]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


def _by_piece(q: Tensor, k: Tensor, v: Tensor, lengths: list[int]) -> Tensor:
    """Causal attention in each piece of all rows: [B, H, T, D]."""
    parts = zip(*(torch.split(x.transpose(0, 1).flatten(1, 2), lengths, dim=1) for x in (q, k, v)), strict=True)
    out = torch.cat([F.scaled_dot_product_attention(a, b, c, is_causal=True) for a, b, c in parts], dim=1)
    return torch.unflatten(out, 1, (len(q), -1)).transpose(0, 1)


@torch.no_grad()
def init_weights(model: nn.Module, layers: int, seed: int) -> None:
    """Initial weights, the same for any sharding: each parameter has a generator of its own, keyed by seed and name.

    Matrices are normal with standard deviation 0.02, those that write into the residual stream smaller by
    sqrt(2 layers) (Radford et al. 2019); norms are 1. Made on the CPU one parameter at a time, so that the whole model
    need not fit one rank's memory.
    """
    for name, parameter in model.named_parameters():
        name = name.removeprefix("module.")
        if parameter.ndim < 2:
            parameter.fill_(1.0)
            continue
        word = hashlib.blake2b(f"init1|{seed}|{name}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(word, "little") >> 1)
        std = 0.02 / (2 * layers) ** 0.5 if name.endswith(("proj.weight", "down.weight")) else 0.02
        full = torch.empty(parameter.shape).normal_(0, std, generator=generator).to(parameter.device)
        if isinstance(parameter, DTensor):
            full = distribute_tensor(full, parameter.device_mesh, parameter.placements, src_data_rank=None)
        parameter.copy_(full)


def count_parameters(config: Model, vocab_size: int) -> int:
    """Trained numbers of the model."""
    block = 4 * config.dim**2 + 3 * config.dim * config.hidden + 2 * config.dim
    return config.layers * block + config.dim + vocab_size * config.dim * (1 if config.tied else 2)


def flops_per_token(config: Model, vocab_size: int, seq_len: int) -> int:
    """Floating-point operations of forward and backward a token, attention counted as causal over the whole row.

    6 a matrix weight (Kaplan et al. 2020) and 6 * dim * seq_len a layer for attention; short documents need less.
    """
    matrices = config.layers * (4 * config.dim**2 + 3 * config.dim * config.hidden) + vocab_size * config.dim
    return 6 * matrices + 6 * config.layers * config.dim * seq_len
