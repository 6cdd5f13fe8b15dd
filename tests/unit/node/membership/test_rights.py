"""Check of the caller's own right, which comes first, with advice for a caller who lacks it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.authoring.refusals import refuse
from node.membership.members import Members, find_user
from node.runtime.errors import ServiceError
from protocol.formats.body import Remove
from protocol.formats.text import id_text
from protocol.ids import AnyId, BlockId, CommitId, RepoId, UserId
from storage.repos.repos import Repo
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, members_of, open_nodes, share, together, until_equal
from verifier.verify import Rejected

Action = Callable[[Members, str], Awaitable[object]]
ACTIONS: dict[str, tuple[Action, str]] = {
    "granting admin": (lambda members, owner: members.grant("repo", owner, "admin"), "admin"),
    "granting owner": (lambda members, owner: members.grant("repo", owner, "owner"), "owner"),
    "revoking an invitation": (lambda members, _: members.revoke_invitation("repo", "abcd"), "admin"),
    "adopting commits": (lambda members, _: members.adopt("main", ["abcd"]), "admin"),
}
"""What is done -> how, and the permission that it needs."""


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.slow
async def test_a_writer_is_told_which_right_is_lacking(tmp_path: Path, name: str) -> None:
    action, needed = ACTIONS[name]
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        owner = id_text(alice.author.user)
        with pytest.raises(ServiceError) as caught:
            await action(members_of(bob), owner)
        assert caught.value.code == "not_permitted"
        assert caught.value.message == f"{name} needs the permission {needed}, and you hold write in repo"
        assert "ravel member list" in caught.value.advice


@pytest.mark.slow
async def test_a_reader_is_told_which_right_a_removal_needs(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await members_of(alice).remove("repo", _user(bob), "read")
        await together(alice, bob)
        for keeps, doing in (("", "excluding a member"), ("read", "lowering a member's permission")):
            with pytest.raises(ServiceError) as caught:
                await members_of(bob).remove("repo", _user(alice), keeps)
            assert caught.value.message == f"{doing} needs the permission write, and you hold read in repo"


@pytest.mark.slow
async def test_who_may_remove_a_member_is_named(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Bob and carol became admins one after the other; dave writes. Nobody is senior to who founded the repo."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol", "dave") as (alice, bob, carol, dave):
        nodes = (alice, bob, carol, dave)
        await share(*nodes)
        for node in (bob, carol):
            await members_of(alice).grant("repo", _user(node), "admin")
        await together(*nodes)
        petnames = {AnyId(node.author.user): name for node, name in zip(nodes, "abcd", strict=True)}
        for node in nodes:
            node.replica.people.set_petnames(petnames, {})

        async def advice(node: Node, user: Node, keeps: str = "") -> str:
            with pytest.raises(ServiceError, match="you are not senior to") as caught:
                await members_of(node).remove("repo", _user(user), keeps)
            assert caught.value.code == "not_permitted"
            return caught.value.advice

        assert await advice(carol, bob) == "senior to b: a; ask one of them"
        assert await advice(carol, bob, "write") == "senior to b: a; ask one of them"
        assert set((await advice(dave, carol)).removeprefix("senior to c: ").split(";")[0].split(", ")) == {
            "a",
            "b",
        }
        # Without a command: who reads this and ran it would leave in place of the other.
        assert await advice(bob, alice) == "nobody is senior to a, who alone can leave"
        with pytest.raises(ServiceError, match="that is this computer"):
            await members_of(alice).remove("repo", _user(alice), "")
        with pytest.raises(ServiceError) as caught:  # written without having asked before
            carol.author.write(carol.replica.root_branch(carol.repo()), Remove(bob.author.user, None, ()))
        assert caught.value.advice == "senior to b: a; ask one of them"
        await members_of(bob).remove("repo", _user(carol), "")


@pytest.mark.slow
async def test_what_the_rules_refuse_names_who_can_help(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        user = _user(bob)
        with pytest.raises(ServiceError, match="M2") as caught:
            bob.author.founding.create_branch(bob.repo(), "more", is_unique=True)
        assert f"ravel member grant REPO {user} PERMISSION" in caught.value.advice


def test_who_is_called_by_a_part_of_the_name_is_named() -> None:
    people: Any = SimpleNamespace(
        find=lambda *_: None,
        stated=lambda _: {},
        petname=lambda _: None,
        name=lambda *_: "Ben Müller",
        heir=lambda *_: None,
    )
    replica: Any = SimpleNamespace(members=lambda _: {UserId(bytes(32)): 1}, people=people)
    repo: Any = SimpleNamespace(repo_id=None)
    with pytest.raises(ServiceError, match=r"nobody here is called 'ben'; did you mean 'Ben Müller'\?"):
        find_user("ben", replica, repo, advice="ask for the id")
    with pytest.raises(ServiceError, match=r"no member is called 'ben'; did you mean 'Ben Müller'\?"):
        find_user("ben", replica, repo)
    refused = refuse(
        people,
        RepoId(bytes(32)),
        UserId(bytes(32)),
        Rejected(CommitId(BlockId(bytes(32))), "not_permitted", "M2: no"),
    )
    assert "ravel member grant REPO 'Ben Müller' PERMISSION" in refused.advice


def _user(node: Node) -> str:
    return id_text(node.author.user)


@pytest.mark.slow
async def test_who_waits_for_a_join_hears_at_once_that_it_is_refused(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo, _ = alice.create_repo()
        link = alice.invite(repo)
        await bob.joiner.begin(link)
        await together(alice, bob)
        told, forget = list[bool](), carol.joiner._forget_link

        def note(repo: Repo) -> None:
            told.append(bool(carol.joiner.refused))
            forget(repo)

        monkeypatch.setattr(carol.joiner, "_forget_link", note)
        await carol.joiner.begin(link)
        async with connected(carol, alice):
            await until_equal(alice, carol, "root")
            await carol.joiner.begin(link)  # nothing but the refusal is to come
            with trio.move_on_after(20) as scope:
                while True:
                    count = carol.hub.changes.count
                    if carol.joiner.refused:
                        break
                    await carol.hub.changes.wait(count)
            assert not scope.cancelled_caught
        assert set(told) == {False}, "the repo would be shown as one that is still being joined"
