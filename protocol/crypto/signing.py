"""Ed25519 signatures with strict checks, by libsodium alone, so that all nodes agree on every edge case.

Libraries disagree on edge cases (ed25519-speccheck), so nodes on different libraries would disagree on commits. Ravel
uses libsodium alone and refuses before it what libsodium may let through: non-canonical encodings of S, A and R, points
of small order, and keys outside the prime-order group (`crypto_core_ed25519_is_valid_point`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, overload

from nacl import bindings, exceptions

from protocol.crypto.keys import InvitationSeed, NodeSeed, RepoSeed, Seed, SigningKey, TopicSeed, UserSeed
from protocol.ids import Digest, InvitationKey, PeerId, PublicKey, RepoId, Signature, TopicKey, UserId

_KEYS_REMEMBERED_MAX: Final = 4096  # about 1 MB
_SEEDS_REMEMBERED_MAX: Final = 256
"""Topics that are written to at a time: 50 KB. Their seeds are in memory anyway."""
_FIELD_PRIME: Final = 2**255 - 19
_GROUP_ORDER: Final = 2**252 + 27742317777372353535851937790883648493

# The y coordinates of the eight points whose order divides 8 (RFC 8032 arithmetic): 0 (twice), 1, -1 and two pairs.
SMALL_ORDER_Y: Final = frozenset(
    {
        0,
        1,
        _FIELD_PRIME - 1,
        2707385501144840649318225287225658788936804267575313519463743609750303402022,
        55188659117513257062467267217118295137698188065244968500265048394206261417927,
    }
)


class BadSignature(Exception):
    """The signature does not hold, or the key is not one that may sign."""


@overload
def key_pair(seed: UserSeed) -> tuple[UserId, SigningKey]: ...
@overload
def key_pair(seed: NodeSeed) -> tuple[PeerId, SigningKey]: ...
@overload
def key_pair(seed: RepoSeed) -> tuple[RepoId, SigningKey]: ...
@overload
def key_pair(seed: InvitationSeed) -> tuple[InvitationKey, SigningKey]: ...
@overload
def key_pair(seed: TopicSeed) -> tuple[TopicKey, SigningKey]: ...
def key_pair(seed: Seed) -> tuple[Any, SigningKey]:
    """(public key of 32 bytes, secret key of 64 bytes as libsodium holds it) of a 32-byte seed."""
    public, secret = bindings.crypto_sign_seed_keypair(seed)
    return public, SigningKey(secret)


@lru_cache(maxsize=_SEEDS_REMEMBERED_MAX)
def topic_key_pair(seed: TopicSeed) -> tuple[TopicKey, SigningKey]:
    """`key_pair` of a topic's seed, remembered: making one takes as long as a signature, and each commit is signed with one.

    Other seeds are not remembered here: those of repos and invitations sign once, and must not stay in memory.
    """
    return key_pair(seed)


@overload
def public_key(seed: UserSeed) -> UserId: ...
@overload
def public_key(seed: NodeSeed) -> PeerId: ...
@overload
def public_key(seed: RepoSeed) -> RepoId: ...
@overload
def public_key(seed: InvitationSeed) -> InvitationKey: ...
@overload
def public_key(seed: TopicSeed) -> TopicKey: ...
def public_key(seed: Seed) -> Any:
    """Return the public key of a seed."""
    return bindings.crypto_sign_seed_keypair(seed)[0]


def sign(secret_key: SigningKey, message: bytes) -> Signature:
    """Return the deterministic Ed25519 signature (64 bytes) of a message: a 32-byte digest, or a context and a handshake's
    hash.
    """
    return Signature(bindings.crypto_sign(message, secret_key)[:64])


def verify_signature(key: PublicKey, message: bytes, signature: Signature) -> None:
    """Raise BadSignature unless `signature` is `key`'s own of `message`, in canonical form."""
    if len(key) != 32 or len(signature) != 64:
        raise BadSignature("wrong length")
    if int.from_bytes(signature[32:], "little") >= _GROUP_ORDER:
        raise BadSignature("S is not reduced")
    if not is_good_point(signature[:32]):
        raise BadSignature("R is of small order or not canonical")
    if not may_sign(key):
        raise BadSignature("not a public key")
    try:
        bindings.crypto_sign_open(signature + message, key)
    except (exceptions.BadSignatureError, ValueError):
        raise BadSignature("signature does not match") from None


class Claim(NamedTuple):
    """Signature to be checked: `key` signed `digest` with `signature`."""

    key: PublicKey
    digest: Digest
    signature: Signature


CheckClaims = Callable[[Sequence[Claim]], Sequence[bool]]
"""Says of each claim whether it holds. `check_claims`, or something that runs it elsewhere."""


def check_claims(claims: Iterable[tuple[PublicKey, Digest, Signature]]) -> list[bool]:
    """Check each claim, here and now."""
    return [_holds(key, digest, signature) for key, digest, signature in claims]


def _holds(key: PublicKey, digest: Digest, signature: Signature) -> bool:
    try:
        verify_signature(key, digest, signature)
    except BadSignature:
        return False
    return True


def is_good_point(encoded: bytes) -> bool:
    """Return True if 32 bytes are the canonical encoding of a y coordinate that no point of small order has."""
    y = int.from_bytes(encoded, "little") & (2**255 - 1)
    return y < _FIELD_PRIME and y not in SMALL_ORDER_Y


def verify_public_key(key: PublicKey) -> None:
    """Raise BadSignature unless `key` may stand for someone: on the curve, canonical, in the prime-order group."""
    if not may_sign(key):
        raise BadSignature("not a public key")


@lru_cache(maxsize=_KEYS_REMEMBERED_MAX)
def may_sign(key: PublicKey) -> bool:
    """Return True if a key may sign at all: it is in the prime-order group, in canonical form.

    Remembered: looking takes nearly as long as checking a signature, and the same few keys sign again and again.
    """
    return len(key) == 32 and is_good_point(key) and bindings.crypto_core_ed25519_is_valid_point(key)
