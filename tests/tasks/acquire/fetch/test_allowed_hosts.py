"""Where requests may go, and where not."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from typing import Any

import pytest

from corpusmill.errors import Unavailable
from tasks.acquire.fetch import allowed_hosts
from tasks.acquire.fetch.allowed_hosts import check_redirect, check_source
from tasks.acquire.fetch.http import get
from tasks.acquire.fetch.retries import Retries
from tests.tasks.acquire.server import serve

ADDRESSES = {
    "public.example": "8.8.8.8",
    "other.example": "1.1.1.1",
    "inside.example": "10.0.0.7",
    "mapped.example": "::ffff:10.0.0.7",
    "six.example": "fd00::7",
    "cloud.example": "169.254.169.254",
    "127.0.0.1": "127.0.0.1",
}


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port: [(0, 0, 0, "", (ADDRESSES[host], 0))])


def test_only_http_and_https_are_read() -> None:
    for url in ("file:///etc/passwd", "ftp://example.org/", "http:///x", "gopher://x", "http://a:b/", "//x/y"):
        with pytest.raises(Unavailable):
            check_source(url)


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("http://public.example/a", False),
        ("http://inside.example/a", True),
        ("http://mapped.example/a", True),
        ("http://six.example/a", True),
        ("http://127.0.0.1/a", True),
    ],
)
def test_a_root_may_be_private(names: None, url: str, private: bool) -> None:
    assert check_source(url) is private


def test_a_public_host_may_not_lead_to_a_private_one(names: None) -> None:
    assert check_redirect("http://public.example/a", "https://other.example/b", private=False) is False
    assert check_redirect("http://127.0.0.1/a", "http://inside.example/", private=True) is True
    for host in ("inside.example", "mapped.example", "six.example", "127.0.0.1"):
        with pytest.raises(Unavailable, match="must not lead to a private IP address"):
            check_redirect("http://public.example/a", f"http://{host}/", private=False)


def test_link_local_addresses_are_for_nobody_unless_allowed(names: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match="link-local"):
        check_source("http://cloud.example/latest/meta-data")
    with pytest.raises(Unavailable, match="link-local"):
        check_redirect("http://127.0.0.1/a", "http://cloud.example/", private=True)
    monkeypatch.setenv("CORPUSMILL_ALLOW_HOSTS", "cloud.example, inside.example")
    assert check_source("http://cloud.example/x")
    assert check_redirect("http://public.example/a", "http://inside.example/", private=False)


def test_a_name_that_changes_its_address_behind_the_check_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check sees a public address; the connection is made to this machine."""
    (tmp_path / "file").write_bytes(b"secret")
    real = socket.getaddrinfo
    with serve(tmp_path) as server:
        port = server.server_address[1]

        def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
            if host == "rebound.example" and args[0] is None:
                return [(0, 0, 0, "", ("8.8.8.8", 0))]
            return real("127.0.0.1", *args, **kwargs)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(Unavailable, match=r"rebound\.example leads to 127\.0\.0\.1"):
            get(f"http://rebound.example:{port}/file", Retries(attempts=1))
        assert not server.requests
        monkeypatch.setenv("CORPUSMILL_ALLOW_HOSTS", "rebound.example")
        assert get(f"http://rebound.example:{port}/file", Retries(attempts=1)) == b"secret"


def test_every_hop_of_a_redirect_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x")
    checked: list[str] = []
    real = allowed_hosts.check_redirect
    monkeypatch.setattr(
        allowed_hosts,
        "check_redirect",
        lambda begin, target, private: checked.append(target) or real(begin, target, private),
    )
    with serve(tmp_path) as server:
        server.fault = lambda n, path: {"a": "redirect:/b", "b": "redirect:/file"}.get(path)
        assert get(f"{server.url}/a") == b"x"
        assert [url.rpartition("/")[2] for url in checked] == ["b", "file"]


def test_an_ipv4_address_written_as_ipv6_is_what_it_is() -> None:
    assert not allowed_hosts._is_public(allowed_hosts._plain(ipaddress.ip_address("::ffff:127.0.0.1")))
    assert allowed_hosts._is_public(allowed_hosts._plain(ipaddress.ip_address("::ffff:8.8.8.8")))
