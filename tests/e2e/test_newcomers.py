"""A branch whose old bodies all members have erased, and a newcomer to it, by command, on real daemons."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.engine.database import DATABASE_NAME
from storage.repos.repos import DAY_MS
from tests.e2e.cluster import Peer, ask, digest, join, peers, run_ravel, until, until_equal

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def _shift_arrivals(peer: Peer, by_ms: int) -> None:
    with closing(sqlite3.connect(peer.home / DATABASE_NAME)) as connection, connection:
        connection.execute("UPDATE commits SET received_at = received_at + ?", (by_ms,))


def _erase_later(peer: Peer) -> int:
    """What `ravel gc` erases two days from now; the daemon runs again after it."""
    peer.stop()
    config = peer.home / "config.toml"
    config.write_text(config.read_text().replace("erase_after_days = 0", "erase_after_days = 1"))
    _shift_arrivals(peer, -2 * DAY_MS)
    erased = ask(peer, "gc")["erased"]
    _shift_arrivals(peer, 2 * DAY_MS)  # by which commits are shown in the order by time
    assert isinstance(erased, int)
    peer.start()
    return erased


def test_a_newcomer_who_meets_only_who_erased_gets_the_branch_and_writes(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo, branch = join(alice, bob)
        run_ravel(alice, "write", branch, "said before")
        run_ravel(alice, "set", "add", branch, "pears", "plums")
        run_ravel(alice, "set", "rm", branch, "plums")
        run_ravel(alice, "dict", "put", branch, "colour", "green")
        assert ask(alice, "branch", "compact", branch, "--yes")["bodies"] == 4
        run_ravel(alice, "write", branch, "said after")
        until_equal(alice, bob, branch)
        assert [_erase_later(peer) for peer in (alice, bob)] == [4, 4]

        link = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        carol.client.join_repo(link)
        until_equal(alice, carol, branch)
        assert run_ravel(carol, "set", "list", branch).stdout == "pears\n"
        assert ask(carol, "dict", "get", branch, "colour")["value"] == "green"
        shown = run_ravel(carol, "log", branch).stdout
        assert ("(post, erased)" in shown, "said before" in shown, "said after" in shown) == (
            True,
            False,
            True,
        )
        run_ravel(carol, "set", "add", branch, "figs")
        until_equal(alice, carol, branch)
        until_equal(bob, carol, branch)
        until(
            lambda: run_ravel(bob, "set", "list", branch).stdout == "figs\npears\n",
            "bob has what carol wrote",
        )
        for peer in (alice, bob, carol):
            assert ask(peer, "fsck")["problems"] == 0


def test_a_newcomer_gets_by_a_new_relay_alone_what_all_have_erased(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob", "carol", "relay") as (alice, bob, carol, relay):
        relay.stop()
        config = relay.home / "config.toml"
        config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
        relay.start()
        repo, branch = join(alice, bob)
        for number in range(3):
            run_ravel(alice, "write", branch, f"said before {number}")
        run_ravel(alice, "set", "add", branch, "pears", "plums")
        run_ravel(alice, "set", "rm", branch, "plums")
        run_ravel(alice, "branch", "compact", branch, "--yes")
        run_ravel(alice, "write", branch, "said after")
        until_equal(alice, bob, branch)
        assert [_erase_later(peer) for peer in (alice, bob)] == [5, 5]
        bob.stop()

        alice.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
        until(lambda: relay.client.list_relayed_topics()["size"] > 0, "the relay keeps something")
        link = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)
        shown = run_ravel(alice, "repo", "sync", repo, "--timeout", "60", "--json").stdout
        assert [one["relay"] for one in json.loads(shown)["held_by"]] == [True]
        expected = digest(alice, branch)
        alice.stop()

        carol.client.join_repo(link["invitation"])
        until(lambda: digest(carol, branch) == expected, "carol has the branch from the relay")
        assert run_ravel(carol, "set", "list", branch).stdout == "pears\n"
        run_ravel(carol, "set", "add", branch, "figs")
        until(
            lambda: run_ravel(carol, "repo", "sync", repo, "--timeout", "60").returncode == 0,
            "the relay has what carol wrote",
        )
        bob.start()
        bob.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
        until(
            lambda: run_ravel(bob, "set", "list", branch).stdout == "figs\npears\n",
            "bob has it from the relay",
        )
        relay.stop()
        assert ask(relay, "fsck")["problems"] == 0
        relay.start()
