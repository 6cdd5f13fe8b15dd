"""Removed members: what they wrote unseen leaves every view, on every node alike, and comes back by adoption."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest import replica as replica_module
from node.ingest import void_recheck
from node.runtime.errors import ServiceError
from node.timelines.why import explain, list_voids
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import public_key
from protocol.formats.body import Adopt, Permission, Remove
from protocol.formats.content import Post
from protocol.formats.text import id_text
from storage.commits.heads import load_heads
from storage.engine.database import StorageError
from tests.support.machine import fail_after
from tests.support.nodes import (
    Node,
    connected,
    ids,
    meet,
    members_of,
    open_nodes,
    share,
    together,
    until_equal,
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
async def test_an_adoption_falls_with_its_author(nodes: list[Node], autojump_clock: MockClock) -> None:
    """Carol, an admin, adopts what bob wrote while alice excludes her."""
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        await members_of(alice).grant("", id_text(carol.author.user), "admin")
        bob.write(bob.branch(), "good work")
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await together(carol, bob)
        await together(alice, carol)
        (void,) = list_voids(carol.replica, carol.branch())
        await members_of(carol).adopt("main", [void["commit"]])
        assert void["commit"] in ids(carol)
        await members_of(alice).remove("", id_text(carol.author.user), "")
        await meet(alice, carol)
        for node in (alice, carol):
            assert [one["commit"] for one in list_voids(node.replica, node.branch())] == [void["commit"]]
        assert ids(alice) == ids(carol)


@pytest.mark.slow
async def test_void_work_comes_back_when_the_exclusion_is_void_itself(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Bob, an admin, excludes carol while alice excludes bob."""
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        await together(alice, bob, carol)
        carol.write(carol.branch(), "honest work")
        await members_of(bob).remove("", id_text(carol.author.user), "")
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await meet(bob, carol)
        assert len(list_voids(bob.replica, bob.branch())) == 1
        assert bob.replica.permission(bob.repo(), carol.author.user) is None
        await meet(alice, bob, carol)
        for node in nodes:
            assert list_voids(node.replica, node.branch()) == []
            assert node.replica.permission(node.repo(), carol.author.user) is Permission.WRITE
            assert node.replica.permission(node.repo(), bob.author.user) is None
        assert ids(alice) == ids(bob) == ids(carol)


@pytest.mark.slow
async def test_void_work_comes_back_when_the_exclusion_is_held_by_less(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Carol, an owner, excludes bob, an admin, while alice lowers her: it counts, and no longer reaches bob's admin."""
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        await members_of(alice).grant("", id_text(carol.author.user), "owner")
        await together(alice, bob, carol)
        bob.write(bob.branch(), "unseen")
        answer = await members_of(carol).remove("", id_text(bob.author.user), "")
        await meet(bob, carol)
        assert len(list_voids(carol.replica, carol.branch())) == 1
        assert carol.replica.permission(carol.repo(), bob.author.user) is None
        await members_of(alice).remove("", id_text(carol.author.user), "admin")
        await meet(alice, bob, carol)
        for node in nodes:
            assert list_voids(node.replica, node.branch()) == []
            assert explain(node.replica, answer["commit"])["verdict"] == "accepted", (
                "it takes what is below admin"
            )
            assert node.replica.permission(node.repo(), bob.author.user) is Permission.ADMIN
        assert ids(alice) == ids(bob) == ids(carol)


@pytest.mark.slow
async def test_what_rests_on_a_void_grant_is_void_too(nodes: list[Node], autojump_clock: MockClock) -> None:
    """Bob, an admin, lets carol write while alice excludes him."""
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob)
        repo = alice.repo()
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        await together(alice, bob)
        await carol.joiner.begin(bob.invite(bob.repo()))
        async with connected(carol, bob):
            while bob.replica.permission(repo, carol.author.user) is None:
                await bob.hub.changes.wait(bob.hub.changes.count)
            await until_equal(bob, carol)
            await until_equal(bob, carol, "root")
        carol.write(carol.branch(), "by whom?")
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await meet(alice, bob, carol)
        assert ids(alice) == ids(bob) == ids(carol)
        (void,) = list_voids(alice.replica, alice.branch())
        assert (void["rule"], void["author"]) == ("N1", id_text(carol.author.user))
        assert carol.author.user not in alice.replica.members(repo)


@pytest.mark.slow
async def test_a_backdated_leave_takes_nothing_from_others(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Bob is excluded, and then leaves as of before: what the exclusion names stays."""
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        seen = bob.replica.membership(bob.repo().repo_id).operations.heads()
        bob.write(bob.branch(), "kept")
        await together(alice, bob, carol)
        before = ids(alice)
        await members_of(alice).remove("", id_text(bob.author.user), "")
        leave = Draft(Remove(bob.author.user, None, ()), acks=seen)
        bob.author.write(bob.replica.root_branch(bob.repo()), leave)
        await meet(alice, bob, carol)
        assert ids(alice) == ids(bob) == ids(carol) == before
        assert list_voids(alice.replica, alice.branch()) == []


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
async def test_an_adoption_for_another_branch_adopts_nothing(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        other, ingested = alice.author.founding.create_branch(alice.repo(), "other")
        alice.hub.announce(ingested)
        bob.write(bob.branch(), "unseen")
        await members_of(alice).remove("", id_text(bob.author.user), "")
        with bob.replica.database.read() as connection:
            unseen = load_heads(connection, bob.branch().num, 1)[0][0]
        body = Adopt(other.branch_id, (unseen,))
        alice.hub.announce(alice.author.write(alice.replica.root_branch(alice.repo()), body)[1])
        await together(carol, bob)
        await together(alice, carol)
        assert len(list_voids(alice.replica, alice.branch())) == 1
        assert ids(alice) == ids(carol)


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
        for keeps in ("", "read"):
            with pytest.raises(ServiceError, match="last owner"):
                await members_of(alice).remove("", id_text(alice.author.user), keeps)
        with pytest.raises(ServiceError) as caught:
            await members_of(alice).remove("", id_text(public_key(UserSeed(b"s" * 32))), "")
        assert caught.value.code == "bad_request"


@pytest.mark.slow
async def test_a_forked_feed_keeps_what_the_removal_names_and_no_twin(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Bob backdates: a second commit at a place that the removal had seen taken."""
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        twin = Author(carol.replica, bob.user_seed, lambda: 1_700_000_000_000)
        for number in range(9):
            bob.write(bob.branch(), f"post {number}")
        await together(alice, bob)
        kept = ids(alice)
        await members_of(alice).remove("", id_text(bob.author.user), "")
        twin.write(carol.branch(), Post("backdated"))
        await together(alice, carol)
        assert ids(alice) == ids(carol) == kept
        assert len(list_voids(alice.replica, alice.branch())) == 1


@pytest.mark.slow
async def test_a_follower_who_is_granted_writing_gets_the_writers_secret(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob, permission=Permission.READ)
        assert bob.epoch().writers_secret is None
        await members_of(alice).grant("", id_text(bob.author.user), "write")
        async with connected(bob, alice):
            while bob.epoch().writers_secret is None:
                await bob.hub.changes.wait(bob.hub.changes.count)
        assert bob.epoch().writers_secret == alice.epoch().writers_secret
        bob.write(bob.branch(), "at last")
        await together(alice, bob)


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
async def test_a_revoked_invitation_admits_nobody_who_was_not_seen(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        repo, _ = alice.create_repo()
        link = alice.invite(repo, uses=2)
        await bob.joiner.begin(link)
        await carol.joiner.begin(link)
        async with connected(bob, alice):
            while alice.replica.permission(repo, bob.author.user) is None:
                await alice.hub.changes.wait(alice.hub.changes.count)
        (shown,) = (await members_of(alice).invitations(""))["invitations"]
        assert (shown["joined"], shown["uses"], shown["revoked"]) == ([id_text(bob.author.user)], 2, False)
        await members_of(alice).revoke_invitation("", shown["invitation"])
        async with connected(carol, bob):  # bob has not heard of it
            while bob.replica.permission(repo, carol.author.user) is None:
                await bob.hub.changes.wait(bob.hub.changes.count)
        await together(alice, bob, carol)
        for node in nodes:
            assert set(node.replica.members(repo)) == {alice.author.user, bob.author.user}
        assert (await members_of(bob).invitations(""))["invitations"][0]["revoked"]


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
