"""Nodes that a relay names to each other: who may ask, on what, and how many."""

from typing import Final

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import PeerId, SessionId, TopicKey
from protocol.limits.peers import MEETING_TOPICS_MAX, NODES_NAMED_MAX, NODES_OF_MEETING_MAX
from protocol.session.events import (
    CircuitsTaken,
    MessageReceived,
    NodesFound,
    RendezvousWanted,
    TopicFollowed,
)
from protocol.session.messages import Announce, Circuits, Meet, Message, Nodes, Relay
from protocol.session.outputs import (
    Close,
    LoadEarlier,
    LoadSummary,
    NodesLearned,
    Output,
    RendezvousAsked,
    RendezvousPossible,
    Send,
)
from protocol.session.session import Session

SESSION_ID: Final = SessionId(b"s" * 32)
ROOT: Final = TopicKey(b"r" * 32)
BLIND: Final = blind_topic(ROOT, SESSION_ID)
CAROL: Final = PeerId(b"c" * 32)


def _hear(session: Session, message: Message) -> list[Output]:
    return session.handle(MessageReceived(message))


def _join(
    session: Session, topic: TopicKey = ROOT, *, is_entrusted: bool = True, is_own: bool = True
) -> list[Output]:
    session.handle(TopicFollowed(topic, is_own=is_own, is_entrusted=is_entrusted))
    outputs = _hear(session, Announce((announced_topic(topic, SESSION_ID, by_dialer=False),)))
    return [output for output in outputs if not isinstance(output, LoadEarlier)]


def _node() -> Session:
    """A node at a relay that passes circuits on, and that it uses."""
    session = Session(SESSION_ID, is_dialer=True)
    _hear(session, Relay())
    _hear(session, Circuits())
    session.handle(CircuitsTaken())
    return session


def _relay() -> Session:
    """A relay that keeps a topic for a node which takes circuits."""
    session = Session(SESSION_ID, is_dialer=True, is_relay=True)
    session.handle(CircuitsTaken())
    _hear(session, Circuits())
    _join(session)
    return session


def test_a_root_topic_that_a_relay_was_asked_to_keep_is_one_to_meet_on() -> None:
    session = _node()
    assert _join(session) == [LoadSummary(ROOT), RendezvousPossible(ROOT)]
    assert session.handle(RendezvousWanted(ROOT)) == [Send(Meet(BLIND))]
    assert session.handle(RendezvousWanted(ROOT)) == [], "once"
    assert _hear(session, Nodes(BLIND, (CAROL,))) == [NodesLearned(ROOT, (CAROL,))]


def test_a_topic_that_was_joined_before_circuits_were_agreed_is_one_too() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    _hear(session, Relay())
    _join(session)
    _hear(session, Circuits())
    assert RendezvousPossible(ROOT) in session.handle(CircuitsTaken())


def test_other_topics_are_not() -> None:
    for is_entrusted, is_own in ((False, True), (True, False)):
        session = _node()
        assert _join(session, is_entrusted=is_entrusted, is_own=is_own) == [LoadSummary(ROOT)]
    session = Session(SESSION_ID, is_dialer=True)
    _hear(session, Circuits())
    session.handle(CircuitsTaken())
    assert _join(session) == [LoadSummary(ROOT)], "the peer is no relay"


def test_who_was_not_asked_names_nobody() -> None:
    session = _node()
    _join(session)
    assert _hear(session, Nodes(BLIND, (CAROL,))) == [Close("unasked_nodes")]


def test_one_node_over_the_bound_ends_the_session() -> None:
    session = _node()
    _join(session)
    session.handle(RendezvousWanted(ROOT))
    many = (CAROL,) * NODES_NAMED_MAX
    for _ in range(NODES_OF_MEETING_MAX // NODES_NAMED_MAX):
        assert _hear(session, Nodes(BLIND, many)) == [NodesLearned(ROOT, many)]
    assert _hear(session, Nodes(BLIND, (CAROL,))) == [Close("too_many_nodes")]


def test_a_relay_names_as_many_as_it_may_in_messages_of_a_bounded_size() -> None:
    session = _relay()
    assert session.handle(NodesFound(ROOT, (CAROL,))) == [], "the peer has not asked"
    assert _hear(session, Meet(BLIND)) == [RendezvousAsked(ROOT)]
    assert _hear(session, Meet(BLIND)) == [], "it is known"
    nodes = tuple(PeerId(number.to_bytes(32, "big")) for number in range(NODES_OF_MEETING_MAX + 1))
    outputs = session.handle(NodesFound(ROOT, nodes))
    said = [one.message.nodes for one in outputs if isinstance(one, Send) and isinstance(one.message, Nodes)]
    assert [len(one) for one in said] == [NODES_NAMED_MAX] * (NODES_OF_MEETING_MAX // NODES_NAMED_MAX)
    assert session.handle(NodesFound(ROOT, nodes)) == []


def test_nobody_meets_where_no_relay_passes_circuits_on() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    _join(session)
    assert _hear(session, Meet(BLIND)) == [Close("no_circuits")]


def test_one_topic_over_the_bound_ends_the_session() -> None:
    session = _relay()
    for number in range(MEETING_TOPICS_MAX + 1):
        topic = TopicKey(number.to_bytes(32, "big"))
        _join(session, topic)
        outputs = _hear(session, Meet(blind_topic(topic, SESSION_ID)))
    assert outputs == [Close("too_many_meetings")]
