"""Two members whom nobody can dial, and a relay as a daemon of its own: they talk through it, and it reads nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from protocol.formats.links import PeerAddress, invitation_text, parse_invitation
from tests.e2e.cluster import JsonObject, Peer, digest, run_ravel, until

pytestmark = [pytest.mark.slow, pytest.mark.extended]

NOWHERE: Final = "127.0.0.1:1"
"""Where nobody listens: a home router that forwards no port answers alike."""


@contextmanager
def _three(folder: Path) -> Iterator[tuple[Peer, Peer, Peer]]:
    """Alice, a relay that she uses, and Bob, who has not begun."""
    alice, bob, relay = made = [Peer(folder / name) for name in ("alice", "bob", "relay")]
    try:
        run_ravel(relay, "config", "set", "relay.enabled", "true")
        run_ravel(relay, "config", "set", "relay.topic_size_max", "1")  # MiB: it keeps no large file itself
        run_ravel(alice, "config", "set", "network.punching", "false")
        for peer in (relay, alice):
            peer.start()
        alice.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
        yield alice, bob, relay
    finally:
        for peer in made:
            peer.close()


def _connected(peer: Peer, other: Peer) -> list[JsonObject]:
    """Connections with another node, as the API shows them."""
    key = str(other.client.show_status()["node"])
    return [
        dict(one)
        for one in peer.client.list_peers()["peers"]
        if one["peer"] == key and one["state"] == "connected"
    ]


def _undialable(text: str, relay: str) -> str:
    """An invitation that says of its author where nobody answers, and where the relay is."""
    link = parse_invitation(text)
    author = next(one.peer for one in link.peers if one.address != relay)
    others = [one for one in link.peers if one.peer != author]
    return invitation_text(structs.replace(link, peers=(PeerAddress(NOWHERE, author), *others)))


def test_a_repo_is_joined_and_a_file_fetched_through_a_relay_alone(tmp_path: Path) -> None:
    with _three(tmp_path) as (alice, bob, relay):
        alice.client.create_repo("notes")
        alice.client.write_post("main", "a line from alice")
        content = bytes(range(256)) * 12_000
        source = tmp_path / "photo"
        source.write_bytes(content)
        run_ravel(alice, "file", "add", "main", str(source))
        until(lambda: relay.client.list_relayed_topics()["size"] > 0, "the relay keeps something")
        link = alice.client.create_invitation("notes", permission="write", expires_seconds=3600, uses=1)
        assert relay.listen in link["addresses"]

        bob.start()
        bob.client.join_repo(_undialable(link["invitation"], relay.listen))
        until(lambda: len(_connected(bob, alice)) == 1, "bob has found alice")
        until(lambda: len(_connected(alice, bob)) == 1, "and alice him")
        relay_key = relay.client.show_status()["node"]
        seen = (*_connected(bob, alice), *_connected(alice, bob))
        assert [(one["path"], one["through"]) for one in seen] == [("relayed", relay_key)] * 2
        # Bob dials by the link. The relay names him to Alice at the same time, who may be sooner.
        assert {one["direction"] for one in seen} == {"in", "out"}
        listed = run_ravel(bob, "peer", "list").stdout
        assert f"through relay {relay.listen}" in listed
        assert f"through relay {relay.listen}" in run_ravel(alice, "status").stdout

        until(lambda: digest(bob, "main") == digest(alice, "main"), "bob has what alice wrote")
        target = tmp_path / "fetched"
        run_ravel(bob, "file", "get", "main", "photo", "--out", str(target))
        assert target.read_bytes() == content
        metrics = relay.client.page("/metrics")
        kinds = [line for line in metrics.splitlines() if line.startswith("ravel_circuit_bytes_total")]
        assert sum(float(one.split()[-1]) for one in kinds) > len(content), (
            "the file came through the circuit"
        )
        bob.client.write_post("main", "a line from bob")
        until(lambda: digest(bob, "main") == digest(alice, "main"), "alice has what bob wrote")


def test_two_members_who_know_the_relay_alone_are_named_to_each_other(tmp_path: Path) -> None:
    with _three(tmp_path) as (alice, bob, relay):
        alice.client.create_repo("notes")
        content = b"from one member to another" * 1000
        source = tmp_path / "letter"
        source.write_bytes(content)
        run_ravel(alice, "file", "add", "main", str(source))
        until(lambda: relay.client.list_relayed_topics()["size"] > 0, "the relay keeps something")
        made = alice.client.create_invitation("notes", permission="write", expires_seconds=3600, uses=1)
        link = parse_invitation(made["invitation"])
        at_relay = tuple(one for one in link.peers if one.address == relay.listen)
        bob.start()
        bob.client.join_repo(invitation_text(structs.replace(link, peers=at_relay)))
        until(lambda: len(_connected(bob, alice)) == 1, "the relay has named them to each other")
        assert _connected(bob, alice)[0]["path"] == "relayed"
        until(lambda: digest(bob, "main") == digest(alice, "main"), "bob has what alice wrote")
        target = tmp_path / "fetched"
        run_ravel(bob, "file", "get", "main", "letter", "--out", str(target))
        assert target.read_bytes() == content


def test_a_link_made_while_a_relay_is_away_says_so(tmp_path: Path) -> None:
    with _three(tmp_path) as (alice, bob, relay):
        alice.client.create_repo("notes")
        until(lambda: len(_connected(alice, relay)) == 1, "the relay is connected")
        node = json.loads(run_ravel(bob, "id", "--json").stdout)["node"]
        run_ravel(alice, "peer", "add", "--relay", NOWHERE, node)
        said = run_ravel(alice, "repo", "invite", "notes", "--local").stderr
        assert f"the relay at {NOWHERE} is not connected, so the link does not name it" in said
        assert f"the relay at {relay.listen}" not in said
        assert "is not connected" in run_ravel(alice, "repo", "invite", "notes", "--ask", "--local").stderr
