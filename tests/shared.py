"""What is made once for all workers of a test run, and then only read."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name`, made by the first worker that asks for it; the others wait."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            half = root / f"{name}.half"
            shutil.rmtree(half, ignore_errors=True)
            make(half)
            half.rename(folder)
    return folder


def linked(folder: Path, to: Path) -> Path:
    """A copy by hard links, for tests that add and remove files but change none in place."""
    shutil.copytree(folder, to, copy_function=os.link)
    return to


@contextmanager
def ended_with_us(*pids: int) -> Iterator[None]:
    """Leaders of process groups that are killed if this process ends within the block, in whatever way."""
    groups = " ".join(f"-{pid}" for pid in pids)
    watcher = subprocess.Popen(
        ["sh", "-c", f"read done || kill -KILL -- {groups}"], stdin=subprocess.PIPE, start_new_session=True
    )
    assert watcher.stdin is not None
    try:
        yield
    finally:
        watcher.stdin.write(b"done\n")
        watcher.stdin.close()
        watcher.wait()


@pytest.fixture(scope="session")
def demo_crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo crawl."""
    from mill.demo.crawl import make

    return made_once(tmp_path_factory, "demo-crawl", make)


@pytest.fixture(scope="session")
def small_crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo crawl with pages of 70 articles."""
    from mill.demo.crawl import make

    return made_once(tmp_path_factory, "small-crawl", lambda folder: make(folder, size=70))
