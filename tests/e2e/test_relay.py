"""A relay as a daemon of its own, between members who are never online together."""

from pathlib import Path

import pytest

from tests.e2e.cluster import Peer, run_ravel, until

pytestmark = pytest.mark.slow


def _digest(peer: Peer) -> str:
    return str(peer.client.digest("main")["digest"])


def test_two_members_who_are_never_online_together(tmp_path: Path) -> None:
    alice, bob, relay = (Peer(tmp_path / name) for name in ("alice", "bob", "relay"))
    try:
        config = relay.home / "config.toml"
        config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
        relay.start()
        run_ravel(alice, "relay", "list", code=13)
        alice.start()
        assert "enabled = true" in run_ravel(alice, "relay", "list", code=10).stderr
        alice.client.add_peer(relay.listen, str(relay.client.status()["node"]), relay=True)
        alice.client.create_repo("notes")
        alice.client.write("main", "a line from alice")
        until(lambda: relay.client.list_relayed()["size"] > 0, "the relay keeps something")
        link = alice.client.members.invite("notes", "write", 3600, 1)
        assert relay.listen in link["addresses"]
        until(lambda: _is_in_sync(alice), "all is kept")
        alice.stop()

        bob.start()
        bob.client.join(link["invitation"])
        until(lambda: _count(bob) == 2, "what alice wrote has come")
        until(lambda: _permission(bob) == "write", "bob is a member")
        bob.client.write("main", "a line from bob")
        until(lambda: _is_in_sync(bob), "all is kept")
        digest = _digest(bob)
        bob.stop()

        alice.start()
        until(lambda: _count(alice) == 3, "what bob wrote has come")
        assert _digest(alice) == digest
        listed = run_ravel(relay, "relay", "list").stdout
        assert len(listed.splitlines()) == 3, "two topics, and what they take"
        topic = relay.client.list_relayed()["topics"][0]["topic"]
        assert "pinned" in run_ravel(relay, "relay", "pin", topic[:8]).stdout
        assert relay.client.status()["repos"] == 0
    finally:
        for peer in (alice, bob, relay):
            peer.close()


def _count(peer: Peer) -> int:
    branches = peer.client.list_branches("notes")["branches"]
    return sum(int(branch["commits"]) for branch in branches)


def _permission(peer: Peer) -> str:
    return str(peer.client.list_repos()["repos"][0]["permission"])


def _is_in_sync(peer: Peer) -> bool:
    connected = [one for one in peer.client.status()["peers"] if one["state"] == "connected"]
    topics = [topic["state"] for one in connected for topic in one["topics"]]
    return bool(topics) and set(topics) == {"in sync"}
