"""Which checkpoints of a run stay, and how the others go."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch

from corpusmill.errors import Unavailable
from corpusmill.store import Store, open_store
from tests.training.toy import Toy
from training.checkpoints import commits, saver
from training.checkpoints.retention import Retention, hold, sweep
from training.loop import _trainer
from training.parallel import Ranks

RUN, OTHER = "00112233aabbccdd", "ffffffffffffffff"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def add(store: Store, *steps: int, run: str = RUN, suffix: str = "", committed: bool = True) -> None:
    for step in steps:
        name = commits.folder_of(run, step) + suffix
        store.put(f"{name}/weights", str(step).encode())
        if committed:
            commits.write(store, name, {"step": step, "run_id": run, "batch_chain": ""})


def left(store: Store, run: str = RUN) -> list[int]:
    return sorted(commits.step_of(name) for name in commits.names(store, run))


def test_the_newest_and_every_kth_stay_and_of_the_others_nothing(store: Store) -> None:
    add(store, *range(10, 110, 10))
    add(store, 10, 20, run=OTHER)
    gone = sweep(store, RUN, Retention(last=2, every=40))
    assert [commits.step_of(name) for name in gone] == [10, 20, 30, 50, 60, 70]
    assert left(store) == [40, 80, 90, 100]
    assert not [file for file in store.list(f"checkpoints/{RUN}/") if commits.step_of(file) not in (40, 80, 90, 100)]
    assert left(store, OTHER) == [10, 20]
    assert sweep(store, RUN, Retention(last=2, every=40)) == []


def test_nothing_goes_unless_it_is_asked(store: Store) -> None:
    add(store, 10, 20, 30)
    assert sweep(store, RUN, Retention(every=1000)) == []
    assert sweep(store, RUN, Retention(last=3)) == []
    assert left(store) == [10, 20, 30]


@pytest.mark.parametrize("suffix", ["", ".2"])
def test_a_checkpoint_that_another_run_began_from_stays(store: Store, suffix: str) -> None:
    add(store, 10, 30, 40)
    add(store, 20, suffix=suffix)
    for _ in range(2):  # each attempt says it
        hold(store, f"checkpoints/{RUN}/00000020{suffix}", OTHER)
    assert len(sweep(store, RUN, Retention(last=1))) == 2
    assert left(store) == [20, 40]


def test_damaged_checkpoints_neither_count_nor_go(store: Store) -> None:
    add(store, 10, 20, 30)
    sweep(store, RUN, Retention(last=1), damaged={f"checkpoints/{RUN}/00000030"})
    assert left(store) == [20, 30]


@pytest.mark.parametrize("calls", range(1, 6))
def test_a_killed_removal_leaves_no_half_checkpoint_and_the_next_one_ends_it(
    store: Store, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, 10, 20, 30)
    done = iter(range(calls))
    real = store.remove

    def killed(name: str) -> None:
        if next(done, None) is None:
            raise KeyboardInterrupt
        real(name)

    monkeypatch.setattr(store, "remove", killed)
    if calls < 4:
        with pytest.raises(KeyboardInterrupt):
            sweep(store, RUN, Retention(last=1))
    else:
        sweep(store, RUN, Retention(last=1))
    for name in commits.names(store, RUN):
        assert store.exists(f"{name}/weights")
    monkeypatch.setattr(store, "remove", real)
    sweep(store, RUN, Retention(last=1))
    assert store.list(f"checkpoints/{RUN}/") == [
        f"checkpoints/{RUN}/00000030/COMMIT.json",
        f"checkpoints/{RUN}/00000030/weights",
    ]


def test_files_of_a_save_in_progress_stay(store: Store) -> None:
    add(store, 10, 20)
    add(store, 30, committed=False)
    sweep(store, RUN, Retention(last=1))
    assert {commits.step_of(file) for file in store.list(f"checkpoints/{RUN}/")} == {20, 30}


def test_nothing_but_checkpoints_can_be_removed(store: Store) -> None:
    for name in ("objects/aa/" + "a" * 64, f"runs/{RUN}/result.json", "datasets/toy/x.json"):
        with pytest.raises(ValueError, match="never removed"):
            store.remove(name)


def test_a_run_keeps_what_its_config_says_and_goes_on_where_nothing_can_be_removed(
    toy: Toy, ranks: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    torch.set_num_threads(1)
    for number, last in enumerate((2, 1)):
        settings = ("run.checkpoint_every=1", f"run.keep_last={last}", "run.keep_every=3")
        spec = toy.spec(f'name="kept-{last}"', "mixture.stage=[{steps=7}]", *settings, f"seed={number}")
        if last == 1:
            monkeypatch.setattr(saver, "sweep", _refused)
        assert _trainer(spec, 1, tmp_path, tmp_path, ranks).run()["outcome"] == "finished"
        assert left(toy.open(), spec.run_id) == ([3, 6, 7] if last == 2 else [1, 2, 3, 4, 5, 6, 7])
    signal.signal(signal.SIGTERM, before)
    assert "WARNING: older checkpoints stay: no right to delete" in capsys.readouterr().out


def _refused(*_: object) -> list[str]:
    raise Unavailable("no right to delete")
