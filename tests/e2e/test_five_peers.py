"""The longest scenario of tests/verdicts/scenarios.txt with five daemons: they part, work apart, and meet again."""

import json
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ravel.types.timelines import TimelineDigest
from tests.e2e.cluster import Peer, digest, peers, permission_of, run_ravel, until, user_of

pytestmark = [pytest.mark.slow, pytest.mark.extended]
JsonObject = dict[str, Any]


def _node(peer: Peer) -> str:
    return str(peer.client.show_status()["node"])


def _until_held(peer: Peer, user: str, permission: str) -> None:
    until(lambda: permission_of(peer, user) == permission, f"{peer.home.name} has heard of it")


def _epoch(peer: Peer) -> JsonObject:
    (current,) = [one for one in peer.client.list_epochs("shared")["epochs"] if one["current"]]
    return dict(current)


def _part(*groups: Iterable[Peer]) -> None:
    """Connect each group's peers with each other and with nobody else."""
    chosen = [tuple(group) for group in groups]
    together = {frozenset(pair) for group in chosen for pair in combinations(group, 2)}
    for first, second in combinations([peer for group in chosen for peer in group], 2):
        keys = {state["peer"] for state in first.client.list_peers()["peers"]}
        if frozenset((first, second)) in together:
            if _node(second) not in keys:
                first.client.add_peer(second.listen, _node(second))
        else:
            for one, other in ((first, second), (second, first)):
                if _node(other) in {state["peer"] for state in one.client.list_peers()["peers"]}:
                    one.client.remove_peer(_node(other))


def _until_agreed(members: list[Peer], branch: str) -> TimelineDigest:
    """Wait until they have the same timeline, epoch and members."""

    def view(peer: Peer) -> tuple[object, ...]:
        shown = peer.client.list_members("shared")["members"]
        return (
            digest(peer, branch)["digest"],
            _epoch(peer)["epoch"],
            sorted((item["user"], item["permission"]) for item in shown),
            sorted(item["commit"] for item in peer.client.list_voids(branch)["voids"]),
        )

    until(lambda: len({repr(view(peer)) for peer in members}) == 1, "all agree", 60)
    return digest(members[0], branch)


def test_five_daemons_act_out_the_longest_scenario(tmp_path: Path) -> None:
    with peers(tmp_path, "ann", "ben", "cat", "dan", "eve", introduces=False) as (ann, ben, cat, dan, eve):
        everybody = [ann, ben, cat, dan, eve]
        ann.client.create_repo("shared")
        branch = str(ann.client.list_branches("shared")["branches"][0]["branch"])
        for peer in everybody[1:]:  # one after the other: who came first is senior
            peer.client.join_repo(
                ann.client.create_invitation("shared", permission="write", expires_seconds=3600)["invitation"]
            )
            _until_held(ann, user_of(peer), "write")
        for admin in (ben, cat):
            run_ravel(ann, "member", "grant", "shared", user_of(admin), "admin")
        _part(everybody)
        for peer in everybody:
            peer.client.write_post(branch, f"hello from {peer.home.name}")
        assert _until_agreed(everybody, branch)["commits"] == 6

        _part([ann, dan], [ben], [cat, eve])
        run_ravel(ann, "member", "exclude", "shared", user_of(eve), "--yes")
        run_ravel(ben, "member", "exclude", "shared", user_of(dan), "--yes")
        run_ravel(ben, "member", "exclude", "shared", user_of(cat), "--yes")
        refused = run_ravel(cat, "member", "exclude", "shared", user_of(ben), "--yes", code=7)
        assert f"senior to {user_of(ben)[:12]}: {user_of(ann)[:12]}" in refused.stderr, (
            "ben is senior to cat, ann to ben"
        )
        for peer in (ann, ben, cat, eve):
            peer.client.write_post(branch, f"{peer.home.name}, parted")
        until(lambda: _epoch(dan)["epoch"] == _epoch(ann)["epoch"], "dan is in ann's epoch")
        unseen = str(dan.client.write_post(branch, "dan, parted")["commit"])
        until(lambda: digest(ann, branch) == digest(dan, branch), "ann and dan agree")
        until(lambda: digest(cat, branch) == digest(eve, branch), "cat and eve agree")

        _part(everybody)
        until(lambda: permission_of(ann, user_of(cat)) == "none", "ben's exclusion of cat has come")
        _until_agreed([ann, ben], branch)
        verdict = json.loads(run_ravel(ann, "why", unseen[:12], "--json").stdout)
        assert (verdict["verdict"], verdict["rule"]) == ("void", "N1")
        assert {permission_of(ann, user_of(peer)) for peer in (cat, dan, eve)} == {"none"}

        run_ravel(ann, "member", "grant", "shared", user_of(dan), "write")
        run_ravel(ann, "branch", "adopt", branch, unseen)
        ann.client.write_post(branch, "for the three of us")
        until(lambda: permission_of(dan, user_of(dan)) == "write", "dan has heard of it")
        until(lambda: bool(_epoch(dan)["epoch"] == _epoch(ann)["epoch"]), "dan has the merged epoch", 60)
        dan.client.write_post(branch, "thank you")
        agreed = _until_agreed([ann, ben, dan], branch)
        assert _epoch(ann)["readers"] == 2, "dan was let in later, and handed it"
        texts = [
            item["text"] for item in ann.client.show_timeline(branch, after_position=-1, limit=100)["items"]
        ]
        assert {"ann, parted", "ben, parted", "dan, parted", "for the three of us", "thank you"} <= set(texts)
        assert not {"cat, parted", "eve, parted"} & set(texts)
        assert agreed["commits"] == len(texts)
        for excluded in (cat, eve):
            shown = [
                item["text"]
                for item in excluded.client.show_timeline(branch, after_position=-1, limit=100)["items"]
            ]
            assert not {"for the three of us", "thank you"} & set(shown)
            current = _epoch(ann)["epoch"]
            assert current not in [
                one["epoch"] for one in excluded.client.list_epochs("shared")["epochs"] if one["open"]
            ]
