"""What a repo's standing says, compared with what is true, and a link that makes no member any more."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from node.observe.sentences import standing_sentence
from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import Peer, peers, run_ravel, until

pytestmark = pytest.mark.slow


def _standing(peer: Peer) -> dict[str, Any]:
    listed = json.loads(run_ravel(peer, "repo", "list", "--json").stdout)
    (found,) = (one["standing"] for one in listed["repos"] if one["name"] == "notes")
    return dict(found)


def _is_cut_off(peer: Peer) -> bool:
    return bool(_standing(peer)["state"] == "cut_off")


@pytest.mark.extended
def test_a_used_link_makes_no_reader_in_silence_and_an_exclusion_is_told(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob", "carol", introduces=False) as (alice, bob, carol):
        alice.client.create_repo("notes")
        assert _standing(alice)["state"] == "alone"
        link = run_ravel(alice, "repo", "invite", "--local", "notes").stdout
        run_ravel(bob, "repo", "join", "-", stdin=link)
        until(lambda: _standing(alice)["state"] == "in_sync", "alice and bob hold the same")
        assert _standing(alice)["unheld"] == 0
        assert bob.client.show_status()["node"] in _standing(alice)["in_sync_with"]

        used = ERROR_KINDS["expired"].exit_code
        refused = run_ravel(carol, "repo", "join", "-", "--json", stdin=link, code=used).stdout
        assert "it has been used up" in json.loads(refused)["error"]["message"]
        assert "--follow" in json.loads(refused)["error"]["next"]
        assert not carol.client.list_repos()["repos"], "nothing is read that nobody asked for"
        shown = run_ravel(carol, "repo", "join", "-", "--follow", stdin=link).stdout
        assert "reading the repo without being a member" in shown

        run_ravel(alice, "member", "exclude", "notes", bob.client.show_status()["user"], "--yes")
        for peer in (bob, carol):
            until(partial(_is_cut_off, peer), "it is told that it is cut off")
            told = json.loads(run_ravel(peer, "repo", "sync", "notes", "--json").stdout)
            assert told["standing"]["state"] == "cut_off"
            assert told["standing"]["behind_since"] is not None
            assert "cut off since 20" in standing_sentence(told["standing"])
        run_ravel(alice, "write", "main", "without both")
        until(lambda: _standing(alice)["state"] == "not_shared", "nobody has what follows")
        assert _standing(alice)["unheld"] > 0
        unsynced = ERROR_KINDS["incomplete"].exit_code
        run_ravel(alice, "repo", "sync", "notes", "--timeout", "0", code=unsynced)
        told = json.loads(run_ravel(alice, "status", "--json").stdout)["standings"]
        assert [one["state"] for one in told] == ["not_shared"]


def test_a_repo_is_deleted_where_another_node_holds_it(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob", introduces=False) as (alice, bob):
        alice.client.create_repo("notes")
        run_ravel(alice, "write", "main", "the only copy")
        refused = run_ravel(
            alice, "repo", "forget", "notes", "--yes", code=ERROR_KINDS["last_copy"].exit_code
        ).stderr
        assert "--accept-loss" in refused
        link = run_ravel(alice, "repo", "invite", "notes", "--local").stdout
        run_ravel(bob, "repo", "join", "-", stdin=link)
        until(lambda: _standing(alice)["state"] == "in_sync", "alice and bob hold the same")
        run_ravel(bob, "repo", "forget", "notes", "--yes")
        assert bob.client.list_repos()["repos"] == []
        run_ravel(bob, "repo", "forget", "notes", "--yes", code=ERROR_KINDS["not_found"].exit_code)
        run_ravel(alice, "write", "main", "without bob")
        run_ravel(alice, "repo", "forget", "notes", "--yes", code=ERROR_KINDS["last_copy"].exit_code)
        run_ravel(alice, "repo", "forget", "notes", "--yes", "--accept-loss")
        assert alice.client.list_repos()["repos"] == []
        alice.client.create_repo("notes")
        run_ravel(alice, "write", "main", "in a repo of the same name")
