"""Recovery friends: what they sign, and how much a body names."""

import pytest

from protocol.codec import DecodeError
from protocol.crypto import signing
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import BadSignature
from protocol.formats.body import (
    FriendSignature,
    Move,
    Permission,
    RecoveryFriends,
    RecoveryGrant,
    decode_body,
    encode_body,
)
from protocol.formats.links import RecoveryText, SignedRecovery, parse_recovery, recovery_text
from protocol.formats.proofs import recovery_digest, verify_recovery
from protocol.ids import CommitId, RepoId, UserId
from protocol.limits.formats import RECOVERY_FRIEND_COUNT_MAX, RECOVERY_TEXT_COUNT_MAX
from tests.support.ids import as_commit_id

REPO = RepoId(bytes(range(32)))
NAMING: CommitId = as_commit_id(REPO)
PEOPLE = [signing.key_pair(UserSeed(bytes([number]) * 32)) for number in range(1, 4)]
PHONE = PEOPLE[0][0]


def grant(permission: Permission = Permission.WRITE) -> RecoveryGrant:
    """A grant of write to the phone, signed by the other two."""
    digest = recovery_digest(REPO, NAMING, PHONE, Permission.WRITE)
    signed = tuple(FriendSignature(user, signing.sign(secret, digest)) for user, secret in PEOPLE[1:])
    return RecoveryGrant(NAMING, PHONE, permission, signed)


def test_a_friend_signs_repo_naming_device_and_permission() -> None:
    verify_recovery(REPO, grant())
    with pytest.raises(BadSignature):
        verify_recovery(REPO, grant(Permission.ADMIN))
    with pytest.raises(BadSignature):
        verify_recovery(RepoId(bytes(32)), grant())


@pytest.mark.parametrize(
    "body", [Move(PHONE, NAMING), RecoveryFriends((), 0), RecoveryFriends((PHONE,), 1), grant()]
)
def test_bodies_come_back(body: Move | RecoveryFriends | RecoveryGrant) -> None:
    assert decode_body(encode_body(body)) == body


def test_fifteen_friends_and_as_many_signatures_are_a_shape() -> None:
    most = tuple(UserId(bytes([number]) * 32) for number in range(RECOVERY_FRIEND_COUNT_MAX))
    signature = grant().signatures[0].signature
    signed = tuple(FriendSignature(user, signature) for user in most)
    encode_body(RecoveryFriends(most, RECOVERY_FRIEND_COUNT_MAX))
    encode_body(RecoveryGrant(NAMING, PHONE, Permission.READ, signed))
    for body in (
        RecoveryFriends((*most, PHONE), 8),
        RecoveryFriends(most, RECOVERY_FRIEND_COUNT_MAX + 1),
        RecoveryGrant(NAMING, PHONE, Permission.READ, (*signed, signed[0])),
    ):
        with pytest.raises(DecodeError):
            encode_body(body)


def test_a_text_has_signatures_for_64_repos_and_a_checksum() -> None:
    signed = SignedRecovery(REPO, NAMING, Permission.WRITE, grant().signatures[0].signature)
    most = RecoveryText(PHONE, PEOPLE[1][0], (signed,) * RECOVERY_TEXT_COUNT_MAX)
    text = recovery_text(most)
    assert parse_recovery(text) == most
    with pytest.raises(DecodeError, match="mistyped"):
        parse_recovery(text[:-1] + ("a" if text[-1] != "a" else "b"))
    with pytest.raises(DecodeError):
        parse_recovery(recovery_text(RecoveryText(PHONE, PHONE, (signed,) * (RECOVERY_TEXT_COUNT_MAX + 1))))
