"""One comparison of all topics of a repo that rest: those of ended epochs."""

import random
from collections import deque
from contextlib import nullcontext

import pytest

from protocol.codec import DecodeError
from protocol.crypto.hashing import announced_topic, blind_topic, earlier_fingerprint
from protocol.ids import Digest, SessionId, TopicKey
from protocol.limits.peers import (
    EARLIER_DEPTH_MAX,
    EARLIER_FINGERPRINT_SIZE,
    EARLIER_PART_COUNT,
    EARLIER_PARTS_MAX,
)
from protocol.session.events import EarlierLoaded, MessageReceived, TopicFollowed
from protocol.session.messages import Announce, Earlier, decode_message, encode_message
from protocol.session.outputs import Close, EarlierCompared, LoadEarlier, LoadSummary, Output, Send
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
OWN, WRITERS = TopicKey(b"o" * 32), TopicKey(b"w" * 32)
BLIND = blind_topic(OWN, SESSION_ID)
ONE, OTHER = Digest(b"1" * 32), Digest(b"2" * 32)
Held = dict[TopicKey, Digest]


def _join(topic: TopicKey, *, is_own: bool, is_relay: bool = False) -> tuple[Session, list[Output]]:
    session = Session(SESSION_ID, is_dialer=True, is_relay=is_relay)
    session.handle(TopicFollowed(topic, is_own=is_own))
    theirs = announced_topic(topic, SESSION_ID, by_dialer=False)
    return session, session.handle(MessageReceived(Announce((theirs,))))


def _loaded(held: Held, topic: TopicKey = OWN) -> EarlierLoaded:
    return EarlierLoaded(topic, tuple(held.items()))


def _said(held: Held) -> Earlier:
    return Earlier(BLIND, len(held), earlier_fingerprint(held.items()))


def _compare(*sides: Held) -> tuple[list[tuple[TopicKey, ...]], int, int]:
    """Return what each side announces, and messages and bytes of both together."""
    sessions = [_join(OWN, is_own=True)[0] for _ in sides]
    verdicts: list[tuple[TopicKey, ...] | None] = [None, None]
    ways: deque[tuple[int, list[Output]]] = deque(
        (at, sessions[at].handle(_loaded(held))) for at, held in enumerate(sides)
    )
    messages = size = 0
    while ways:
        at, outputs = ways.popleft()
        for output in outputs:
            if isinstance(output, EarlierCompared):
                assert verdicts[at] is None
                verdicts[at] = output.differing
            else:
                assert isinstance(output, Send)
                assert isinstance(output.message, Earlier)
                messages, size = messages + 1, size + len(output.message.fingerprints)
                ways.append((1 - at, sessions[1 - at].handle(MessageReceived(output.message))))
    return [one for one in verdicts if one is not None], messages, size


def _topics(count: int, seed: int = 1) -> Held:
    chance = random.Random(seed)
    return {TopicKey(chance.randbytes(32)): Digest(chance.randbytes(32)) for _ in range(count)}


def test_all_else_is_compared_once_an_epochs_own_topic_is_joined_and_not_with_relays() -> None:
    assert LoadEarlier(OWN, is_asked=False) in _join(OWN, is_own=True)[1]
    assert _join(WRITERS, is_own=False)[1] == [LoadSummary(WRITERS)]
    assert _join(OWN, is_own=True, is_relay=True)[1] == [LoadSummary(OWN)]


def test_where_all_is_equal_each_side_says_one_fingerprint() -> None:
    held = _topics(500)
    assert _compare(held, dict(reversed(held.items()))) == ([(), ()], 2, 2 * EARLIER_FINGERPRINT_SIZE)
    assert _compare({}, {})[:2] == ([(), ()], 2)


def test_who_is_asked_says_what_it_holds_once() -> None:
    held = {WRITERS: ONE}
    asked, _ = _join(OWN, is_own=True)
    assert asked.handle(MessageReceived(_said(held))) == [LoadEarlier(OWN, is_asked=True)]
    assert asked.handle(_loaded(held)) == [Send(_said(held)), EarlierCompared(OWN, ())]
    assert asked.handle(_loaded({})) == [], "it is said once"


@pytest.mark.parametrize("count", [100, 4_000])
@pytest.mark.parametrize("missed", [1, 8])
def test_as_many_topics_differ_as_one_side_lacks_and_bytes_grow_with_their_number(
    count: int, missed: int
) -> None:
    """Costs O(k log n) bytes for k topics that differ of n, and announces some k."""
    whole = _topics(count)
    late = dict(list(whole.items())[missed:])
    late[next(iter(late))] = OTHER  # held on both sides, and not the same
    (ours, theirs), messages, size = _compare(whole, late)
    differing = {*list(whole)[:missed], next(iter(late))}
    assert differing <= set(ours)
    assert len(ours) <= len(differing) + 2, "one in 16 shares its part with another"
    assert set(theirs) <= set(ours)
    depth = messages // 2 - 1
    assert depth <= 5
    assert size <= 2 * EARLIER_FINGERPRINT_SIZE * (1 + depth * EARLIER_PART_COUNT * len(differing))


def test_where_one_side_holds_nothing_the_other_announces_all_at_once() -> None:
    held = _topics(50)
    (ours, theirs), messages, _ = _compare(held, {})
    assert (set(ours), theirs, messages) == (set(held), (), 2)


def test_what_differs_in_too_many_parts_is_announced_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocol.session.earlier.EARLIER_PARTS_MAX", 10)
    first, second = _topics(1_000, seed=2), _topics(1_000, seed=3)
    (ours, theirs), messages, _ = _compare(first, second)
    assert (set(ours), set(theirs), messages) == (set(first), set(second), 4)


def test_a_peer_that_speaks_of_other_parts_is_told_of_all_topics() -> None:
    session, _ = _join(OWN, is_own=True)
    held = _topics(20)
    session.handle(_loaded(held))
    session.handle(MessageReceived(_said(_topics(20, seed=2))))
    (verdict,) = session.handle(MessageReceived(Earlier(BLIND, 20, b"f" * 17)))
    assert isinstance(verdict, EarlierCompared)
    assert set(verdict.differing) == set(held)


def test_who_sees_other_epochs_than_the_peer_answers_it() -> None:
    """The peer may know of an init by which the topic is an epoch's own."""
    session, _ = _join(WRITERS, is_own=False)
    said = Earlier(blind_topic(WRITERS, SESSION_ID), 0, earlier_fingerprint(()))
    assert session.handle(MessageReceived(said)) == [LoadEarlier(WRITERS, is_asked=True)]
    assert session.handle(_loaded({}, WRITERS))[-1] == EarlierCompared(WRITERS, ())


def test_no_more_messages_come_than_there_are_rounds() -> None:
    session, _ = _join(OWN, is_own=True)
    session.handle(_loaded({}))
    for _ in range(EARLIER_DEPTH_MAX + 1):
        assert not any(isinstance(one, Close) for one in session.handle(MessageReceived(_said({}))))
    assert session.handle(MessageReceived(_said({}))) == [Close("unasked_earlier")]


@pytest.mark.parametrize("size", [EARLIER_FINGERPRINT_SIZE, 2 * EARLIER_FINGERPRINT_SIZE])
def test_before_this_side_has_said_its_own_only_one_fingerprint_waits(size: int) -> None:
    """A relay says none of topics that it keeps for others: what a peer says of thousands would stay in memory."""
    session, _ = _join(WRITERS, is_own=False)
    blind = blind_topic(WRITERS, SESSION_ID)
    if size == EARLIER_FINGERPRINT_SIZE:
        session.handle(MessageReceived(Earlier(blind, 1, bytes(size))))
    assert session.handle(MessageReceived(Earlier(blind, 1, bytes(size)))) == [Close("unasked_earlier")]


def test_a_message_has_fingerprints_of_as_many_parts_as_are_divided_at_once() -> None:
    most = EARLIER_PARTS_MAX * EARLIER_PART_COUNT * EARLIER_FINGERPRINT_SIZE
    for size, is_good in ((most, True), (most + 1, False), (EARLIER_FINGERPRINT_SIZE - 1, False)):
        encoded = encode_message(Earlier(BLIND, 1, bytes(size)))
        with nullcontext() if is_good else pytest.raises(DecodeError):
            decode_message(encoded)


def test_a_fingerprint_tells_sets_and_their_topics_apart_and_not_their_order() -> None:
    sets = [(OWN, ONE), (WRITERS, OTHER)]
    assert earlier_fingerprint(sets) == earlier_fingerprint(reversed(sets))
    swapped = [(OWN, OTHER), (WRITERS, ONE)]
    assert len({earlier_fingerprint(one) for one in (sets, swapped, sets[:1], [])}) == 4
