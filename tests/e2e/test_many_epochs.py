"""A repo of many branches and epochs, all by one relay, and a newcomer who meets nobody but the relay."""

from pathlib import Path

import pytest

from tests.e2e.cluster import Peer, peers, run_ravel, until

pytestmark = [pytest.mark.slow, pytest.mark.extended]
BRANCHES = 12
EPOCHS = 10


def _is_whole(peer: Peer) -> bool:
    listed = peer.client.list_branches("notes")["branches"]
    return len(listed) == BRANCHES and all(one["commits"] >= EPOCHS + 2 for one in listed)


def test_a_newcomer_gets_every_branch_of_all_epochs_by_the_relay_alone(tmp_path: Path) -> None:
    """With a topic for each branch and epoch, peers ran out of topics that they announce, and nothing came."""
    relay = Peer(tmp_path / "relay")
    config = relay.home / "config.toml"
    config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
    try:
        relay.start()
        with peers(tmp_path, "alice", "bob") as (alice, bob):
            alice.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
            alice.client.create_repo("notes")
            names = ["main", *(f"b{number}" for number in range(1, BRANCHES))]
            for name in names[1:]:
                alice.client.create_branch("notes", name)
            for name in names:
                alice.client.write_post(f"notes:{name}", f"first in {name}")
            for number in range(EPOCHS):
                alice.client.request("POST", "/repos/notes/epochs")
                for name in names:
                    alice.client.write_post(f"notes:{name}", f"epoch {number}")
            run_ravel(alice, "repo", "sync", "notes", "--timeout", "60")
            link = alice.client.create_invitation("notes", permission="write", expires_seconds=3600)
            alice.stop()
            bob.client.join_repo(link["invitation"])
            until(lambda: _is_whole(bob), "the newcomer has every branch whole", 60)
    finally:
        relay.close()
