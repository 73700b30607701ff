"""Where our own server listens, and what its children see."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from corpusmill.errors import Refused, Unavailable
from flows.platform import supervisor
from flows.platform.server import (
    Address,
    child_env,
    client_env,
    is_loopback,
    take_address,
    tuned_settings,
    wait_healthy,
)


def test_a_port_that_was_asked_for_and_is_taken_is_refused() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(Refused, match="is taken"):
            take_address("127.0.0.1", other.getsockname()[1])


def test_two_platforms_that_start_at_once_have_two_ports() -> None:
    first, one = take_address("127.0.0.1", None)
    second, other = take_address("127.0.0.1", None)
    with one, other:
        assert first.port != second.port


@pytest.mark.parametrize(("host", "guarded"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_only_a_server_that_others_can_reach_has_a_password(host: str, guarded: bool) -> None:
    address, listener = take_address(host, None)
    listener.close()
    assert bool(address.password) is guarded
    assert is_loopback(host) is not guarded
    assert ("PREFECT_API_AUTH_STRING" in client_env(address, Path("home"))) is guarded


def test_clients_of_this_machine_use_an_address_they_can_connect_to() -> None:
    assert Address("0.0.0.0", 4200, None).api_url == "http://127.0.0.1:4200/api"
    assert Address("::1", 4200, None).api_url == "http://[::1]:4200/api"


def test_children_get_tuned_settings_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_SERVER_DATABASE_TIMEOUT", "77")
    monkeypatch.delenv("PREFECT_WORKER_QUERY_SECONDS", raising=False)  # set for the platform of other tests
    env = child_env({"PREFECT_API_URL": "http://x/api"})
    assert env["PREFECT_SERVER_DATABASE_TIMEOUT"] == "77"
    assert env["PREFECT_WORKER_QUERY_SECONDS"] == tuned_settings()["PREFECT_WORKER_QUERY_SECONDS"]
    assert env["PYTHONSAFEPATH"] == "1"
    assert env["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


def test_a_server_that_ends_while_it_starts_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("starting\nOSError: disk is odd\n\n")
    with pytest.raises(Unavailable, match="disk is odd"):
        wait_healthy("http://127.0.0.1:9/api", lambda: False, lambda _: None, log)


def test_a_given_server_is_used_and_none_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setattr(supervisor, "start_server", lambda *_: pytest.fail("started a server"))
    with pytest.raises(Unavailable, match="no Prefect server answers at"):
        supervisor.start(tmp_path, "127.0.0.1", None, "store", lambda _: None, lambda: None)
    assert not (tmp_path / "platform.json").exists()


def test_a_dot_env_of_the_user_is_honoured_and_not_overwritten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    url = "http://ours/api"
    platform = supervisor.Platform(tmp_path / ".corpusmill", url, {"PREFECT_API_URL": url}, "store")
    assert supervisor.write_env_file(platform)
    assert supervisor.given_api_url() is None
    (tmp_path / ".env").write_text("PREFECT_API_URL=http://theirs/api\n")
    assert not supervisor.write_env_file(platform)
    assert supervisor.given_api_url() == "http://theirs/api"
    supervisor.stop_platform(platform)
    assert (tmp_path / ".env").read_text() == "PREFECT_API_URL=http://theirs/api\n"
