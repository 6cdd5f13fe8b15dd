"""Encrypts secret columns with the store's key, so that a copied database opens nothing without it.

Two forms. A *box* (XChaCha20-Poly1305) for the few secrets from which all others follow; its nonce is a keyed hash of
place and secret, so that equal secrets of one place have equal boxes, which can be looked for. A *mask* for the keys of
single commits and files, of which there are millions: the key and 32 bytes of keyed BLAKE3 of its place, XORed. A place
keeps one key for ever, so no mask covers two; that a masked key was altered is found when it opens nothing.

`storage.engine.store_seal` lists the columns. A place is a name and what tells the row, so that a secret that was moved
into another row is not taken for its own.
"""

from typing import Final, Protocol

from nacl import bindings
from nacl.exceptions import CryptoError
from sqlalchemy import Connection

from protocol.crypto import hashing
from protocol.crypto.keys import BlockKey, StoreKey
from protocol.ids import AgreementKey, CommitId, EpochId, ObjectId, RepoId, TopicKey

_LOCKED: Final = "the store is sealed, and was opened without its key"
_OPTION: Final = "ravel_secrecy"
_NONCE_SIZE: Final = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES


class BadSecret(Exception):
    """A secret in the store is not what was written there, or the store's key was not given.

    `Database` makes a StorageError of it.
    """


class ColumnCipher(Protocol):
    """Cipher of one store's secret columns."""

    def mask(self, place: bytes, key: BlockKey) -> BlockKey:
        """Mask or unmask a key of 32 bytes (the same operation); an empty key stays empty."""
        ...

    def seal(self, place: bytes, plaintext: bytes) -> bytes:
        """Encrypt a secret of any length, bound to its place."""
        ...

    def open(self, place: bytes, kept: bytes) -> bytes:
        """Decrypt a secret. Raises BadSecret."""
        ...


class KeyedCipher:
    """Cipher of a store whose secrets are sealed with a key."""

    def __init__(self, store_key: StoreKey) -> None:
        self._mask_key = hashing.store_mask_key(store_key)
        self._box_key = hashing.store_box_key(store_key)
        self._nonce_key = hashing.store_nonce_key(store_key)

    def mask(self, place: bytes, key: BlockKey) -> BlockKey:
        """See `ColumnCipher`."""
        if not key:
            return key
        mixed = int.from_bytes(key) ^ int.from_bytes(hashing.mask(self._mask_key, place))
        return BlockKey(mixed.to_bytes(32))

    def seal(self, place: bytes, plaintext: bytes) -> bytes:
        """See `ColumnCipher`."""
        nonce = hashing.box_nonce(self._nonce_key, place, plaintext)
        return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
            plaintext, place, nonce, self._box_key
        )

    def open(self, place: bytes, kept: bytes) -> bytes:
        """See `ColumnCipher`."""
        try:
            return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                kept[_NONCE_SIZE:], place, kept[:_NONCE_SIZE], self._box_key
            )
        except (CryptoError, ValueError):
            raise BadSecret("a secret in the store was altered") from None


class PlainCipher:
    """Cipher of a store that was never given a key: secrets lie in the clear."""

    def mask(self, _place: bytes, key: BlockKey) -> BlockKey:
        """See `ColumnCipher`."""
        return key

    def seal(self, _place: bytes, plaintext: bytes) -> bytes:
        """See `ColumnCipher`."""
        return plaintext

    def open(self, _place: bytes, kept: bytes) -> bytes:
        """See `ColumnCipher`."""
        return kept


class LockedCipher:
    """Cipher of a sealed store that was opened without its key; each method raises BadSecret."""

    def mask(self, _place: bytes, _key: BlockKey) -> BlockKey:
        """See `ColumnCipher`."""
        raise BadSecret(_LOCKED)

    def seal(self, _place: bytes, _plaintext: bytes) -> bytes:
        """See `ColumnCipher`."""
        raise BadSecret(_LOCKED)

    def open(self, _place: bytes, _kept: bytes) -> bytes:
        """See `ColumnCipher`."""
        raise BadSecret(_LOCKED)


def cipher_option(cipher: ColumnCipher) -> dict[str, ColumnCipher]:
    """Return the execution option of SQLAlchemy that gives connections a cipher."""
    return {_OPTION: cipher}


def cipher_of(connection: Connection) -> ColumnCipher:
    """Return the cipher of the store that a connection belongs to."""
    found: ColumnCipher = connection.get_execution_options()[_OPTION]
    return found


def commit_key_context(commit_id: CommitId) -> bytes:
    """Return the place of a commit's key."""
    return b"commit" + commit_id


def file_place(num: int, object_id: ObjectId) -> bytes:
    """Return the place of a file's key: authors may give one object several keys, of which all but one are wrong."""
    return b"file" + num.to_bytes(8, "little") + object_id


def repo_place(column: str, repo_id: RepoId) -> bytes:
    """Return the place of a secret of a repo."""
    return b"repo" + column.encode() + repo_id


def epoch_place(column: str, repo_num: int, epoch_id: EpochId) -> bytes:
    """Return the place of a secret of an epoch."""
    return b"epoch" + column.encode() + repo_num.to_bytes(8, "little") + epoch_id


def prekey_place(repo_num: int, prekey: AgreementKey) -> bytes:
    """Return the place of the private half of a prekey."""
    return b"prekey" + repo_num.to_bytes(8, "little") + prekey


def seal_optional(cipher: ColumnCipher, place: bytes, plaintext: bytes | None) -> bytes | None:
    """Encrypt a secret, or return None for None."""
    return None if plaintext is None else cipher.seal(place, plaintext)


def open_optional(cipher: ColumnCipher, place: bytes, kept: bytes | None) -> bytes | None:
    """Decrypt a secret, or return None for None. Raises BadSecret."""
    return None if kept is None else cipher.open(place, kept)


def search_place() -> bytes:
    """Return the place of the search index's key."""
    return b"search"


def search_text_place(branch_num: int) -> bytes:
    """Return the place of a branch's clear text in the search index."""
    return b"search text" + branch_num.to_bytes(8, "little")


def membership_place(branch_num: int, first: int) -> bytes:
    """Return the place of a part of a membership's snapshot."""
    return b"membership" + branch_num.to_bytes(8, "little") + first.to_bytes(8, "little")


def text_place(branch_num: int) -> bytes:
    """Return the place of the summary of a branch's text."""
    return b"text" + branch_num.to_bytes(8, "little")


def text_block_place(branch_num: int, client: int, clock: int) -> bytes:
    """Return the place of a block of a branch's text."""
    return b"text block" + b"".join(part.to_bytes(8, "little") for part in (branch_num, client, clock))


def topic_place(topic: TopicKey) -> bytes:
    """Return the place of the link to a single topic."""
    return b"topic" + topic
