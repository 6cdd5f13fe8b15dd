"""Topics of ended epochs: answered, and announced where there is a reason to."""

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.authoring.drafting import Draft
from node.authoring.write_queue import WriteRequest
from node.sync.connection import Connection
from node.sync.followed_topics import FollowedTopics
from protocol.formats.content import Post
from protocol.formats.publication import decode_publication
from protocol.formats.text import id_text
from protocol.ids import SessionId, TopicKey
from protocol.session.events import TopicsRefused
from protocol.session.session import Session
from storage.commits.pending import UNREAD, PendingPublication, keep_pending
from storage.topics.publishing import load_publications
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, meet, members_of, open_nodes, share, until_equal
from tests.support.relays import open_relay
from tests.unit.node.membership.test_branch_links import _link as link_of

pytestmark = pytest.mark.slow  # each plays six epochs on two or three nodes
_RENEWALS = 5
_TOPICS = 2 * (_RENEWALS + 1)


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110  # nobody tells of it
        await trio.sleep(0.1)


def _joined(connection: Connection) -> set[TopicKey]:
    return {one.topic for one in connection.topics if one.is_joined}


def _in_use(node: Node) -> set[TopicKey]:
    """Topics of the epoch that is written in, and the founding epoch's own."""
    repo = node.repo()
    founding = next(one for one in node.replica.tables.epochs_in(repo.num) if one.epoch_id == repo.init_id)
    return {*node.replica.tables.writing_topics(repo.num), founding.topic}


async def _grow(alice: Node, *others: Node, renewals: int = _RENEWALS) -> None:
    """Have all of them hold a repo of several epochs, with a post in each."""
    await share(alice, *others)
    for number in range(renewals):
        alice.author.start_epoch(alice.repo())
        alice.write(alice.branch(), f"post {number}")
    for other in others:
        await meet(alice, other)


async def test_two_nodes_that_hold_the_same_announce_no_ended_epoch(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _grow(alice, bob)
        async with connected(bob, alice) as sides:
            await wait_all_tasks_blocked()
            for side in sides:
                assert {one.topic for one in side.topics} == _joined(side) == _in_use(alice)
                assert not any(map(side.is_waiting, alice.replica.by_topic))
            alice.hub.announce(alice.author.start_epoch(alice.repo()))
            alice.write(alice.branch(), "in a new epoch")
            await _until(lambda: ids(bob) == ids(alice))
            assert len(_joined(sides[0])) == 3 + 2


async def test_unread_commits_of_an_ended_epoch_are_passed_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        await meet(alice, bob, carol)
        ((key, nums),) = carol.write(carol.branch(), "by a newer version").accepted.items()
        with carol.replica.database.read() as connection:
            (item,) = load_publications(connection, carol.replica.by_topic[key], nums, 1_000_000)
        for _ in range(2):
            alice.author.start_epoch(alice.repo())
        await meet(alice, bob)
        unread = PendingPublication(decode_publication(item).commit_id, item, (), UNREAD)
        with alice.replica.database.write() as connection:
            keep_pending(alice.replica.database, connection, alice.replica.by_topic[key].num, [unread])
        async with connected(bob, alice):
            await _until(lambda: set(ids(carol)) <= set(ids(bob)))


async def test_who_was_away_for_a_renewal_announces_no_earlier_epoch(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _grow(alice, bob)
        alice.author.start_epoch(alice.repo())
        alice.write(alice.branch(), "while bob is away")
        async with connected(bob, alice) as (ours, theirs):
            await _until(lambda: ids(bob) == ids(alice))
            await wait_all_tasks_blocked()
            assert len(_joined(ours)) == len(_joined(theirs)) == 3 + 2
            assert not any(map(theirs.is_waiting, alice.replica.by_topic))


async def test_who_missed_renewals_is_told_of_as_many_topics_however_old_the_repo_is(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """After k renewals of n: two topics for each of the k, those in use before, and what shares a part with them."""
    missed, told = 3, []
    for known in (4, 12):
        names = ("alice", "bob")
        with fail_after(120), open_nodes(tmp_path / str(known), *names) as (alice, bob):
            await _grow(alice, bob, renewals=known)
            for number in range(missed):
                alice.author.start_epoch(alice.repo())
                alice.write(alice.branch(), f"missed {number}")
            async with connected(bob, alice) as (ours, theirs):
                await _until(lambda: ids(bob) == ids(alice))
                await wait_all_tasks_blocked()
                assert not any(map(theirs.is_waiting, alice.replica.by_topic))
                assert _joined(ours) == _joined(theirs)
                told.append(len(_joined(ours)))
    fewest = 2 * missed + 3
    assert all(fewest <= count <= fewest + 3 for count in told), "names that begin alike are of chance"


@pytest.mark.parametrize("count", [1, 300])
async def test_what_comes_late_on_an_ended_epoch_goes_to_peers_that_had_the_same(
    tmp_path: Path, autojump_clock: MockClock, count: int
) -> None:
    """In bulk, too: one topic more is announced, however much comes."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        drafts = [Draft(Post(f"written offline {number}")) for number in range(count)]
        carol.author.queue.write_group([WriteRequest(carol.branch(), drafts)])
        for _ in range(_RENEWALS):
            alice.author.start_epoch(alice.repo())
        await meet(alice, bob)
        async with connected(bob, alice) as (ours, _):
            await wait_all_tasks_blocked()
            assert _joined(ours) == _in_use(alice)
            async with connected(carol, alice):
                await _until(lambda: ids(bob) == ids(alice) == ids(carol))
            assert len(_joined(ours)) == 3 + 1, "the writers' topic of the first epoch"


async def test_who_gives_topics_back_takes_them_from_nobody_else(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """What one peer takes no more of goes on to others, and to that peer on its next connection."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "mallory") as (alice, bob, mallory):
        await _grow(alice, bob, mallory, renewals=1)
        async with connected(bob, alice), connected(mallory, alice) as (hers, _):
            await wait_all_tasks_blocked()
            hers.happen(TopicsRefused(tuple(alice.replica.by_topic), "relay_full"))
            await wait_all_tasks_blocked()
            alice.write(alice.branch(), "after it")
            await _until(lambda: ids(bob) == ids(alice))
            assert ids(mallory) != ids(alice)
        async with connected(mallory, alice):
            await _until(lambda: ids(mallory) == ids(alice))


async def test_ended_epochs_that_differ_are_compared_and_no_others(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        carol.write(carol.branch(), "written offline")
        for _ in range(_RENEWALS):
            alice.author.start_epoch(alice.repo())
        await meet(alice, bob)
        await meet(alice, carol)
        assert ids(bob) != ids(alice)
        async with connected(bob, alice) as (ours, theirs):
            await _until(lambda: ids(bob) == ids(alice))
            await wait_all_tasks_blocked()
            assert _joined(ours) == _joined(theirs)
            assert _in_use(alice) < _joined(ours)
            assert len(_joined(ours)) <= 3 + 1 + 2, "names that begin alike are of chance"


async def test_two_who_renewed_apart_meet_by_the_founding_epoch(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await members_of(alice).grant("repo", id_text(bob.author.user), "admin")
        await meet(alice, bob)
        alice.author.start_epoch(alice.repo())
        bob.author.start_epoch(bob.repo())
        alice.write(alice.branch(), "of one side")
        bob.write(bob.branch(), "of the other")
        async with connected(bob, alice):
            await _until(lambda: ids(bob) == ids(alice))


def test_a_peer_that_asks_by_one_topic_after_another_is_answered_once_for_a_repo(tmp_path: Path) -> None:
    """An honest one asks by the founding epoch's own alone."""
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        for _ in range(2):
            alice.author.start_epoch(alice.repo())
        session = Session(SessionId(b"s" * 32), is_dialer=True)
        followed = FollowedTopics(alice.hub, session, lambda _: False, lambda: False)
        followed.look()
        followed.announce(100)
        own = [one.topic for one in alice.replica.tables.epochs_in(alice.repo().num)]
        answers = [followed.find_earlier(one, is_asked=True) for one in own]
        assert [len(answer or ()) > 0 for answer in answers] == [True, False, False]
        assert followed.find_earlier(own[0], is_asked=False), (
            "what this side says unasked it says all the same"
        )


async def test_a_relay_is_told_of_all_epochs_and_a_newcomer_gets_them(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with (
        fail_after(120),
        open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol),
        open_relay(tmp_path) as relay,
    ):
        await _grow(alice, bob)
        async with connected(alice, relay) as (ours, _):
            await wait_all_tasks_blocked()
            assert len(_joined(ours)) == _TOPICS
        await carol.joiner.begin(alice.invite(alice.repo()))
        async with connected(carol, bob):
            await until_equal(bob, carol)


async def test_topics_that_rest_wait_for_no_follower_of_one_branch(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await _grow(alice, bob)
        await carol.joiner.follow_branch(await link_of(alice))
        async with connected(carol, alice) as (_, at_alice):
            await _until(lambda: ids(carol) == ids(alice))
            await wait_all_tasks_blocked()
            assert not any(map(at_alice.is_waiting, alice.replica.by_topic))
