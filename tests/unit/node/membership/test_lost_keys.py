"""Steps that docs/communities gives: after a disk was lost, with several devices, when a key is not one's own any more."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.runtime.errors import ServiceError
from node.sync.feed_recovery import FeedRecovery
from protocol.formats.body import Permission
from protocol.formats.text import id_text
from storage.commits.feeds import load_feed_forks
from storage.engine.losses import note_cause
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
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


def _restored(folder: Path, lost: Node) -> Node:
    """Return the lost node's user on a new node, which has nothing but the user's key."""
    lost.replica.close()
    again = Node(folder / "again", "again")
    again.user_seed = lost.user_seed
    again.replica.close()
    note_cause(folder / "again", "recovered")  # as `ravel init --words` does
    again.open()
    assert again.key != lost.key
    assert again.author.user == lost.author.user
    return again


def _fork_count(node: Node) -> int:
    with node.replica.database.read() as connection:
        return sum(
            len(load_feed_forks(connection, branch.num, place_limit=9, commit_limit=9))
            for branch in node.replica.branches.values()
        )


@pytest.mark.slow
async def test_who_lost_a_disk_comes_back_by_an_invitation(
    tmp_path: Path, nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        bob.write(bob.branch(), "before")
        await together(alice, bob)
        members = alice.replica.members(alice.repo())
        again = _restored(tmp_path, bob)
        await again.joiner.begin(alice.invite(alice.repo(), Permission.WRITE))
        async with connected(again, alice):
            await until_equal(alice, again)
            await until_equal(alice, again, "root")
            await FeedRecovery(again.hub).settle_all()
            again.write(again.branch(), "after")
            await until_equal(alice, again)
        assert alice.replica.members(alice.repo()) == members, "the same member, not a second one"
        assert again.repo().invitation is None
        assert _fork_count(alice) == 0, "the feed goes on where it ended"
        again.replica.close()
        bob.open()


@pytest.mark.slow
async def test_who_may_only_be_shown_a_capability_writes_on_and_an_admin_renews(
    tmp_path: Path, nodes: list[Node], autojump_clock: MockClock
) -> None:
    # The founder's disk is lost, and a member who may only read is left: from there everything comes back.
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob, permission=Permission.READ)
        alice.write(alice.branch(), "before")
        await together(alice, bob)
        again = _restored(tmp_path, alice)
        await again.joiner.follow(bob.capability())
        async with connected(again, bob):
            await until_equal(bob, again)
            await until_equal(bob, again, "root")
            assert again.replica.permission(again.repo(), again.author.user) == Permission.OWNER
            assert again.epoch().writers_secret is None
            await FeedRecovery(again.hub).settle_all()
            again.write(again.branch(), "where all who read publish")
            again.hub.announce(again.author.start_epoch(again.repo()))
            assert again.epoch().writers_seed is not None
            again.write(again.branch(), "after")
            await until_equal(bob, again)
        assert len(ids(bob)) == len(ids(again)) == 4
        assert _fork_count(bob) == 0
        again.replica.close()
        alice.open()


@pytest.mark.slow
async def test_secrets_that_were_sealed_for_a_member_open_again(
    tmp_path: Path, nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        alice.hub.announce(alice.author.start_epoch(alice.repo()))
        await together(alice, bob)
        bob.write(bob.branch(), "before")
        await together(alice, bob)
        again = _restored(tmp_path, bob)
        await again.joiner.follow(alice.capability())
        async with connected(again, alice):
            await until_equal(alice, again)
            await until_equal(alice, again, "root")
            await FeedRecovery(again.hub).settle_all()
            again.write(again.branch(), "after")
            await until_equal(alice, again)
        assert _fork_count(alice) == 0
        again.replica.close()
        bob.open()


@pytest.mark.slow
async def test_one_key_on_two_nodes_forks_its_feed(
    tmp_path: Path, nodes: list[Node], autojump_clock: MockClock
) -> None:
    # Why a device has a user of its own.
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        bob.write(bob.branch(), "one")
        await together(alice, bob)
        twin = Node(tmp_path / "twin", "twin")
        twin.user_seed = bob.user_seed
        twin.replica.close()
        twin.open()
        await twin.joiner.begin(alice.invite(alice.repo(), Permission.WRITE))
        await meet(alice, twin)
        assert twin.replica.own_feeds.elsewhere_at is not None
        twin.replica.own_feeds.settle(twin.repo().repo_id)  # as `ravel fsck --accept-loss` does
        bob.write(bob.branch(), "here")
        twin.write(twin.branch(), "there")
        await meet(alice, bob, twin)
        assert _fork_count(alice) == 1
        twin.replica.close()


@pytest.mark.slow
async def test_a_device_is_a_member_of_its_own_and_is_excluded_when_it_is_lost(
    tmp_path: Path, nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(240), open_nodes(tmp_path, "phone") as (phone,):
        await share(alice, bob, phone)
        await members_of(alice).grant("repo", id_text(phone.author.user), "admin")
        await together(alice, bob, phone)
        for node, text in ((alice, "at the desk"), (phone, "on the train"), (alice, "at the desk again")):
            node.write(node.branch(), text)
        await together(alice, bob, phone)
        assert len(ids(bob)) == 4
        assert _fork_count(bob) == 0
        bob.write(bob.branch(), "both may")
        await together(alice, bob, phone)
        await members_of(alice).remove("repo", id_text(phone.author.user), "")
        alice.write(alice.branch(), "without the phone")
        await together(alice, bob)
        await meet(alice, phone)
        assert len(ids(bob)) == len(ids(alice)) == 6
        assert len(ids(phone)) == 5, "what was written since is not for who found it"


@pytest.mark.slow
async def test_a_new_user_takes_the_place_of_one_whose_key_is_known(
    tmp_path: Path, nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(240), open_nodes(tmp_path, "new") as (new,):
        await share(alice, bob)
        await members_of(alice).grant("repo", id_text(bob.author.user), "admin")
        await together(alice, bob)
        bob.write(bob.branch(), "before")
        await new.joiner.begin(bob.invite(bob.repo()))
        await together(bob, new)
        await members_of(bob).grant("repo", id_text(new.author.user), "admin")
        await together(bob, alice, new)
        with pytest.raises(ServiceError, match="M7"):  # it was made by the old user, which is senior
            await members_of(new).remove("repo", id_text(bob.author.user), "")
        await members_of(alice).remove("repo", id_text(bob.author.user), "")
        await together(new, alice)
        new.write(new.branch(), "after")
        bob.write(bob.branch(), "by who has the old key")
        await together(new, alice)
        await meet(alice, bob)
        assert len(ids(alice)) == len(ids(new)) == 3, "the branch's root, before and after"
        assert set(alice.replica.members(alice.repo())) == {alice.author.user, new.author.user}
        assert new.epoch().key not in {epoch.key for epoch in bob.replica.tables.epochs.values()}
        with pytest.raises(ServiceError) as caught:  # M7: `ravel repo fork` is the way then
            await members_of(new).remove("repo", id_text(alice.author.user), "")
        assert caught.value.code == "not_permitted"
