"""Announcements of topics: what is heard before this side follows, and how many go into one message."""

import pytest

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import Digest, SessionId, TopicKey
from protocol.limits.peers import TOPIC_COUNT_MAX
from protocol.session.events import CommitsAccepted, MessageReceived, RoomWanted, TopicFollowed
from protocol.session.messages import Announce, Deposit, Relay, Summary
from protocol.session.outputs import LoadEarlier, LoadSummary, Output, Send, say_together
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
TOPICS = [TopicKey(number.to_bytes(32, "big")) for number in range(TOPIC_COUNT_MAX + 1)]
ONE, OTHER = TOPICS[:2]


def _theirs(topic: TopicKey) -> Announce:
    return Announce((announced_topic(topic, SESSION_ID, by_dialer=False),))


def test_what_the_peer_alone_has_announced_is_remembered_until_this_side_follows() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    assert not session.has_heard_of(ONE)
    session.handle(MessageReceived(_theirs(ONE)))
    assert (session.has_heard_of(ONE), session.has_heard_of(OTHER)) == (True, False)
    assert LoadSummary(ONE) in session.handle(TopicFollowed(ONE, is_own=False))
    assert not session.has_heard_of(ONE), "both follow it"


def test_nothing_is_known_of_a_topic_that_is_not_followed() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(MessageReceived(_theirs(ONE)))
    assert session.progress_of(ONE) is None
    assert not session.has_joined(ONE)
    session.handle(TopicFollowed(ONE, is_own=False))
    progress = session.progress_of(ONE)
    assert progress is not None
    assert progress.topic == ONE


def test_topics_whose_progress_may_have_changed_are_told_once() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(TopicFollowed(ONE, is_own=False))
    session.handle(TopicFollowed(OTHER, is_own=False))
    assert session.take_changed() == {ONE, OTHER}
    assert session.take_changed() == set()
    session.handle(MessageReceived(_theirs(OTHER)))
    assert session.take_changed() == {OTHER}


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two topics have room at once."""
    for place in ("session", "room"):
        monkeypatch.setattr(f"protocol.session.{place}.TOPIC_COUNT_MAX", 2)


def _announced_by(session: Session, count: int) -> None:
    for topic in TOPICS[:count]:
        session.handle(TopicFollowed(topic, is_own=True, is_entrusted=True))


@pytest.mark.usefixtures("two")
def test_topics_that_the_peer_has_not_announced_are_put_by_for_others_and_joined_once_it_does() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(MessageReceived(_theirs(TOPICS[9])))
    _announced_by(session, 2)
    may_announce = [session.may_announce]
    session.handle(RoomWanted())
    assert [*may_announce, session.may_announce] == [False, True]
    assert (session.progress_of(ONE), session.topics) == (None, [])
    assert session.handle(CommitsAccepted(ONE, (1,))) == []
    session.handle(TopicFollowed(TOPICS[2], is_own=True))
    outputs = session.handle(MessageReceived(_theirs(OTHER)))
    assert outputs == [LoadSummary(OTHER), LoadEarlier(OTHER, is_asked=False)], "it was said a moment ago"
    said = Summary(blind_topic(OTHER, SESSION_ID), 0, (), 0, Digest(bytes(32)))
    assert session.handle(MessageReceived(said)) == [], "the peer may speak of it at once"
    outputs = session.handle(MessageReceived(_theirs(ONE)))
    assert outputs[0] == Send(Announce((announced_topic(ONE, SESSION_ID, by_dialer=True),))), (
        "the peer may have forgotten it"
    )
    assert session.joined_count == 2


@pytest.mark.usefixtures("two")
def test_who_announces_nothing_is_told_of_no_more_topics_than_have_room() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    _announced_by(session, 2)
    for _ in range(3):
        session.handle(RoomWanted())
        assert not session.may_announce
        session.handle(MessageReceived(Announce(())))


@pytest.mark.usefixtures("two")
def test_topics_that_a_relay_was_asked_to_keep_are_not_put_by() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(MessageReceived(Relay()))
    _announced_by(session, 2)
    session.handle(RoomWanted())
    assert [one.topic for one in session.topics] == [ONE, OTHER]


def test_many_topics_are_announced_and_entrusted_in_as_few_messages_as_hold_them() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(MessageReceived(Relay()))
    outputs: list[Output] = []
    for topic in TOPICS:
        outputs += session.handle(TopicFollowed(topic, is_own=True, is_entrusted=True))
    last = LoadSummary(ONE)
    said = say_together([*outputs, last])
    ours = [announced_topic(topic, SESSION_ID, by_dialer=True) for topic in TOPICS]
    assert said == [
        Send(Announce(tuple(ours[:-1]))),
        Send(Announce(tuple(ours[-1:]))),
        Send(Deposit(tuple(TOPICS[:-1]))),
        Send(Deposit(tuple(TOPICS[-1:]))),
        last,
    ], "in the order in which they were followed"
    assert say_together([last]) == [last]
