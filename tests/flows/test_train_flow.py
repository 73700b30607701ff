"""The flow `train` on a real server, with real ranks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prefect.states import Cancelling

from corpusmill.processes import alive, descendants
from flows.demo import result_of
from flows.supervisor import Platform
from tests.flows.waiting import artifacts_of, logs_of, until_final

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

Run = Callable[..., Any]


def test_a_training_run_is_tagged_with_its_data_and_not_repeated(
    client: SyncPrefectClient, run: Run, toy: tuple[str, str], training_config: Callable[[int], str]
) -> None:
    from corpusmill.store import open_store

    store, digest = toy
    wish = {"manifest": "toy", "config": training_config(6), "store": store}
    first = until_final(client, run("train/demo", **wish))
    assert first.state.is_completed(), logs_of(client, first)
    (run_tag,) = [tag for tag in first.tags if tag.startswith("run:")]
    assert {f"manifest:{digest[:16]}", "dataset:toy"} <= set(first.tags)
    result = result_of(open_store(store), run_tag.removeprefix("run:"))
    assert result["manifest"] == digest
    table = artifacts_of(client, first)["training"]
    assert f'"{result["loss_last"]:.4f}"' in table
    assert any("step 6/6" in line for line in logs_of(client, first))
    again = until_final(client, run("train/demo", **wish))
    assert again.state.is_completed()
    assert run_tag in again.tags
    assert not any("step " in line for line in logs_of(client, again))


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
    deadline = time.monotonic() + 120
    while not any("step 1/" in line for line in logs_of(client, training)):
        assert time.monotonic() < deadline, logs_of(client, training)
        time.sleep(0.5)
    assert platform.workers is not None
    running = descendants([platform.workers.pid])
    assert len(running) >= 5  # the flow, the launcher, torchrun, two ranks
    client.set_flow_run_state(training.id, Cancelling())
    ended = until_final(client, training)
    assert ended.state.is_cancelled()
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
