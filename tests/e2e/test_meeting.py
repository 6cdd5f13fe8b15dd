"""Daemons that find one another: by a common acquaintance, after a move, on the local network."""

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from node.authoring.author import Author
from node.care.fsck import check_store
from node.home.config import CONFIG_NAME
from node.home.config_editing import set_key
from node.home.identity import open_keys
from node.ingest.replica import Replica
from node.observe.watching import store_sizes
from node.runtime.clock import now_ms
from protocol.formats.content import Post
from ravel.types.node import StoreBound
from ravel.types.peers import PeerView
from storage.repos.repos import DAY_MS
from tests.e2e.cluster import ANY_PORT, Peer, peers, run_ravel, until, until_equal
from tests.support.keys import no_passphrase
from tests.support.multicast import need_multicast

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def _node(peer: Peer) -> str:
    return str(peer.client.show_status()["node"])


def _met(peer: Peer, other: str) -> list[PeerView]:
    """Connections with a node."""
    listed = peer.client.list_peers()["peers"]
    return [one for one in listed if one["peer"] == other and one["state"] == "connected"]


def test_two_members_meet_by_a_third_and_meet_again_after_a_move(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo = bob.client.create_repo("shared")["repo"]
        branch = bob.client.list_branches(repo)["branches"][0]["branch"]
        # Made before either has joined: a link names anyone who is connected.
        links = [
            bob.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
            for _ in range(2)
        ]
        for peer, link in zip((alice, carol), links, strict=True):
            peer.client.join_repo(link)
        moving, staying = _node(carol), _node(alice)
        until(lambda: bool(_met(alice, moving)), "alice and carol are connected")
        carol.stop()
        until(lambda: not _met(alice, moving), "alice has noticed")
        carol.start("--listen", ANY_PORT)
        until(lambda: bool(_met(alice, moving)), "alice and carol are connected again")
        sources = {one["source"] for one in [*_met(alice, moving), *_met(carol, staying)]}
        assert sources == {"introduction", "incoming"}
        assert (
            "introduction"
            in run_ravel(alice, "peer", "list").stdout + run_ravel(carol, "peer", "list").stdout
        )
        bob.stop()
        until(lambda: carol.client.list_repos()["repos"][0]["permission"] == "write", "carol is a member")
        carol.client.write_post(branch, "without bob")
        until_equal(alice, carol, branch)


def test_old_posts_are_given_up_to_a_member_who_was_met_by_a_third(tmp_path: Path) -> None:
    """Members' nodes tell whose they are, with or without a name; unknown ones are not relied on."""
    alice, bob, carol = made = [Peer(tmp_path / name) for name in ("alice", "bob", "carol")]
    _write_long_ago(bob.home, "of long ago")
    try:
        for peer in made:
            peer.start()
        [repo] = [one["repo"] for one in bob.client.list_repos()["repos"]]
        branch = bob.client.list_branches(repo)["branches"][0]["branch"]
        links = [
            bob.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
            for _ in range(2)
        ]
        for peer, link in zip((alice, carol), links, strict=True):
            peer.client.join_repo(link)
        until(lambda: any(one["owner"] for one in _met(carol, _node(alice))), "carol knows alice's node")
        for peer in (alice, carol):
            until_equal(peer, bob, branch)
            until(partial(_has_old_post, peer, repo), "it has the contents too")
        bob.stop()
        carol.client.set_keeping(repo, branches=None, last_days=90)
        until(lambda: carol.client.show_keeping(repo)["older_absent"] == 1, "carol has given it up")
        assert _has_old_post(alice, repo)
        until(lambda: "of long ago" in run_ravel(carol, "log", branch).stdout, "alice has sent it again")
    finally:
        for peer in made:
            peer.close()


def test_a_store_stays_under_its_bound_and_what_left_comes_again(tmp_path: Path) -> None:
    """Also where it is killed while contents leave: what left is at the other, and the rest is whole."""
    bob, carol = made = [Peer(tmp_path / name) for name in ("bob", "carol")]
    _write_long_ago(bob.home, *(f"{number} " + os.urandom(40_000).hex() for number in range(60)))
    set_key(carol.home / CONFIG_NAME, "storage.size_max", "3")
    try:
        for peer in made:
            peer.start()
        [repo] = [one["repo"] for one in bob.client.list_repos()["repos"]]
        branch = bob.client.list_branches(repo)["branches"][0]["branch"]
        link = bob.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        carol.client.join_repo(link)
        until_equal(carol, bob, branch)
        carol.client.write_post(branch, "of carol")

        def look(is_so: Callable[[StoreBound], bool]) -> bool:
            """Have the daemon look at its store now, and wait for what comes of it for some seconds."""
            carol.client.set_keeping(repo, branches=None)
            bound = carol.client.show_status()["storage_bound"]
            assert bound is not None
            return is_so(bound)

        def start_again() -> None:
            carol.kill()
            assert check_store(carol.home, open_keys(carol.home, no_passphrase).store_key).problems == []
            carol.start()

        def meet() -> bool:
            """Have the daemon look, unless it gives something up: a further look would end that one. Gives False."""
            bound = carol.client.show_status()["storage_bound"]
            assert bound is not None
            return bound["state"] != "giving_up" and look(lambda _: False)

        def absent() -> int:
            return carol.client.show_keeping(repo)["older_absent"]

        until(lambda: look(lambda bound: bound["days"] == 180), "posts of 180 days are kept")
        start_again()
        until(lambda: absent() > 0 or meet(), "they leave")
        start_again()
        until(
            lambda: look(lambda bound: bound["state"] == "under" and bound["size"] < 3 << 20), "it is small"
        )
        items = carol.client.show_timeline(branch, limit=100)["items"]
        texts = [one["text"] for one in items if one["kind"] == "post"]
        assert len(texts) == 61
        assert all(texts), "bob has sent again what had left"
        carol.stop()
        sizes = store_sizes(carol.home)
        assert sizes["database"] + sizes["packs"] < 8 << 20
        carol.start()
        assert carol.client.show_keeping(repo)["bound_days"] == 180, "so a start tells peers the same"
    finally:
        for peer in made:
            peer.close()


def _has_old_post(peer: Peer, repo: str) -> bool:
    return peer.client.show_keeping(repo, last_days=90)["older_here"] == 1


def _write_long_ago(home: Path, *texts: str) -> None:
    """Have a node found a repo and write posts in it, while its clock is 200 days late."""
    keys = open_keys(home, no_passphrase)
    replica = Replica(home, keys.store_key)
    clock = count(now_ms() - 200 * DAY_MS)
    author = Author(replica, keys.user_seed, lambda: next(clock))
    repo, _ = author.founding.create_repo("shared")
    branch, _ = author.founding.create_branch(repo, "main")
    for text in texts:
        author.write(branch, Post(text))
    replica.close()


def test_a_peer_is_found_on_the_local_network_at_another_address_than_was_said(tmp_path: Path) -> None:
    need_multicast()
    alice, bob = (Peer(tmp_path / name) for name in ("alice", "bob"))
    try:
        for peer in (alice, bob):
            peer.start("--set", "network.discover_lan=true")
        # Port 9 (discard) of this machine, where nothing answers.
        alice.client.add_peer("127.0.0.1:9", _node(bob))
        until(lambda: bool(_met(alice, _node(bob))), "alice has found bob")
        assert [one["source"] for one in _met(alice, _node(bob))] == ["lan"]
        assert bob.stop() == 0
        assert alice.stop() == 0
    finally:
        for peer in (alice, bob):
            peer.close()
