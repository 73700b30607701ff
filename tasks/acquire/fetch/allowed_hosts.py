"""Allowed hosts: http and https only, and from a public host never to a private one.

The root of a source is the user's own setting and may be private. Its redirects are not: each one is checked
by the IP addresses that the name resolves to, and again by the IP address of the actual connection (a name
may resolve differently the second time). Link-local addresses, where clouds keep credentials, always count as
private. `CORPUSMILL_ALLOW_HOSTS` lists host names that are allowed nevertheless.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from corpusmill.errors import Unavailable

ALLOW = "CORPUSMILL_ALLOW_HOSTS"


def check_source(url: str) -> bool:
    """Whether the URL of a source may lead to private hosts: because it is private itself, or is an allowed host.

    Raises:
        Unavailable: it is no URL of http or https, or it is link-local.
    """
    host = _host(url, url)
    if host in allowed_hosts():
        return True
    found = _resolved(host)
    if any(address.is_link_local for address in found):
        raise Unavailable(f"{url} is link-local", f"{host} is {found[0]}", f"Add the host to {ALLOW}.")
    return not all(map(_is_public, found))


def check_redirect(url: str, target: str, private: bool) -> bool:
    """Whether requests after this redirect may go to private hosts.

    Args:
        url: URL of the first request.
        target: target of the redirect.
        private: the result of `check_source` for `url`.

    Raises:
        Unavailable: the target is not allowed.
    """
    host = _host(url, target)
    if host in allowed_hosts():
        return True
    found = _resolved(host)
    same = host == urlsplit(url).hostname
    if any(one.is_link_local for one in found) and not same:
        raise Unavailable(f"{url} redirects to {target}", "it is link-local", f"Add the host to {ALLOW}.")
    if not private and not all(map(_is_public, found)):
        raise Unavailable(
            f"{url} redirects to {target}",
            "a public host must not lead to a private IP address",
            f"If it should, add the host to {ALLOW}.",
        )
    return private


def allowed_hosts() -> frozenset[str]:
    """Hosts that the environment allows."""
    return frozenset(name.strip().lower() for name in os.environ.get(ALLOW, "").split(",") if name.strip())


def _host(url: str, target: str) -> str:
    try:
        parts = urlsplit(target)
        parts.port  # noqa: B018  raises for what is no port
    except ValueError as err:
        raise Unavailable(f"{target} is not a URL", str(err)) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        what = f"{target} cannot be read" if target == url else f"{url} redirects to {target}"
        raise Unavailable(what, "only http and https are followed")
    return parts.hostname


def _resolved(host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return []  # it will not answer either
    return [_plain(ipaddress.ip_address(str(entry[4][0]).partition("%")[0])) for entry in found]


def _plain(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An IPv4 address that is written as IPv6, as IPv4."""
    return getattr(address, "ipv4_mapped", None) or address


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.is_global and not address.is_multicast


class _Checked:
    """A connection that closes at once if its peer is not public."""

    host: str

    def _new_conn(self) -> socket.socket:
        sock: socket.socket = super()._new_conn()  # type: ignore[misc]
        peer = _plain(ipaddress.ip_address(str(sock.getpeername()[0]).partition("%")[0]))
        if not _is_public(peer):
            sock.close()
            raise Unavailable(
                f"{self.host} leads to {peer}",
                "a public host must not lead to a private IP address",
                f"If it should, add the host to {ALLOW}.",
            )
        return sock


class _CheckedHTTP(_Checked, HTTPConnection):
    pass


class _CheckedHTTPS(_Checked, HTTPSConnection):
    pass


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _CheckedHTTP


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _CheckedHTTPS


def pools(private: bool, **options: Any) -> urllib3.PoolManager:
    """A pool of connections; unless they may be private, each is checked by the IP address of its peer.

    Args:
        private: the result of `check_source` or `check_redirect`.
        options: of urllib3.PoolManager.
    """
    manager = urllib3.PoolManager(**options)
    if not private:
        manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
    return manager
