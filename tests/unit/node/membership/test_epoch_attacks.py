"""Attacks by liars and ex-admins on epochs, and accidents, that an independent review found."""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.authoring import epoch_starts
from node.authoring.drafting import CommitPosition, Draft, aim, encode_draft, make_publication
from node.authoring.writing import write_commit
from node.ingest.acceptance import accept_batch
from node.ingest.publication_parsing import open_batch
from node.runtime.errors import ServiceError
from protocol.crypto.keys import EpochKey
from protocol.formats.body import Body, Permission, Remove
from protocol.formats.epochs import EpochOpen, GivenEpoch
from protocol.formats.text import id_text
from protocol.ids import UserId
from tests.support.ids import as_commit_id
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
    with open_nodes(tmp_path, "alice", "mallory", "bob", "carol", "dave") as opened:
        yield opened


async def _among(members: list[Node], *admins: Node) -> None:
    alice, *others = members
    await share(alice, *others)
    for admin in admins:
        await members_of(alice).grant("", id_text(admin.author.user), "admin")
    await together(alice, *others)


def _tell(target: Node, liar: Node, body: Body) -> None:
    """Give a node a root branch commit of the liar's that waits for a cause which never comes."""
    root, epoch = liar.replica.root_branch(liar.repo()), target.epoch()
    aimed = replace(aim(root.facts, root.num, epoch), by_writer=False)
    place = CommitPosition(epoch.epoch_id, sequence=1, acks=(as_commit_id(secrets.token_bytes(32)),), rank=1)
    encoded = make_publication(aimed, encode_draft(liar.author._keys, 1, aimed, Draft(body), place)).encoded
    there = target.replica.by_topic[aimed.topic]
    target.hub.announce(accept_batch(target.replica, there, open_batch(there, [encoded]), 1))
    target.replica.shown.touch(there.repo_num)


@pytest.mark.slow
async def test_the_secrets_of_a_fork_do_not_reach_whom_it_excludes(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    # Two admins exclude different people; they meet, and nobody has merged yet.
    alice, bob, carol, dave, erin = nodes
    with fail_after(240):
        await _among(nodes, bob)
        await members_of(alice).remove("", id_text(dave.author.user), "")
        await members_of(bob).remove("", id_text(erin.author.user), "")
        started = {alice.epoch().epoch_id: dave, bob.epoch().epoch_id: erin}
        for _ in range(2):
            await meet(alice, bob, carol)
            await meet(alice, dave, erin)
        for epoch, excluded in started.items():
            assert epoch not in {one.epoch_id for one in excluded.replica.tables.epochs.values()}


@pytest.mark.slow
async def test_an_ex_admin_gives_nobody_who_was_away_false_secrets(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Bob has not heard of mallory's exclusion, and is given mallory's own key for the epoch that it starts."""
    alice, mallory, bob, carol, _ = nodes
    with fail_after(240):
        await _among([alice, mallory, bob, carol], mallory)
        await members_of(alice).remove("", id_text(mallory.author.user), "")
        epoch = alice.epoch()
        false = EpochOpen((GivenEpoch(epoch.epoch_id, EpochKey(secrets.token_bytes(32))),))
        _tell(bob, mallory, false)
        await meet(bob, carol)
        assert len(bob.replica.tables.epochs) == 2, "it was taken up"
        await meet(alice, bob, carol)
        assert (bob.epoch().epoch_id, bob.epoch().key) == (epoch.epoch_id, epoch.key)
        bob.write(bob.branch(), "not for mallory")
        await together(alice, bob, carol)
        assert ids(bob) == ids(alice) == ids(carol)


@pytest.mark.slow
async def test_the_author_of_an_epoch_who_is_excluded_later_shuts_nobody_out_of_the_next(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, mallory, bob, carol, _ = nodes
    with fail_after(240):
        await _among([alice, mallory, bob, carol], mallory)
        await members_of(mallory).remove("", id_text(carol.author.user), "")
        await together(alice, mallory, bob)
        assert bob.epoch().epoch_id == mallory.epoch().epoch_id
        await members_of(alice).remove("", id_text(mallory.author.user), "")
        epoch = alice.epoch()
        false = GivenEpoch(epoch.epoch_id, EpochKey(secrets.token_bytes(32)))
        _tell(bob, mallory, EpochOpen((false,)))
        await meet(bob, carol)
        await meet(alice, bob)
        assert bob.epoch().key == epoch.key
        bob.write(bob.branch(), "hello")
        await together(alice, bob)
        assert ids(alice) == ids(bob)


@pytest.mark.slow
async def test_a_topic_that_somebody_states_elsewhere_is_given_to_whose_it_is(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mallory states the own topic of a repo's epoch as the writers' topic of an epoch of hers.

    Alice follows mallory's repo, and joins the other one later.
    """
    alice, mallory, bob, *_ = nodes
    with fail_after(240):
        wanted, _ = bob.create_repo("wanted")
        link = bob.invite(wanted)
        topic = bob.epoch().topic
        bait, _ = mallory.create_repo("bait")
        with monkeypatch.context() as patch:
            patch.setattr(epoch_starts, "find_writers_topic", lambda _: topic)
            mallory.hub.announce(mallory.author.start_epoch(bait))
        assert mallory.replica.by_topic[topic].writers_of, "it is stated"
        await alice.joiner.follow(mallory.capability())
        async with connected(alice, mallory):
            await until_equal(alice, mallory)
        assert alice.replica.by_topic[topic].repo_num == alice.repo().num
        await alice.joiner.begin(link)
        repo = next(one for one in alice.replica.repos.values() if one.repo_id == wanted.repo_id)
        assert alice.replica.by_topic[topic].repo_num == repo.num
        await meet(alice, bob)
        assert alice.replica.permission(repo, alice.author.user) is Permission.WRITE
        await meet(alice, mallory)
        mallory.write(mallory.branch(), "goes on")
        await meet(alice, mallory)
        of_bait = next(one for one in alice.replica.repos.values() if one.repo_id == bait.repo_id)
        (main,) = [one for one in alice.replica.branches_in(of_bait.num) if one.name == "main"]
        assert alice.digest(main) == mallory.digest(mallory.branch())


@pytest.mark.slow
async def test_admins_who_write_at_the_same_time_stop_starting_epochs(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _, dave, erin = nodes
    with fail_after(240):
        await _among(nodes, bob)
        await members_of(alice).remove("", id_text(dave.author.user), "")
        await members_of(bob).remove("", id_text(erin.author.user), "")
        counts = []
        for number in range(5):
            await meet(alice, bob)
            alice.write(alice.branch(), f"alice {number}")
            bob.write(bob.branch(), f"bob {number}")
            counts.append(len(alice.replica.tables.epochs))
        assert counts[-1] == counts[-2] == counts[-3], "it settles"


@pytest.mark.slow
async def test_one_exclusion_is_followed_by_one_epoch_of_whoever_makes_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, dave, erin = nodes
    with fail_after(240):
        await _among(nodes, bob, carol, dave)
        async with connected(bob, alice), connected(carol, alice), connected(dave, alice):
            await trio.sleep(5)
            await members_of(alice).remove("", id_text(erin.author.user), "")
            await trio.sleep(400)
        operations = alice.replica.membership(alice.repo().repo_id).operations
        assert [one.author for one in operations.epochs] == [alice.author.user] * 2


@pytest.mark.slow
async def test_who_is_invited_again_and_who_follows_again_reads_on(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, bob, carol, _ = nodes
    with fail_after(240):
        await share(alice, bob)
        await carol.joiner.follow(alice.capability())
        await together(alice, carol)
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await meet(alice, bob, carol)
        alice.write(alice.branch(), "in the new epoch")
        await bob.joiner.begin(alice.invite(alice.repo()))
        await carol.joiner.follow(alice.capability())
        await meet(alice, bob, carol)
        assert ids(bob) == ids(carol) == ids(alice)
        bob.write(bob.branch(), "back")


@pytest.mark.slow
async def test_who_is_granted_writing_beside_an_epoch_may_write_in_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Bob, a reader, is raised while carol excludes dave, with a box for a reader."""
    alice, _, bob, carol, dave = nodes
    with fail_after(240):
        await _among([alice, bob, carol, dave], carol)
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        await together(alice, bob, carol, dave)
        await members_of(alice).grant("", id_text(bob.author.user), "write")
        await members_of(carol).remove("", id_text(dave.author.user), "")
        for _ in range(2):
            await meet(alice, bob, carol)
        assert bob.epoch().epoch_id == alice.epoch().epoch_id
        bob.write(bob.branch(), "may I?")


@pytest.mark.slow
async def test_what_an_ex_admin_starts_as_if_nothing_had_happened_is_written_in_by_nobody(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, mallory, bob, *_ = nodes
    with fail_after(240):
        await _among([alice, mallory, bob], mallory)
        await members_of(alice).remove("", id_text(mallory.author.user), "")
        epoch = alice.epoch()
        for _ in range(5):
            mallory.author.start_epoch(mallory.repo())
        await meet(mallory, alice)
        assert len(mallory.replica.tables.epochs) == 6
        assert len(alice.replica.tables.epochs) == 2 + 5, "all can be opened, though none counts"
        alice.write(alice.branch(), "not for mallory")
        assert alice.epoch() == epoch
        await together(alice, bob)
        assert bob.epoch().epoch_id == epoch.epoch_id
        assert ids(alice) == ids(bob)


@pytest.mark.slow
async def test_a_revoked_join_that_was_handed_secrets_makes_an_epoch_due(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, bob, carol, _ = nodes
    with fail_after(240):
        await share(alice, bob)
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        link = alice.invite(alice.repo())
        await together(alice, bob)
        await members_of(bob).revoke_invitation("", id_text(link.invitation))
        await carol.joiner.begin(link)
        await meet(alice, carol)
        assert alice.replica.permission(alice.repo(), carol.author.user) is Permission.WRITE
        await together(alice, bob)
        assert alice.replica.permission(alice.repo(), carol.author.user) is None
        alice.write(alice.branch(), "without her")
        await meet(alice, carol)
        assert alice.epoch().epoch_id not in {one.epoch_id for one in carol.replica.tables.epochs.values()}


@pytest.mark.slow
async def test_an_epoch_that_was_started_for_a_write_that_failed_is_announced(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, bob, carol, _ = nodes
    with fail_after(240):
        await share(alice, bob, carol)
        root = alice.replica.root_branch(alice.repo())
        alice.hub.announce(alice.author.write(root, Remove(carol.author.user, None, ()))[1])
        async with connected(bob, alice):
            await trio.sleep(5)
            with pytest.raises(ServiceError):
                await write_commit(
                    alice.hub, alice.author, alice.branch(), Remove(UserId(b"x" * 31), None, ())
                )
            alice.write(alice.branch(), "heard")
            await until_equal(alice, bob)
        assert bob.epoch().epoch_id == alice.epoch().epoch_id
