"""Sample text from a trained model: one token after the other, drawn by a seed.

No cache of keys and values: each token reads its context anew. For contexts of some hundred tokens and models that
train on CPUs that is milliseconds a token; who serves a model exports it and takes an engine that is made for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from corpusmill.errors import UsageError
from training.model import Layout
from training.use.trained import Trained


@dataclass(frozen=True)
class Draw:
    """How the next token is chosen.

    Args:
        temperature: 0: the likeliest token, always; 1: as the model says.
        top_k: only the k likeliest; 0: all.
        top_p: only the likeliest that have this probability together (Holtzman et al. 2020).
    """

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("temperature", 0 <= self.temperature < float("inf"), "0 or more"),
            ("top-k", self.top_k >= 0, "0 (all) or more"),
            ("top-p", 0 < self.top_p <= 1, "more than 0, at most 1"),
            ("seed", 0 <= self.seed < 2**63, "0 to 2**63 - 1"),
        ):
            if not good:
                raise UsageError(f"--{name} {getattr(self, name.replace('-', '_'))}", f"expected {expected}")


@dataclass(frozen=True)
class Sample:
    """Text that a model wrote.

    Args:
        text: the continuation alone.
        tokens: its tokens, without the one that ends the document.
        ended: the model ended the document, before `max_tokens`.
        dropped: tokens at the beginning of the prompt that the context had no room for.
    """

    prompt: str
    text: str
    tokens: list[int]
    ended: bool
    dropped: int


def sample(trained: Trained, prompt: str, draw: Draw, max_tokens: int) -> Sample:
    """Continue a prompt.

    Raises:
        UsageError: the prompt has no token; or a number is out of range.
    """
    if max_tokens < 1:
        raise UsageError(f"--max-tokens {max_tokens}", "expected 1 or more")
    begin = opening(trained, prompt)
    tokens, ended = list[int](), False
    for token in _tokens(trained, begin, draw):
        if ended := token == trained.manifest.vocabulary.eos_id:
            break
        tokens.append(token)
        if len(tokens) == max_tokens:
            break
    # Decoded with the prompt: some tokenizers write a space before the first token, or a character in two tokens.
    before = trained.tokenizer.decode(begin)
    text = trained.tokenizer.decode([*begin, *tokens]).removeprefix(before)
    return Sample(prompt, text, tokens, ended, max(0, len(begin) - trained.seq_len))


def opening(trained: Trained, prompt: str) -> list[int]:
    """The tokens that the model continues."""
    encoded = trained.tokenizer.encode([prompt])[0][:-1].tolist() if prompt else []
    if not encoded:
        raise UsageError(
            "there is no text to continue",
            f"documents of {trained.manifest.name} begin without a token of their own, so none can be drawn unprompted",
            'Give the beginning of a text: mill sample RUN/STEP "Once upon a time".',
        )
    return [int(token) for token in encoded]


@torch.no_grad()
def _tokens(trained: Trained, begin: Sequence[int], draw: Draw) -> Iterator[int]:
    generator = torch.Generator().manual_seed(draw.seed)
    context, head_dim = list(begin), trained.config.dim // trained.config.heads
    while True:
        context = context[-trained.seq_len :]  # positions that were never trained say nothing
        layout = Layout.of(np.array([len(context)]), len(context), head_dim, trained.rope_base, trained.device)
        logits = trained.model.logits(torch.tensor([context], device=trained.device), layout)[0, -1]
        token = choose(logits.double().cpu(), draw, generator)
        yield token
        context.append(token)


def choose(logits: Tensor, draw: Draw, generator: torch.Generator) -> int:
    """Draw from float64 logits [V]."""
    if draw.temperature == 0:
        return int(logits.argmax())
    ordered, ids = torch.sort(logits / draw.temperature, descending=True, stable=True)
    if draw.top_k:
        ordered, ids = ordered[: draw.top_k], ids[: draw.top_k]
    chances = ordered.softmax(0)
    if draw.top_p < 1:  # those before which less than top_p lies: at least one
        keep = int((chances.cumsum(0) - chances < draw.top_p).sum())
        chances, ids = chances[:keep], ids[:keep]
    return int(ids[torch.multinomial(chances, 1, generator=generator)])
