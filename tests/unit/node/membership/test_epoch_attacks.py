"""Attacks by liars and ex-admins on epochs, and accidents, that an independent review found."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.authoring import epoch_starts
from protocol.formats.body import Permission
from protocol.formats.text import id_text
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
