"""Who waits for a flow run sees its stage, units done and seconds, also while its log is silent."""

from __future__ import annotations

from flows.run.progress import EVERY_S, Stage
from mill.demo.following import QUIET_S, Following


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_silent_for_long():
    clock, shown = Clock(), []
    following = Following(shown.append, clock)
    following.is_in("Scheduled")
    for _ in range(60):
        clock.now += 0.5
        following.is_in("Pending")
    assert shown == ["Scheduled, 0 s", "Pending, 0 s", "Pending, 10 s", "Pending, 20 s"]
    following.line("documents: 3 of 12 units, 20 s")
    clock.now += QUIET_S
    following.is_in("Running")
    assert shown[-2:] == ["documents: 3 of 12 units, 20 s", "Running, documents: 3 of 12 units, 40 s"]
    clock.now += QUIET_S
    following.is_in("Running")
    assert shown[-1] == "Running, documents: 3 of 12 units, 50 s"
    following.is_in("Completed")
    assert shown[-1] == "Completed, 50 s"


def test_a_stage_tells_its_units_over_all_batches():
    clock, told = Clock(), []
    stage = Stage("documents", 12_000, told.append, clock)
    for _ in range(12_000):
        clock.now += EVERY_S / 1000
        stage.done()
    assert told[0] == "documents: 0 of 12,000 units"
    assert told[1].startswith("documents: 1,0")
    assert 11 <= len(told) - 1 <= 12
    Stage("near", 0, told.append, clock)
    assert not told[-1].startswith("near")
