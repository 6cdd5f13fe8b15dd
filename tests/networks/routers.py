"""Home routers between the namespaces of a net: each translates addresses and ports of TCP, and lets in what it may.

Written as a part of the wire, for the kernels of small machines have no `nftables`. What it stands for is RFC 4787's: which
outer port an inner one has (the same for all destinations, or another for each), and from where packets are let in.
"""

import socket
import struct
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

_TCP: Final = 6
_FIRST_PORT: Final = 20_000


class RouterKind(Enum):
    """What routers do: which outer port an inner one has, and from where packets are let in."""

    OPEN = "none"  # anybody may send to any port
    FULL_CONE = "one port, lets in all"
    HOST_RESTRICTED = "one port, lets in hosts that were sent to"
    PORT_RESTRICTED = "one port, lets in ports that were sent to"
    SYMMETRIC = "a port for each destination"


@dataclass(slots=True)
class Router:
    """One of them, with its outer address."""

    outer: str
    kind: RouterKind
    _outer_ports: dict[tuple[int, tuple[str, int] | None], int] = field(default_factory=dict)
    _inner_ports: dict[int, int] = field(default_factory=dict)
    _sent_to: dict[int, set[tuple[str, int]]] = field(default_factory=dict)

    def let_out(self, packet: bytes) -> bytes | None:
        """A packet as it looks outside; None of one that is not TCP."""
        found = _ends(packet)
        if found is None:
            return None
        (_, port), remote = found
        key = port, remote if self.kind is RouterKind.SYMMETRIC else None
        outer = self._outer_ports.setdefault(key, _FIRST_PORT + len(self._outer_ports))
        self._inner_ports[outer] = port
        self._sent_to.setdefault(outer, set()).add(remote)
        return _changed(packet, source=(self.outer, outer))

    def let_in(self, packet: bytes, inner: str) -> bytes | None:
        """A packet to the outer address as it looks inside; None of one that is not let in."""
        found = _ends(packet)
        if found is None:
            return None
        remote, (_, outer) = found
        known = self._sent_to.get(outer, set())
        match self.kind:
            case RouterKind.FULL_CONE:
                is_known = bool(known)
            case RouterKind.HOST_RESTRICTED:
                is_known = remote[0] in {host for host, _ in known}
            case _:
                is_known = remote in known
        return _changed(packet, target=(inner, self._inner_ports[outer])) if is_known else None


def _ends(packet: bytes) -> tuple[tuple[str, int], tuple[str, int]] | None:
    if packet[0] >> 4 != 4 or packet[9] != _TCP:
        return None
    start = 4 * (packet[0] & 15)
    source, target = struct.unpack_from("!HH", packet, start)
    return (socket.inet_ntoa(packet[12:16]), source), (socket.inet_ntoa(packet[16:20]), target)


def _changed(
    packet: bytes, *, source: tuple[str, int] | None = None, target: tuple[str, int] | None = None
) -> bytes:
    """The packet with other ends, and checksums that are right."""
    made = bytearray(packet)
    start = 4 * (packet[0] & 15)
    for at, port_at, end in ((12, start, source), (16, start + 2, target)):
        if end is not None:
            made[at : at + 4] = socket.inet_aton(end[0])
            struct.pack_into("!H", made, port_at, end[1])
    struct.pack_into("!H", made, 10, 0)
    struct.pack_into("!H", made, 10, _checksum(made[:start]))
    struct.pack_into("!H", made, start + 16, 0)
    pseudo = bytes(made[12:20]) + struct.pack("!BBH", 0, _TCP, len(made) - start)
    struct.pack_into("!H", made, start + 16, _checksum(pseudo + bytes(made[start:])))
    return bytes(made)


def _checksum(data: bytes | bytearray) -> int:
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
