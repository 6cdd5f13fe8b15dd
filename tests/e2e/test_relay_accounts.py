"""A community's relays: accounts by links, files of members who are never online together, and the loss of a relay."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.cluster import Peer, run_ravel, until

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def _relay(home: Path) -> Peer:
    relay = Peer(home)
    config = relay.home / "config.toml"
    config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
    relay.start()
    return relay


def _node(peer: Peer) -> str:
    return str(peer.client.show_status()["node"])


def _bytes_of_files(relay: Peer) -> int:
    return sum(one["used"] for one in relay.client.list_relay_accounts()["accounts"])


def test_a_file_outlives_its_node_and_one_of_two_relays(tmp_path: Path) -> None:
    content = bytes(range(256)) * 2000
    with ExitStack() as stack:
        alice, bob = (Peer(tmp_path / name) for name in ("alice", "bob"))
        first, second = (_relay(tmp_path / name) for name in ("first", "second"))
        for peer in (alice, bob, first, second):
            stack.callback(peer.close)
        for one, other in ((first, second), (second, first)):
            one.client.add_peer(other.listen, _node(other), relay=True)
        made = run_ravel(first, "relay", "invite", "--name", "ann", "--quota", "1GiB", "--json")
        invitation = json.loads(made.stdout)
        assert invitation["reach"] == "machine"

        alice.start()
        alice.client.create_repo("early")
        assert "up to 1.0 GiB" in run_ravel(alice, "relay", "join", "-", stdin=invitation["link"]).stdout
        early = alice.client.create_invitation("early", permission="write", expires_seconds=3600)
        assert first.listen in early["addresses"], "a link waits for a relay that was just added"
        (account,) = first.client.list_relay_accounts()["accounts"]
        assert (account["name"], account["nodes"], account["links"]) == ("ann", [_node(alice)], 0)
        bob.start()
        assert "next:" in run_ravel(bob, "relay", "join", invitation["link"], code=7).stderr, "good once"
        bob.stop()
        alice.client.add_peer(second.listen, _node(second), relay=True)
        alice.client.create_repo("notes")
        (tmp_path / "large.bin").write_bytes(content)
        run_ravel(alice, "file", "add", "notes:main", str(tmp_path / "large.bin"))
        until(lambda: alice.client.list_files("notes:main")["files"][0]["relays"] == 2, "both relays keep it")
        assert _bytes_of_files(first) > len(content), "the account pays for it"
        link = alice.client.create_invitation("notes", permission="write", expires_seconds=3600)["invitation"]
        alice.stop()
        first.kill()

        bob.start()
        bob.client.add_peer(second.listen, _node(second), relay=True)
        bob.client.join_repo(link)
        until(lambda: len(bob.client.list_branches("notes")["branches"]) == 1, "the branch came")
        until(lambda: bob.client.list_files("notes:main")["files"] != [], "the file's name came")
        got = tmp_path / "got.bin"
        run_ravel(bob, "file", "get", "notes:main", "large.bin", "--out", str(got))
        assert got.read_bytes() == content
