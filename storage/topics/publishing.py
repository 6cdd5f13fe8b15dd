"""Makes the publications of stored commits on a topic: what is sent of them, and the ids by which relays know them.

A publication follows from the commit and the topic's keys. What is stored of it is the topic's signature alone, for who
cannot sign on the topic.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from protocol.crypto import hashing, signing
from protocol.crypto.keys import BlockKey, ReadKey, TopicSeed
from protocol.formats.publication import (
    encode_bare,
    encode_publication,
    hide_key,
    publication_id,
    sign_publication,
)
from protocol.ids import BlockId, CommitId, EpochId, PublicationId, Signature
from storage.commits.absent_bodies import load_body_ids
from storage.commits.blocks import read_blocks
from storage.commits.pending import load_unread
from storage.engine.bulk import select_in
from storage.engine.column_encryption import cipher_of, commit_place
from storage.engine.id_keys import chunks, unpack_nums
from storage.repos.epochs import Epoch, Topic
from storage.schema.schema import commits

NEEDED: Final = (
    commits.c.commit_id,
    commits.c.commit_key,
    commits.c.topic_num,
    commits.c.epoch_num,
    commits.c.block_nums,
)
"""Columns that `name_publications` takes behind a commit's number."""
_PUBLISHED: Final = (
    select(commits.c.num, *NEEDED, commits.c.signature, commits.c.is_proven, commits.c.size)
    .where(commits.c.num.in_(bindparam("keys", expanding=True)))
    .order_by(commits.c.num)
)


def read_key_on(topic: Topic, commit_id: CommitId, epoch_num: int) -> ReadKey | None:
    """Find the key under which a commit's key is hidden on a topic; None where the commit is not of the topic.

    An init's key is hidden under that of the epoch that it names on that one's topics, else under that of its own.
    """
    if topic.channel is not None:
        return hashing.branch_read_key(topic.channel.branch_secret)
    for epoch in topic.epochs:
        if topic.branch_id is not None and epoch.num == epoch_num:
            return hashing.branch_read_key(hashing.branch_secret(epoch.key, topic.branch_id))
    for epoch in _candidates(topic):
        if epoch.num == epoch_num or epoch.epoch_id == EpochId(commit_id):
            return epoch.keys.read_key
    return None


def _candidates(topic: Topic) -> Sequence[Epoch]:
    # An init may have stated a link topic as its writers' topic.
    return topic.writers_of if topic.is_link else (*topic.epochs, *topic.writers_of)


def load_publications(
    connection: Connection, topic: Topic, nums: Sequence[int], size_target: int
) -> list[bytes]:
    """Load publications of these commits on a topic, in order, until `size_target` bytes are passed.

    Costs O(size_target).

    One at least, if any can be made. Of a commit whose body was erased it is a bare one.

    Who can sign on the topic signs what came otherwise. What cannot be signed and came by another topic is left out: others
    have it. Numbers are all negative (unread commits) or all positive.
    """
    if nums and nums[0] < 0:
        return load_unread(connection, nums, size_target)
    cipher, seed = cipher_of(connection), topic.seed
    rows: list[tuple[int, CommitId, bytes, Signature, tuple[int, ...]]] = []
    size = 0
    for part in chunks(nums):
        found = {row[0]: row for row in select_in(connection, _PUBLISHED, part)}
        for num in part:
            if num not in found or (rows and size >= size_target):
                continue
            _, commit_id, masked, topic_num, epoch_num, block_nums, signature, is_proven, block_size = found[
                num
            ]
            is_signed = bool(is_proven) and topic_num == topic.num
            read_key = read_key_on(topic, commit_id, epoch_num)
            if read_key is None or not (is_signed or seed is not None):
                continue
            key = BlockKey(cipher.mask(commit_place(commit_id), masked))
            hidden = hide_key(read_key, topic.topic, commit_id, key)
            rows.append(
                (num, commit_id, hidden, signature if is_signed else Signature(b""), unpack_nums(block_nums))
            )
            size += block_size + 200
        if rows and size >= size_target:
            break
    expected: dict[int, BlockId | None] = {block_num: None for row in rows for block_num in row[4]}
    expected.update((row[4][0], row[1]) for row in rows)
    blocks = read_blocks(connection, expected)
    body_ids = load_body_ids(connection, [row[0] for row in rows if len(row[4]) == 1])
    return [
        _encode(topic, seed, hidden, signature, [blocks[one] for one in block_nums], body_ids.get(num))
        for num, _, hidden, signature, block_nums in rows
    ]


def _encode(
    topic: Topic,
    seed: TopicSeed | None,
    hidden: bytes,
    signature: Signature,
    blocks: Sequence[bytes],
    body_id: Any,  # noqa: ANN401  # of the body that is not here, or None
) -> bytes:
    encoded = tuple(blocks)
    if not signature:
        assert seed is not None, "looked for"
        signature = sign_publication(signing.topic_key_pair(seed)[1], topic.topic, hidden, encoded, body_id)
    if body_id is None:
        return encode_publication(topic.topic, hidden, encoded, signature)
    return encode_bare(topic.topic, hidden, encoded[0], body_id, signature)


def name_publications(
    connection: Connection, topic: Topic, rows: Iterable[Sequence[Any]]
) -> Iterable[PublicationId]:
    """Compute the ids of the publications of commits on a topic, of rows of a number and NEEDED. Reads their blocks.

    Costs O(bytes of their blocks).
    """
    found = [(*row[:-1], unpack_nums(row[-1])) for row in rows]
    blocks = read_blocks(connection, {num: None for row in found for num in row[-1]})
    erased = load_body_ids(connection, [row[0] for row in found if len(row[-1]) == 1])
    cipher = cipher_of(connection)
    for num, commit_id, masked, _, epoch_num, block_nums in found:
        read_key = read_key_on(topic, commit_id, epoch_num)
        assert read_key is not None, "it is of the topic's set"
        key = BlockKey(cipher.mask(commit_place(commit_id), masked))
        hidden = hide_key(read_key, topic.topic, commit_id, key)
        encoded = tuple(blocks[one] for one in block_nums)
        yield publication_id(topic.topic, hidden, encoded, erased.get(num))
