"""Connections with more topics than have room at once: these take turns."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.sync.connection import Connection, MessageRates
from protocol.ids import AnnouncedTopic, TopicKey
from protocol.limits.peers import (
    ANNOUNCED_AT_ONCE_MAX,
    FIRST_TURNS_SECONDS,
    MESSAGES_AT_ONCE_MAX,
    TOPIC_COUNT_MAX,
    TURNS_SECONDS,
)
from protocol.session.events import Event, TopicFollowed
from protocol.session.messages import Announce, Deposit, Want, decode_message, encode_message
from protocol.session.outputs import Output, Send, say_together
from protocol.session.session import Session
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, until_equal
from tests.support.relays import open_relay
from tests.support.strangers import met

_REPOS = 6
_TOPICS = 2 * _REPOS
"""Each repo has one epoch."""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a dozen topics press against: three have room."""
    monkeypatch.setattr("node.sync.connection.TOPIC_COUNT_MAX", 3)
    monkeypatch.setattr("protocol.session.session.TOPIC_COUNT_MAX", 3)
    monkeypatch.setattr("protocol.session.room.TOPICS_HEARD_MAX", 6)
    monkeypatch.setattr("protocol.session.room.TOPIC_COUNT_MAX", 3)
    monkeypatch.setattr("protocol.session.session.TOPICS_SETTLING_MAX", 2)


async def _share_repos(alice: Node, bob: Node) -> None:
    """Both know the same topics; Bob lacks a commit on half of them."""
    for number in range(_REPOS):
        repo, _ = alice.author.founding.create_repo(f"repo {number}")
        alice.author.founding.create_branch(repo, f"branch {number}")
        await bob.joiner.begin(alice.invite(repo))
    async with connected(bob, alice):
        for repo in alice.replica.repos.values():
            while alice.replica.permission(repo, bob.author.user) is None:
                await alice.hub.changes.wait(alice.hub.changes.count)
        await wait_all_tasks_blocked()
    for number in range(_REPOS):
        alice.write(alice.branch(f"branch {number}"), f"{number}")


async def test_more_topics_than_the_core_allows_are_joined_in_parts(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling = list[int]()
    say = Session.handle

    def note(session: Session, event: Event) -> list[Output]:
        outputs = say(session, event)
        if isinstance(event, TopicFollowed):
            settling.append(session.settling_count)
        return outputs

    monkeypatch.setattr(Session, "handle", note)
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _share_repos(alice, bob)
        async with connected(bob, alice) as (ours, theirs):
            await wait_all_tasks_blocked()
            assert {one.state for one in ours.topics} == {"in sync"}
            assert len(ours.topics) == len(theirs.topics) == _TOPICS
        assert bob.digest(bob.branch("branch 5")) == alice.digest(alice.branch("branch 5"))
    assert max(settling) <= 3, "three at first, and no more while two are compared"


@pytest.mark.slow
async def test_topics_of_no_use_to_a_peer_take_no_room_from_those_that_it_shares(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Alice follows twelve topics that Bob does not know, and more are heard than are remembered."""
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _share_repos(alice, bob)
        for number in range(_REPOS):
            alice.author.founding.create_repo(f"own repo {number}")
        alice.hub.topics_changed()
        async with connected(bob, alice) as (ours, theirs):
            await wait_all_tasks_blocked()
            assert len(theirs.topics) == 2 * _TOPICS
            assert {one.state for one in ours.topics} == {"in sync"}
            assert theirs._followed.waiting_count == 0
        assert bob.digest(bob.branch("branch 5")) == alice.digest(alice.branch("branch 5"))


@pytest.mark.slow
async def test_a_relay_and_its_partner_are_in_step_on_more_topics_than_have_room(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """And who joins by the partner alone gets all of them."""
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path) as first,
        open_relay(tmp_path, name="second") as second,
    ):
        for relay in (first, second):
            assert relay.hub.relay is not None
            relay.hub.relay.is_dialed = lambda _: True
            relay.hub.relay.is_partner = lambda peer: peer in (first.key, second.key)
        await _share_repos(alice, bob)
        async with connected(alice, first) as (ours, _):
            await trio.sleep(_TOPICS * TURNS_SECONDS)
            assert {one.state for one in ours.topics} == {"in sync"}
            assert len(ours.topics) == _TOPICS
        async with connected(first, second) as (ours, theirs):
            await trio.sleep(_TOPICS * TURNS_SECONDS)
            assert {one.state for one in ours.topics} == {"in sync"}
            assert len(ours.topics) == len(theirs.topics) == _TOPICS
            assert not ours._followed.waiting_count
        async with connected(bob, second):
            await until_equal(alice, bob, "branch 5")


async def test_nodes_meet_on_a_topic_that_is_the_last_of_many_on_both_sides(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Neither side's first topics are known to the other: they take turns, and only those of one turn take memory."""
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        for node in (alice, bob):
            for number in range(_REPOS):
                node.author.founding.create_repo(f"own repo {number}")
        shared, _ = alice.author.founding.create_repo("shared")
        await bob.joiner.begin(alice.invite(shared))
        async with connected(bob, alice) as (ours, theirs):
            await wait_all_tasks_blocked()
            assert (len(ours.topics), len(theirs.topics)) == (3, 3)
            assert ours.session.joined_count == 0
            turns = 0
            while alice.replica.permission(shared, bob.author.user) is None:
                await trio.sleep(FIRST_TURNS_SECONDS)
                turns += 1
                assert ours.session.joined_count or len(ours.topics) <= 3
            assert turns <= (2 * (_REPOS + 1)) // 3 + 1
            await trio.sleep(_TOPICS * TURNS_SECONDS)
            assert (ours.waiting_count, theirs.waiting_count) == (0, 0)


async def test_a_stranger_is_told_of_no_more_topics_than_have_room_however_often_others_change(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        for number in range(3):
            alice.author.founding.create_repo(f"repo {number}")
        alice.hub.topics_changed()
        async with met(alice):
            await wait_all_tasks_blocked()
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            assert (len(connection.topics), connection._followed.waiting_count) == (3, 3)
            assert connection.waiting_count == 0, "it follows nothing, as far as it has said"
            for _ in range(2):
                connection._followed._tick = None  # all topics have changed
                connection.topics_changed()
            assert (len(connection.topics), connection._followed.waiting_count) == (3, 3)


async def test_an_epoch_that_begins_goes_before_all_topics_that_wait(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, _ = alice.author.founding.create_repo("repo")
        for _ in range(3):
            alice.author.start_epoch(repo)
        alice.hub.topics_changed()
        async with met(alice):
            await wait_all_tasks_blocked()
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            alice.author.start_epoch(repo)
            alice.hub.topics_changed()
            epoch = alice.replica.writing_epoch(repo)
            assert list(connection._followed._waiting)[:2] == [epoch.topic, epoch.writers_topic]


async def test_topics_of_epochs_that_are_written_in_are_announced_before_those_of_earlier_ones(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Own topics first, and older ones first."""
    with open_nodes(tmp_path, "alice") as (alice,):
        older, later = (alice.author.founding.create_repo(f"repo {number}")[0] for number in range(2))
        for _ in range(3):
            alice.author.start_epoch(later)
        alice.hub.topics_changed()
        async with met(alice):
            await wait_all_tasks_blocked()
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            epochs = [alice.replica.writing_epoch(repo) for repo in (older, later)]
            announced = [one.topic for one in connection.topics]
            assert announced == [epochs[0].topic, epochs[1].topic, epochs[0].writers_topic]


def test_announcements_are_said_together_in_messages_that_the_peer_can_read() -> None:
    topics = [number.to_bytes(32, "big") for number in range(2 * TOPIC_COUNT_MAX + 1)]
    outputs: list[Output] = [Send(Announce((AnnouncedTopic(topic),))) for topic in topics]
    outputs += [Send(Deposit((TopicKey(topic),))) for topic in topics]
    heard = [
        decode_message(encode_message(output.message))
        for output in say_together(outputs)
        if isinstance(output, Send)
    ]
    counts = [len(message.topics) for message in heard if isinstance(message, Announce | Deposit)]
    assert counts == [TOPIC_COUNT_MAX, TOPIC_COUNT_MAX, 1] * 2
    announced = [topic for message in heard if isinstance(message, Announce) for topic in message.topics]
    assert announced == topics


def test_joined_topics_bring_their_share_of_messages_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.sync.connection.TOPIC_COUNT_MAX", TOPIC_COUNT_MAX)
    share = MESSAGES_AT_ONCE_MAX // TOPIC_COUNT_MAX
    rates, message = MessageRates(), Want(b"t" * 32, (as_commit_id(b"w" * 32),))  # type: ignore[arg-type]  # any bytes do for a topic
    for joined in (1, TOPIC_COUNT_MAX, TOPIC_COUNT_MAX + 5, TOPIC_COUNT_MAX + 5, 7):
        rates.join_topics(joined)
    taken = 0
    while not rates.find_flood(message, 0.0, is_met=True):
        taken += 1
    assert taken == MESSAGES_AT_ONCE_MAX + 5 * share


def test_who_has_joined_nothing_announces_as_many_topics_as_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of a stalled line together, and then a turn at a time."""
    monkeypatch.setattr("node.sync.connection.TOPIC_COUNT_MAX", TOPIC_COUNT_MAX)
    turn = Announce(tuple(AnnouncedTopic(number.to_bytes(32, "big")) for number in range(TOPIC_COUNT_MAX)))
    rates, now = MessageRates(), 0.0
    for _ in range(ANNOUNCED_AT_ONCE_MAX // TOPIC_COUNT_MAX):
        assert not rates.find_flood(turn, now, is_met=False)
    assert rates.find_flood(Announce(turn.topics[:1]), now, is_met=False) == "too_many_topics"
    assert not rates.find_flood(turn, now, is_met=True)
    for _ in range(100):
        now += FIRST_TURNS_SECONDS
        assert not rates.find_flood(turn, now, is_met=False)
    assert rates.find_flood(turn, now + 1, is_met=False) == "too_many_topics"
