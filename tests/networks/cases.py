"""Two members between whom there are routers: which path theory allows, which one their daemons find, and how soon.

Alice has a repo and uses a relay. Bob is given the invitation and nothing else.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.cluster import digest, run_ravel, until
from tests.networks.internet import Home, Internet
from tests.networks.kernel_nets import KernelNet, Machine, kernel_net
from tests.networks.routers import OUTER_PORTS, RouterKind
from tests.support.web_proxy import make_certificate

TOOLS: Final = ("nft", "sysctl")
_RELAY, _AT_ALICE, _AT_BOB, _CARRIER = "5.9.0.1", "8.8.8.1", "9.9.9.1", "8.8.4.1"
_RELAY6: Final = "2a00:77:9::1"
_LOOK_SECONDS: Final = 0.02
_CARRIER_LAN: Final = "100.64.0"
"""What carriers number their customers with (RFC 6598)."""
_PORT: Final = 7474
_LETS_443_OUT: Final = 'iifname "inner" meta l4proto != tcp drop; iifname "inner" tcp dport != 443'
_DROPS_UDP: Final = "meta l4proto udp"

_Places = tuple[int, int]  # the namespaces of alice and bob


@dataclass(frozen=True, slots=True)
class Case:
    """What is between two members. `paths` are those that theory allows, any of which will do."""

    name: str
    build: Callable[[KernelNet, Internet], _Places]
    paths: tuple[str, ...]
    relay: str = _RELAY
    is_web: bool = False
    """The relay is a WebSocket server with TLS on port 443."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it. Seconds count from the command `repo join LINK`."""

    path: str
    first_commit_seconds: float
    path_seconds: float


@dataclass(frozen=True, slots=True)
class Members:
    """The daemons of a case, which run, and the link that bob joins by."""

    relay: Machine
    alice: Machine
    bob: Machine
    link: str
    keys: tuple[str, str]
    """Of the nodes of alice and bob."""


def _behind(internet: Internet, kind: RouterKind, address: str, number: int, dropped: str = "") -> int:
    """A machine at a public address, or behind a router there. Both homes have the same addresses inside."""
    if kind is RouterKind.OPEN:
        return internet.add_machine(address)
    home = internet.add_home(kind, address, hosts=(number,), dropped=dropped)
    return internet.add_inside(home, number)


def _pair(
    first: RouterKind, second: RouterKind, dropped: str = ""
) -> Callable[[KernelNet, Internet], _Places]:
    def build(_: KernelNet, internet: Internet) -> _Places:
        return (
            _behind(internet, first, _AT_ALICE, 2, dropped),
            _behind(internet, second, _AT_BOB, 3, dropped),
        )

    return build


def _possible(first: RouterKind, second: RouterKind) -> tuple[str, ...]:
    """By RFC 5128, 3.3 and 3.4: a port that changes with the destination is dialed in vain where the filter asks for it."""
    kinds = {first, second}
    if RouterKind.OPEN in kinds:
        return ("direct", "punched")
    asks_for_port = kinds <= {RouterKind.PORT_RESTRICTED, RouterKind.SYMMETRIC}
    return ("relayed",) if asks_for_port and RouterKind.SYMMETRIC in kinds else ("punched",)


def _one_home(_: KernelNet, internet: Internet) -> _Places:
    home = internet.add_home(RouterKind.PORT_RESTRICTED, _AT_ALICE, hosts=(2, 3))
    return internet.add_inside(home, 2), internet.add_inside(home, 3)


def _carried(internet: Internet, carrier: Home, number: int) -> int:
    home = internet.add_home(
        RouterKind.PORT_RESTRICTED, carrier.host(number), hosts=(number,), carrier=carrier
    )
    return internet.add_inside(home, number)


def _two_routers(_: KernelNet, internet: Internet) -> _Places:
    carrier = internet.add_home(RouterKind.PORT_RESTRICTED, _CARRIER, lan=_CARRIER_LAN, ports=OUTER_PORTS)
    bob = _behind(internet, RouterKind.PORT_RESTRICTED, _AT_BOB, 3)
    return _carried(internet, carrier, 2), bob


def _one_carrier(*, hairpin: bool) -> Callable[[KernelNet, Internet], _Places]:
    def build(_: KernelNet, internet: Internet) -> _Places:
        carrier = internet.add_home(
            RouterKind.FULL_CONE,
            _CARRIER,
            lan=_CARRIER_LAN,
            hosts=(2, 3),
            ports=OUTER_PORTS,
            hairpin=hairpin,
        )
        return _carried(internet, carrier, 2), _carried(internet, carrier, 3)

    return build


def _firewalls(_: KernelNet, internet: Internet) -> _Places:
    first, second = internet.add_firewall(1), internet.add_firewall(2)
    return internet.add_inside(first), internet.add_inside(second)


def _upnp(net: KernelNet, internet: Internet) -> _Places:
    home = internet.add_upnp_home(_AT_ALICE)
    bob = _behind(internet, RouterKind.SYMMETRIC, _AT_BOB, 3)
    return internet.add_inside(home), bob


PAIRS: Final = {
    (first, second): Case(f"{first.value} and {second.value}", _pair(first, second), _possible(first, second))
    for first, second in itertools.combinations_with_replacement(RouterKind, 2)
}
_RESTRICTED: Final = RouterKind.PORT_RESTRICTED
DOUBLE_NAT: Final = Case("a router behind a carrier's, and port-restricted", _two_routers, ("punched",))
ONE_HOME: Final = Case("one router for both", _one_home, ("direct",))
HAIRPIN: Final = Case("one carrier, which hairpins", _one_carrier(hairpin=True), ("punched",))
NO_HAIRPIN: Final = Case("one carrier, which does not hairpin", _one_carrier(hairpin=False), ("relayed",))
IPV6: Final = Case("IPv6 alone, firewalls", _firewalls, ("punched",), relay=_RELAY6)
NO_UDP: Final = Case(
    "port-restricted, UDP blocked", _pair(_RESTRICTED, _RESTRICTED, _DROPS_UDP), ("punched",)
)
ONLY_443: Final = Case(
    "all but TCP 443 blocked", _pair(_RESTRICTED, _RESTRICTED, _LETS_443_OUT), ("relayed",), is_web=True
)
UPNP: Final = Case("a router that speaks UPnP, and symmetric", _upnp, ("direct",))
CASES: Final = (*PAIRS.values(), DOUBLE_NAT, ONE_HOME, HAIRPIN, NO_HAIRPIN, IPV6, NO_UDP, ONLY_443, UPNP)


@contextmanager
def members(folder: Path, case: Case) -> Iterator[Members]:
    """The daemons of a case, which are stopped at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    with kernel_net(folder, TOOLS) as net, ExitStack() as ending:
        internet = Internet(net, folder, ending)
        at_relay = internet.add_machine(case.relay)
        at_alice, at_bob = case.build(net, internet)
        internet.open()
        trusts = {}
        settings = {"relay.enabled": "true"}
        address = f"[{case.relay}]:{_PORT}" if ":" in case.relay else f"{case.relay}:{_PORT}"
        if case.is_web:
            certificate, secret = make_certificate(folder, host=case.relay)
            trusts = {"SSL_CERT_FILE": str(certificate)}
            address = f"wss://{case.relay}"
            settings["network.websocket_listen"] = "*:443"
            settings["network.websocket_certificate"] = str(certificate)
            settings["network.websocket_key"] = str(secret)
        relay = Machine(folder / "relay", at_relay)
        alice = Machine(folder / "alice", at_alice, environment=trusts)
        bob = Machine(folder / "bob", at_bob, environment=trusts)
        for key, value in settings.items():
            run_ravel(relay, "config", "set", key, value)
        for machine in (relay, alice, bob):
            ending.callback(machine.close)
        with ThreadPoolExecutor() as pool:
            list(pool.map(Machine.start, (relay, alice, bob)))
        alice.client.add_peer(address, str(relay.client.show_status()["node"]), relay=True)
        alice.client.create_repo("shared")
        alice.client.write_post("main", "hello")
        if case is UPNP:  # the link is to name it
            until(lambda: alice.client.show_status()["router"]["state"] == "mapped", "a port is forwarded")
        links: list[str] = []

        def names_relay() -> bool:
            made = alice.client.create_invitation("shared", permission="write", expires_seconds=3600)
            links.append(made["invitation"])
            return address in made["addresses"]

        until(names_relay, "the relay has the repo, and the link names it")
        keys = [str(one.client.show_status()["node"]) for one in (alice, bob)]
        yield Members(relay, alice, bob, links[-1], (keys[0], keys[1]))


def join(case: Case, found: Members, seconds: float) -> Found:
    """Have bob join, and wait so many seconds for one of the paths; if it is relayed, until a better one was tried."""
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        joining = pool.submit(found.bob.run, "repo", "join", found.link)
        wanted = digest(found.alice, "main")["digest"]
        _wait(lambda: digest(found.bob, "main")["digest"] == wanted, seconds)
        first_commit = time.monotonic() - began
        _wait(lambda: path_of(found.bob, found.keys[0]) in case.paths, seconds)
        taken = time.monotonic() - began
        if case.paths == ("relayed",) and not case.is_web:
            _wait(lambda: _has_tried(found.bob) or _has_tried(found.alice), seconds)
        joining.result()
        return Found(path_of(found.bob, found.keys[0]), first_commit, taken)


def path_of(one: Machine, key: str) -> str:
    """How a machine is connected with the node of a key, by its best connection; "none"."""
    paths = {
        peer["path"]
        for peer in one.client.list_peers()["peers"]
        if peer["peer"] == key and peer["state"] == "connected"
    }
    return next((path for path in ("direct", "punched", "relayed") if path in paths), "none")


def check_both_write(found: Members) -> None:
    """Both write, and both have it."""
    until(
        lambda: all(one["permission"] == "write" for one in found.bob.client.list_repos()["repos"]),
        "bob is a member",
    )
    for one, other in ((found.bob, found.alice), (found.alice, found.bob)):
        one.client.write_post("main", f"from {one.home.name}")
        until(lambda: digest(one, "main") == digest(other, "main"), f"{other.home.name} has it")  # noqa: B023  # called at once


def _wait(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)  # another process's state can only be polled for


def _has_tried(machine: Machine) -> bool:
    return any("not punched" in line for line in machine.client.show_log()["lines"])
