"""Multiple choice by likelihood: the answer that a model finds likeliest after the question (Brown et al. 2020, 2.4).

Each answer follows the question after one space. Raw: the sum of its tokens' log-likelihoods. Normalised: that sum by
the bytes of the answer, so that short answers have no advantage (as `acc_norm` of lm-evaluation-harness).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from corpusmill.benchmarks import Question
from corpusmill.kernels.gather import IGNORED
from training.model import Layout
from training.use.trained import Trained

ROW_TOKENS = 4096
"""Answers are computed together in rows of about this many tokens, each in a context of its own."""


@dataclass(frozen=True)
class Answered:
    """What a model makes of a question: log-likelihood (nats) and bytes of each choice."""

    question: Question
    loglikelihood: tuple[float, ...]

    @property
    def raw(self) -> int:
        """The likeliest choice."""
        return int(np.argmax(self.loglikelihood))

    @property
    def normalised(self) -> int:
        """The likeliest choice a byte."""
        sizes = [len(choice.encode()) for choice in self.question.choices]
        return int(np.argmax(np.array(self.loglikelihood) / sizes))


def answers(trained: Trained, questions: Sequence[Question]) -> list[Answered]:
    """The likelihood of every choice of every question."""
    asked = [(question, choice) for question in questions for choice in question.choices]
    encode = trained.tokenizer.encode
    contexts = [ids[:-1] for ids in encode([question.text for question, _ in asked])]
    wholes = [ids[:-1] for ids in encode([f"{question.text} {choice}" for question, choice in asked])]
    found = list(_likelihoods(trained, [_cut(*pair, trained.seq_len) for pair in zip(contexts, wholes, strict=True)]))
    ends = np.cumsum([len(question.choices) for question in questions])
    return [Answered(q, tuple(found[end - len(q.choices) : end])) for q, end in zip(questions, ends, strict=True)]


def _cut(context: np.ndarray, whole: np.ndarray, seq_len: int) -> tuple[list[int], int]:
    """Tokens of question and answer, the last that the context holds, and how many of them are the question's.

    Where question and answer share a token, it is the answer's.
    """
    same = min(len(context), len(whole))
    differ = np.flatnonzero(context[:same] != whole[:same])
    shared = int(differ[0]) if len(differ) else same
    tokens = [int(token) for token in whole]
    dropped = max(0, len(tokens) - seq_len - 1)
    return tokens[dropped:], max(1, shared - dropped)  # the first token is predicted from nothing


@torch.no_grad()
def _likelihoods(trained: Trained, sequences: Sequence[tuple[list[int], int]]) -> Iterator[float]:
    batch: list[tuple[list[int], int]] = []
    for sequence in sequences:
        if batch and sum(len(tokens) for tokens, _ in batch) + len(sequence[0]) > ROW_TOKENS:
            yield from _row(trained, batch)
            batch = []
        batch.append(sequence)
    if batch:
        yield from _row(trained, batch)


def _row(trained: Trained, batch: Sequence[tuple[list[int], int]]) -> list[float]:
    """Log-likelihoods of some sequences, laid end to end as pieces of one row."""
    inputs = [tokens[:-1] or tokens for tokens, _ in batch]
    labels = [[IGNORED] * (first - 1) + tokens[first:] for tokens, first in batch]
    labels = [line or [IGNORED] for line in labels]
    lengths = np.array([len(line) for line in inputs])
    head_dim = trained.config.dim // trained.config.heads
    layout = Layout.of(lengths, int(lengths.sum()), head_dim, trained.rope_base, trained.device)
    tokens, wanted = (torch.tensor([[*chain(*lines)]], device=trained.device) for lines in (inputs, labels))
    lost = trained.model(tokens, wanted, layout, "none")[0].double().cpu().numpy()
    return [-float(part.sum()) for part in np.split(lost, np.cumsum(lengths)[:-1])]
