"""What other processes ask for: apart from the tests, so that a process starts without Prefect where it needs none."""

from __future__ import annotations

from tasks.acquire.fetch.http import get


def ask(address: str, times: int) -> None:
    """The same small file again and again."""
    for _ in range(times):
        assert get(address) == b"x"
