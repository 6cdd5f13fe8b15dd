"""Knows where this node can be dialed, how each address was found, and how far it reaches.

Sources: `[network] advertise`, the address that the node listens on, a port that the router forwards, this machine's
interfaces, and what peers say that they see, once several at different places agree.

What is not known to work from outside is not said to. A public IPv6 address counts as public only once somebody from
outside has come in, for home routers refuse what comes in by IPv6 unless they are told otherwise. The same holds of what
peers see, which may be a router that forwards no port.

Left to others: `node.network.interfaces` asks the system, `node.network.port_mapping` the router, and
`node.membership.sharing` puts addresses into links.
"""

import ipaddress
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog
import trio

from node.home.config_values import NOTHING, list_advertised
from node.network.interfaces import InterfaceAddress
from node.runtime.subnets import subnet_of
from protocol.formats.web_address import parse_web_address
from protocol.ids import PeerId
from protocol.limits.network import (
    INTERFACES_LOOK_SECONDS,
    OBSERVERS_AGREED_MIN,
    OBSERVERS_MAX,
    OWN_ADDRESSES_TOLD_MAX,
)
from protocol.session.reach import Host, Reach, host_of, is_public, may_travel, reach_of

log = structlog.get_logger()

EVERYWHERE: Final = "*"
"""The host that stands for every interface, by IPv4 and IPv6."""
_SAME_KIND_MAX: Final = 2
"""Addresses of interfaces of one version and reach that are told: more lead to the same networks."""


class FoundBy(StrEnum):
    """Source of an address of this node."""

    CONFIGURED = "configured"  # [network] advertise
    LISTEN = "listen"  # [network] listen names one address
    ROUTER = "router"  # that forwards a port
    INTERFACE = "interface"
    PEERS = "peers"  # that see this node there


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """Address at which this node can be dialed (host:port). `reach` is how far it is known to work; None: not known."""

    address: str
    reach: Reach | None
    found_by: FoundBy


@dataclass(frozen=True, slots=True)
class PortMapping:
    """A port of the router that leads to this node, how that was asked for, and for how many seconds it was granted."""

    way: str
    host: ipaddress.IPv4Address
    port: int
    seconds: int


class RouterState(StrEnum):
    """Result of asking the router for a port."""

    OFF = "off"  # by configuration
    NOT_NEEDED = "not needed"
    ASKING = "asking"
    MAPPED = "mapped"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Router:
    """State of a port of the router. `detail`: the way it was asked, or why it forwards nothing."""

    state: RouterState
    detail: str = ""
    mapping: PortMapping | None = None


_RANKS: Final = (Reach.EVERYBODY, None, Reach.PRIVATE, Reach.MACHINE)
"""What is tried first by who may be anywhere: what may work before what cannot."""
Look = Callable[[], Awaitable[tuple[InterfaceAddress, ...]]]


class OwnAddresses:
    """The addresses of a node that listens on `listen` (host:port). `run` looks for changes."""

    def __init__(self, listen: str, advertise: str = "", look: Look | None = None) -> None:
        """`look` lists the machine's addresses; without it a node that listens on every interface knows none."""
        self._advertise = advertise
        host, _, self._port = listen.rpartition(":")
        self._versions = _versions_of(host)
        """The versions of IP in which it listens on every interface; empty where it listens on one address."""
        self.listen: Final = listen
        self._look = look
        self.interfaces: tuple[InterfaceAddress, ...] = ()
        self._entered: set[int] = set()  # versions of IP by which somebody from outside has come in
        self._claims: dict[
            PeerId, tuple[Host, str]
        ] = {}  # by peer: where it sees this node, and where it is itself
        self.router = Router(RouterState.OFF)
        self._changed: list[Callable[[Collection[str]], None]] = []

    @property
    def is_open(self) -> bool:
        """Return True if other machines can reach this node at all."""
        return bool(self._versions) or self._reach_of_listen() is not Reach.MACHINE

    def when_changed(self, tell: Callable[[Collection[str]], None]) -> None:
        """Register a function to be called with lost hosts after this machine's addresses have changed."""
        self._changed.append(tell)

    async def start(self) -> None:
        """Look for the first time."""
        if self._look is not None and self._versions:
            self.interfaces = await self._look()

    async def run(self) -> None:
        """Look for changes until cancelled, if the node listens on every interface."""
        while self._look is not None and self._versions:
            await trio.sleep(INTERFACES_LOOK_SECONDS)
            found = await self._look()
            if found != self.interfaces:
                gone = {str(one.host) for one in self.interfaces} - {str(one.host) for one in found}
                self.interfaces = found
                self._entered.clear()  # that was another network
                self._claims.clear()
                self.router = Router(self.router.state)
                log.info("network changed", addresses=[str(one.host) for one in found])
                for tell in self._changed:
                    tell(gone)

    def note_entry(self, across: str) -> None:
        """Note that a peer at `across` has connected to this node and proved its key."""
        host = host_of(across)
        if host is None or reach_of(host) is not Reach.EVERYBODY:
            return
        if not self.is_near(across):
            self._entered.add(host.version)

    @property
    def port(self) -> int:
        """The port that the node listens on."""
        return int(self._port)

    @property
    def wants_port(self) -> bool:
        """Return True if a port of the router would help: others know no other address, and none here is public by IPv4."""
        listens = 4 in self._versions or self._reach_of_listen() is Reach.PRIVATE
        is_public = any(
            one.host.version == 4 and reach_of(one.host) is Reach.EVERYBODY for one in self.interfaces
        )
        is_on_network = not self._versions or any(one.host.version == 4 for one in self.interfaces)
        return listens and is_on_network and not is_public and not self._advertise

    def note_router(self, router: Router) -> None:
        """Note the result of asking the router for a port."""
        self.router = router

    def note_claim(self, peer: PeerId, address: str, across: str) -> None:
        """Note where a peer that this node has dialed, at `across`, says to see this node.

        What it says of a narrower network than the one that both are in is not taken.
        """
        host, place = host_of(address), host_of(across)
        if host is None or place is None or not may_travel(address, across):
            return
        is_public = reach_of(place) is Reach.EVERYBODY
        self._claims.pop(peer, None)
        self._claims[peer] = (host, subnet_of(across) if is_public else str(place))
        if len(self._claims) > OBSERVERS_MAX:
            del self._claims[next(iter(self._claims))]

    def _agreed(self) -> list[Host]:
        """Return by version of IP the host that most peers see, if they are enough and at different places."""
        places: dict[Host, set[str]] = {}
        for host, place in self._claims.values():
            places.setdefault(host, set()).add(place)
        best: dict[int, Host] = {}
        for host, found in places.items():  # of equals the latest
            if len(found) >= OBSERVERS_AGREED_MIN and len(found) >= len(
                places.get(best.get(host.version, host), ())
            ):
                best[host.version] = host
        return [best[version] for version in sorted(best)]

    def is_near(self, address: str) -> bool:
        """Return True if an address is in a network that this machine is on."""
        host = host_of(address)
        return host is not None and any(
            host in one.network for one in self.interfaces if one.host.version == host.version
        )

    def is_own(self, address: str) -> bool:
        """Return True if an address has the host of an interface of this machine."""
        host = host_of(address)
        return any(host == one.host for one in self.interfaces)

    @property
    def known(self) -> list[OwnAddress]:
        """All addresses, the farthest reaching first."""
        unique: dict[str, OwnAddress] = {}
        for one in self._all():
            unique.setdefault(one.address, one)
        return sorted(
            unique.values(), key=lambda one: (_RANKS.index(one.reach), list(FoundBy).index(one.found_by))
        )

    def _all(self) -> list[OwnAddress]:
        return [
            *self._configured(),
            *self._listening(),
            *self._at_router(),
            *self._of_interfaces(),
            *self._seen_by_peers(),
        ]

    @property
    def for_links(self) -> list[OwnAddress]:
        """Choose addresses for a link: the farthest reaching, and one for this network in any case."""
        known = self.known if self._advertise != NOTHING else []
        chosen = known[:OWN_ADDRESSES_TOLD_MAX]
        near = [one for one in known if one.reach is Reach.PRIVATE]
        if near and near[0] not in chosen:
            chosen[-1] = near[0]
        return chosen

    @property
    def reach(self) -> Reach | None:
        """Return how far this node can be dialed; None: nowhere."""
        return max((one.reach for one in self.known if one.reach is not None), default=None)

    def _configured(self) -> list[OwnAddress]:
        stated = list_advertised(self._advertise)
        return [OwnAddress(address, told_reach(address), FoundBy.CONFIGURED) for address in stated]

    def _listening(self) -> list[OwnAddress]:
        reach = self._reach_of_listen()
        if self._versions or reach is None:
            return []
        return [OwnAddress(self.listen, reach, FoundBy.LISTEN)]

    def _reach_of_listen(self) -> Reach | None:
        host = host_of(self.listen)
        if host is not None:
            return reach_of(host)
        return None if self._versions else told_reach(self.listen)

    def _of_interfaces(self) -> list[OwnAddress]:
        counts: dict[tuple[int, Reach], int] = {}
        found = []
        for one in self.interfaces:
            reach = reach_of(one.host)
            if one.host.version not in self._versions or reach is None:
                continue
            kind = (one.host.version, reach)
            counts[kind] = counts.get(kind, 0) + 1
            if counts[kind] <= _SAME_KIND_MAX:
                address = shown_address(one.host, self._port)
                found.append(OwnAddress(address, self._proven(one.host, reach), FoundBy.INTERFACE))
        return found

    @property
    def public(self) -> list[str]:
        """List addresses for links that everybody could dial, whether or not that is known to work; numbers alone."""
        return [one.address for one in self.for_links if is_public(one.address)]

    @property
    def forwarded(self) -> str | None:
        """Return where the router leads to this node, as far as is known from anywhere."""
        return next((one.address for one in self._at_router() if one.reach is Reach.EVERYBODY), None)

    def _at_router(self) -> list[OwnAddress]:
        """Return the address that the router forwards here. Its reach is unknown where peers see another host."""
        mapping = self.router.mapping
        if mapping is None:
            return []
        seen = [host for host in self._agreed() if host.version == 4]
        reach = Reach.EVERYBODY if seen in ([], [mapping.host]) else None
        return [OwnAddress(shown_address(mapping.host, str(mapping.port)), reach, FoundBy.ROUTER)]

    def _seen_by_peers(self) -> list[OwnAddress]:
        """List addresses as others see this machine: behind a router that forwards the same port, or none."""
        return [
            OwnAddress(
                shown_address(host, self._port),
                reach_of(host) if host.version in self._entered or self.is_near(f"{host}:1") else None,
                FoundBy.PEERS,
            )
            for host in self._agreed()
            if host.version in self._versions and not self._advertise
        ]

    def _proven(self, host: Host, reach: Reach) -> Reach:
        if reach is Reach.EVERYBODY and host.version == 6 and 6 not in self._entered:
            return Reach.PRIVATE
        return reach


def shown_address(host: Host, port: str) -> str:
    """host:port, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}"


def told_reach(address: str) -> Reach:
    """Return how far a stated address reaches: a name that is not this machine's is taken for public."""
    web = parse_web_address(address)
    address = address if web is None else web.place
    host = host_of(address)
    if host is not None:
        reach = reach_of(host)
        return Reach.PRIVATE if reach is None else reach
    return Reach.MACHINE if address.rpartition(":")[0] == "localhost" else Reach.EVERYBODY


def _versions_of(host: str) -> tuple[int, ...]:
    if host == EVERYWHERE:
        return (4, 6)
    try:
        parsed = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return ()
    return (parsed.version,) if parsed.is_unspecified else ()
