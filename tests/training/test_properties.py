"""What training must hold, and the tests that show it; here are those of memory and of who holds the ranks up."""

from __future__ import annotations

import ast
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from tests.training.forked import joined, started
from tests.training.toy import Toy, config
from training import loop, parallel
from training.loop import _trainer
from training.model import Layout
from training.run import RunSpec

SHOWN_BY = {
    "the order's permutation is a bijection with an inverse, as good as numpy's, frozen per version": [
        "corpusmill/tokens/test_order.py::test_permutation_is_a_bijection_with_an_inverse",
        "corpusmill/tokens/test_order.py::test_golden_vectors_change_only_with_VERSION",
        "corpusmill/tokens/test_order.py::test_shuffle_is_as_good_as_numpys",
    ],
    "each row once an epoch, the mixture exact at each block, any access and number of ranks, over all edges": [
        "corpusmill/tokens/test_order.py::test_every_row_is_drawn_once_an_epoch",
        "corpusmill/tokens/test_order.py::test_mixture_is_less_than_one_sequence_off_at_every_block",
        "corpusmill/tokens/test_order.py::test_random_access_is_sequential_access",
        "corpusmill/tokens/test_order.py::test_any_number_of_ranks_sees_the_same_sequence",
        "training/test_stages.py::test_a_run_stopped_at_every_step_is_the_unbroken_one",
    ],
    "a run killed anywhere, also twice, goes on to the bit; half-written and damaged checkpoints are passed over": [
        "training/test_kills.py::test_one_rank_killed_at_every_point_inside_a_save",
        "training/test_kills.py::test_ranks_killed_at_every_point_inside_a_save",
        "training/test_kills.py::test_rank_torchrun_and_launcher_killed_at_random_steps",
        "training/test_runs.py::test_killed_run_resumes_with_the_same_batches_and_losses",
        "training/test_stages.py::test_a_run_stopped_at_every_step_is_the_unbroken_one",
        "training/test_loop.py::test_a_damaged_newest_checkpoint_costs_the_steps_since_the_sound_one",
    ],
    "2 to 1 to 2 ranks and ddp to fsdp2 to ddp: the same batches, the loss within rounding": [
        "training/test_runs.py::test_other_numbers_of_ranks_and_modes_go_on_with_the_same_batches_on_s3",
        "training/test_runs.py::test_sharded_training_sees_the_same_batches_and_losses",
        "training/checkpoints/test_checkpoint.py::test_checkpoint_of_one_mode_is_loaded_into_another",
    ],
    "SIGTERM to flow, launcher, torchrun or rank saves and leaves no process": [
        "flows/test_train_flow.py::test_cancelling_a_training_run_saves_a_checkpoint_and_leaves_no_process",
        "training/test_runs.py::test_other_numbers_of_ranks_and_modes_go_on_with_the_same_batches_on_s3",
        "training/test_kills.py::test_a_signal_to_one_of_two_ranks_saves_that_step_on_both",
    ],
    "another manifest, mixture (and global batch), model or tokenizer is refused by name; a flipped bit is found": [
        "training/test_runs.py::test_resume_refuses_what_the_checkpoint_was_not_made_of",
        "training/test_origin.py::test_another_tokenizer_or_model_is_refused_with_both_named",
        "training/test_data.py::test_a_flipped_bit_in_a_shard_is_found_before_it_is_trained_on",
        "training/checkpoints/test_checkpoint.py::test_damaged_file_is_never_opened",
        "training/checkpoints/test_saver.py::test_one_bit_of_one_rank_is_found_by_all",
    ],
    "to resume costs the same at every step, and the order no memory": [
        "corpusmill/tokens/test_order.py::test_order_costs_no_memory_and_the_same_at_every_step",
        "corpusmill/tokens/test_order.py::test_permutation_reaches_a_million_million_without_memory",
    ],
    "packed loss is the loss of the documents alone, no label crosses a document, none that fits is cut": [
        "training/test_model.py::test_packed_loss_is_the_loss_of_the_documents_alone",
        "training/test_data.py::test_labels_are_the_next_token_of_the_same_document",
        "corpusmill/kernels/test_packing.py::test_every_token_lies_in_one_row_and_only_long_documents_are_cut",
    ],
    "the bytes of each mode are those predicted, and a slow rank is named with its cause": [
        "training/test_properties.py::test_each_mode_holds_the_bytes_that_it_should",
        "training/test_properties.py::test_a_slow_rank_is_named_with_its_cause",
        "training/test_timers.py::test_verdict",
    ],
    "a checkpoint leads to its shards and the documents of batch k, a document to the checkpoints that have seen it": [
        "training/test_questions.py::test_a_row_says_where_its_tokens_lie_and_what_they_are",
        "training/test_questions.py::test_a_trace_is_what_a_scan_of_all_steps_finds",
        "training/test_origin.py::test_a_branch_onto_another_dataset_resumes_as_any_run_does",
    ],
}


@pytest.mark.parametrize("claim", list(SHOWN_BY))
def test_every_property_has_its_tests(claim: str) -> None:
    for name in SHOWN_BY[claim]:
        file, _, function = name.partition("::")
        tree = ast.parse((Path(__file__).parents[1] / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, name


MODES = {
    "one rank": (1, (), 16),
    "ddp": (2, (), 16),
    "ddp, activations recomputed": (2, ("run.activation_checkpointing=true",), 16),
    "fsdp2": (2, ('run.mode="fsdp2"',), 8),
}


def _held(rank: int, overrides: tuple[str, ...], folder: Path) -> None:
    """Bytes of weights, gradients and moments that this rank holds after a step, of a parameter."""
    ranks = parallel.start(1)
    made = config(*overrides, "model.dim=64")
    model = parallel.build(made, 96, ranks)
    optimizer = parallel.optimizer_of(model, made)
    tokens = torch.arange(32).reshape(2, 16)
    layout = Layout.of(np.array([16, 16]), 16, made.model.dim // made.model.heads, 10_000, ranks.device)
    model(tokens, tokens, layout).backward()
    optimizer.step()
    tensors = [tensor for p in model.parameters() for tensor in (p, p.grad, *optimizer.state[p].values())]
    local = [t.to_local() if hasattr(t, "to_local") else t for t in tensors if t.ndim]
    held = sum(t.numel() * t.element_size() for t in local)
    (folder / str(rank)).write_text(json.dumps(held / sum(p.numel() for p in model.parameters())))
    dist.barrier()


@pytest.mark.parametrize("mode", list(MODES))
def test_each_mode_holds_the_bytes_that_it_should(mode: str, tmp_path: Path) -> None:
    world, overrides, predicted = MODES[mode]
    assert joined(started(world, _held, overrides, tmp_path)) == [0] * world
    for rank in range(world):
        assert json.loads((tmp_path / str(rank)).read_text()) == pytest.approx(predicted, rel=0.01)


def _slowed(rank: int, spec: RunSpec, folder: Path, cause: str) -> None:
    """Train with a delay on rank 1; rank 0 leaves the verdict."""
    ranks = parallel.start(1)
    trainer = _trainer(spec, 1, folder, folder, ranks)
    batch, nll = trainer.loader.batch, loop.nll

    def late(*args: Any) -> Any:
        time.sleep(0.25)
        return (batch if cause == "input" else nll)(*args)

    if rank == 1 and cause == "input":
        trainer.loader.batch = late  # type: ignore[method-assign]
    if rank == 1 and cause == "straggler":
        loop.nll = late
    result = trainer.run()
    if rank == 0:
        (folder / "verdict.json").write_text(json.dumps(result["timing"]))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    dist.barrier()
    os._exit(0)


@pytest.mark.parametrize("cause", ["input", "straggler"])
def test_a_slow_rank_is_named_with_its_cause(toy: Toy, tmp_path: Path, cause: str) -> None:
    spec = toy.spec(f'name="{cause}"', "mixture.stage=[{steps=6}]", "run.micro_batch=4", "heldout_sequences=2")
    assert joined(started(2, _slowed, spec, tmp_path, cause)) == [0, 0]
    said = json.loads((tmp_path / "verdict.json").read_text())
    assert (said["bottleneck"], said["rank"]) == (cause, 1)
