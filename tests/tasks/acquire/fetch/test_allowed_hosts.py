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


CLOUD = (
    "169.254.169.254",
    "169.254.170.2",
    "fe80::a9fe:a9fe",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
)


def forms(address: str) -> list[str]:
    """An IPv4 address within IPv6 ones: mapped, translated, compatible, NAT64, 6to4, Teredo, ISATAP."""
    four = ipaddress.IPv4Address(address)
    n = int(four)
    high, low = f"{n >> 16:x}", f"{n & 0xFFFF:x}"
    teredo = int(ipaddress.ip_address("2001::")) | int(ipaddress.ip_address("8.8.8.8")) << 64 | (n ^ 0xFFFF_FFFF)
    middle = f"{n >> 8 & 0xFF:02x}"
    return [
        f"::ffff:{four}",
        f"::ffff:0:{four}",
        f"::{four}",
        f"64:ff9b::{four}",
        f"64:ff9b:1::{four}",
        f"64:ff9b:1:{high}:{n >> 8 & 0xFF:x}:{n & 0xFF:02x}00::",  # RFC 6052, a prefix of 48 bits
        f"64:ff9b:1:{n >> 24:x}:{n >> 16 & 0xFF:x}:{middle}{n & 0xFF:02x}::" if n >> 24 else f"::{four}",
        f"2002:{high}:{low}::1",
        str(ipaddress.ip_address(teredo)),
        f"2a00:1450:4001::5efe:{four}",
        f"2a00:1450:4001::200:5efe:{four}",
    ]


@pytest.mark.parametrize("address", [*CLOUD, *(form for four in CLOUD if "." in four for form in forms(four))])
def test_where_clouds_keep_credentials_is_for_nobody_in_any_form(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port: [(0, 0, 0, "", (address, 0))])
    with pytest.raises(Unavailable, match="clouds keep credentials"):
        check_source("http://inside.example/x")
    for private in (True, False):
        with pytest.raises(Unavailable, match="clouds keep credentials"):
            check_redirect("http://inside.example/a", "http://inside.example/b", private=private)
    monkeypatch.setenv("CORPUSMILL_ALLOW_HOSTS", "inside.example")
    assert check_source("http://inside.example/x")


@pytest.mark.parametrize(
    "four", ["10.0.0.7", "127.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1"]
)
def test_a_private_address_is_private_in_any_form(four: str) -> None:
    for form in (four, *forms(four)):
        assert not allowed_hosts._is_public(ipaddress.ip_address(form)), form


def test_a_public_address_is_public_in_forms_that_lead_to_it() -> None:
    for form in ("8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2a00:1450:4001::5efe:8.8.8.8"):
        assert allowed_hosts._is_public(ipaddress.ip_address(form)), form
    for form in ("64:ff9b:1::8.8.8.8", "fd00::5efe:8.8.8.8", "fd00::1", "::1", "::", "ff02::1"):
        assert not allowed_hosts._is_public(ipaddress.ip_address(form)), form


@pytest.mark.parametrize(
    "host",
    [
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "0xa9.0xfe.43518",
        "0251.0xfe.169.254",
        "\uff11\uff16\uff19.254.169.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[fd00:ec2::254]",
        "[fe80::a9fe:a9fe%25lo]",
    ],
)
def test_addresses_in_other_spellings_are_what_they_are(host: str) -> None:
    with pytest.raises(Unavailable, match="clouds keep credentials"):
        check_source(f"http://{host}/latest/meta-data")
    with pytest.raises(Unavailable, match="clouds keep credentials"):
        check_redirect("http://127.0.0.1/a", f"http://{host}/latest/meta-data", private=True)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:7f00:1]", "[::127.0.0.1]"])
def test_this_machine_in_other_spellings_is_private(host: str) -> None:
    assert check_source(f"http://{host}/")
    with pytest.raises(Unavailable, match="must not lead to a private"):
        check_redirect("http://8.8.8.8/a", f"http://{host}/", private=False)


def test_a_private_root_whose_name_comes_to_lead_to_a_cloud_is_refused_at_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"secret")
    monkeypatch.setattr(allowed_hosts, "_CLOUDS", (ipaddress.ip_network("127.0.0.1/32"),))
    real = socket.getaddrinfo
    with serve(tmp_path) as server:
        port = server.server_address[1]

        def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
            if host == "rebound.example" and args[0] is None:
                return [(0, 0, 0, "", ("10.0.0.7", 0))]
            return real("127.0.0.1", *args, **kwargs)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(Unavailable, match=r"rebound\.example leads to 127\.0\.0\.1"):
            get(f"http://rebound.example:{port}/file", Retries(attempts=1))
        assert not server.requests
