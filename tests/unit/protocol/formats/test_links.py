"""Links: each kind is read as it was written, says what it is, shows no secret, and is bounded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs

from protocol.codec import DecodeError, encode
from protocol.crypto.hashing import link_checksum
from protocol.crypto.keys import (
    AccountToken,
    BlockKey,
    BranchSecret,
    ConvergenceSecret,
    EpochKey,
    InvitationSeed,
    WritersSecret,
)
from protocol.formats.block import Reference
from protocol.formats.body import Permission
from protocol.formats.epochs import GivenEpoch
from protocol.formats.links import (
    AskLink,
    BranchCapability,
    BranchChannel,
    DeviceLink,
    EarlierPosts,
    InvitationLink,
    NewestPosts,
    PeerAddress,
    ReadCapability,
    RelayLink,
    Voucher,
    ask_link_text,
    branch_capability_text,
    capability_text,
    decode_kept_link,
    device_link_text,
    invitation_text,
    link_kind,
    parse_ask_link,
    parse_branch_capability,
    parse_capability,
    parse_device_link,
    parse_invitation,
    parse_relay_link,
    relay_link_text,
)
from protocol.formats.text import base32_text
from protocol.ids import BranchId, ObjectId, PeerId, RepoId, Signature, TopicKey, UserId, root_branch
from protocol.limits.formats import (
    LINK_CHANNEL_COUNT_MAX,
    LINK_HEAD_COUNT_MAX,
    LINK_PEER_COUNT_MAX,
    LINK_SIZE_MAX,
)
from tests.support.ids import as_commit_id, as_epoch_id

REPO, BRANCH = RepoId(b"r" * 32), BranchId(b"b" * 32)
COMMIT, EPOCH = as_commit_id(b"c" * 32), as_epoch_id(b"e" * 32)
ROOT = Reference(ObjectId(COMMIT), BlockKey(b"Z" * 32))
PEERS = (PeerAddress("host:7474", PeerId(b"p" * 32)),)
SECRETS = ("WWWW", "XXXX", "YYYY", "ZZZZ")
"""What stands in the secrets of these links, and nowhere else in them."""
VOUCHER = Voucher(
    NewestPosts(
        UserId(b"m" * 32),
        "ann",
        1,
        TopicKey(b"t" * 32),
        EarlierPosts(GivenEpoch(EPOCH, EpochKey(b"X" * 32)), TopicKey(b"T" * 32)),
        BRANCH,
        "ideas",
        7,
        (COMMIT,),
    ),
    Signature(b"s" * 64),
)
INVITATION = InvitationLink(
    REPO,
    ROOT,
    EPOCH,
    EpochKey(b"X" * 32),
    WritersSecret(b"W" * 32),
    COMMIT,
    InvitationSeed(b"Y" * 32),
    Permission.WRITE,
    1_700_000_000_000,
    PEERS,
    VOUCHER,
    "garden",
    "ann",
)
CHANNEL = BranchChannel(EPOCH, TopicKey(b"t" * 32), BranchSecret(b"X" * 32), ConvergenceSecret(b"Y" * 32))
CAPABILITY = BranchCapability(REPO, COMMIT, BRANCH, "ideas", (CHANNEL,), PEERS)


@dataclass(frozen=True)
class Case:
    """A link of one kind, how it is written and read, and what a message calls it."""

    link: Any
    write: Callable[[Any], str]
    read: Callable[[str], Any]
    called: str


CASES = {
    "invite": Case(INVITATION, invitation_text, parse_invitation, "a bearer link"),
    "ask": Case(
        AskLink(REPO, "photos", 2, encode(INVITATION)), ask_link_text, parse_ask_link, "a link that asks"
    ),
    "read": Case(
        ReadCapability(REPO, ROOT, EPOCH, EpochKey(b"X" * 32), PEERS, "garden"),
        capability_text,
        parse_capability,
        "a read capability",
    ),
    "branch": Case(CAPABILITY, branch_capability_text, parse_branch_capability, "a branch's capability"),
    "device": Case(
        DeviceLink(UserId(b"u" * 32), encode(INVITATION)),
        device_link_text,
        parse_device_link,
        "a link for a device",
    ),
    "relay": Case(
        RelayLink(AccountToken(b"X" * 32), PEERS), relay_link_text, parse_relay_link, "a link to a relay"
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_link_is_read_as_it_was_written_also_with_space_around_it(kind: str) -> None:
    case = CASES[kind]
    text = case.write(case.link)
    assert text.startswith(f"ravel:{kind}:")
    assert case.read(text) == case.read(f"\n {text} ") == case.link


@pytest.mark.parametrize("kind", CASES)
def test_what_a_log_shows_of_a_link_has_no_secret(kind: str) -> None:
    shown = repr(CASES[kind].link)
    assert type(CASES[kind].link).__name__ in shown
    assert not [secret for secret in SECRETS if secret in shown or secret.encode().hex() in shown]


@pytest.mark.parametrize("kind", CASES)
def test_a_link_of_another_kind_is_refused_and_called_what_it_is(kind: str) -> None:
    text = CASES[kind].write(CASES[kind].link)
    for other, case in CASES.items():
        if other != kind:
            with pytest.raises(DecodeError, match=f"other_kind: {CASES[kind].called}"):
                case.read(text)


def test_a_link_of_a_kind_that_is_not_known_is_named_in_short() -> None:
    with pytest.raises(DecodeError, match=r"other_kind: a link of kind 'z{20}'$"):
        parse_invitation("ravel:" + "z" * 99 + ":aaaa")


@pytest.mark.parametrize("text", ["", "invite:aaaa", "https://example.org", "Ravel:invite:aaaa"])
def test_what_does_not_begin_as_a_link_is_none(text: str) -> None:
    with pytest.raises(DecodeError, match="not_a_link"):
        parse_invitation(text)


@pytest.mark.parametrize("coded", ["", "a", "aaaa", "a1", "ä"])
def test_a_link_without_its_checksum_was_mistyped(coded: str) -> None:
    with pytest.raises(DecodeError, match="mistyped"):
        parse_invitation("ravel:invite:" + coded)


def test_a_kind_cannot_be_changed_without_the_checksum_noticing() -> None:
    text = invitation_text(INVITATION)
    with pytest.raises(DecodeError, match="mistyped"):
        parse_capability(text.replace(":invite:", ":read:"))


def test_a_link_is_bounded_before_it_is_read_and_before_it_is_given() -> None:
    with pytest.raises(DecodeError, match="too_large"):
        parse_invitation("ravel:invite:" + "a" * LINK_SIZE_MAX)
    peers = tuple(PeerAddress("h" * 240 + ":1", PeerId(bytes([n]) * 32)) for n in range(LINK_PEER_COUNT_MAX))
    most = structs.replace(CAPABILITY, channels=(CHANNEL,) * LINK_CHANNEL_COUNT_MAX, peers=peers)
    with pytest.raises(DecodeError, match="too_large"):
        branch_capability_text(most)
    fewer = structs.replace(most, channels=most.channels[::2])
    text = branch_capability_text(fewer)
    assert len(text) <= LINK_SIZE_MAX
    assert parse_branch_capability(text) == fewer


@pytest.mark.parametrize(
    "wrong",
    [
        {"heads": ()},
        {"heads": (COMMIT,) * (LINK_HEAD_COUNT_MAX + 1)},
        {"rank": -1},
        {"rank": 2**53 - 1},
        {"branch_name": ""},
    ],
)
def test_what_a_link_states_of_the_newest_posts_is_bounded(wrong: dict[str, Any]) -> None:
    states = structs.replace(VOUCHER.states, **wrong)
    link = structs.replace(INVITATION, voucher=Voucher(states, VOUCHER.signature))
    with pytest.raises(DecodeError, match="bad_shape"):
        parse_invitation(invitation_text(link))


def test_a_branchs_capability_does_not_open_the_repo() -> None:
    text = branch_capability_text(structs.replace(CAPABILITY, branch=root_branch(REPO)))
    with pytest.raises(DecodeError, match="bad_shape: a root branch"):
        parse_branch_capability(text)


def test_a_link_for_a_device_holds_an_invitation() -> None:
    link = CASES["device"].link
    assert link.opened() == INVITATION
    assert parse_device_link(device_link_text(link)).opened() == INVITATION
    with pytest.raises(DecodeError):
        parse_device_link(device_link_text(structs.replace(link, invitation=b"none")))


def test_a_kept_link_says_whose_device_it_makes_the_user() -> None:
    assert decode_kept_link(encode(INVITATION)) == (INVITATION, None)
    assert decode_kept_link(encode(CASES["device"].link)) == (INVITATION, UserId(b"u" * 32))
    assert "X" * 9 not in repr(VOUCHER)
    for other in (encode(CAPABILITY), b""):
        with pytest.raises(DecodeError):
            decode_kept_link(other)


def test_what_a_text_says_to_be_is_told_without_reading_it() -> None:
    texts = {kind: f"  ravel:{kind}:mistyped" for kind in CASES}
    assert all(link_kind(text) == kind for kind, text in texts.items())
    assert link_kind("ravel:asks:") == "asks"
    assert [link_kind(text) for text in ("", "ravel:ask", "http:ask:", "ask:")] == [""] * 4


def test_a_link_of_a_later_version_is_said_to_be_one() -> None:
    payload = encode(["invitation99", b"anything"])
    coded = base32_text(payload + link_checksum(b"invite" + payload))
    with pytest.raises(DecodeError, match="unknown_version: invitation99"):
        parse_invitation(f"ravel:invite:{coded}")
