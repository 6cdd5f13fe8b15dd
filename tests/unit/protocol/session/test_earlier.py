"""One comparison of all topics of a repo that rest: those of ended epochs."""

from protocol.crypto.hashing import announced_topic, blind_topic, earlier_digest
from protocol.ids import Digest, SessionId, TopicKey
from protocol.limits.peers import EARLIER_COUNT_MAX
from protocol.session.events import EarlierLoaded, MessageReceived, TopicFollowed
from protocol.session.messages import Announce, Earlier
from protocol.session.outputs import Close, EarlierCompared, LoadEarlier, LoadSummary, Output, Send
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
OWN, WRITERS = TopicKey(b"o" * 32), TopicKey(b"w" * 32)
BLIND = blind_topic(OWN, SESSION_ID)
ONE, OTHER = Digest(b"1" * 32), Digest(b"2" * 32)


def _join(topic: TopicKey, *, is_own: bool, is_relay: bool = False) -> tuple[Session, list[Output]]:
    session = Session(SESSION_ID, is_dialer=True, is_relay=is_relay)
    session.handle(TopicFollowed(topic, is_own=is_own))
    theirs = announced_topic(topic, SESSION_ID, by_dialer=False)
    return session, session.handle(MessageReceived(Announce((theirs,))))


def test_all_else_is_compared_once_an_epochs_own_topic_is_joined_and_not_with_relays() -> None:
    assert LoadEarlier(OWN, is_asked=False) in _join(OWN, is_own=True)[1]
    assert _join(WRITERS, is_own=False)[1] == [LoadSummary(WRITERS)]
    assert _join(OWN, is_own=True, is_relay=True)[1] == [LoadSummary(OWN)]


def test_each_side_says_one_digest_and_both_come_to_the_same_verdict() -> None:
    for peer, is_equal in ((ONE, True), (OTHER, False)):
        first, _ = _join(OWN, is_own=True)
        assert first.handle(EarlierLoaded(OWN, ONE)) == [Send(Earlier(BLIND, ONE))]
        assert first.handle(EarlierLoaded(OWN, OTHER)) == [], "it is said once"
        assert first.handle(MessageReceived(Earlier(BLIND, peer))) == [EarlierCompared(OWN, is_equal)]
        asked, _ = _join(OWN, is_own=True)
        assert asked.handle(MessageReceived(Earlier(BLIND, peer))) == [LoadEarlier(OWN, is_asked=True)]
        said = [Send(Earlier(BLIND, ONE)), EarlierCompared(OWN, is_equal)]
        assert asked.handle(EarlierLoaded(OWN, ONE)) == said


def test_who_sees_other_epochs_than_the_peer_answers_it() -> None:
    """The peer may know of an init by which the topic is an epoch's own."""
    session, _ = _join(WRITERS, is_own=False)
    said = Earlier(blind_topic(WRITERS, SESSION_ID), ONE)
    assert session.handle(MessageReceived(said)) == [LoadEarlier(WRITERS, is_asked=True)]
    assert session.handle(EarlierLoaded(WRITERS, ONE))[-1] == EarlierCompared(WRITERS, is_equal=True)


def test_the_last_digest_counts_and_none_comes_without_end() -> None:
    session, _ = _join(OWN, is_own=True)
    session.handle(MessageReceived(Earlier(BLIND, OTHER)))
    session.handle(EarlierLoaded(OWN, ONE))
    for _ in range(EARLIER_COUNT_MAX - 1):
        said = session.handle(MessageReceived(Earlier(BLIND, ONE)))
        assert said == [EarlierCompared(OWN, is_equal=True)]
    assert session.handle(MessageReceived(Earlier(BLIND, ONE))) == [Close("unasked_earlier")]


def test_a_digest_tells_sets_and_their_topics_apart_and_not_their_order() -> None:
    sets = [(OWN, ONE), (WRITERS, OTHER)]
    assert earlier_digest(sets) == earlier_digest(reversed(sets))
    swapped = [(OWN, OTHER), (WRITERS, ONE)]
    assert len({earlier_digest(one) for one in (sets, swapped, sets[:1], [])}) == 4
