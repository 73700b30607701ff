"""An exported checkpoint in the real `transformers`, in an environment of its own: equal logits, equal tokens."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.packed import VOCAB
from tests.training.toy import Toy
from training.loop import _trainer
from training.model import Layout
from training.parallel import Ranks
from training.use import llama
from training.use.trained import open_trained

PROGRAM = """
import json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, tokens = sys.argv[1], json.loads(sys.argv[2])
model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
tokenizer = AutoTokenizer.from_pretrained(folder)
with torch.no_grad():
    logits = model(torch.tensor([tokens])).logits[0]
made = model.generate(torch.tensor([tokens[:4]]), do_sample=False, max_new_tokens=3)[0].tolist()
print(json.dumps({"kind": type(model).__name__, "missing": sorted(info["missing_keys"]), "logits": logits.tolist(),
    "unexpected": sorted(info["unexpected_keys"]), "ids": tokenizer("w05 w06").input_ids, "made": made}))
"""


@pytest.mark.long
@pytest.mark.parametrize("tied", ["true", "false"])
def test_transformers_loads_an_export_with_equal_logits(
    tied: str, toy: Toy, ranks: Ranks, environment: Path, tmp_path: Path
) -> None:
    spec = toy.spec(f'name="exported-{tied}"', "mixture.stage=[{steps=8,rope_base=5000}]", f"model.tied={tied}")
    before = signal.getsignal(signal.SIGTERM)
    run = _trainer(spec, 1, tmp_path, tmp_path, ranks).run()
    signal.signal(signal.SIGTERM, before)
    trained = open_trained(toy.open(), f"{run['run_id']}/8")
    llama.export(trained, tmp_path / "model")
    tokens = np.random.default_rng(5).integers(1, VOCAB, 40).tolist()
    done = subprocess.run(
        [environment, "-c", PROGRAM, str(tmp_path / "model"), json.dumps(tokens)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    layout = Layout.of(np.array([40]), 40, trained.config.dim // trained.config.heads, 5000, torch.device("cpu"))
    with torch.no_grad():
        ours = trained.model.logits(torch.tensor([tokens]), layout)[0]
    assert (theirs["kind"], theirs["missing"], theirs["unexpected"]) == ("LlamaForCausalLM", [], [])
    torch.testing.assert_close(torch.tensor(theirs["logits"]), ours, atol=1e-5, rtol=0)
    assert theirs["ids"] == trained.tokenizer.encode(["w05 w06"])[0][:-1].tolist()
    assert theirs["made"][:4] == tokens[:4]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python with `transformers`."""
    folder = tmp_path_factory.mktemp("transformers")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    wanted = ["transformers==5.24.0", "torch==2.13.0", "numpy"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python
