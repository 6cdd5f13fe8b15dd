"""Rights by commands, on three daemons: granting, excluding, void work, adopting, leaving; and why."""

import json
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import digest, join, peers, permission_of, run_ravel, until, until_equal, user_of

pytestmark = pytest.mark.slow
NOT_PERMITTED = ERROR_KINDS["not_permitted"].exit_code


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
        until(lambda: permission_of(carol, user_of(carol)) == "read", "carol has joined as a reader")
        run_ravel(alice, "member", "grant", "shared", user_of(carol), "write")
        until(lambda: permission_of(carol, user_of(carol)) == "write", "carol may write")
        until(lambda: permission_of(bob, user_of(carol)) == "write", "bob has heard of it")
        until_equal(alice, carol, branch)
        run_ravel(carol, "write", branch, "hello")
        until_equal(alice, bob, branch)

        node = alice.client.show_status()["node"]
        for peer in (bob, carol):  # away from alice, together
            peer.client.remove_peer(node)
        bob.client.add_peer(carol.listen, carol.client.show_status()["node"])
        lost = json.loads(run_ravel(bob, "write", branch, "unseen", "--json").stdout)["commit"]
        until_equal(bob, carol, branch)
        run_ravel(carol, "member", "exclude", "shared", user_of(bob), "--yes", code=NOT_PERMITTED)
        run_ravel(alice, "member", "exclude", "shared", user_of(bob)[:10], "--yes")
        assert "excluded" not in run_ravel(alice, "member", "list", "shared").stdout
        carol.client.add_peer(alice.listen, node)
        until(lambda: permission_of(carol, user_of(bob)) == "none", "carol has heard of the exclusion")
        until(lambda: permission_of(bob, user_of(bob)) == "none", "bob too")
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
        assert reader["joined"] == [user_of(carol)]
        run_ravel(alice, "member", "uninvite", "shared", reader["invitation"][:8], "--yes")
        until(lambda: permission_of(alice, user_of(carol)) == "write", "who had been seen stays")
        run_ravel(carol, "repo", "leave", "shared", "--yes")
        run_ravel(alice, "repo", "leave", "shared", "--yes", code=NOT_PERMITTED)
        until(lambda: permission_of(alice, user_of(carol)) == "none", "carol has left")
