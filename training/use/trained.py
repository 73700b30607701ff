"""A trained model, opened for use: the weights of one checkpoint, in one process, with the dataset it goes back to."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from corpusmill.config import parse_section
from corpusmill.dataset.manifest import Manifest, open_manifest
from corpusmill.errors import Refused
from corpusmill.store import Store
from corpusmill.store.scratch import Scratch
from corpusmill.tokens.tokenizer import Tokenizer
from training.checkpoints import checkpoint, commits
from training.config import Model
from training.model import GPT


@dataclass(frozen=True)
class Trained:
    """A checkpoint in use.

    Args:
        commit: which checkpoint.
        manifest: of the dataset that it was trained on.
        config: shape of the model.
        seq_len: tokens of the longest context that was trained.
        rope_base: base of the rotary positions in the last step.
        model: the weights, float32, on the CPU.
        tokenizer_json: the tokenizer's file, as stored.
    """

    commit: commits.Commit
    manifest: Manifest
    config: Model
    seq_len: int
    rope_base: int
    model: GPT
    tokenizer_json: bytes

    @property
    def run_id(self) -> str:
        """16 hex digits."""
        return str(self.commit.facts["run_id"])

    @property
    def dataset(self) -> str:
        """NAME@DIGEST of the dataset."""
        return f"{self.commit.facts['dataset']}@{self.commit.facts['manifest_sha256']}"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.embed.weight.device

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Ready to encode and decode."""
        return Tokenizer(self.tokenizer_json, self.manifest.vocabulary.eos)


def open_trained(store: Store, ref: str) -> Trained:
    """The model of a checkpoint.

    Args:
        ref: RUN/STEP, or RUN for its newest.

    Raises:
        UsageError, NotFound: there is no such checkpoint. CheckFailed: it or its dataset's manifest is damaged.
        Refused: it was saved by a version that did not write down the model's shape.
    """
    commit = commits.find(store, ref)
    facts = commit.facts
    if "model" not in facts:
        raise Refused(
            f"checkpoint {commit.name} does not say the shape of its model",
            f"it was saved by Corpusmill {facts.get('code_version', 'of an earlier version')}",
            "Train the run on for at least one step with this version, and use the checkpoint that it saves.",
        )
    config = parse_section(Model, facts["model"], f"{commit.name}/COMMIT.json", "model")
    manifest = open_manifest(store, str(facts["manifest_sha256"]), str(facts["dataset"]))
    vocabulary = manifest.vocabulary
    with torch.device("meta"):
        model = GPT(config, vocabulary.vocab_size)
    model.to_empty(device="cpu")
    with Scratch(Path(tempfile.gettempdir())) as scratch:
        folder = scratch.path()
        folder.mkdir()
        weights = checkpoint.load_weights(store, commit, dict(model.state_dict()), folder)
    model.load_state_dict(weights)
    model.eval()
    tokenizer = store.bytes(vocabulary.output)
    return Trained(commit, manifest, config, int(facts["seq_len"]), int(facts["rope_base"]), model, tokenizer)
