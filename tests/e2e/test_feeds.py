"""A folder that was put back from a copy asks a peer before it writes. Who accepts the loss forks the feed: all see it."""

import json
import shutil
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import digest, join, peers, run_ravel, until, until_equal

pytestmark = pytest.mark.slow


@pytest.mark.extended
def test_a_forked_feed_is_shown_with_its_evidence(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        until(lambda: bool(bob.client.list_repos()["repos"][0]["permission"] == "write"), "bob is a member")
        bob.stop()
        shutil.copytree(bob.home, tmp_path / "backup")
        bob.start()
        first = bob.client.write_post(branch, "before the disk broke")["commit"]
        until_equal(alice, bob, branch)
        assert "1\t1\t0" in run_ravel(bob, "feed", "check", branch).stdout
        alice.stop()
        bob.stop()
        assert (bob.home / "folder-mark").read_text().split()[2:] == ["store"], (
            "it is no new folder from now on"
        )
        shutil.rmtree(bob.home)
        shutil.copytree(tmp_path / "backup", bob.home)
        bob.start()
        refused = run_ravel(bob, "write", branch, "too soon", code=ERROR_KINDS["feed_uncertain"].exit_code)
        assert "this folder is a copy" in refused.stderr
        bob.stop()
        run_ravel(bob, "fsck", "--accept-loss")
        bob.start()
        second = bob.client.write_post(branch, "after it was replaced")["commit"]
        alice.start()
        until_equal(alice, bob, branch)
        assert digest(alice, branch)["commits"] == 3
        for peer in (alice, bob):
            code = ERROR_KINDS["feed_forked"].exit_code
            answer = json.loads(run_ravel(peer, "feed", "check", branch, "--json", code=code).stdout)
            user = bob.client.show_status()["user"]
            assert answer["fork_count"] == 1
            (fork,) = answer["forks"]
            assert (fork["author"], fork["sequence"], fork["commit_count"]) == (user, 1, 2)
            assert set(fork["commits"]) == {first, second}
            assert {feed["author"]: feed["forks"] for feed in answer["feeds"]}[user] == 1
            if peer is bob:  # who is told of forks of its own feeds, and of no others' there
                assert "1 place of your feed was used twice" in run_ravel(bob, "status").stdout
                assert "1 place of your feed used twice" in run_ravel(bob, "doctor").stdout
            else:
                assert "used twice" not in run_ravel(peer, "status").stdout
            shown = run_ravel(peer, "feed", "check", branch, code=code).stdout
            assert f"{user}\t1\t{first}" in shown
            assert f"{user}\t1\t{second}" in shown
