"""Presences of texts: what seals them, what a session passes on, and their bounds."""

import pytest
from msgspec.structs import replace

from protocol.codec import DecodeError
from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.crypto.keys import ReadKey, UserSeed
from protocol.crypto.signing import key_pair, public_key, sign
from protocol.ids import AnnouncedTopic, BranchId, SessionId, TopicKey, UserId
from protocol.limits.peers import PRESENCE_BOX_SIZE_MAX
from protocol.limits.users import TEXT_POSITION_SIZE_MAX, TEXT_ROOT_SIZE_MAX, TEXT_TYPED_SIZE_MAX
from protocol.session.events import MessageReceived, PresenceTold, TopicFollowed
from protocol.session.features import FEATURES
from protocol.session.messages import (
    Announce,
    Features,
    Message,
    PresenceSaid,
    Relay,
    decode_message,
    encode_message,
)
from protocol.session.outputs import Close, PresenceSeen, Send
from protocol.session.presence import (
    PRESENCE_NONCE_SIZE,
    ForgedPresence,
    Presence,
    PresencePlace,
    open_presence,
    seal_presence,
)
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
TOPIC = TopicKey(b"r" * 32)
BLIND = blind_topic(TOPIC, SESSION_ID)
KEY = ReadKey(b"k" * 32)
PLACE = PresencePlace(AnnouncedTopic(b"p" * 32))
SEED = UserSeed(b"u" * 32)
USER, SECRET = key_pair(SEED)
NONCE = b"n" * PRESENCE_NONCE_SIZE
BRANCH = BranchId(b"b" * 32)
HERE = Presence(b"12345678", BRANCH, "text", b"anchor", b"head", "typed", 7, 5)


def _seal(presence: Presence = HERE, *, user: UserId = USER, place: PresencePlace = PLACE) -> bytes:
    return seal_presence(KEY, place, user, lambda digest: sign(SECRET, digest), presence, NONCE)


def _session(*first: Message, is_dialer: bool = True) -> Session:
    session = Session(SESSION_ID, is_dialer=is_dialer)
    session.handle(TopicFollowed(TOPIC, is_own=True))
    for message in first:
        session.handle(MessageReceived(message))
    theirs = announced_topic(TOPIC, SESSION_ID, by_dialer=not is_dialer)
    session.handle(MessageReceived(Announce((theirs,))))
    return session


def test_a_presence_is_opened_by_members_where_it_was_said() -> None:
    assert open_presence(KEY, PLACE, _seal()) == (USER, HERE)
    assert not HERE.has_left
    assert Presence(b"12345678", BRANCH).has_left
    mine, theirs = _session(), _session(is_dialer=False)
    assert mine.presence_place(TOPIC, by_us=True) == theirs.presence_place(TOPIC, by_us=False)
    assert mine.presence_place(TOPIC, by_us=True) != theirs.presence_place(TOPIC, by_us=True)


def test_a_forged_presence_is_told_apart() -> None:
    box = _seal()
    forged = [
        (ReadKey(b"x" * 32), PLACE, box),
        (KEY, PresencePlace(AnnouncedTopic(b"q" * 32)), box),
        (KEY, PLACE, box[:-1] + bytes([box[-1] ^ 1])),
        (KEY, PLACE, b""),
        (KEY, PLACE, box[:PRESENCE_NONCE_SIZE]),
        (KEY, PLACE, _seal(user=public_key(UserSeed(b"v" * 32)))),
        (KEY, PLACE, _seal(Presence(b"short", BRANCH, "text"))),
        (KEY, PLACE, _seal(Presence(b"12345678", BranchId(b"short"), "text"))),
        (KEY, PLACE, _seal(Presence(b"12345678", BRANCH, "x" * (TEXT_ROOT_SIZE_MAX + 1)))),
        (KEY, PLACE, _seal(Presence(b"12345678", BRANCH, "text", b"x" * (TEXT_POSITION_SIZE_MAX + 1)))),
        (KEY, PLACE, _seal(replace(HERE, typed="x" * (TEXT_TYPED_SIZE_MAX + 1)))),
        (KEY, PLACE, _seal(replace(HERE, client=2**53))),
        (KEY, PLACE, _seal(replace(HERE, clock=2**53))),
    ]
    for key, place, said in forged:
        with pytest.raises(ForgedPresence):
            open_presence(key, place, said)


def test_the_longest_presence_fits_its_message_and_one_byte_more_is_refused() -> None:
    position = b"x" * TEXT_POSITION_SIZE_MAX
    words = "\U0001f600" * TEXT_TYPED_SIZE_MAX
    root = "\U0001f600" * TEXT_ROOT_SIZE_MAX
    longest = Presence(b"12345678", BRANCH, root, position, position, words, 2**53 - 1, 2**53 - 1)
    box = _seal(longest)
    assert len(box) <= PRESENCE_BOX_SIZE_MAX
    assert open_presence(KEY, PLACE, box) == (USER, longest)
    full = PresenceSaid(BLIND, bytes(PRESENCE_BOX_SIZE_MAX))
    assert decode_message(encode_message(full)) == full
    with pytest.raises(DecodeError, match="bad_shape"):
        decode_message(encode_message(PresenceSaid(BLIND, bytes(PRESENCE_BOX_SIZE_MAX + 1))))


def test_peers_that_know_presences_and_have_joined_the_topic_are_told() -> None:
    told = PresenceTold(TOPIC, b"box")
    assert _session(Features(FEATURES)).handle(told) == [Send(PresenceSaid(BLIND, b"box"))]
    assert _session().handle(told) == [], "an older peer is not"
    assert _session(Features(("files",))).handle(told) == [], "nor one that leaves this out"
    assert _session(Features(FEATURES), Relay()).handle(told) == [], "nor a relay"
    apart = Session(SESSION_ID, is_dialer=True)
    apart.handle(TopicFollowed(TOPIC, is_own=True))
    apart.handle(MessageReceived(Features(FEATURES)))
    assert apart.handle(told) == []


def test_what_a_peer_says_of_a_joined_topic_is_passed_on_and_of_others_refused() -> None:
    said = MessageReceived(PresenceSaid(BLIND, b"box"))
    assert _session().handle(said) == [PresenceSeen(TOPIC, b"box")]
    foreign = MessageReceived(PresenceSaid(blind_topic(TopicKey(b"f" * 32), SESSION_ID), b"box"))
    assert _session().handle(foreign) == [Close("unknown_topic")]
