"""Connections with more topics than the core allows: profile `many-topics`, and peers that do not know it."""

from pathlib import Path

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from node.sync.connection import Connection, MessageRates
from node.wire.send_queue import SendQueue
from protocol.ids import AnnouncedTopic, TopicKey
from protocol.limits.peers import MESSAGES_AT_ONCE_MAX, TOPIC_COUNT_MAX
from protocol.session.events import Event, TopicFollowed
from protocol.session.features import FEATURES, MANY_TOPICS
from protocol.session.messages import (
    Announce,
    Deposit,
    Features,
    Message,
    Want,
    decode_message,
    encode_message,
)
from protocol.session.outputs import Output, Send, say_together
from protocol.session.session import Session
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes
from tests.support.strangers import met

_REPOS = 6
_TOPICS = 2 * _REPOS
"""Each repo has one epoch."""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a dozen topics press against: three topics without the profile."""
    for place in ("connection", "followed_topics"):
        monkeypatch.setattr(f"node.sync.{place}.TOPIC_COUNT_MAX", 3)
    monkeypatch.setattr("protocol.session.session.TOPIC_COUNT_MAX", 3)
    monkeypatch.setattr("node.sync.followed_topics.TOPICS_SETTLING_MAX", 2)


async def _share_repos(alice: Node, bob: Node) -> None:
    """Both know the same topics; Bob lacks a commit on half of them."""
    for number in range(_REPOS):
        repo, _ = alice.author.create_repo(f"repo {number}")
        alice.author.create_branch(repo, f"branch {number}")
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


async def test_no_more_topics_are_announced_than_the_profile_allows(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _share_repos(alice, bob)
        monkeypatch.setattr("protocol.session.session.TOPIC_COUNT_MANY_MAX", _TOPICS - 1)
        async with connected(bob, alice) as (ours, theirs):
            await wait_all_tasks_blocked()
            assert len(ours.topics) == len(theirs.topics) == _TOPICS - 1
            assert not ours._followed.room


@pytest.mark.parametrize("older", ["alice", "bob"])
async def test_a_version_without_the_profile_joins_as_many_topics_as_ever(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, older: str
) -> None:
    """Bob dials, so each side is the older one once. What it announces and is told of stays in the core's bounds."""
    queues = dict[SendQueue, Connection]()
    told = dict[str, int].fromkeys(("alice", "bob"), 0)
    begin, put = Connection.__init__, SendQueue.put
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _share_repos(alice, bob)
        hubs = {alice.hub: "alice", bob.hub: "bob"}

        def made(connection: Connection, *args: object, **named: object) -> None:
            begin(connection, *args, **named)  # type: ignore[arg-type]  # whatever the caller says
            queues[connection.outgoing] = connection

        def say(queue: SendQueue, message: Message, *, is_last: bool = False) -> bool:
            side = hubs[queues[queue]._hub]
            if isinstance(message, Features) and side == older:
                message = Features(tuple(one for one in FEATURES if one != MANY_TOPICS))
            if isinstance(message, Announce):
                told[side] += len(message.topics)
            return put(queue, message, is_last=is_last)

        monkeypatch.setattr(Connection, "__init__", made)
        monkeypatch.setattr(SendQueue, "put", say)
        newer = "bob" if older == "alice" else "alice"
        async with connected(bob, alice) as (ours, theirs):
            await wait_all_tasks_blocked()
            of = {"bob": ours, "alice": theirs}
            assert told[newer] == 3, "the older version would leave who announces more"
            assert {one.state for one in of[newer].topics} == {"in sync"}
            assert not ours.is_ending()
            assert not theirs.is_ending()


async def test_an_older_peer_is_told_of_no_more_topics_however_often_others_change(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        for number in range(3):
            repo, _ = alice.author.create_repo(f"repo {number}")
        topic = alice.replica.writing_epoch(repo).topic
        alice.hub.topics_changed()
        async with met(alice) as stranger:
            await stranger.say(Features(("files",)))
            await stranger.compare(topic)
            await wait_all_tasks_blocked()
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            assert len(connection.topics) == 3
            waiting = len(connection._followed._waiting)
            for _ in range(2):
                connection._followed._tick = None  # all topics have changed
                connection.topics_changed()
            assert (len(connection.topics), len(connection._followed._waiting)) == (3, waiting)


async def test_topics_of_epochs_that_are_written_in_are_announced_before_those_of_earlier_ones(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """And a repo's before those of a repo that came earlier. What has no room is not followed at all."""
    with open_nodes(tmp_path, "alice") as (alice,):
        older, later = (alice.author.create_repo(f"repo {number}")[0] for number in range(2))
        for _ in range(3):
            alice.author.start_epoch(later)
        alice.hub.topics_changed()
        async with met(alice):
            await wait_all_tasks_blocked()
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            epochs = [alice.replica.writing_epoch(repo) for repo in (later, older)]
            announced = [one.topic for one in connection.topics]
            assert announced == [epochs[0].topic, epochs[0].writers_topic, epochs[1].topic]


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
    while not rates.find_flood(message, 0.0):
        taken += 1
    assert taken == MESSAGES_AT_ONCE_MAX + 5 * share
