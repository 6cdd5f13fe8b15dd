"""Removed members: what they wrote unseen leaves every view, on every node alike, and comes back by adoption."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.ingest import replica as replica_module
from node.ingest import void_recheck
from node.runtime.errors import ServiceError
from node.timelines.why import explain, list_voids
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import public_key
from protocol.formats.body import Permission, Remove
from protocol.formats.text import id_text
from protocol.ids import CommitId, UserId
from storage.commits.void_marks import has_forks, load_seen
from storage.engine.database import StorageError
from tests.support.machine import fail_after
from tests.support.nodes import (
    Node,
    ids,
    meet,
    members_of,
    open_nodes,
    share,
    together,
)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


@pytest.mark.slow
async def test_what_the_excluded_wrote_unseen_is_void_everywhere(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        bob.write(bob.branch(), "seen by all")
        await together(alice, bob, carol)
        seen = ids(alice)
        bob.write(bob.branch(), "unseen")
        await together(carol, bob)
        assert len(ids(carol)) == len(seen) + 1
        answer = await members_of(alice).remove("", id_text(bob.author.user), "")
        assert answer["voided"] == 0, "alice has nothing to void yet"
        assert alice.repo().name
        await together(alice, carol)
        assert ids(alice) == ids(carol) == seen
        (void,) = list_voids(carol.replica, carol.branch())
        assert (void["rule"], void["author"]) == ("N1", id_text(bob.author.user))
        verdict = explain(alice.replica, void["commit"])
        assert (verdict["verdict"], verdict["by"]) == ("void", [answer["commit"]])
        await meet(bob, carol)
        assert ids(bob) == seen, "the excluded is told, and agrees"
        with pytest.raises(ServiceError, match="M5"):
            bob.write(bob.branch(), "still here")


@pytest.mark.slow
async def test_void_work_is_adopted_and_counts_again(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        bob.write(bob.branch(), "good work")
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await together(carol, bob)
        await together(alice, carol)
        (void,) = list_voids(alice.replica, alice.branch())
        with pytest.raises(ServiceError, match="needs the permission admin"):
            await members_of(carol).adopt("main", [void["commit"]])
        assert (await members_of(alice).adopt("main", [void["commit"][:8]]))["voided"] == 1
        assert void["commit"] in ids(alice)
        await together(alice, carol)
        assert ids(alice) == ids(carol)
        assert list_voids(carol.replica, carol.branch()) == []
        assert explain(carol.replica, void["commit"])["verdict"] == "accepted"


@pytest.mark.slow
async def test_an_exclusion_ends_the_invitations_of_the_excluded(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        alice.invite(alice.repo())
        await members_of(alice).remove("", id_text(bob.author.user), "")
        shown = (await members_of(alice).invitations(""))["invitations"]
        assert {bool(item["joined"]): item["revoked"] for item in shown} == {True: True, False: False}


@pytest.mark.slow
async def test_a_store_that_fails_while_a_change_is_undone_loses_nothing(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        members = alice.replica.members(alice.repo())
        root = alice.replica.root_branch(alice.repo())

        def fail(_connection: object, _written: object) -> None:
            raise StorageError("disk full")

        with pytest.raises(StorageError), monkeypatch.context() as patch:
            patch.setattr(replica_module, "load_blocks_of", fail)
            alice.author.write_many(root, lambda _: [Draft(Remove(bob.author.user, None, ()))], fail)
        assert alice.replica.members(alice.repo()) == members
        alice.write(alice.branch(), "goes on")


async def test_the_last_owner_is_not_removed_by_any_command(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, _ = nodes
    with fail_after(120):
        alice.create_repo()
        for keeps, refusal in (("", "that is this computer"), ("read", "last owner")):
            with pytest.raises(ServiceError, match=refusal):
                await members_of(alice).remove("", id_text(alice.author.user), keeps)
        with pytest.raises(ServiceError) as caught:
            await members_of(alice).remove("", id_text(public_key(UserSeed(b"s" * 32))), "")
        assert caught.value.code == "bad_request"


@pytest.mark.slow
async def test_demoted_members_read_on_and_the_last_owner_does_not_leave_by_accident(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob)
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        await together(alice, bob)
        assert bob.replica.permission(bob.repo(), bob.author.user) is Permission.READ
        with pytest.raises(ServiceError, match="M5"):
            bob.write(bob.branch(), "no more")
        with pytest.raises(ServiceError, match="last owner"):
            await members_of(alice).leave("", force=False)
        await members_of(bob).leave("", force=False)
        await together(alice, bob)
        await members_of(alice).leave("", force=True)
        assert alice.replica.members(alice.repo()) == {}


@pytest.mark.slow
async def test_nothing_that_who_leaves_wrote_is_looked_at_again(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A member may leave any number of times at once, and to look at all of its commits takes as long as there are many.
    alice, bob, _ = nodes
    looked_at: list[object] = []
    with fail_after(120):
        await share(alice, bob)
        bob.write(bob.branch(), "what stays")
        await together(alice, bob)
        before = ids(alice)

        def note(*arguments: object) -> tuple[()]:
            looked_at.append(arguments)
            return ()

        monkeypatch.setattr(void_recheck, "load_judged_by", note)
        root = bob.replica.root_branch(bob.repo())
        bob.author.write(root, Remove(bob.author.user, None, ()))
        await together(alice, bob)
        assert set(alice.replica.members(alice.repo())) == {alice.author.user}
        assert ids(alice) == before
        assert looked_at == []


@pytest.mark.slow
async def test_new_commits_of_a_repo_with_removals_are_judged_without_being_read_again(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once somebody was removed each new commit is looked at, as long as the repo lives."""
    alice, bob, carol = nodes
    read: list[object] = []

    def note(connection: Connection, place_num: int) -> tuple[CommitId, ...]:
        read.append(place_num)
        return load_seen(connection, place_num)

    monkeypatch.setattr(void_recheck, "load_seen", note)
    with fail_after(120):
        await share(alice, bob, carol)
        await members_of(alice).remove("", id_text(carol.author.user), "")
        await together(alice, bob)
        read.clear()
        for number in range(10):
            bob.write(bob.branch(), f"{number}")
        await together(alice, bob)
        assert ids(alice) == ids(bob)
        assert read == []


@pytest.mark.slow
async def test_an_exclusion_that_names_nothing_of_a_member_loads_once_what_many_posts_follow(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their headers are not read again: a row says what its commit follows."""
    alice, bob, carol = nodes
    read: list[object] = []

    def note(connection: Connection, place_num: int) -> tuple[CommitId, ...]:
        read.append(place_num)
        return load_seen(connection, place_num)

    with fail_after(120):
        await share(alice, bob, carol)
        for number in range(8):
            bob.write(bob.branch(), f"unseen {number}")
        await together(carol, bob)
        await members_of(alice).remove("", id_text(bob.author.user), "")
        monkeypatch.setattr(void_recheck, "load_seen", note)
        await together(alice, carol)
        assert len(list_voids(carol.replica, carol.branch())) == 8
    assert 1 <= len(read) <= 2, "once on each of both nodes"


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 16])
async def test_an_exclusion_that_names_all_of_a_member_reads_nothing_of_it_again(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """In a community of years most authors were excluded, and each commit of theirs is looked at for that."""
    alice, bob, carol = nodes
    read: list[object] = []
    asked: list[object] = []

    def note(connection: Connection, place_num: int) -> tuple[CommitId, ...]:
        read.append(place_num)
        return load_seen(connection, place_num)

    def note_forks(connection: Connection, branch_num: int, author: UserId, last: int) -> bool:
        asked.append(author)
        return has_forks(connection, branch_num, author, last)

    with fail_after(120):
        await share(alice, bob, carol)
        for number in range(count):
            carol.write(carol.branch(), f"{number}")
        await together(alice, carol)
        monkeypatch.setattr(void_recheck, "load_seen", note)
        monkeypatch.setattr(void_recheck, "has_forks", note_forks)
        await members_of(alice).remove("", id_text(carol.author.user), "")  # after what it names
        await together(alice, bob)  # to bob it comes before that
        assert len(ids(alice)) == count + 1
        assert ids(alice) == ids(bob)
    assert read == []
    assert len(asked) <= 2, "whatever the count"
