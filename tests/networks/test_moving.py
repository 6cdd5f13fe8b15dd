"""Two members who have both moved find each other again through a relay, and then need it no more."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cluster import run_ravel, until
from tests.networks.internet import Internet
from tests.networks.kernel_nets import Machine, kernel_net
from tests.networks.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.extended]

_AT: Final = {"relay": "8.8.4.10", "alice": "8.8.8.5", "bob": "9.9.9.6"}
_LATER: Final = {"alice": "8.8.8.50", "bob": "9.9.9.60"}


@dataclass(frozen=True, slots=True)
class Moving:
    """Alice, Bob and a relay at public addresses, and how the first two get others."""

    internet: Internet
    wire: Wire
    places: dict[str, int]
    relay: Machine
    alice: Machine
    bob: Machine

    def move(self, name: str) -> None:
        """Give alice or bob the later address."""
        self.internet.move(self.places[name], "wan", _AT[name], _LATER[name])

    def is_direct(self) -> bool:
        """Whether one is connected with the other at its later address."""
        later = tuple(f"{host}:" for host in _LATER.values())
        return any(
            path == "direct" and address.startswith(later)
            for one, other in ((self.alice, self.bob), (self.bob, self.alice))
            for address, path in _ways(one, other)
        )


@contextmanager
def joined(folder: Path, rate: float = float("inf")) -> Iterator[Moving]:
    """Bob has joined Alice's repo, and is connected with her directly."""
    with kernel_net(folder) as net, ExitStack() as ending:
        internet = Internet(net, folder, ending)
        places = {name: internet.add_machine(host) for name, host in _AT.items()}
        wire = internet.open(round_trip=0.01, rate=rate)
        relay, alice, bob = (Machine(folder / name, places[name]) for name in _AT)
        run_ravel(relay, "config", "set", "relay.enabled", "true")
        run_ravel(relay, "config", "set", "relay.topic_size_max", "1")
        for machine in (relay, alice, bob):
            ending.callback(machine.close)
            machine.start()
        at_relay = f"{_AT['relay']}:7474"
        alice.client.add_peer(at_relay, str(relay.client.show_status()["node"]), relay=True)
        repo = str(alice.client.create_repo("shared")["repo"])
        links: list[str] = []

        def names_relay() -> bool:
            made = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)
            links.append(made["invitation"])
            return at_relay in made["addresses"]

        until(names_relay, "the relay has the repo, and the link names it")
        bob.client.join_repo(links[-1])
        until(lambda: _ways(bob, alice) == [(f"{_AT['alice']}:7474", "direct")], "they are connected")
        yield Moving(internet, wire, places, relay, alice, bob)


def test_two_who_have_both_moved_meet_at_a_relay_and_connect_directly(tmp_path: Path) -> None:
    with joined(tmp_path) as net:
        for name, machine in (("alice", net.alice), ("bob", net.bob)):
            machine.stop()
            net.move(name)
        for machine in (net.alice, net.bob):
            machine.start()
        until(net.is_direct, "they have found each other's new address", 60)


def _ways(one: Machine, other: Machine) -> list[tuple[str, str]]:
    """Addresses and paths of one's connections with another."""
    node = other.client.show_status()["node"]
    return [
        (peer["address"], peer["path"])
        for peer in one.client.list_peers()["peers"]
        if peer["peer"] == node and peer["state"] == "connected"
    ]
