"""Blocks: encrypted chunks named by their hash; equal plaintexts give equal blocks (convergent encryption).

A block's key is the keyed hash of its plaintext under the epoch's convergence secret, its ciphertext is ChaCha20 under
that key with a zero nonce (a key encrypts one plaintext only, so no nonce can repeat), its id is the BLAKE3 of its
encoding. Child ids stand in clear, so that anyone who stores a tree can walk it; child keys are inside. Acks, rank and
the branch's mark stand in clear in a commit's block and nowhere else: a relay orders and completes what it cannot read.

ChaCha20 alone does not authenticate. The id does, and `decrypt_block` checks that the key is the hash of what it opened,
so a wrong key or a block made with another convergence secret is found.
"""

from hmac import compare_digest
from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import DecodeError, Value, Wire, decode, encode
from protocol.crypto import hashing
from protocol.crypto.keys import BlockKey, ConvergenceSecret
from protocol.crypto.stream_cipher import encipher
from protocol.ids import BlockId, CommitId, ObjectId
from protocol.limits.formats import (
    ACK_COUNT_MAX,
    BLOCK_SIZE_MAX,
    INNER_CHILD_COUNT_MAX,
    LEAF_SIZE,
    MARK_SIZE,
    RANK_MAX,
)

BLOCK_TAG: Final = "block2"


class _BlockEncoding(Wire, frozen=True, tag=BLOCK_TAG):
    child_ids: Annotated[tuple[BlockId, ...], Meta(max_length=INNER_CHILD_COUNT_MAX)]
    acks: Annotated[tuple[CommitId, ...], Meta(max_length=ACK_COUNT_MAX)]
    rank: Annotated[int, Meta(ge=0, le=RANK_MAX)]
    mark: Annotated[bytes, Meta(max_length=MARK_SIZE)]
    ciphertext: Annotated[bytes, Meta(max_length=LEAF_SIZE)]


class Block(Value, frozen=True):
    """An immutable block. `encoded` is what is stored, sent and hashed.

    `acks`, `rank` (as the author states it) and `mark` (MARK_SIZE bytes) are a commit's; elsewhere they are empty or 0.
    """

    block_id: BlockId
    child_ids: tuple[BlockId, ...]
    acks: tuple[CommitId, ...]
    rank: int
    mark: bytes
    ciphertext: bytes
    encoded: bytes

    @property
    def is_of_commit(self) -> bool:
        """Return True if the block is a commit's own."""
        return bool(self.mark)


class Reference(Wire, frozen=True):
    """Reference that names and opens an object: the id and the key of its root block."""

    object_id: ObjectId
    key: BlockKey


_LEAF_START: Final = encode(_BlockEncoding((), (), 0, b"", b""))[:9]
LEAF_START_SIZE: Final = len(_LEAF_START)
"""Bytes of an encoded block that tell whether it has children."""


class WrongKey(Exception):
    """The key does not open the block, or the block was not made with this convergence secret."""


def decode_block(encoded: bytes) -> Block:
    """Return the block whose encoding is given, with its id computed. Raises DecodeError."""
    wire = decode(_BlockEncoding, encoded, size_max=BLOCK_SIZE_MAX)
    if len(wire.mark) != MARK_SIZE and (wire.mark or wire.acks or wire.rank):
        raise DecodeError("bad_shape", "acks or a rank without a mark, or a mark of another length")
    return Block(
        hashing.block_id(encoded), wire.child_ids, wire.acks, wire.rank, wire.mark, wire.ciphertext, encoded
    )


def has_children(start: bytes) -> bool:
    """Return True if a block whose encoding begins so names child blocks: to walk a tree without reading its leaves."""
    return start[:LEAF_START_SIZE] != _LEAF_START


def encrypt_block(
    plaintext: bytes,
    convergence_secret: ConvergenceSecret,
    child_ids: tuple[BlockId, ...] = (),
    acks: tuple[CommitId, ...] = (),
    rank: int = 0,
    mark: bytes = b"",
) -> tuple[Block, BlockKey]:
    """Return the block that carries `plaintext`, and its key. Raises DecodeError when it would not be a legal block."""
    key = hashing.block_key(convergence_secret, plaintext)
    ciphertext = encipher(key, plaintext)
    encoded = encode(_BlockEncoding(child_ids, acks, rank, mark, ciphertext))
    if len(encoded) > BLOCK_SIZE_MAX or len(acks) > ACK_COUNT_MAX or len(child_ids) > INNER_CHILD_COUNT_MAX:
        raise DecodeError("too_large", f"a block of {len(encoded)} bytes")
    return Block(hashing.block_id(encoded), child_ids, acks, rank, mark, ciphertext, encoded), key


def decrypt_block(block: Block, key: BlockKey, convergence_secret: ConvergenceSecret) -> bytes:
    """Return the plaintext of `block`. Raises WrongKey."""
    plaintext = decrypt_unchecked(block, key)
    if not compare_digest(hashing.block_key(convergence_secret, plaintext), key):
        raise WrongKey(block.block_id.hex())
    return plaintext


def decrypt_unchecked(block: Block, key: BlockKey) -> bytes:
    """Decrypt a block whose convergence secret is not known yet: the result means nothing until `decrypt_block` agrees."""
    return encipher(key, block.ciphertext)
