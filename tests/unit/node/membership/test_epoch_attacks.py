"""What liars, ex-admins and accidents can do about epochs, as a review with fresh eyes found it: and now cannot."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.authoring.drafting import CommitPosition, Draft, encode_draft, make_publication
from node.ingest.acceptance import accept_batch
from node.ingest.publication_parsing import open_batch, read_pending
from node.membership import epoch_secrets
from node.runtime.errors import ServiceError
from protocol.block import Reference
from protocol.body import Body, BranchAdd, Permission, Remove
from protocol.commit import HeaderKeys
from protocol.content import Post
from protocol.epochs import EarlierEpoch, EpochAdd, EpochBox, EpochHistory
from protocol.hashing import epoch_read_secret, root_topic_seed
from protocol.ids import BranchId, CommitId, EpochId, UserId
from protocol.keys import BlockKey, GivenKey, ReadSecret, WriteSecret
from protocol.signing import public_key
from protocol.text import id_text
from tests.support.ids import as_commit_id, as_object_id
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
from verifier.membership import mark_of


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


def _tell(target: Node, liar: Node, body: Body, cause: CommitId) -> None:
    """Give a node a root branch commit of the liar's that waits for a cause."""
    root = liar.replica.root_branch(liar.repo())
    place = CommitPosition(
        root.facts.epoch_id, sequence=1, acks=(cause,), keys=HeaderKeys((GivenKey(b""),), (), ())
    )
    encoded = make_publication(root, encode_draft(liar.author._keys, 1, root, Draft(body), place)).encoded
    there = target.replica.by_topic[root.topic]
    target.hub.announce(accept_batch(target.replica, there, open_batch(there, [encoded]), 1))


@pytest.mark.slow
async def test_the_secrets_of_a_fork_do_not_reach_whom_it_excludes(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Two admins exclude different people; they meet, and nobody has merged yet."""
    alice, bob, carol, dave, erin = nodes
    with fail_after(240):
        await _among(nodes, bob)
        await members_of(alice).remove("", id_text(dave.author.user), "")
        await members_of(bob).remove("", id_text(erin.author.user), "")
        started = {alice.epoch().epoch_id: dave, bob.epoch().epoch_id: erin}
        for _ in range(2):
            await meet(alice, bob, carol)
            await meet(alice, dave, erin)
        (other,) = started.keys() - {alice.epoch().epoch_id}
        excluded = started[other]
        assert other not in {epoch.epoch_id for epoch in excluded.replica.tables.epochs.values()}


@pytest.mark.slow
@pytest.mark.parametrize("is_admin", [False, True])
async def test_an_ex_admin_gives_nobody_who_was_away_false_secrets(
    nodes: list[Node], autojump_clock: MockClock, is_admin: bool
) -> None:
    """Bob has not heard of mallory's exclusion, and is given mallory's own secrets for the epoch that it starts."""
    alice, mallory, bob, carol, _ = nodes
    with fail_after(240):
        await _among([alice, mallory, bob, carol], mallory, *([bob] if is_admin else []))
        await members_of(alice).remove("", id_text(mallory.author.user), "")
        await meet(alice, mallory)
        epoch, repo = alice.epoch(), mallory.repo()
        write_secret = WriteSecret(secrets.token_bytes(32))
        box = EpochBox(bob.author.user, mallory.author.seal_secret(repo, bob.author.user, write_secret))
        mark = mark_of(repo.repo_id, epoch_read_secret(write_secret))
        _tell(bob, mallory, EpochAdd(epoch.epoch_id, epoch.author, mark, (), (box,)), epoch.epoch_id)
        await meet(bob, carol)
        await meet(alice, bob, carol)
        assert bob.epoch().read_secret == epoch.read_secret
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
        assert bob.epoch().author == mallory.author.user
        await members_of(alice).remove("", id_text(mallory.author.user), "")
        await meet(alice, mallory)
        epoch = alice.epoch()
        false = EarlierEpoch(epoch.epoch_id, epoch.author, ReadSecret(secrets.token_bytes(32)))
        _tell(bob, mallory, EpochHistory((false,)), epoch.epoch_id)
        await meet(bob, carol)
        await meet(alice, bob)
        assert bob.epoch().read_secret == epoch.read_secret
        bob.write(bob.branch(), "hello")


@pytest.mark.slow
async def test_an_epoch_with_the_secrets_of_the_first_is_passed_over_by_the_next(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, mallory, bob, *_ = nodes
    with fail_after(240):
        await _among([alice, mallory, bob], mallory)
        old, fresh = mallory.epoch(), secrets.token_bytes
        with monkeypatch.context() as patch:
            patch.setattr(
                secrets, "token_bytes", lambda size: old.write_secret if size == 32 else fresh(size)
            )
            mallory.hub.announce(mallory.author._start_epoch(mallory.repo())[1])
        await meet(mallory, alice, bob)
        alice.write(alice.branch(), "in one of its own")
        await together(alice, bob)
        assert alice.epoch().read_secret == bob.epoch().read_secret != old.read_secret
        assert ids(alice) == ids(bob)


@pytest.mark.slow
async def test_a_topic_that_somebody_states_elsewhere_is_given_to_whose_it_is(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Alice follows a repo of mallory's, where mallory states the root topic of a repo that alice joins later."""
    alice, mallory, bob, *_ = nodes
    with fail_after(240):
        bait, _ = mallory.create_repo("bait")
        await alice.joiner.follow(mallory.capability())
        async with connected(alice, mallory):
            await until_equal(alice, mallory)
        wanted, _ = bob.create_repo("wanted")
        link = bob.invite(wanted)
        topic = public_key(root_topic_seed(link.read_secret, wanted.repo_id))
        body = BranchAdd(
            BranchId(b"x" * 32), "squat", 0, topic, Reference(as_object_id(b"x" * 32), BlockKey(b"k" * 32))
        )
        mallory.hub.announce(mallory.author.write(mallory.replica.root_branch(bait), body)[1])
        await meet(alice, mallory)
        assert alice.replica.by_topic[topic].name == "squat"
        await alice.joiner.begin(link)
        assert alice.replica.by_topic[topic].facts.repo_id == wanted.repo_id
        await meet(alice, bob)
        repo = next(one for one in alice.replica.repos.values() if one.repo_id == wanted.repo_id)
        assert alice.replica.permission(repo, alice.author.user) is Permission.WRITE


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
async def test_one_exclusion_is_followed_by_one_history_of_whoever_makes_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, dave, erin = nodes
    with fail_after(240):
        await _among(nodes, bob, carol, dave)
        async with connected(bob, alice), connected(carol, alice), connected(dave, alice):
            await trio.sleep(5)
            await members_of(alice).remove("", id_text(erin.author.user), "")
            await trio.sleep(20)
        operations = alice.replica.membership(alice.repo().repo_id).operations
        assert [one.author for one in operations.histories] == [alice.author.user]


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
async def test_what_an_ex_admin_starts_as_if_nothing_had_happened_is_read_within_bounds(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, mallory, bob, *_ = nodes
    with fail_after(240):
        await _among([alice, mallory, bob], mallory)
        await members_of(alice).remove("", id_text(mallory.author.user), "")
        for _ in range(20):
            mallory.author._start_epoch(mallory.repo())
        await meet(mallory, alice)
        assert len(mallory.replica.tables.epochs) == 21
        assert len(alice.replica.tables.epochs) == 2 + 16, (
            "those that are read of one author's that do not count"
        )


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
async def test_an_epoch_that_was_started_for_a_write_that_failed_is_told_with_the_next(
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
                alice.author.write(alice.branch(), Remove(UserId(b"x" * 31), None, ()))
            alice.write(alice.branch(), "heard")
            await until_equal(alice, bob)
        assert bob.epoch().epoch_id == alice.epoch().epoch_id


@pytest.mark.slow
async def test_what_waits_and_opens_epochs_is_taken_up_once_its_author_is_an_admin(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And until then it is opened once, whatever else changes."""
    alice, mallory, bob, *_ = nodes
    opened = 0

    def read(*arguments: Any) -> Any:  # noqa: ANN401  # as it is
        nonlocal opened
        opened += 1
        return read_pending(*arguments)

    with fail_after(240):
        await _among([alice, mallory, bob])
        earlier = EarlierEpoch(
            EpochId(as_commit_id(bytes(range(32)))), alice.author.user, ReadSecret(secrets.token_bytes(32))
        )
        monkeypatch.setattr(epoch_secrets, "read_pending", read)
        _tell(bob, mallory, EpochHistory((earlier,)), as_commit_id(secrets.token_bytes(32)))
        for _ in range(3):
            alice.author.write(alice.replica.root_branch(alice.repo()), Post("a change"))
            await together(alice, bob)
        assert opened == 1

        def epochs() -> set[EpochId]:
            return {one.epoch_id for one in bob.replica.tables.epochs.values()}

        assert earlier.epoch not in epochs()
        await members_of(alice).grant("", id_text(mallory.author.user), "admin")
        await together(alice, bob)
        assert earlier.epoch in epochs()
