"""Allowed hosts: http and https only, and from a public host never to a private one.

The root of a source is the user's own setting and may be private. Its redirects are not: each one is checked
by the IP addresses that the name resolves to, and again by the IP address of the actual connection (a name
may resolve differently the second time). Addresses where clouds keep credentials are refused to all, as roots too.
An IPv4 address within an IPv6 one (mapped, NAT64, 6to4, Teredo and others) counts as itself: that is where packets
end. `CORPUSMILL_ALLOW_HOSTS` lists host names that are allowed nevertheless.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from corpusmill.errors import Unavailable

ALLOW = "CORPUSMILL_ALLOW_HOSTS"

IP = ipaddress.IPv4Address | ipaddress.IPv6Address


_CLOUDS = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local: nearly all clouds
            "fe80::/10",
            "fd00:ec2::/32",  # Amazon
            "fd20:ce::254/128",  # Google
            "168.63.129.16/32",  # Azure: a public address by its form
            "100.100.100.200/32",  # Alibaba
            "192.0.0.192/32",  # Oracle
            "fd00:c1::a9fe:a9fe/128",
            "fd00:42::42/128",  # Scaleway
        ),
    )
)
"""Where clouds serve keys and secrets to the machines in them."""

_IN_LAST_BITS = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
"""NAT64, translated, compatible: the last 32 bits are an IPv4 address."""
_WRAPPERS = (*_IN_LAST_BITS, *map(ipaddress.ip_network, ("::ffff:0:0/96", "2002::/16", "2001::/32")))
"""And mapped, 6to4, Teredo: forms that are as public as what is within."""
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")


def check_source(url: str) -> bool:
    """Whether the URL of a source may lead to private hosts: because it is private itself, or is an allowed host.

    Raises:
        Unavailable: it is no URL of http or https, or leads to where a cloud keeps credentials.
    """
    host = _host(url, url)
    if host in allowed_hosts():
        return True
    found = _resolved(host)
    if secret := next(filter(_is_of_cloud, found), None):
        raise Unavailable(f"{url} is not read", _CLOUD_SAYS.format(host, secret), _ADD)
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
    if secret := next(filter(_is_of_cloud, found), None):
        raise Unavailable(f"{url} redirects to {target}", _CLOUD_SAYS.format(host, secret), _ADD)
    if not private and not all(map(_is_public, found)):
        raise Unavailable(f"{url} redirects to {target}", _PRIVATE_SAYS, _ADD)
    return private


_CLOUD_SAYS = "{} is {}: link-local, or another address where clouds keep credentials"
_PRIVATE_SAYS = "a public host must not lead to a private IP address"
_ADD = f"If it should be read, add the host to {ALLOW}."


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


def _resolved(host: str) -> list[IP]:
    written = []
    with suppress(ValueError):
        written.append(_ip(host))
    try:
        found = socket.getaddrinfo(host, None)  # reads 2852039166, 0xa9fea9fe and 0251.0376.43518 as connections do
    except (OSError, UnicodeError):
        return written  # it will not answer either
    return written + [_ip(str(entry[4][0])) for entry in found]


def _ip(text: str) -> IP:
    return ipaddress.ip_address(text.partition("%")[0])


def _ends(address: IP) -> Iterator[IP]:
    """Where packets to an address may end: there, and at the IPv4 addresses within it."""
    yield address
    if isinstance(address, ipaddress.IPv4Address):
        return
    number = int(address)
    yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
    isatap = number >> 32 & 0xFDFF_FFFF == 0x5EFE
    if isatap or any(address in net for net in (*_IN_LAST_BITS, _LOCAL_NAT64)):
        yield ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if address in _LOCAL_NAT64:  # RFC 6052 for prefixes of 48, 56 and 64 bits: around a byte that is zero
        for bits in (48, 56, 64):
            body = (number >> 64 << 56) | (number & (1 << 56) - 1)  # without that byte: 120 bits
            yield ipaddress.IPv4Address(body >> (120 - bits - 32) & 0xFFFF_FFFF)


def _is_of_cloud(address: IP) -> bool:
    return any(end in net for end in _ends(address) for net in _CLOUDS)


def _is_public(address: IP) -> bool:
    own = any(address in net for net in _WRAPPERS) or (address.is_global and address not in _LOCAL_NAT64)
    return own and not address.is_multicast and all(map(_is_public, list(_ends(address))[1:]))


class _Checked:
    """A connection that closes at once if its peer is not allowed."""

    host: str
    private = False

    def _new_conn(self) -> socket.socket:
        sock: socket.socket = super()._new_conn()  # type: ignore[misc]
        peer = _ip(str(sock.getpeername()[0]))
        says = None
        if self.host.strip("[]").lower() not in allowed_hosts():
            if _is_of_cloud(peer):
                says = _CLOUD_SAYS.format(self.host, peer)
            elif not self.private and not _is_public(peer):
                says = _PRIVATE_SAYS
        if says:
            sock.close()
            raise Unavailable(f"{self.host} leads to {peer}", says, _ADD)
        return sock


class _HTTP(_Checked, HTTPConnection):
    pass


class _HTTPS(_Checked, HTTPSConnection):
    pass


class _PrivateHTTP(_HTTP):
    private = True


class _PrivateHTTPS(_HTTPS):
    private = True


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HTTP


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HTTPS


class _PrivateHTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PrivateHTTP


class _PrivateHTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _PrivateHTTPS


def pools(private: bool, **options: Any) -> urllib3.PoolManager:
    """A pool of connections; each is checked by the IP address of its peer.

    Args:
        private: the result of `check_source` or `check_redirect`: peers may be private, but no cloud's secrets.
        options: of urllib3.PoolManager.
    """
    manager = urllib3.PoolManager(**options)
    manager.pool_classes_by_scheme = (
        {"http": _PrivateHTTPPool, "https": _PrivateHTTPSPool} if private else {"http": _HTTPPool, "https": _HTTPSPool}
    )
    return manager
