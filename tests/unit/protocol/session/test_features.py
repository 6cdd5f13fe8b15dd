"""What sides say that they know: once, before topics, within bounds; and what follows of it."""

import pytest

from protocol.codec import DecodeError
from protocol.crypto.hashing import announced_topic
from protocol.ids import SessionId, TopicKey
from protocol.limits.peers import FEATURE_COUNT_MAX, FEATURE_NAME_SIZE_MAX
from protocol.session.events import MessageReceived, TopicFollowed
from protocol.session.features import FEATURES, FILES, find_newer, has_feature
from protocol.session.messages import (
    Announce,
    Features,
    Introductions,
    Message,
    Relay,
    decode_message,
    encode_message,
)
from protocol.session.outputs import Close, Output
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
TOPIC = TopicKey(b"r" * 32)
THEIRS = announced_topic(TOPIC, SESSION_ID, by_dialer=False)


def _hear(session: Session, message: Message) -> list[Output]:
    return session.handle(MessageReceived(message))


def _session() -> Session:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(TopicFollowed(TOPIC, is_own=True))
    return session


def test_features_are_known_once_they_are_said_beside_other_words() -> None:
    session = _session()
    assert not session.peer_features, "an older peer says none"
    for word in (Relay(), Features((FILES, "newer")), Introductions()):
        assert _hear(session, word) == []
    assert session.peer_is_relay
    assert find_newer(session.peer_features or ()) == ["newer"]


def test_features_are_said_once_and_before_a_topic() -> None:
    twice = _session()
    _hear(twice, Features(()))
    assert _hear(twice, Features(FEATURES)) == [Close("second_features")]
    late = _session()
    _hear(late, Announce((THEIRS,)))
    assert _hear(late, Features(FEATURES)) == [Close("late_features")]


def test_a_peer_that_has_said_nothing_may_have_every_feature() -> None:
    assert has_feature(None, FILES)
    assert has_feature({FILES}, FILES)
    assert not has_feature(set[str](), FILES)


def test_what_this_node_says_is_within_the_bounds() -> None:
    assert decode_message(encode_message(Features(FEATURES))) == Features(FEATURES)
    assert find_newer(FEATURES) == []


@pytest.mark.parametrize(
    "features, is_taken",
    [
        ([f"f{number}" for number in range(FEATURE_COUNT_MAX)], True),
        ([f"f{number}" for number in range(FEATURE_COUNT_MAX + 1)], False),
        (["x" * FEATURE_NAME_SIZE_MAX], True),
        (["x" * (FEATURE_NAME_SIZE_MAX + 1)], False),
        ([""], False),
        (["Files"], False),
        (["files\n"], False),
    ],
)
def test_names_of_features_are_bounded(features: list[str], is_taken: bool) -> None:
    frame = encode_message(Features(tuple(features)))
    if is_taken:
        assert decode_message(frame) == Features(tuple(features))
    else:
        with pytest.raises(DecodeError, match="bad_shape"):
            decode_message(frame)
