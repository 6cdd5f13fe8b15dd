"""Daemons on lines that lose, delay and reorder, and that are cut in one direction or both, end in the same timelines."""

import os
from functools import partial
from pathlib import Path

import pytest

from ravel.types.peers import TopicView
from tests.e2e.cluster import digest, until
from tests.networks import namespaces
from tests.networks.lines import BAD, Net, PlacedPeer, cut, daemons, heal, set_lines
from tests.networks.namespaces import NamespaceNet
from tests.networks.proxies import LoopbackNet

pytestmark = [pytest.mark.slow, pytest.mark.extended]

KINDS = ["namespaces", "loopback"] if namespaces.are_allowed() or os.environ.get("CI") else ["loopback"]
"""CI has to allow namespaces: there these tests fail without them."""


def open_net(kind: str, count: int) -> Net:
    """A net of this kind."""
    return NamespaceNet(count) if kind == "namespaces" else LoopbackNet(count)


def gather(first: PlacedPeer, *others: PlacedPeer) -> str:
    """The first creates a repo, and the others join it; gives its branch."""
    repo = str(first.client.create_repo("shared")["repo"])
    branch = str(first.client.list_branches(repo)["branches"][0]["branch"])
    for other in others:
        other.join(
            first.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        )
    for other in others:
        until(partial(_may_write, other), f"{other.home.name} is a member", 60)
    return branch


def write(peer: PlacedPeer, branch: str, count: int, name: str) -> None:
    """A chain of imported items."""
    items = [
        {"id": f"{name} {number}", "parents": [f"{name} {number - 1}"] if number else [], "author": "a"}
        | {"time": number, "text": f"{name} {number} " + "x" * 100}
        for number in range(count)
    ]
    for start in range(0, count, 500):
        peer.client.import_commits(branch, items[start : start + 500], "jsonl")


def until_agreed(branch: str, count: int, *peers: PlacedPeer, seconds: float = 60) -> None:
    """Wait until all show the same timeline, of so many commits."""

    def agree() -> bool:
        shown = [digest(peer, branch) for peer in peers]
        return len({one["digest"] for one in shown}) == 1 and shown[0]["commits"] == count

    until(agree, f"all show the same {count} commits", seconds)


def topics_with(peer: PlacedPeer, other: PlacedPeer) -> list[TopicView]:
    """How a peer says that its topics stand with another."""
    node = other.client.show_status()["node"]
    found = [one for one in peer.client.show_status()["peers"] if one["peer"] == node]
    return [topic for one in found for topic in one["topics"]]


def is_stalled(peer: PlacedPeer, other: PlacedPeer) -> bool:
    """Whether a peer says that another has stalled, and why."""
    return any(
        topic["stalled_since"] and topic["stalled_because"] == "nothing_heard"
        for topic in topics_with(peer, other)
    )


def _goes_on(peer: PlacedPeer, other: PlacedPeer) -> bool:
    return not is_stalled(peer, other)


def _may_write(peer: PlacedPeer) -> bool:
    repos = peer.client.list_repos()["repos"]
    return bool(repos and repos[0]["permission"] == "write")


@pytest.mark.parametrize("kind", KINDS[:1])
def test_three_on_bad_lines_agree_and_a_partition_is_said_and_heals_without_a_restart(
    tmp_path: Path, kind: str
) -> None:
    """Bob is cut off both ways, carol hears nothing and is heard; alice answers meanwhile, and says so of both."""
    net = open_net(kind, 3)
    for other in (1, 2):
        set_lines(net, 0, other, BAD)
    with daemons(net, tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        branch = gather(alice, bob, carol)
        for peer in (alice, bob, carol):
            write(peer, branch, 500, peer.home.name)
        until_agreed(branch, 1501, alice, bob, carol)
        if isinstance(net, NamespaceNet):
            assert net.lost > 0, "the lines were bad"
        cut(net, 0, 1)
        cut(net, 1, 0)
        cut(net, 0, 2)
        for peer in (alice, bob, carol):
            write(peer, branch, 10, f"{peer.home.name}, cut off")
        for cut_off in (bob, carol):
            until(partial(is_stalled, alice, cut_off), f"{cut_off.home.name} has stalled", 30)
        until(partial(is_stalled, bob, alice), "bob says so too", 30)
        assert "nothing has been heard since" in alice.run("status")
        heal(net, 0, 1)
        heal(net, 0, 2)
        until_agreed(branch, 1531, alice, bob, carol)
        for cut_off in (bob, carol):
            until(partial(_goes_on, alice, cut_off), f"{cut_off.home.name} is heard", 30)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_where_namespaces_are_not_allowed_proxies_stand_in_for_them(tmp_path: Path, kind: str) -> None:
    net = open_net(kind, 2)
    set_lines(net, 0, 1, BAD)
    with daemons(net, tmp_path, "alice", "bob") as (alice, bob):
        branch = gather(alice, bob)
        until_agreed(branch, 1, alice, bob)
        cut(net, 0, 1)
        for peer in (alice, bob):
            write(peer, branch, 100, peer.home.name)
        until(lambda: bool(digest(alice, branch)["commits"] == 201), "bob is heard")
        assert digest(bob, branch)["commits"] == 101
        heal(net, 0, 1)
        until_agreed(branch, 201, alice, bob)
