"""Encrypts the key of an epoch from one user to another outside the repo (authenticated public-key encryption, crypto_box).

Members of the repo are sealed to by `protocol.crypto.epoch_boxes`. This is for keys that travel in another repo: a
person's devices, and lobbies. A crypto_box (X25519, XSalsa20-Poly1305) between the Curve25519 forms of their user keys, so
the receiver knows who sealed it, and nobody but the two can open it. The repo's id is inside: a box for one repo opens
nothing in another.
"""

from hmac import compare_digest
from typing import Annotated, Final

from msgspec import Meta
from nacl import bindings
from nacl.exceptions import CryptoError

from protocol.crypto.keys import EpochKey, SigningKey
from protocol.crypto.signing import BadSignature, verify_public_key
from protocol.ids import RepoId, UserId

NONCE_SIZE: Final = bindings.crypto_box_NONCEBYTES
SEALED_KEY_SIZE: Final = NONCE_SIZE + 16 + 64  # nonce, authenticator, repo id and key
SealedKey = Annotated[bytes, Meta(min_length=SEALED_KEY_SIZE, max_length=SEALED_KEY_SIZE)]


class NotForUs(Exception):
    """The box was sealed by or for somebody else, for another repo, or was altered."""


def seal_key(author_secret: SigningKey, user: UserId, repo_id: RepoId, key: EpochKey, nonce: bytes) -> bytes:
    """Seal an epoch's key for `user`. `nonce` must be random. Raises BadSignature when the user's id is no legal key."""
    verify_public_key(user)
    theirs = bindings.crypto_sign_ed25519_pk_to_curve25519(user)
    ours = bindings.crypto_sign_ed25519_sk_to_curve25519(author_secret)
    return nonce + bindings.crypto_box(repo_id + key, nonce, theirs, ours)


def open_key(user_secret: SigningKey, author: UserId, repo_id: RepoId, sealed: bytes) -> EpochKey:
    """Open the key that `author` sealed for the holder of `user_secret`. Raises NotForUs."""
    try:
        verify_public_key(author)
        theirs = bindings.crypto_sign_ed25519_pk_to_curve25519(author)
        ours = bindings.crypto_sign_ed25519_sk_to_curve25519(user_secret)
        opened = bindings.crypto_box_open(sealed[NONCE_SIZE:], sealed[:NONCE_SIZE], theirs, ours)
    except (BadSignature, CryptoError, ValueError) as error:
        raise NotForUs(str(error)) from None
    if len(opened) != 64 or not compare_digest(opened[:32], repo_id):
        raise NotForUs("of another repo")
    return EpochKey(opened[32:])
