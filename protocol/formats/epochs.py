"""Bodies that start an epoch, open earlier ones, hand an epoch to members, and state prekeys (root branch only).

An init names three objects of its own: the boxes of members, the boxes of writers, and the keys of earlier epochs. Their
blocks travel in the init's publication behind the body's. `open_topic` and `open_keys` open what `seal_topic` and
`seal_keys` sealed under the epoch's key.
"""

from typing import Annotated, Final

from msgspec import Meta
from nacl import bindings
from nacl.exceptions import CryptoError

from protocol.codec import DecodeError, Value, Wire, decode, encode
from protocol.crypto import hashing
from protocol.crypto.epoch_boxes import BOX_SIZE
from protocol.crypto.keys import EpochKey
from protocol.formats.block import Reference
from protocol.formats.text import id_text
from protocol.ids import AgreementKey, EpochId, Mark, RepoId, TopicKey, UserId
from protocol.limits.formats import (
    EPOCH_BOX_COUNT_MAX,
    EPOCH_HANDED_COUNT_MAX,
    EPOCH_KEY_COUNT_MAX,
)

NONCE_SIZE: Final = 24
_OVERHEAD: Final = NONCE_SIZE + 16
BOXES_SIZE_MAX: Final = BOX_SIZE * EPOCH_BOX_COUNT_MAX
"""Bytes of all boxes that one init has for members, or for writers."""
KEYS_SIZE_MAX: Final = _OVERHEAD + 16 + 70 * EPOCH_KEY_COUNT_MAX
"""Bytes of the keys of earlier epochs that one init gives, sealed."""

Box = Annotated[bytes, Meta(min_length=BOX_SIZE, max_length=BOX_SIZE)]
SealedTopic = Annotated[bytes, Meta(min_length=_OVERHEAD + 32, max_length=_OVERHEAD + 32)]
"""A topic's key, sealed under an epoch's key: a random nonce of 24 bytes and the ciphertext."""


class EpochStatement(Wire, frozen=True):
    """Start of an epoch as both kinds of inits state it: its marks, and its writers' topic, sealed."""

    mark: Mark
    writers_mark: Mark
    writers_topic: SealedTopic


class EpochInit(Wire, frozen=True, tag="epoch-init3"):
    """Starts an epoch, whose id is this commit's. It follows the epochs of its past.

    `boxes` and `writers_boxes` name objects of boxes, one after another, in the order of their users' ids: of all members,
    and of those who may write. `keys` names an object of keys of earlier epochs (`seal_keys`).
    """

    states: EpochStatement
    boxes: Reference
    writers_boxes: Reference
    keys: Reference


class GivenEpoch(Wire, frozen=True):
    """An epoch and its key, as somebody gives it."""

    epoch: EpochId
    key: EpochKey

    def __repr__(self) -> str:
        """Show the body without the key, as logs and failed assertions get it."""
        return f"GivenEpoch(epoch={id_text(self.epoch)})"


class EpochOpen(Wire, frozen=True, tag="epoch-open1"):
    """Opens epochs to all who hold the one in which this is published. Sorted by epoch, each once."""

    epochs: Annotated[tuple[GivenEpoch, ...], Meta(min_length=1, max_length=EPOCH_KEY_COUNT_MAX)]


class HandedBox(Wire, frozen=True):
    """The boxes of one user: of the epoch's key, and of its writers' secret where the user may write and the author has
    it."""

    user: UserId
    box: Box
    writers_box: Box | None


class EpochHand(Wire, frozen=True, tag="epoch-hand1"):
    """Hands an epoch, or its writers' secret, to members who lack it. Sorted by user, each once.

    The marks are the init's, which the members may not be able to read.
    """

    epoch: EpochId
    mark: Mark
    writers_mark: Mark
    boxes: Annotated[tuple[HandedBox, ...], Meta(min_length=1, max_length=EPOCH_HANDED_COUNT_MAX)]


class Prekey(Wire, frozen=True, tag="prekey1"):
    """States the X25519 key to which boxes of the author go from now on; its private half lies in one home."""

    key: AgreementKey


class StartParts(Value, frozen=True):
    """The plaintexts of the three objects that an init names."""

    boxes: bytes
    writers_boxes: bytes
    keys: bytes


class _Keys(Wire, frozen=True):
    epochs: Annotated[tuple[GivenEpoch, ...], Meta(max_length=EPOCH_KEY_COUNT_MAX)]


def seal_topic(key: EpochKey, repo_id: RepoId, mark: Mark, topic: TopicKey, nonce: bytes) -> bytes:
    """Seal the writers' topic of an epoch under its key. `nonce` is 24 random bytes."""
    return _seal(key, b"topic" + repo_id + mark, topic, nonce)


def open_topic(key: EpochKey, repo_id: RepoId, states: EpochStatement) -> TopicKey | None:
    """Open what an init states of the writers' topic. Return None where it was not sealed so."""
    opened = _open(key, b"topic" + repo_id + states.mark, states.writers_topic)
    return None if opened is None else TopicKey(opened)


def seal_keys(
    key: EpochKey, repo_id: RepoId, mark: Mark, epochs: tuple[GivenEpoch, ...], nonce: bytes
) -> bytes:
    """Seal keys of earlier epochs (EPOCH_KEY_COUNT_MAX at most) under the key of an epoch. `nonce` is 24 random bytes."""
    return _seal(key, b"keys" + repo_id + mark, encode(_Keys(epochs)), nonce)


def open_keys(key: EpochKey, repo_id: RepoId, mark: Mark, sealed: bytes) -> tuple[GivenEpoch, ...] | None:
    """Open the keys of earlier epochs. Return None where they were not sealed so, or are not what they should be."""
    opened = _open(key, b"keys" + repo_id + mark, sealed)
    try:
        return None if opened is None else decode(_Keys, opened, size_max=KEYS_SIZE_MAX).epochs
    except DecodeError:
        return None


def _seal(key: EpochKey, place: bytes, plaintext: bytes, nonce: bytes) -> bytes:
    cipher = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt
    return nonce + cipher(plaintext, place, nonce, hashing.epoch_cipher_key(key))


def _open(key: EpochKey, place: bytes, sealed: bytes) -> bytes | None:
    cipher = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt
    try:
        return cipher(sealed[NONCE_SIZE:], place, sealed[:NONCE_SIZE], hashing.epoch_cipher_key(key))
    except CryptoError:
        return None
