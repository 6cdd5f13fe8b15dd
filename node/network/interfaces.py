"""Lists the addresses of this machine's network interfaces at which other machines may reach it.

Left out are loopback, addresses of one link, bridges of containers and virtual machines, which lead to guests of this
machine alone, and IPv6 addresses that the system replaces within a day (RFC 8981): a link that names them goes stale.
"""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.limits.network import INTERFACE_ADDRESSES_MAX
from protocol.session.reach import Host, Reach, reach_of

_BRIDGES: Final = (
    "docker", "br-", "veth", "virbr", "vnet", "lxc", "lxd", "cni", "flannel", "cali", "podman", "vmnet", "vboxnet",
)  # fmt: skip
"""What the names of such interfaces begin with."""
_FLAGS: Final = Path("/proc/net/if_inet6")
_LEAVING: Final = 0x01 | 0x20 | 0x40
"""Temporary, deprecated, tentative: flags of an IPv6 address on Linux (include/uapi/linux/if_addr.h)."""


@dataclass(frozen=True, slots=True)
class InterfaceAddress:
    """An address of this machine, and how many of its bits name the network that the interface is on."""

    host: Host
    bits: int

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The network that this machine reaches without a router."""
        return ipaddress.ip_network((self.host, self.bits), strict=False)


@dataclass(frozen=True, slots=True)
class NamedAddress:
    """An address as the system tells it."""

    interface: str
    host: str
    bits: int


def list_addresses() -> tuple[InterfaceAddress, ...]:
    """List this machine's addresses, IPv4 first. Blocks for a millisecond; the first call runs `ldconfig`, for 20 ms."""
    import ifaddr  # it runs a process as it is imported, which a node that listens on loopback alone does without

    named = [
        NamedAddress(str(adapter.name), one.ip if isinstance(one.ip, str) else one.ip[0], one.network_prefix)
        for adapter in ifaddr.get_adapters()
        for one in adapter.ips
    ]
    return choose_addresses(named, unstable_hosts(_read_flags()))


def choose_addresses(
    named: list[NamedAddress], unstable: frozenset[Host] = frozenset()
) -> tuple[InterfaceAddress, ...]:
    """Choose addresses by which others may reach this machine: at most INTERFACE_ADDRESSES_MAX, IPv4 first."""
    found: dict[Host, InterfaceAddress] = {}
    for one in named:
        try:
            host = ipaddress.ip_address(one.host)
        except ValueError:  # a family that is not known here
            continue
        if one.interface.startswith(_BRIDGES) or host in unstable:
            continue
        if reach_of(host) in (Reach.PRIVATE, Reach.EVERYBODY):
            found.setdefault(host, InterfaceAddress(host, one.bits))
    # In one order, whatever order the system has: a change of it is no change of the network.
    ordered = sorted(found.values(), key=lambda one: (one.host.version, int(one.host)))
    return tuple(ordered[:INTERFACE_ADDRESSES_MAX])


def _read_flags() -> str:
    try:
        return _FLAGS.read_text(encoding="ascii")
    except OSError:  # another system than Linux, or one without IPv6
        return ""


def unstable_hosts(table: str) -> frozenset[Host]:
    """IPv6 addresses that will go, from the kernel's table: address, index, bits, scope, flags (hexadecimal), name."""
    rows = [line.split() for line in table.splitlines()]
    return frozenset(
        ipaddress.IPv6Address(int(row[0], 16)) for row in rows if len(row) == 6 and int(row[4], 16) & _LEAVING
    )
