"""Publications: the unit that peers exchange. A commit's blocks and its encrypted key, signed with the topic's key.

The commit's key is hidden by 32 bytes that follow from the topic's read key, the topic and the commit's id: anyone who may
read the topic opens it, and it cannot be moved to another commit or topic. Nothing else authenticates it, since the key of a
block is the hash of what it opens. So a publication follows from the commit and the topic's keys alone. The
signature lets a relay refuse what no holder of the topic's key sent, without knowing who the members are.

A *bare* publication names the body's block and does not carry it: its sender has not got it. The signature is the same.
"""

from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import DecodeError, Value, Wire, decode, encode
from protocol.crypto import hashing, signing
from protocol.crypto.keys import BlockKey, ReadKey, SigningKey, TopicSeed
from protocol.formats.block import Block, decode_block
from protocol.ids import BlockId, CommitId, Digest, ObjectId, PublicationId, Signature, TopicKey
from protocol.limits.formats import BLOCK_SIZE_MAX, PUBLICATION_BLOCK_COUNT_MAX, PUBLICATION_SIZE_MAX

PUBLICATION_TAG: Final = "publication1"
PUBLICATION_ID_COMMIT_SIZE: Final = 8
"""Bytes of the commit's id with which a publication's begins: anyone who looks up commits by them finds it, too."""
BARE_TAG: Final = "bare1"
HiddenKey = Annotated[bytes, Meta(min_length=32, max_length=32)]


class _PublicationEncoding(Wire, frozen=True, tag=PUBLICATION_TAG):
    topic: TopicKey
    hidden_key: HiddenKey
    blocks: Annotated[
        tuple[Annotated[bytes, Meta(max_length=BLOCK_SIZE_MAX)], ...],
        Meta(min_length=1, max_length=PUBLICATION_BLOCK_COUNT_MAX),
    ]
    signature: Signature


class _BareEncoding(Wire, frozen=True, tag=BARE_TAG):
    topic: TopicKey
    hidden_key: HiddenKey
    block: Annotated[bytes, Meta(max_length=BLOCK_SIZE_MAX)]
    body_id: ObjectId
    signature: Signature


_BARE_START: Final = bytes([0x90 + 1 + len(_BareEncoding.__struct_fields__)]) + encode(BARE_TAG)
"""An array of its tag and fields."""


class _Published(Wire, frozen=True):
    topic: TopicKey
    hidden_key: HiddenKey
    block_ids: tuple[BlockId, ...]


class Publication(Value, frozen=True):
    """A decoded publication; the first block is the commit's. Its signature is not verified yet.

    A bare one has that block alone, and the id of the body's.
    """

    topic: TopicKey
    hidden_key: bytes
    blocks: tuple[Block, ...]
    signature: Signature
    body_id: ObjectId | None = None

    @property
    def commit_id(self) -> CommitId:
        """Id of the commit it carries."""
        return CommitId(self.blocks[0].block_id)

    @property
    def encoded(self) -> bytes:
        """Encoding that it was decoded from."""
        blocks = tuple([block.encoded for block in self.blocks])
        if self.body_id is None:
            return encode_publication(self.topic, self.hidden_key, blocks, self.signature)
        return encode_bare(self.topic, self.hidden_key, blocks[0], self.body_id, self.signature)

    @property
    def bare(self) -> "Publication":
        """Return the publication without the body, which is one block beside the commit's."""
        body_id = ObjectId(self.blocks[1].block_id)
        return Publication(self.topic, self.hidden_key, self.blocks[:1], self.signature, body_id)

    @property
    def digest(self) -> Digest:
        """Digest that the topic's key signed."""
        named = () if self.body_id is None else (self.body_id,)
        return _digest(self.topic, self.hidden_key, (*(block.block_id for block in self.blocks), *named))

    @property
    def publication_id(self) -> PublicationId:
        """Id of the publication (`publication_id`)."""
        return _id(self.commit_id, self.digest)


def create_publication(
    topic_seed: TopicSeed, read_key: ReadKey, commit_key: BlockKey, blocks: tuple[Block, ...]
) -> Publication:
    """Make the signed publication of a commit on a topic: its block first, then its body's, then what an init names."""
    topic, secret = signing.topic_key_pair(topic_seed)
    hidden = hide_key(read_key, topic, CommitId(blocks[0].block_id), commit_key)
    digest = _digest(topic, hidden, tuple(block.block_id for block in blocks))
    return Publication(topic, hidden, blocks, signing.sign(secret, digest))


def hide_key(read_key: ReadKey, topic: TopicKey, commit_id: CommitId, key: BlockKey) -> bytes:
    """Hide a commit's key for its publication on a topic."""
    pad = hashing.commit_key_pad(read_key, topic, commit_id)
    return (int.from_bytes(key, "little") ^ int.from_bytes(pad, "little")).to_bytes(32, "little")


def open_hidden_key(publication: Publication, read_key: ReadKey) -> BlockKey:
    """Compute the commit's key. With another read key it is one that opens nothing."""
    hidden = BlockKey(publication.hidden_key)
    return BlockKey(hide_key(read_key, publication.topic, publication.commit_id, hidden))


def encode_publication(
    topic: TopicKey, hidden_key: bytes, blocks: tuple[bytes, ...], signature: Signature
) -> bytes:
    """Return the encoding of a publication from its parts, blocks as stored. Raises DecodeError `too_large`."""
    encoded = encode(_PublicationEncoding(topic, hidden_key, blocks, signature))
    if len(encoded) > PUBLICATION_SIZE_MAX or len(blocks) > PUBLICATION_BLOCK_COUNT_MAX:
        raise DecodeError("too_large", f"a publication of {len(encoded)} bytes in {len(blocks)} blocks")
    return encoded


def encode_bare(
    topic: TopicKey, hidden_key: bytes, block: bytes, body_id: ObjectId, signature: Signature
) -> bytes:
    """Return the encoding of a bare publication: the commit's block as stored, and the id of its body's."""
    return encode(_BareEncoding(topic, hidden_key, block, body_id, signature))


def is_bare(encoded: bytes) -> bool:
    """Return True if what is encoded is a bare publication, if it is any."""
    return encoded.startswith(_BARE_START)


def decode_publication(encoded: bytes) -> Publication:
    """Return the publication whose encoding is given, its block ids computed. Raises DecodeError."""
    if is_bare(encoded):
        bare = decode(_BareEncoding, encoded, size_max=PUBLICATION_SIZE_MAX)
        return Publication(
            bare.topic, bare.hidden_key, (decode_block(bare.block),), bare.signature, bare.body_id
        )
    wire = decode(_PublicationEncoding, encoded, size_max=PUBLICATION_SIZE_MAX)
    return Publication(
        wire.topic, wire.hidden_key, tuple([decode_block(block) for block in wire.blocks]), wire.signature
    )


def sign_publication(
    topic_secret: SigningKey,
    topic: TopicKey,
    hidden_key: bytes,
    blocks: tuple[bytes, ...],
    body_id: ObjectId | None = None,
) -> Signature:
    """Return the topic's signature of a publication, made again from its parts, blocks as stored."""
    ids = tuple(map(hashing.block_id, blocks)) + (() if body_id is None else (body_id,))
    return signing.sign(topic_secret, _digest(topic, hidden_key, ids))


def publication_id(
    topic: TopicKey, hidden_key: bytes, blocks: tuple[bytes, ...], body_id: ObjectId | None = None
) -> PublicationId:
    """Return the id of a publication, from its parts, blocks as stored: 8 bytes of its commit's id, then 24 of its digest.

    All that it carries follows from it but the topic's signature. A commit's id does not say how its key is sealed, nor
    whether its body is there, so who cannot open publications tells them apart by this. Of a commit whose body was erased
    it is that of the publication as it was: `body_id` is the body's.
    """
    block_ids = tuple(map(hashing.block_id, blocks)) + (() if body_id is None else (body_id,))
    return _id(CommitId(block_ids[0]), _digest(topic, hidden_key, block_ids))


def _id(commit_id: CommitId, digest: Digest) -> PublicationId:
    rest = len(commit_id) - PUBLICATION_ID_COMMIT_SIZE
    return PublicationId(commit_id[:PUBLICATION_ID_COMMIT_SIZE] + digest[:rest])


def _digest(topic: TopicKey, hidden_key: bytes, block_ids: tuple[BlockId, ...]) -> Digest:
    return hashing.publication_digest(encode(_Published(topic, hidden_key, block_ids)))
