"""Nodes that a relay names to each other: who may ask, on what, and how many."""

from typing import Final

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import PeerId, SessionId, TopicKey
from protocol.limits.network import (
    MEETINGS_AT_ONCE_MAX,
    MEETINGS_PER_CHECK,
    NODES_NAMED_MAX,
    NODES_OF_MEETING_MAX,
    NODES_OF_MEETING_PER_CHECK,
)
from protocol.session.events import (
    CheckDue,
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


def test_one_node_over_the_bound_is_passed_over() -> None:
    session = _node()
    _join(session)
    session.handle(RendezvousWanted(ROOT))
    many = (CAROL,) * NODES_NAMED_MAX
    for count in (NODES_OF_MEETING_MAX, NODES_OF_MEETING_PER_CHECK):
        for _ in range(2 * count // NODES_NAMED_MAX):
            assert _hear(session, Nodes(BLIND, many)) == [NodesLearned(ROOT, many)]
        session.handle(CheckDue())
    for _ in range(2 * NODES_OF_MEETING_PER_CHECK):
        assert _hear(session, Nodes(BLIND, (CAROL,))) == [NodesLearned(ROOT, (CAROL,))]
    assert _hear(session, Nodes(BLIND, (CAROL,))) == []
    session.handle(CheckDue())
    assert _hear(session, Nodes(BLIND, (CAROL,))) == [NodesLearned(ROOT, (CAROL,))]


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
    for _ in range(3):  # who comes in the second year of a connection is named too
        session.handle(CheckDue())
        assert session.handle(NodesFound(ROOT, nodes)) == [
            Send(Nodes(BLIND, nodes[:NODES_OF_MEETING_PER_CHECK]))
        ]


def test_nobody_meets_where_no_relay_passes_circuits_on() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    _join(session)
    assert _hear(session, Meet(BLIND)) == [Close("no_circuits")]


def _topic(number: int) -> TopicKey:
    return TopicKey(number.to_bytes(32, "big"))


def test_a_node_asks_on_each_topic_in_its_time_and_a_relay_takes_that() -> None:
    """Five times as many repos as are asked for at once, then a new epoch in each: the last one meets like the first."""
    node, relay = _node(), _relay()
    topics = [_topic(number) for number in range(5 * MEETINGS_AT_ONCE_MAX)]
    asked: list[Message] = []

    def take(outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Send) and isinstance(output.message, Meet):
                asked.append(output.message)
                assert len(_hear(relay, output.message)) == 1, "it is taken"

    for topic in topics:
        _join(node, topic)
        _join(relay, topic)
        take(node.handle(RendezvousWanted(topic)))
    assert len(asked) == MEETINGS_AT_ONCE_MAX, "at once"
    checks = 0
    while len(asked) < len(topics):
        before = len(asked)
        relay.handle(CheckDue())
        take(node.handle(CheckDue()))
        assert len(asked) - before == MEETINGS_PER_CHECK
        checks += 1
    assert checks == 4 * MEETINGS_AT_ONCE_MAX // MEETINGS_PER_CHECK
    assert [one.topic for one in asked if isinstance(one, Meet)] == [
        blind_topic(topic, SESSION_ID) for topic in topics
    ]


def test_one_topic_too_many_without_a_pause_waits_for_the_next_check() -> None:
    """On a slow line the questions of half an hour come together."""
    session = _relay()

    def meet(number: int) -> list[Output]:
        _join(session, _topic(number))
        return _hear(session, Meet(blind_topic(_topic(number), SESSION_ID)))

    at_once, later = 4 * MEETINGS_AT_ONCE_MAX, 2 * MEETINGS_PER_CHECK
    for number in range(at_once):
        assert meet(number) == [RendezvousAsked(_topic(number))]
    session.handle(CheckDue())
    for number in range(at_once, at_once + later):
        assert meet(number) == [RendezvousAsked(_topic(number))]
    asked = [RendezvousAsked(_topic(at_once + later + number)) for number in range(later + 1)]
    for number in range(later + 1):
        assert meet(at_once + later + number) == []
    assert meet(at_once + later) == [], "said again, it is asked once"
    for due in (asked[:later], asked[later:], []):
        assert [one for one in session.handle(CheckDue()) if isinstance(one, RendezvousAsked)] == due
