"""Names by commands, on two daemons: stated, seen by the other, overridden by petnames, marked, and used as arguments."""

import json
import re
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import Peer, join, peers, run_ravel, until, until_equal, user_of

pytestmark = pytest.mark.slow
LIKE_ANN = "\u0410nn"  # with a Cyrillic A


def _names(peer: Peer) -> dict[str, str]:
    """What members are called on a node, by id."""
    return {item["user"]: item["name"] for item in peer.client.list_members("shared")["members"]}


def test_people_are_seen_and_meant_by_their_names(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        run_ravel(alice, "me", "--name", "Ann", "--color", "3")  # before there is any repo
        _, branch = join(alice, bob)
        ann, ben = user_of(alice), user_of(bob)
        until(lambda: _names(bob).get(ann) == "Ann", "bob sees the name that alice states")
        run_ravel(alice, "write", branch, "hello")
        until_equal(alice, bob, branch)
        assert re.search(r"\tAnn\thello$", run_ravel(bob, "log", branch).stdout, re.MULTILINE)
        assert f"{ann}\towner\t\tAnn\n" in run_ravel(bob, "member", "list", "shared").stdout
        came = run_ravel(bob, "member", "list", "shared", "--verbose").stdout
        assert re.search(r"\tAnn\tfounded it$", came, re.MULTILINE), came
        assert re.search(r"\tinvited by Ann, ", came), came

        run_ravel(bob, "name", ann, "Ann from work")
        assert re.search(r"\tAnn from work\thello$", run_ravel(bob, "log", branch).stdout, re.MULTILINE)
        assert _names(alice)[ann] == "Ann", "a petname stays on its node"
        assert "Ann from work" not in (bob.home / "daemon.log").read_text()
        run_ravel(bob, "name", "Ann from work", "--remove")

        run_ravel(bob, "me", "--name", LIKE_ANN)
        until(lambda: _names(alice).get(ben, "") == f"{LIKE_ANN} [{ben[:8]}]", "the look-alike is marked")
        assert _names(alice)[ann] == f"Ann [{ann[:8]}]"
        refused = run_ravel(
            alice, "member", "grant", "shared", "Ann", "admin", code=ERROR_KINDS["ambiguous"].exit_code
        )
        assert ann[:8] in refused.stderr
        assert ben[:8] in refused.stderr
        run_ravel(alice, "name", ben, "Ben")
        run_ravel(alice, "member", "grant", "shared", "ben", "manage")
        held = {item["user"]: item["permission"] for item in alice.client.list_members("shared")["members"]}
        assert held[ben] == "manage"
        commit = json.loads(run_ravel(bob, "write", branch, "again", "--json").stdout)["commit"]
        until_equal(alice, bob, branch)
        verdict = json.loads(run_ravel(alice, "why", commit, "--json").stdout)
        assert (verdict["author"], verdict["author_name"]) == (ben, "Ben")
        assert "Ann made its author a member with the permission manage" in verdict["reason"]

        alice.stop()
        alice.start()
        assert _names(alice)[ben] == "Ben", "petnames are there after a start"
        until(lambda: "Members see it in" in run_ravel(bob, "me").stdout, "what bob calls itself is stated")
