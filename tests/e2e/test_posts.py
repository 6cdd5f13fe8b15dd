"""Replies, mentions, edits, deletions and hiding by commands, on two daemons."""

import json
import re
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import Peer, join, peers, run_ravel, until, until_equal

pytestmark = pytest.mark.slow


def _log(peer: Peer, branch: str) -> list[str]:
    """The last column of the log, without the branch's root."""
    return [line.split("\t")[-1] for line in run_ravel(peer, "log", branch).stdout.splitlines()[2:]]


def _do(peer: Peer, *command: str) -> str:
    """A command that writes a commit; its id."""
    return str(json.loads(run_ravel(peer, *command, "--json").stdout)["commit"])


def test_people_talk_edit_and_delete(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        run_ravel(alice, "me", "--name", "Ann")
        run_ravel(bob, "me", "--name", "Ben Two")
        _, branch = join(alice, bob)
        user = str(bob.client.show_status()["user"])

        def is_named() -> bool:
            members = alice.client.list_members("shared")["members"]
            return any(one["user"] == user and one["name"] for one in members)

        until(is_named, "alice sees bob's name")
        post = _do(alice, "write", branch, "lunch, @[Ben Two]?")
        until_equal(alice, bob, branch)
        run_ravel(bob, "name", str(alice.client.show_status()["user"]), "Annie")
        reply = _do(bob, "reply", post[:12], "yes, @Annie")
        edit = _do(alice, "edit", post, "lunch at one, @[Ben Two]?")
        until_equal(alice, bob, branch)
        assert set(_log(alice, branch)) == {
            "lunch at one, @Ben Two? (edited)",
            f"(edits {post[:12]}): lunch at one, @Ben Two?",
            f"re Ann [{post[:12]}]: yes, @Ann",
        }
        assert f"re Annie [{post[:12]}]: yes, @Annie" in _log(bob, branch), "each sees the name that he knows"
        history = run_ravel(bob, "post", "history", post).stdout
        assert re.search(rf"{post}\t.*\toriginal\tlunch, @Ben Two\?\n", history)
        assert re.search(rf"{edit}\t.*\tedit\tlunch at one, @Ben Two\?\n", history)
        thread = run_ravel(bob, "post", "thread", reply).stdout
        assert [line.split("\t")[0] for line in thread.splitlines()[1:]] == [post, reply]

        denied = ERROR_KINDS["not_permitted"].exit_code
        for command in (("edit", post, "mine"), ("delete", post, "--yes"), ("post", "hide", post)):
            refused = run_ravel(bob, *command, code=denied)
            assert "next:" in refused.stderr
        run_ravel(alice, "post", "hide", reply)
        run_ravel(alice, "delete", post, "--yes")
        until(lambda: "(deleted by its author)" in _log(bob, branch), "bob sees that it was deleted")
        until(
            lambda: f"re Annie [{post[:12]}, deleted]: (hidden by Annie)" in _log(bob, branch),
            "bob sees that it was hidden",
        )
        assert (
            run_ravel(alice, "log", branch, "--digest").stdout
            == run_ravel(bob, "log", branch, "--digest").stdout
        )
        letter = run_ravel(
            alice, "write", branch, "-", "--whole", "--json", stdin="dear Ben,\n\nsee you\n"
        ).stdout
        assert alice.client.show_commit(json.loads(letter)["commit"])["text"] == "dear Ben,\n\nsee you"
        run_ravel(alice, "post", "unhide", reply)
        assert f"re Ann [{post[:12]}, deleted]: yes, @Ann" in _log(alice, branch)

        for name in ("plan.txt", "beds.csv"):
            (tmp_path / name).write_text(name)
        files = [f"--file={tmp_path / name}" for name in ("plan.txt", "beds.csv")]
        rows = len(_log(bob, branch))
        sent = _do(bob, "reply", reply, "the plan", *files)
        assert len(_log(bob, branch)) == rows + 1, "a message with its files is one row"
        assert "the plan [plan.txt (8 bytes), beds.csv" in _log(bob, branch)[-1]
        run_ravel(bob, "delete", sent, "--yes")
        assert bob.client.list_files(branch)["files"] == []
        watched = bob.client.follow_edits(branch)["edits"]
        assert {one["item"].get("deletes") for one in watched if "item" in one} == {None, post, sent}
