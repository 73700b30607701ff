"""The flow `train` on a real server, with real ranks, when it does not end well; test_build_flow.py has how it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prefect.states import Cancelling

from corpusmill.processes import alive, descendants
from flows.platform.supervisor import Platform
from tests.flows.waiting import until_final, until_said

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

Run = Callable[..., Any]


def test_cancelling_a_training_run_saves_a_checkpoint_and_leaves_no_process(
    client: SyncPrefectClient,
    run: Run,
    platform: Platform,
    toy: tuple[str, str],
    training_config: Callable[[int], str],
) -> None:
    from corpusmill.store import open_store

    store, _ = toy
    before = [name for name in open_store(store).list("checkpoints/") if name.endswith("COMMIT.json")]
    training = run("train/demo", manifest="toy", config=training_config(100_000), store=store)
    until_said(client, training, "step 1/", timeout_s=120)
    assert platform.workers is not None
    running = descendants([platform.workers.pid])
    assert len(running) >= 5  # the flow, the launcher, torchrun, two ranks
    client.set_flow_run_state(training.id, Cancelling())
    ended = until_final(client, training)
    assert ended.state.is_cancelled()
    assert "Cancel" in until_said(client, training, "Finished in state"), "not Running()"
    assert not [proc for proc in running if alive(proc)]
    after = [name for name in open_store(store).list("checkpoints/") if name.endswith("COMMIT.json")]
    assert len(after) == len(before) + 1


def test_a_wish_that_cannot_be_met_fails_with_our_message(
    client: SyncPrefectClient, run: Run, toy: tuple[str, str], training_config: Callable[[int], str]
) -> None:
    store, _ = toy
    failed = until_final(client, run("train/demo", manifest="no-such-dataset", config=training_config(6), store=store))
    assert failed.state.is_failed()
    assert "no-such-dataset" in failed.state.message
    wish = {
        "manifest": "toy",
        "config": training_config(6),
        "store": store,
        "from_checkpoint": "0" * 16,
        "moments": True,
    }
    failed = until_final(client, run("train/demo", **wish))
    assert failed.state.is_failed()
    assert f"no committed checkpoint {'0' * 16}" in failed.state.message
