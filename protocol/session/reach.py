"""Classifies an address as loopback, private or public, and decides to which peers it may be told.

Learned addresses are numbers, never names: looking up a name that a peer has made up would ask others' servers, and could
end anywhere. An address of a narrower reach than the connection that brings it is worth nothing there, and may be meant
for somebody else: of the peer's own loopback or private network, this node's are dialed instead.
"""

import ipaddress
from enum import IntEnum
from functools import lru_cache
from typing import Final

_ADDRESSES_REMEMBERED_MAX: Final = 1024
"""Each peer of a repo is compared with each other one: reading an address takes longer than all else of that."""
Host = ipaddress.IPv4Address | ipaddress.IPv6Address


class Reach(IntEnum):
    """Reach of an address: who can dial it."""

    MACHINE = 0
    PRIVATE = 1
    EVERYBODY = 2


def host_of(address: str) -> Host | None:
    """Return the host of host:port if it is numeric and the port can be dialed; else None."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        return None
    if str(int(port)) != port:
        return None
    is_bracketed = host.startswith("[") and host.endswith("]")
    parsed = host_named(host[1:-1] if is_bracketed else host)
    return parsed if parsed is not None and is_bracketed == (parsed.version == 6) else None


def host_named(text: str) -> Host | None:
    """Parse a numeric address without brackets and port; return None for anything else."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def reach_of(host: Host) -> Reach | None:
    """Return who can dial a host; None of one that means nothing elsewhere (every interface, multicast, one link)."""
    if isinstance(host, ipaddress.IPv6Address) and (host.ipv4_mapped or host.scope_id):
        return None
    if host.is_loopback:
        return Reach.MACHINE
    if host.is_unspecified or host.is_multicast or host.is_link_local or host.is_reserved:
        return None
    return Reach.EVERYBODY if host.is_global else Reach.PRIVATE


def may_travel(address: str, across: str) -> bool:
    """Return True if an address may be told, or believed, on a connection with the peer at `across` (host:port)."""
    reach, distance = _reach(address), _reach(across)
    return reach is not None and distance is not None and reach >= distance


def is_public(address: str) -> bool:
    """Return True if everybody can dial an address, which is a number."""
    return _reach(address) is Reach.EVERYBODY


@lru_cache(maxsize=_ADDRESSES_REMEMBERED_MAX)
def _reach(address: str) -> Reach | None:
    host = host_of(address)
    return None if host is None else reach_of(host)


def as_seen(address: str, across: str) -> str | None:
    """Return the address that a peer states, with the host seen here for `0.0.0.0`; None if not dialable."""
    host, other = host_of(address), host_of(across)
    if host is None or other is None:
        return None
    if host.is_unspecified:
        shown = f"[{other}]" if other.version == 6 else str(other)
        return f"{shown}:{address.rpartition(':')[2]}"
    return address


def network_of(host: Host) -> str:
    """Return the host that an address counts as. An IPv6 address counts as its network of 64 bits."""
    if isinstance(host, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(host), 64), strict=False))
    return str(host)
