"""Boxes of an epoch: its secrets, hidden from all but one user, in a way that every holder of the secret can check.

A box follows from the secret and the user alone (encryption with randomness that follows from the message, as Fujisaki and
Okamoto 1999 have it). So who holds the secret makes each box again and sees whether it is right; who does not hold it opens
its own box, and sees by the mark whether that was right.

    sealing key   r      X25519 private key that follows from the secret and the repo (`hashing.epoch_sealing_key`)
    mark                 the public key of r
    box of user u        secret XOR box_pad(X25519(r, u's prekey), mark, u)

A user's prekey is an X25519 key that it has stated, else the X25519 form of its own key. Prekeys heal: they are random, so
who copied a home once cannot open boxes for a later one (post-compromise security).

What this rests on: the secret is 32 random bytes and never derived from what can be guessed, and Diffie-Hellman over
Curve25519 is hard where BLAKE3 is modelled as a random oracle. A user's key of small order would give the pad away, so such
keys are refused.
"""

from contextlib import suppress
from functools import lru_cache
from typing import Final

from nacl import bindings
from nacl.exceptions import CryptoError

from protocol.crypto import hashing
from protocol.crypto.keys import AgreementSecret, EpochKey, SigningKey, WritersSecret
from protocol.crypto.signing import verify_public_key
from protocol.ids import AgreementKey, Mark, RepoId, UserId

BOX_SIZE: Final = 32
"""Bytes of a box."""
_ANY_SECRET: Final = bytes(32)
"""Any private key: each one is a multiple of the cofactor."""


def epoch_mark(key: EpochKey, repo_id: RepoId) -> Mark:
    """Compute the mark (32 bytes) of the epoch that has this key."""
    return _mark(hashing.epoch_sealing_key(key, repo_id))


def writers_mark(secret: WritersSecret, repo_id: RepoId) -> Mark:
    """Compute the mark (32 bytes) of a writers' secret."""
    return _mark(hashing.writers_sealing_key(secret, repo_id))


class Sealer:
    """Makes the boxes of one secret. Costs one multiplication on the curve for the mark, and one for each box."""

    def __init__(self, secret: EpochKey | WritersSecret, sealing_key: AgreementSecret) -> None:
        self._secret = secret
        self._sealing_key = sealing_key
        self.mark = _mark(sealing_key)
        """The mark that tells holders of a box which secret it has."""

    @classmethod
    def of_epoch(cls, key: EpochKey, repo_id: RepoId) -> "Sealer":
        """Make the sealer of an epoch's key."""
        return cls(key, hashing.epoch_sealing_key(key, repo_id))

    @classmethod
    def of_writers(cls, secret: WritersSecret, repo_id: RepoId) -> "Sealer":
        """Make the sealer of a writers' secret."""
        return cls(secret, hashing.writers_sealing_key(secret, repo_id))

    def seal(self, user: UserId, prekey: AgreementKey | None = None) -> bytes:
        """Make the box (32 bytes) of a user. `is_prekey`: for the user's prekey, else for the user's own key.

        Raises BadSignature where the user's id is no public key of full order.
        """
        shared = bindings.crypto_scalarmult(self._sealing_key, prekey or _agreement_key(user))
        return _xor(self._secret, hashing.box_pad(shared, self.mark, user))


class BoxOpener:
    """Opens boxes of one user that belong to one mark. Costs one multiplication on the curve for all of them."""

    def __init__(self, user: UserId, secret: AgreementSecret, mark: Mark) -> None:
        """Compute what a prekey's `secret` (or `own_secret`) shares with the mark. A mark of small order opens nothing."""
        self._pad: bytes | None = None
        with suppress(CryptoError):  # the shared point is zero
            self._pad = hashing.box_pad(bindings.crypto_scalarmult(secret, mark), mark, user)

    def open(self, box: bytes) -> bytes | None:
        """Take the 32 bytes out of a box of 32; None where the mark is no key. Whether they are right, the mark tells."""
        return None if self._pad is None else _xor(box, self._pad)


def own_secret(user_secret: SigningKey) -> AgreementSecret:
    """Return the private half of a user's own key for key agreement."""
    return AgreementSecret(bindings.crypto_sign_ed25519_sk_to_curve25519(user_secret))


def prekey_of(secret: AgreementSecret) -> AgreementKey:
    """Compute the prekey (32 bytes) of its private half, 32 random bytes."""
    return AgreementKey(bindings.crypto_scalarmult_base(secret))


def is_prekey(key: AgreementKey) -> bool:
    """Return True if boxes may go to this key: it is of no small order, which would give the pad away."""
    try:
        bindings.crypto_scalarmult(_ANY_SECRET, key)
    except CryptoError:  # the shared point is zero
        return False
    return True


@lru_cache(maxsize=4_096)
def _agreement_key(user: UserId) -> bytes:
    """Convert a user's key for key agreement. Each epoch has boxes for the same members, and this is half of a box's cost.

    4,096 of them take 1 MiB. Raises BadSignature where the key is not of full order.
    """
    verify_public_key(user)
    return bindings.crypto_sign_ed25519_pk_to_curve25519(user)


def _mark(sealing_key: AgreementSecret) -> Mark:
    return Mark(bindings.crypto_scalarmult_base(sealing_key))


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(BOX_SIZE, "little")
