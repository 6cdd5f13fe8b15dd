"""A small internet: machines with public addresses, home routers with the kernel's NAT, and machines behind them.

Public devices are tuns, between which `tests.networks.wire` carries packets and takes its time. Homes are bridges. Private
addresses mean nothing on the wire, and all homes use the same ones, as real ones do.
"""

import os
import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.networks.kernel_nets import KernelNet
from tests.networks.lines import Line
from tests.networks.namespaces import entered_namespace
from tests.networks.routers import FIREWALL, INNER_PORTS, UPNP_RULES, RouterKind, router_rules, upnp_config
from tests.networks.wire import Wire, open_tun

ROUND_TRIP: Final = 0.05
"""Seconds there and back between two public addresses."""
_LAN: Final = "192.168.1"
_PREFIX: Final = "2a00:77"
"""Of public IPv6 networks; the documentation's are private to a node."""


@dataclass(frozen=True, slots=True)
class Home:
    """A router, and the network behind it: `lan` is its first three numbers, or four groups of IPv6."""

    pid: int
    lan: str

    def host(self, number: int) -> str:
        """An address in the network behind."""
        return f"{self.lan}::{number}" if ":" in self.lan else f"{self.lan}.{number}"

    @property
    def bits(self) -> int:
        """Of its network."""
        return 64 if ":" in self.lan else 24


class Internet:
    """Namespaces, and the wire between the public ones. Build all, then `open` it."""

    def __init__(self, net: KernelNet, folder: Path, ending: ExitStack) -> None:
        """`folder` takes the routers' rules."""
        self._net = net
        self._folder = folder
        self._ending = ending
        self._tuns: dict[str, int] = {}
        self._count = 0

    def open(self, round_trip: float = ROUND_TRIP, rate: float = float("inf")) -> Wire:
        """Carry packets from now on, so many bytes a second in each direction."""
        wire = Wire(self._tuns, {}, random.Random(1), Line(delay=round_trip / 2, rate=rate))
        self._ending.callback(wire.stop)
        return wire

    def add_machine(self, address: str) -> int:
        """A machine at a public address: the process that its namespace belongs to."""
        pid = self._net.hold()
        self._add_tun(pid, "wan", address)
        return pid

    def add_home(
        self,
        kind: RouterKind,
        outer: str,
        *,
        lan: str = _LAN,
        hosts: Sequence[int] = (2,),
        ports: range = INNER_PORTS,
        hairpin: bool = False,
        dropped: str = "",
        carrier: Home | None = None,
    ) -> Home:
        """A router at an address: public, or of a `carrier` whose router is before it. See `router_rules`."""
        home = self._add_router(outer, lan, carrier)
        inner = [home.host(number) for number in hosts]
        self._load(home.pid, router_rules(kind, outer, inner, ports=ports, hairpin=hairpin, dropped=dropped))
        return home

    def add_upnp_home(self, outer: str, way: str = "upnp") -> Home:
        """A router at a public address, which forwards ports to who asks it in this way. See `upnp_config`."""
        home = self._add_router(outer, _LAN, None)
        self._load(home.pid, UPNP_RULES)
        config = self._folder / "miniupnpd.conf"
        config.write_text(upnp_config(f"{_LAN}.0/24", way))
        # It keeps no state but its process id, which it writes to a place that all share unless told another.
        self._net.start(
            "miniupnpd", "-d", "-f", str(config), "-P", str(config.with_suffix(".pid")), pid=home.pid
        )
        return home

    def _add_router(self, outer: str, lan: str, carrier: Home | None) -> Home:
        home = Home(self._net.hold(), lan)
        self._add_bridge(home)
        self._net.give(home.pid, "inner", home.host(1))
        if carrier is None:
            self._add_tun(home.pid, "outer", outer)
        else:
            self._plug(home.pid, "outer", carrier)
            self._net.give(home.pid, "outer", outer)
            self._net.run(home.pid, "ip", "route", "add", "default", "via", carrier.host(1))
        self._net.run(home.pid, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        return home

    def _add_bridge(self, home: Home) -> None:
        self._net.run(home.pid, "ip", "link", "add", "inner", "type", "bridge")
        self._net.run(home.pid, "ip", "link", "set", "inner", "up")

    def add_firewall(self, number: int) -> Home:
        """An IPv6 router that lets in answers alone, before a public network of its own."""
        home = Home(self._net.hold(), f"{_PREFIX}:{number}:1")
        self._add_bridge(home)
        self._give6(home.pid, "inner", home.host(1), 64)
        self._add_tun(home.pid, "outer", f"{_PREFIX}:{number}::1", *(home.host(one) for one in range(2, 4)))
        self._net.run(home.pid, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        self._load(home.pid, FIREWALL)
        return home

    def add_inside(self, home: Home, number: int = 2) -> int:
        """A machine behind a router: the process that its namespace belongs to."""
        pid = self._net.hold()
        self._plug(pid, "lan", home)
        if ":" in home.lan:
            self._give6(pid, "lan", home.host(number), home.bits)
            self._net.run(pid, "ip", "-6", "route", "add", "default", "via", home.host(1))
        else:
            self._net.give(pid, "lan", home.host(number))
            self._net.run(pid, "ip", "route", "add", "default", "via", home.host(1))
        ports = f"{INNER_PORTS[0]} {INNER_PORTS[-1]}"
        self._net.run(pid, "sysctl", "-qw", f"net.ipv4.ip_local_port_range={ports}")
        return pid

    def move(self, pid: int, device: str, old: str, new: str) -> None:
        """Give a public device another IPv4 address: nothing reaches the old one any more."""
        self._tuns[new] = self._tuns.pop(old)
        self._net.run(pid, "ip", "address", "flush", "dev", device)
        self._net.run(pid, "ip", "address", "add", f"{new}/32", "dev", device)
        self._net.run(pid, "ip", "route", "replace", "default", "dev", device)

    def _plug(self, pid: int, device: str, home: Home) -> None:
        self._count += 1
        port = f"port{self._count}"
        self._net.link(pid, device, home.pid, port)
        self._net.run(home.pid, "ip", "link", "set", port, "master", "inner")

    def _add_tun(self, pid: int, device: str, address: str, *behind: str) -> None:
        """A public device at an address, which also gets what is for addresses behind it."""
        with entered_namespace(Path(f"/proc/{pid}/ns/net")):
            tun = open_tun(device)
        self._ending.callback(os.close, tun)
        self._net.run(pid, "ip", "link", "set", device, "up")
        version = "-6" if ":" in address else "-4"
        if version == "-6":
            self._give6(pid, device, address, 128)
        else:
            self._net.run(pid, "ip", "address", "add", f"{address}/32", "dev", device)
        self._net.run(pid, "ip", version, "route", "add", "default", "dev", device)
        for one in (address, *behind):
            self._tuns[one] = tun

    def _give6(self, pid: int, device: str, host: str, bits: int) -> None:
        self._net.run(pid, "ip", "address", "add", f"{host}/{bits}", "dev", device, "nodad")

    def _load(self, pid: int, rules: str) -> None:
        path = self._folder / f"rules-{pid}"
        path.write_text(rules)
        self._net.run(pid, "nft", "-f", str(path))
