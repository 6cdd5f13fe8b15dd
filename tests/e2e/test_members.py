"""Rights by commands, on three daemons: granting, excluding, void work, adopting, leaving; and why."""

import json
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import Peer, digest, join, peers, run_ravel, until, until_equal

pytestmark = pytest.mark.slow
NOT_PERMITTED = ERROR_KINDS["not_permitted"].exit_code


def _user(peer: Peer) -> str:
    return str(peer.client.show_status()["user"])


def _held(peer: Peer, user: str) -> str:
    members = {item["user"]: item["permission"] for item in peer.client.list_members("shared")["members"]}
    return str(members.get(user, "none"))


@pytest.mark.extended
def test_an_excluded_member_writes_for_nobody(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob", "carol", introduces=False) as (alice, bob, carol):
        _, branch = join(alice, bob)
        for command in ("invite", "capability"):
            refused = run_ravel(
                alice, "repo", command, "shared", code=ERROR_KINDS["bad_config"].exit_code
            ).stderr
            assert "this machine only" in refused, "others could make nothing of it"
            assert "--local" in refused
        link = run_ravel(
            alice, "repo", "invite", "--local", "shared", "--uses", "2", "--permission", "read"
        ).stdout
        carol.client.join_repo(link.strip())
        until(lambda: _held(carol, _user(carol)) == "read", "carol has joined as a reader")
        run_ravel(alice, "member", "grant", "shared", _user(carol), "write")
        until(lambda: _held(carol, _user(carol)) == "write", "carol may write")
        until(lambda: _held(bob, _user(carol)) == "write", "bob has heard of it")
        until_equal(alice, carol, branch)
        run_ravel(carol, "write", branch, "hello")
        until_equal(alice, bob, branch)

        node = alice.client.show_status()["node"]
        for peer in (bob, carol):  # away from alice, together
            peer.client.remove_peer(node)
        bob.client.add_peer(carol.listen, carol.client.show_status()["node"])
        lost = json.loads(run_ravel(bob, "write", branch, "unseen", "--json").stdout)["commit"]
        until_equal(bob, carol, branch)
        run_ravel(carol, "member", "exclude", "shared", _user(bob), "--yes", code=NOT_PERMITTED)
        run_ravel(alice, "member", "exclude", "shared", _user(bob)[:10], "--yes")
        assert "excluded" not in run_ravel(alice, "member", "list", "shared").stdout
        carol.client.add_peer(alice.listen, node)
        until(lambda: _held(carol, _user(bob)) == "none", "carol has heard of the exclusion")
        until(lambda: _held(bob, _user(bob)) == "none", "bob too")
        until_equal(alice, carol, branch)
        until_equal(bob, carol, branch)
        assert digest(alice, branch)["commits"] == 2
        (shown,) = alice.client.list_branches("shared")["branches"]
        assert (shown["commits"], shown["void"]) == (2, 1)
        assert lost in run_ravel(alice, "branch", "voids", branch).stdout
        verdict = json.loads(run_ravel(carol, "why", lost[:12], "--json").stdout)
        assert (verdict["verdict"], verdict["rule"]) == ("void", "N1")
        run_ravel(bob, "write", branch, "still here", code=NOT_PERMITTED)

        assert "1 commit counts again" in run_ravel(alice, "branch", "adopt", branch, lost).stdout
        until(lambda: digest(carol, branch)["commits"] == 3, "the adopted commit is back")
        assert until_equal(alice, carol, branch)["commits"] == 3
        shown = json.loads(run_ravel(alice, "member", "invitations", "shared", "--json").stdout)
        reader = next(item for item in shown["invitations"] if item["uses"] == 2)
        assert reader["joined"] == [_user(carol)]
        run_ravel(alice, "member", "uninvite", "shared", reader["invitation"][:8], "--yes")
        until(lambda: _held(alice, _user(carol)) == "write", "who had been seen stays")
        run_ravel(carol, "repo", "leave", "shared", "--yes")
        run_ravel(alice, "repo", "leave", "shared", "--yes", code=NOT_PERMITTED)
        until(lambda: _held(alice, _user(carol)) == "none", "carol has left")
