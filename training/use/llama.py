"""Export: a checkpoint as a folder that `transformers` and everything that reads its files load as a Llama model.

Our blocks are Llama's: RMSNorm before each part, rotary positions that turn channels i and i + D / 2, SwiGLU, no
biases. Only q, k, v and gate, up are one matrix each; they are cut apart, so the logits are the same numbers.
`safetensors` (github.com/huggingface/safetensors): 8 bytes with the size of a JSON head, the head, the tensors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from corpusmill import __version__
from corpusmill.errors import Refused, UsageError
from corpusmill.store.scratch import Scratch
from training.config import Model
from training.model import NORM_EPS, count_parameters
from training.use.trained import Trained


@dataclass(frozen=True)
class Exported:
    """The folder that was written: its files, each with size and sha256."""

    folder: Path
    files: Mapping[str, tuple[int, str]]


def export(trained: Trained, out: Path) -> Exported:
    """Write model.safetensors (float32), config.json, generation_config.json, tokenizer.json and its config, README.md.

    The folder appears whole or not at all. The same checkpoint gives the same bytes.

    Raises:
        Refused: the folder is not empty. UsageError: there can be no folder of this name.
    """
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"{out} exists", "an export never overwrites", "Choose another folder with -o.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as err:
        raise UsageError(f"{out} cannot be a folder", str(err), "Choose another path.") from err
    with Scratch(out.parent) as scratch:
        made = scratch.path()
        made.mkdir()
        with (made / "model.safetensors").open("wb") as file:
            write_safetensors(file, dict(tensors(trained.model.state_dict(), trained.config)))
        for name, text in _texts(trained).items():
            (made / name).write_bytes(text)
        for path in (*made.iterdir(), made):
            _to_disk(path)
        files = {path.name: _identity(path) for path in sorted(made.iterdir())}
        try:
            made.rename(out)  # onto an empty folder at most
        except OSError as err:
            raise Refused(f"{out} exists", "an export never overwrites", "Choose another folder with -o.") from err
        _to_disk(out.parent)
    return Exported(out, files)


def tensors(weights: Mapping[str, Tensor], config: Model) -> Iterator[tuple[str, Tensor]]:
    """The weights under Llama's names, q, k, v and gate, up each by itself."""
    yield "model.embed_tokens.weight", weights["embed.weight"]
    for i in range(config.layers):
        ours, theirs = f"blocks.{i}.", f"model.layers.{i}."
        yield f"{theirs}input_layernorm.weight", weights[f"{ours}norm_1.weight"]
        for name, part in zip("qkv", weights[f"{ours}qkv.weight"].chunk(3), strict=True):
            yield f"{theirs}self_attn.{name}_proj.weight", part
        yield f"{theirs}self_attn.o_proj.weight", weights[f"{ours}proj.weight"]
        yield f"{theirs}post_attention_layernorm.weight", weights[f"{ours}norm_2.weight"]
        for name, part in zip(("gate", "up"), weights[f"{ours}gate_up.weight"].chunk(2), strict=True):
            yield f"{theirs}mlp.{name}_proj.weight", part
        yield f"{theirs}mlp.down_proj.weight", weights[f"{ours}down.weight"]
    yield "model.norm.weight", weights["norm.weight"]
    if not config.tied:
        yield "lm_head.weight", weights["head.weight"]


def write_safetensors(file: BinaryIO, named: Mapping[str, Tensor]) -> None:
    """Write tensors as float32, in the order of their names."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in sorted(named):
        begin, end = end, end + 4 * named[name].numel()
        head[name] = {"dtype": "F32", "shape": list(named[name].shape), "data_offsets": [begin, end]}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in sorted(named):
        file.write(np.ascontiguousarray(named[name].detach().float().cpu().numpy(), "<f4").data)


def _texts(trained: Trained) -> dict[str, bytes]:
    """Every file but the weights."""
    vocabulary = trained.manifest.vocabulary
    ids: dict[str, object] = {"bos_token_id": None, "eos_token_id": vocabulary.eos_id}
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": vocabulary.eos,
        "model_max_length": trained.seq_len,
        "clean_up_tokenization_spaces": False,
    }
    generation = {**ids, "pad_token_id": vocabulary.eos_id, "do_sample": True, "max_length": trained.seq_len}
    return {
        "config.json": _json(
            config_of(trained.config, vocabulary.vocab_size, trained.seq_len, trained.rope_base) | ids
        ),
        "generation_config.json": _json(generation),
        "tokenizer.json": plain_tokenizer(trained.tokenizer_json),
        "tokenizer_config.json": _json(tokenizer),
        "README.md": card(trained).encode(),
    }


def config_of(model: Model, vocab_size: int, seq_len: int, rope_base: int) -> dict[str, object]:
    """config.json of a Llama of this shape."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocab_size,
        "hidden_size": model.dim,
        "intermediate_size": model.hidden,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.heads,
        "head_dim": model.dim // model.heads,
        "hidden_act": "silu",
        "rms_norm_eps": NORM_EPS,
        "rope_theta": float(rope_base),
        "rope_scaling": None,
        "max_position_embeddings": seq_len,
        "tie_word_embeddings": model.tied,
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "torch_dtype": "float32",
        "use_cache": True,
    }


def plain_tokenizer(data: bytes) -> bytes:
    """A tokenizer.json that adds no tokens of its own: no template, no cut, no padding, as texts were encoded here."""
    given = json.loads(data)
    asks = [key for key in ("post_processor", "truncation", "padding") if given.get(key) is not None]
    return _json(given | dict.fromkeys(asks)) if asks else data


def card(trained: Trained) -> str:
    """The model card: what the model is, and on what data, mixture and run it goes back."""
    facts, model = trained.commit.facts, trained.config
    vocab_size = trained.manifest.vocabulary.vocab_size
    rows = {
        "dataset": f"`{trained.dataset}`",
        "manifest": f"`sha256:{facts['manifest_sha256']}`",
        "mixture": f"`sha256:{facts['plan_sha256']}`",
        "training config": f"`{facts['config']}`",
        "run": f"`{trained.run_id}`",
        "step": f"{trained.commit.step:,}",
        "tokens learnt from": f"{facts['tokens']:,}",
        "chain of batches": f"`sha256:{facts['batch_chain']}`",
        "loss": f"{facts['loss_last']:.4f} at this step, {facts['loss_first']:.4f} at the first"
        if facts.get("loss_last") is not None
        else "-",
        "checkpoint": f"`{trained.commit.name}`",
        "parent checkpoint": f"`{facts['parent']}`" if facts.get("parent") else "-",
        "saved by": f"Corpusmill {facts['code_version']}, torch {facts['torch_version']}",
    }
    return "\n".join(
        [
            "---",
            "library_name: transformers",
            "pipeline_tag: text-generation",
            "---",
            "",
            f"# {facts['config']}, step {trained.commit.step:,}",
            "",
            f"A Llama of {count_parameters(model, vocab_size):,} parameters: {model.layers} layers",
            f"of width {model.dim}, {model.heads} heads, {vocab_size:,} tokens,",
            f"contexts of {trained.seq_len:,} tokens. Weights are float32.",
            "It continues text; it follows no instructions.",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in rows.items()),
            "",
            "The dataset's manifest names every shard, rule and source file; `mill lineage` shows the chain.",
            "The licences of the texts are those of their sources, which the dataset's card lists.",
            "",
            "```python",
            "from transformers import AutoModelForCausalLM, AutoTokenizer",
            "",
            'model = AutoModelForCausalLM.from_pretrained(".")',
            'tokenizer = AutoTokenizer.from_pretrained(".")',
            "```",
            "",
            f"Exported by Corpusmill {__version__}.",
            "",
        ]
    )


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _identity(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _to_disk(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
