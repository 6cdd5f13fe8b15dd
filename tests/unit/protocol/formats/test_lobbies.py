"""What a request to join says, its code, and the link by which it is made."""

import pytest

from protocol.codec import DecodeError, encode
from protocol.crypto.keys import BlockKey, EpochKey, InvitationSeed
from protocol.formats.block import Reference
from protocol.formats.body import Permission, UnknownBody, decode_body
from protocol.formats.links import (
    AskLink,
    InvitationLink,
    ask_link_text,
    find_kept_ask,
    parse_ask_link,
    parse_invitation,
)
from protocol.formats.lobbies import LobbyAdd, code_numbers, encode_note, requester_name
from protocol.ids import EpochId, ObjectId, RepoId, UserId
from protocol.limits.formats import LOBBY_ADMIN_COUNT_MAX, METADATA_SIZE_MAX, PROFILE_NAME_LENGTH_MAX
from tests.support.ids import as_commit_id

LOBBY, REPO = RepoId(b"l" * 32), RepoId(b"r" * 32)
USER, REQUEST = UserId(b"u" * 32), as_commit_id(b"q" * 32)
OTHER = b"o" * 32
INVITATION = InvitationLink(
    LOBBY,
    Reference(ObjectId(as_commit_id(OTHER)), BlockKey(OTHER)),
    EpochId(REQUEST),
    EpochKey(b"s" * 32),
    None,
    REQUEST,
    InvitationSeed(b"i" * 32),
    Permission.READ,
    0,
    (),
    None,
    "requests",
    None,
)


@pytest.mark.parametrize(
    "metadata, name",
    [
        (encode_note("Zoë"), "Zoë"),
        (encode_note(None), None),
        (encode_note("x" * PROFILE_NAME_LENGTH_MAX), "x" * PROFILE_NAME_LENGTH_MAX),
        (encode(["ask1", "x" * (PROFILE_NAME_LENGTH_MAX + 1)]), None),
        (encode(["ask1", "x" * METADATA_SIZE_MAX]), None),
        (encode(["ask1", ""]), None),
        (encode(["ask1", "Ann\u202e"]), None),
        (encode(["ask2", "Ann"]), None),
        (encode_note("Ann") + b"\0", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_a_request_states_a_name_or_none(metadata: bytes, name: str | None) -> None:
    assert requester_name(metadata) == name


def test_the_code_is_six_words_of_everything_that_the_request_is_about() -> None:
    code = code_numbers(LOBBY, REPO, USER, REQUEST)
    assert len(code) == 6
    assert all(0 <= number < 2048 for number in code)
    others = [
        code_numbers(RepoId(OTHER), REPO, USER, REQUEST),
        code_numbers(LOBBY, RepoId(OTHER), USER, REQUEST),
        code_numbers(LOBBY, REPO, UserId(OTHER), REQUEST),
        code_numbers(LOBBY, REPO, USER, as_commit_id(OTHER)),
    ]
    assert len({code, *others}) == 5


def test_a_link_that_asks_is_read_as_it_was_written_and_shows_no_secret() -> None:
    link = AskLink(REPO, "photos", 2, encode(INVITATION))
    text = ask_link_text(link)
    assert text.startswith("ravel:ask:")
    assert parse_ask_link(text) == link
    assert find_kept_ask(encode(link)) == link
    assert find_kept_ask(encode(INVITATION)) is None
    assert find_kept_ask(None) is None
    assert INVITATION.key.hex() not in repr(link)
    with pytest.raises(DecodeError, match="other_kind: a link that asks"):
        parse_invitation(text)


def test_a_link_that_asks_holds_an_invitation() -> None:
    with pytest.raises(DecodeError):
        parse_ask_link(ask_link_text(AskLink(REPO, "photos", 2, b"no invitation")))


@pytest.mark.parametrize("permission", [0, 3])
def test_a_link_that_asks_gives_no_more_than_writing(permission: int) -> None:
    text = ask_link_text(AskLink(REPO, "photos", permission, encode(INVITATION)))
    with pytest.raises(DecodeError, match="bad_shape"):
        parse_ask_link(text)


def test_a_lobby_that_does_not_decode_is_a_body_of_an_unknown_kind() -> None:
    box = [USER, bytes(104)]
    fields = ["lobby-add2", LOBBY, [OTHER, OTHER], OTHER, OTHER, 2, 0]
    assert isinstance(decode_body(encode([*fields, [box] * LOBBY_ADMIN_COUNT_MAX])), LobbyAdd)
    assert decode_body(encode([*fields, [box] * (LOBBY_ADMIN_COUNT_MAX + 1)])) == UnknownBody("lobby-add2")
    assert decode_body(encode(["lobby1", b"short"])) == UnknownBody("lobby1")
    assert decode_body(encode(["lobby-answer2", OTHER, []])) == UnknownBody("lobby-answer2")
