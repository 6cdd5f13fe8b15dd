"""Introductions on a session: who is told, who may tell, and how much of it."""

import pytest

from protocol.codec import DecodeError
from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.formats.links import PeerAddress
from protocol.ids import PeerId, SessionId, TopicKey
from protocol.limits.peers import (
    INTRODUCED_COUNT_MAX,
    INTRODUCED_TO_ONE_MAX,
    INTRODUCED_TOPIC_COUNT_MAX,
    INTRODUCTIONS_SENT_AT_ONCE_MAX,
    INTRODUCTIONS_TAKEN_AT_ONCE_MAX,
)
from protocol.session.events import CheckDue, MessageReceived, PeersFound, TopicFollowed
from protocol.session.messages import (
    Announce,
    Introduce,
    Introductions,
    Message,
    Relay,
    decode_message,
    encode_message,
)
from protocol.session.outputs import Close, FindPeers, LearnPeers, LoadEarlier, LoadSummary, Output, Send
from protocol.session.reach import as_seen, may_travel
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
ROOT = TopicKey(b"r" * 32)
BLIND = blind_topic(ROOT, SESSION_ID)
BOB = PeerAddress("192.0.2.7:7474", PeerId(b"b" * 32))


def _many(count: int) -> tuple[PeerAddress, ...]:
    return tuple(PeerAddress("192.0.2.7:7474", PeerId(number.to_bytes(32, "big"))) for number in range(count))


def _join(session: Session, topic: TopicKey = ROOT, *, is_own: bool = True) -> list[Output]:
    session.handle(TopicFollowed(topic, is_own=is_own))
    outputs = _hear(session, Announce((announced_topic(topic, SESSION_ID, by_dialer=False),)))
    return [output for output in outputs if not isinstance(output, LoadEarlier)]


def _hear(session: Session, message: Message) -> list[Output]:
    return session.handle(MessageReceived(message))


def _introducing() -> Session:
    session = Session(SESSION_ID, is_dialer=True, introduces=True)
    assert _hear(session, Introductions()) == []
    assert _join(session) == [LoadSummary(ROOT), FindPeers(ROOT)]
    return session


def test_peers_are_told_and_taken_where_both_take_part() -> None:
    session = _introducing()
    assert session.handle(PeersFound(ROOT, (BOB,))) == [Send(Introduce(BLIND, (BOB,)))]
    assert session.handle(PeersFound(ROOT, (BOB,))) == [], "it has been told"
    assert _hear(session, Introduce(BLIND, (BOB,))) == [LearnPeers(ROOT, (BOB,))]


def test_what_could_not_be_told_is_looked_for_again_soon_and_everything_from_time_to_time() -> None:
    session = _introducing()
    session.handle(PeersFound(ROOT, _many(INTRODUCED_COUNT_MAX)))
    assert session.handle(CheckDue()) == [], "all was told"
    session.handle(PeersFound(ROOT, _many(2 * INTRODUCED_COUNT_MAX + 1)))
    assert session.handle(CheckDue()) == [FindPeers(ROOT)]
    session.handle(PeersFound(ROOT, _many(2 * INTRODUCED_COUNT_MAX + 1)))
    assert sum(session.handle(CheckDue()) == [FindPeers(ROOT)] for _ in range(20)) == 2


def test_nobody_is_told_who_has_not_said_to_take_part() -> None:
    session = Session(SESSION_ID, is_dialer=True, introduces=True)
    assert _join(session) == [LoadSummary(ROOT)]
    assert session.handle(PeersFound(ROOT, (BOB,))) == []


@pytest.mark.parametrize("is_relay", [False, True])
def test_who_takes_no_part_and_relays_are_told_nothing(*, is_relay: bool) -> None:
    session = Session(SESSION_ID, is_dialer=True, introduces=is_relay)
    if is_relay:
        _hear(session, Relay())
    _hear(session, Introductions())
    assert _join(session) == [LoadSummary(ROOT)]
    assert _hear(session, Introduce(BLIND, (BOB,))) == [Close("unasked_introduction")]


def test_other_branches_topics_are_not_for_introductions() -> None:
    session = Session(SESSION_ID, is_dialer=True, introduces=True)
    _hear(session, Introductions())
    main = TopicKey(b"m" * 32)
    assert _join(session, main, is_own=False) == [LoadSummary(main)]
    peers = Introduce(blind_topic(main, SESSION_ID), (BOB,))
    assert _hear(session, peers) == [Close("unasked_introduction")]


def test_taking_part_is_said_once() -> None:
    assert _hear(_introducing(), Introductions()) == [Close("second_introductions")]


def test_an_introduction_names_as_many_as_it_may() -> None:
    session = _introducing()
    (said,) = session.handle(PeersFound(ROOT, _many(INTRODUCED_COUNT_MAX + 1)))
    assert said == Send(Introduce(BLIND, _many(INTRODUCED_COUNT_MAX)))
    with pytest.raises(DecodeError, match="bad_shape"):
        decode_message(encode_message(Introduce(BLIND, _many(INTRODUCED_COUNT_MAX + 1))))


def test_introductions_are_sent_at_a_bounded_rate() -> None:
    session = _introducing()
    for one in _many(INTRODUCTIONS_SENT_AT_ONCE_MAX):
        assert session.handle(PeersFound(ROOT, (one,)))
    assert session.handle(PeersFound(ROOT, (BOB,))) == []
    session.handle(CheckDue())
    assert session.handle(PeersFound(ROOT, (BOB,))) == [Send(Introduce(BLIND, (BOB,)))]


def test_introductions_are_taken_at_a_bounded_rate() -> None:
    session = _introducing()
    for _ in range(INTRODUCTIONS_TAKEN_AT_ONCE_MAX):
        assert _hear(session, Introduce(BLIND, (BOB,))) == [LearnPeers(ROOT, (BOB,))]
    session.handle(CheckDue())
    for _ in range(2):
        assert _hear(session, Introduce(BLIND, (BOB,))) == [LearnPeers(ROOT, (BOB,))]
    assert _hear(session, Introduce(BLIND, (BOB,))) == [], (
        "on a slow line those of half an hour come together"
    )
    session.handle(CheckDue())
    assert _hear(session, Introduce(BLIND, (BOB,))) == [LearnPeers(ROOT, (BOB,))]


def test_each_address_is_told_once_as_long_as_it_is_among_the_latest() -> None:
    session = _introducing()
    told: list[PeerAddress] = []

    def tell(peers: tuple[PeerAddress, ...]) -> list[PeerAddress]:
        session.handle(CheckDue())
        said = [one.message for one in session.handle(PeersFound(ROOT, peers)) if isinstance(one, Send)]
        return [peer for one in said if isinstance(one, Introduce) for peer in one.peers]

    many = _many(INTRODUCED_TO_ONE_MAX)
    while len(told) < INTRODUCED_TO_ONE_MAX:
        told += tell(many)
    assert told == list(many)
    assert tell(many) == [], "each once"
    assert tell((BOB,)) == [BOB], "and however many were told before"
    assert tell((*many, BOB)) == [many[0]], "the first one was forgotten"


def test_introductions_are_made_on_so_many_topics() -> None:
    session = Session(SESSION_ID, is_dialer=True, introduces=True)
    _hear(session, Introductions())
    topics = [number.to_bytes(32, "big") for number in range(INTRODUCED_TOPIC_COUNT_MAX + 1)]
    asked = [FindPeers(TopicKey(topic)) in _join(session, TopicKey(topic)) for topic in topics]
    assert asked == [True] * INTRODUCED_TOPIC_COUNT_MAX + [False]


def test_topics_beyond_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocol.session.introducing.INTRODUCED_TOPIC_COUNT_MAX", 2)
    session = Session(SESSION_ID, is_dialer=True, introduces=True)
    _hear(session, Introductions())
    topics = [TopicKey(bytes([number]) * 32) for number in range(5)]
    for topic in topics:
        _join(session, topic)
    asked = [one.topic for _ in range(50) for one in session.handle(CheckDue()) if isinstance(one, FindPeers)]
    assert len(asked) == 10, "two in each turn"
    assert {topic: asked.count(topic) for topic in topics} == dict.fromkeys(topics, 2)


def test_who_was_introduced_in_one_turn_is_not_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that are idle would else tell each other of thousands of topics again and again."""
    monkeypatch.setattr("protocol.session.introducing.INTRODUCED_TOPIC_COUNT_MAX", 1)
    session = _introducing()
    _join(session, TopicKey(b"o" * 32))
    said = [
        output
        for _ in range(60)
        for wanted in session.handle(CheckDue())
        if isinstance(wanted, FindPeers)
        for output in session.handle(PeersFound(wanted.topic, (BOB,)))
    ]
    assert said == [
        Send(Introduce(blind_topic(TopicKey(b"o" * 32), SESSION_ID), (BOB,))),
        Send(Introduce(BLIND, (BOB,))),
    ]


def test_a_peer_may_introduce_on_topics_that_have_no_turn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides join the same topics in orders of their own. What it says there is bounded, too."""
    monkeypatch.setattr("protocol.session.introducing.INTRODUCED_TOPIC_COUNT_MAX", 1)
    session = _introducing()
    others = [TopicKey(bytes([number]) * 32) for number in range(3)]
    for topic in others:
        _join(session, topic)
    said = [Introduce(blind_topic(topic, SESSION_ID), (BOB,)) for topic in others]
    taken = [_hear(session, said[number % 3]) for number in range(2 * INTRODUCTIONS_TAKEN_AT_ONCE_MAX)]
    learned = [[LearnPeers(others[number % 3], (BOB,))] for number in range(INTRODUCTIONS_TAKEN_AT_ONCE_MAX)]
    assert taken == [*learned, *([[]] * INTRODUCTIONS_TAKEN_AT_ONCE_MAX)]
    session.handle(CheckDue())
    assert [_hear(session, one) for one in said] == [*learned[:2], []]


@pytest.mark.parametrize(
    "address, across, may",
    [
        ("93.184.216.34:7474", "93.184.216.35:5", True),
        ("93.184.216.34:7474", "127.0.0.1:5", True),
        ("10.0.0.1:7474", "10.0.0.2:5", True),
        ("10.0.0.1:7474", "93.184.216.35:5", False),
        ("[fd00::1]:7474", "10.0.0.2:5", True),
        ("127.0.0.1:7474", "127.0.0.1:5", True),
        ("127.0.0.1:7474", "10.0.0.2:5", False),
        ("[::1]:7474", "10.0.0.2:5", False),
        ("[::ffff:127.0.0.1]:7474", "127.0.0.1:5", False),
        ("0.0.0.0:7474", "127.0.0.1:5", False),
        ("224.0.0.251:5353", "127.0.0.1:5", False),
        ("169.254.169.254:80", "127.0.0.1:5", False),
        ("[fe80::1]:7474", "127.0.0.1:5", False),
        ("host.example:7474", "127.0.0.1:5", False),
        ("10.0.0.1:0", "10.0.0.2:5", False),
        ("10.0.0.1:07", "10.0.0.2:5", False),
        ("10.0.0.1:65536", "10.0.0.2:5", False),
        ("::1:7474", "127.0.0.1:5", False),
        ("[10.0.0.1]:7474", "10.0.0.2:5", False),
        ("10.0.0.1:7474", "unknown", False),
    ],
)
def test_an_address_travels_no_further_than_it_reaches(address: str, across: str, may: bool) -> None:
    assert may_travel(address, across) == may


def test_every_interface_is_the_one_that_the_peer_is_seen_at() -> None:
    assert as_seen("0.0.0.0:7474", "10.0.0.2:5") == "10.0.0.2:7474"
    assert as_seen("0.0.0.0:7474", "[fd00::2]:5") == "[fd00::2]:7474"
    assert as_seen("10.0.0.9:7474", "10.0.0.2:5") == "10.0.0.9:7474"
    assert as_seen("host.example:7474", "10.0.0.2:5") is None
    assert as_seen("0.0.0.0:7474", "unknown") is None


def test_who_says_after_its_topics_that_it_introduces_is_parted_from() -> None:
    announcement = Announce((announced_topic(TopicKey(b"other".ljust(32)), SESSION_ID, by_dialer=False),))
    heard = Session(SESSION_ID, is_dialer=True, introduces=True)
    assert _hear(heard, announcement) == []
    assert _hear(heard, Introductions()) == [Close("late_introductions")]
    joined = Session(SESSION_ID, is_dialer=True, introduces=True)
    _join(joined)
    assert _hear(joined, Introductions()) == [Close("late_introductions")]
