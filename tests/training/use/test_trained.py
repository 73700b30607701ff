"""A trained model in use: exported as a Llama with equal logits, sampled from by a seed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from corpusmill.errors import NotFound, Refused, UsageError
from mill import cli
from tests.training.packed import VOCAB, word
from tests.training.toy import Toy
from training.loop import _trainer
from training.model import Layout
from training.parallel import Ranks
from training.use import llama
from training.use.sample import Draw, choose, sample
from training.use.trained import Trained, open_trained


@pytest.fixture(scope="module")
def run(toy: Toy, ranks: Ranks, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A short run in this process: its result."""
    folder = tmp_path_factory.mktemp("run")
    spec = toy.spec('name="trained"', "mixture.stage=[{steps=8,rope_base=5000}]", "model.tied=false")
    before = signal.getsignal(signal.SIGTERM)
    torch.set_num_threads(1)
    result = _trainer(spec, 1, folder, folder, ranks).run()
    signal.signal(signal.SIGTERM, before)
    return result


@pytest.fixture(scope="module")
def trained(toy: Toy, run: dict[str, Any]) -> Trained:
    return open_trained(toy.open(), f"{run['run_id']}/8")


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    assert (8 + size) % 8 == 0
    assert head.pop("__metadata__") == {"format": "pt"}
    found = {}
    for name, entry in head.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(entry["shape"])
        found[name] = torch.from_numpy(values.copy())
    assert max(entry["data_offsets"][1] for entry in head.values()) == len(data) - 8 - size
    return found


def llama_logits(w: dict[str, torch.Tensor], config: dict[str, Any], tokens: torch.Tensor) -> torch.Tensor:
    """Llama as its paper and config.json say, with nothing of ours: [T] -> [T, V]."""
    heads, d, eps = config["num_attention_heads"], config["head_dim"], config["rms_norm_eps"]

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * w[f"{name}.weight"]

    angle = torch.arange(len(tokens))[:, None] / config["rope_theta"] ** (torch.arange(0, d, 2) / d)
    cos, sin = (torch.cat([f(angle)] * 2, -1) for f in (torch.cos, torch.sin))

    def turned(x: torch.Tensor) -> torch.Tensor:
        return x * cos + torch.cat([-x[..., d // 2 :], x[..., : d // 2]], -1) * sin

    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}"
        y = norm(x, f"{at}.input_layernorm")
        q, k, v = ((y @ w[f"{at}.self_attn.{n}_proj.weight"].T).view(-1, heads, d).transpose(0, 1) for n in "qkv")
        scores = turned(q) @ turned(k).transpose(1, 2) / d**0.5
        scores += torch.full_like(scores, -torch.inf).triu(1)
        x = x + (scores.softmax(-1) @ v).transpose(0, 1).flatten(1) @ w[f"{at}.self_attn.o_proj.weight"].T
        y = norm(x, f"{at}.post_attention_layernorm")
        gate, up = (y @ w[f"{at}.mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        x = x + (F.silu(gate) * up) @ w[f"{at}.mlp.down_proj.weight"].T
    head = w["model.embed_tokens.weight"] if config["tie_word_embeddings"] else w["lm_head.weight"]
    return norm(x, "model.norm") @ head.T


def test_an_exported_checkpoint_is_a_llama_with_equal_logits(
    trained: Trained, toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "model"
    assert cli.run(["export", f"{trained.run_id}/8", "-o", str(out), "--store", toy.uri, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    names = ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]
    assert sorted(said["files"]) == sorted([*names, "tokenizer_config.json"]) == sorted(p.name for p in out.iterdir())
    assert [p.name for p in out.parent.iterdir()] == ["model"]  # no scratch left behind

    config, weights = json.loads((out / "config.json").read_text()), read_safetensors(out / "model.safetensors")
    assert (config["rope_theta"], config["max_position_embeddings"], config["tie_word_embeddings"]) == (5000, 48, False)
    assert sum(t.numel() for t in weights.values()) == sum(p.numel() for p in trained.model.parameters())
    assert weights["model.layers.1.self_attn.q_proj.weight"].shape == (32, 32)
    assert weights["model.layers.1.mlp.up_proj.weight"].shape == (64, 32)

    tokens = torch.from_numpy(np.random.default_rng(5).integers(0, VOCAB, 40))
    ours = trained.model.logits(tokens[None], Layout.of(np.array([40]), 40, 16, 5000, torch.device("cpu")))[0]
    torch.testing.assert_close(llama_logits(weights, config, tokens), ours, atol=1e-5, rtol=0)

    card = (out / "README.md").read_text()
    for fact in (trained.run_id, toy.manifest, trained.commit.facts["plan_sha256"], "step 8", trained.commit.name):
        assert fact in card
    again = llama.export(trained, tmp_path / "again")
    assert {name: sha for name, (_, sha) in again.files.items()} == {n: f["sha256"] for n, f in said["files"].items()}


def test_an_export_overwrites_nothing_and_leaves_nothing_half_written(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes").write_text("mine")
    with pytest.raises(Refused, match="exists"):
        llama.export(trained, tmp_path / "taken")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Refused, match="exists"):
        llama.export(trained, tmp_path / "file")
    with pytest.raises(UsageError, match="cannot be a folder"):
        llama.export(trained, tmp_path / "file" / "below")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(llama, "card", full)  # after the weights were written
    with pytest.raises(OSError, match="No space"):
        llama.export(trained, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "taken"]


def test_a_tokenizer_that_puts_tokens_around_texts_is_exported_without_them(trained: Trained) -> None:
    assert llama.plain_tokenizer(trained.tokenizer_json) == trained.tokenizer_json
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "w01", "type_id": 0}}]}
    given = json.loads(trained.tokenizer_json) | {"post_processor": template}
    assert json.loads(llama.plain_tokenizer(json.dumps(given).encode()))["post_processor"] is None


def test_a_sample_is_a_function_of_its_seed(trained: Trained) -> None:
    first = sample(trained, "w05 w06", Draw(temperature=1.0, seed=3), 30)
    assert first == sample(trained, "w05 w06", Draw(temperature=1.0, seed=3), 30)
    assert first.tokens != sample(trained, "w05 w06", Draw(temperature=1.0, seed=4), 30).tokens
    assert first.text.split() == [word(token) for token in first.tokens]
    assert first.ended or len(first.tokens) == 30
    # Greedy is what the model finds likeliest, each time.
    greedy = sample(trained, "w05 w06", Draw(temperature=0), 5)
    context = [5, 6]
    for token in greedy.tokens:
        layout = Layout.of(np.array([len(context)]), len(context), 16, 5000, torch.device("cpu"))
        assert int(trained.model.logits(torch.tensor([context]), layout)[0, -1].argmax()) == token
        context.append(token)


def test_a_prompt_longer_than_the_context_loses_its_beginning(trained: Trained) -> None:
    words = [word(1 + n % 90) for n in range(60)]
    long = sample(trained, " ".join(words), Draw(seed=1), 8)
    assert long.dropped == 60 - 48
    assert long.tokens == sample(trained, " ".join(words[12:]), Draw(seed=1), 8).tokens


def test_top_k_and_top_p_leave_the_likeliest() -> None:
    logits = torch.tensor([0.1, 0.5, 0.2, 0.15, 0.05], dtype=torch.float64).log()
    generator = torch.Generator().manual_seed(0)

    def drawn(draw: Draw) -> set[int]:
        return {choose(logits, draw, generator) for _ in range(300)}

    assert drawn(Draw(1.0)) == {0, 1, 2, 3, 4}
    assert drawn(Draw(1.0, top_k=2)) == {1, 2}
    assert drawn(Draw(1.0, top_p=0.7)) == {1, 2}
    assert drawn(Draw(1.0, top_p=0.71)) == {1, 2, 3}
    assert drawn(Draw(1.0, top_p=1e-9)) == drawn(Draw(0)) == drawn(Draw(1.0, top_k=1)) == {1}
    assert drawn(Draw(1.0, top_k=99)) == {0, 1, 2, 3, 4}
    counts = np.bincount([choose(logits, Draw(0.5), generator) for _ in range(3000)], minlength=5) / 3000
    wanted = np.array([0.1, 0.5, 0.2, 0.15, 0.05]) ** 2
    assert np.abs(counts - wanted / wanted.sum()).max() < 0.03


@pytest.mark.parametrize(
    "words", [["--temperature", "-1"], ["--top-k", "-1"], ["--top-p", "0"], ["-n", "0"], ["--seed", "-1"]]
)
def test_numbers_out_of_range_are_refused(
    words: list[str], trained: Trained, toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["sample", f"{trained.run_id}/8", "w01", "--store", toy.uri, *words]) == UsageError.exit_code
    assert "expected" in capsys.readouterr().err


def test_samples_are_printed_whole_and_as_json(trained: Trained, toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["sample", trained.run_id, "w05 w06", "--store", toy.uri, "-n", "4", "--seed", "3"]
    assert cli.run(ask) == 0
    said = capsys.readouterr().out
    assert said.startswith("w05 w06 w")
    assert cli.run([*ask, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert f"{document['prompt']}{document['text']}\n" == said
    assert (document["checkpoint"], document["draw"]["seed"]) == (trained.commit.name, 3)
    with pytest.raises(UsageError, match="no text to continue"):
        sample(trained, "", Draw(), 1)
    with pytest.raises(NotFound):
        open_trained(toy.open(), f"{trained.run_id}/7")
