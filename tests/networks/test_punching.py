"""Two members behind home routers, who know an invitation and a relay: which way they find to each other."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from protocol.links import invitation_text, parse_invitation
from tests.e2e.cluster import digest, run_ravel, until
from tests.networks import namespaces
from tests.networks.lines import Line, PlacedPeer, set_lines
from tests.networks.namespaces import NamespaceNet
from tests.networks.routers import RouterKind

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(not namespaces.are_allowed(), reason="no network namespaces are allowed here"),
]
_WAY = Line(delay=0.0125)
"""A quarter of the 50 ms there and back between two members: each way goes through the relay, or beside it."""


@contextmanager
def _members(folder: Path, first: RouterKind, second: RouterKind) -> Iterator[tuple[PlacedPeer, PlacedPeer]]:
    """Alice, who has a repo, and Bob, who has joined it; each behind a router of a kind, and a relay between."""
    net = NamespaceNet(3)
    made: list[PlacedPeer] = []
    try:
        for number in range(3):
            for other in range(number):
                set_lines(net, number, other, _WAY)
        made += [
            PlacedPeer(folder / name, number, net) for number, name in enumerate(("relay", "alice", "bob"))
        ]
        relay, alice, bob = made
        net.put_behind(1, first)
        net.put_behind(2, second)
        run_ravel(relay, "config", "set", "relay.enabled", "true")
        for peer in made:
            peer.start()
        relay_key = str(relay.client.show_status()["node"])
        alice.client.add_peer(relay.listen, relay_key, relay=True)
        alice.client.create_repo("shared")
        until(lambda: relay.client.list_relayed_topics()["size"] > 0, "the relay keeps something", 60)
        link = parse_invitation(
            alice.client.create_invitation("shared", permission="write", expires_seconds=3600)["invitation"]
        )
        at_relay = tuple(one for one in link.peers if one.address == relay.listen)
        bob.client.join_repo(invitation_text(structs.replace(link, peers=at_relay)))
        yield alice, bob
    finally:
        for peer in made:
            peer.close()
        net.close()


def _paths(peer: PlacedPeer, other: PlacedPeer) -> list[str]:
    key = str(other.client.show_status()["node"])
    return [
        one["path"]
        for one in peer.client.list_peers()["peers"]
        if one["peer"] == key and one["state"] == "connected"
    ]


def test_two_routers_are_opened_from_inside_and_nothing_is_lost(tmp_path: Path) -> None:
    with _members(tmp_path, RouterKind.PORT_RESTRICTED, RouterKind.PORT_RESTRICTED) as (alice, bob):
        for number in range(20):
            alice.client.write_post("main", f"post {number}")
        until(lambda: _paths(alice, bob) == ["punched"] == _paths(bob, alice), "both have dialed", 60)
        bob.client.write_post("main", "on the direct way")
        until(lambda: digest(bob, "main") == digest(alice, "main"), "alice has it", 60)
        assert "through both routers" in alice.run("peer", "list")


def test_two_routers_that_give_each_destination_another_port_leave_it_to_the_relay(tmp_path: Path) -> None:
    with _members(tmp_path, RouterKind.SYMMETRIC, RouterKind.SYMMETRIC) as (alice, bob):
        until(lambda: _paths(alice, bob) == ["relayed"] == _paths(bob, alice), "they talk", 60)
        until(
            lambda: any("not punched" in line for line in bob.client.show_log()["lines"]), "it was tried", 60
        )
        assert _paths(alice, bob) == ["relayed"]
        alice.client.write_post("main", "through the relay")
        until(lambda: digest(bob, "main") == digest(alice, "main"), "bob has it", 60)


def table(folder: Path) -> Iterator[str]:
    """All pairs of routers: the path that was found, and the seconds after the join."""
    kinds = list(RouterKind)
    for at, first in enumerate(kinds):
        for second in kinds[at:]:
            with _members(folder / f"{first.name}-{second.name}", first, second) as (alice, bob):
                began = time.monotonic()
                while time.monotonic() - began < 30 and _paths(bob, alice) not in (["punched"], ["direct"]):
                    time.sleep(0.1)
                found = _paths(bob, alice)
                yield f"| {first.value} | {second.value} | {', '.join(found)} | {time.monotonic() - began:.1f} |"
