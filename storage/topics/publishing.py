"""Makes the publications of stored commits on a topic: what is sent of them, and the ids by which relays know them.

A publication follows from the commit and the topic's keys. What is stored of it is the topic's signature alone, for who
cannot sign on the topic. Who can signs what others brought when it is first sent, and keeps that in memory for the next
peers: in the row it would cost a transaction for each batch that is sent.
"""

import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from protocol.crypto import hashing, signing
from protocol.crypto.keys import BlockKey, ReadKey
from protocol.formats.block import decode_block
from protocol.formats.commit import open_unchecked
from protocol.formats.declared_kind import POST_KINDS, declared_kind
from protocol.formats.publication import (
    HiddenKey,
    encode_bare,
    encode_publication,
    hide_key,
    publication_id,
    sign_publication,
)
from protocol.ids import BlockId, CommitId, EpochId, ObjectId, PublicationId, Signature
from storage.commits.absent_bodies import load_body_ids
from storage.commits.blocks import read_blocks
from storage.commits.pending import load_unread
from storage.engine.bulk import select_in
from storage.engine.column_encryption import cipher_of, commit_key_context
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
    select(
        commits.c.num,
        *NEEDED,
        commits.c.signature,
        commits.c.is_proven,
        commits.c.size,
        commits.c.branch_num,
        commits.c.body_kind,
        commits.c.display_time,
    )
    .where(commits.c.num.in_(bindparam("keys", expanding=True)))
    .order_by(commits.c.num)
)


@dataclass(frozen=True, slots=True)
class Unwanted:
    """Commits whose erasable bodies are not sent: of branches with these numbers, and posts from before a time (unix ms)."""

    branches: Container[int] = ()
    posts_before: int = 0

    def has(self, branch_num: int, kind: str, display_time: int) -> bool:
        """Return True if the body of such a commit is not sent, where no verdict rests on it."""
        return branch_num in self.branches or (display_time < self.posts_before and kind in POST_KINDS)


WANTS_ALL: Final = Unwanted()


SIGNATURES_MAX: Final = 16_384
"""Signatures that are kept, of all topics: 5 MB, once so many commits of others were sent."""


class MadeSignatures:
    """Signatures of topics on commits that others brought, the latest that were made. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[bytes, Signature] = {}  # the oldest first

    def find(self, commit_id: CommitId, hidden_key: HiddenKey) -> Signature | None:
        """Return the signature of the publication with this hidden key, if it is kept.

        Its blocks follow from the commit's id, and the hidden key from the topic, the read key and that.
        """
        return self._kept.get(commit_id + hidden_key)

    def keep(self, made: Mapping[tuple[CommitId, HiddenKey], Signature]) -> None:
        """Keep signatures, by commit and hidden key."""
        with self._lock:
            self._kept.update(
                {commit_id + hidden: signature for (commit_id, hidden), signature in made.items()}
            )
            for oldest in list(islice(self._kept, max(0, len(self._kept) - SIGNATURES_MAX))):
                del self._kept[oldest]


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
    connection: Connection,
    topic: Topic,
    nums: Sequence[int],
    size_target: int,
    signatures: MadeSignatures | None = None,
    unwanted: Unwanted = WANTS_ALL,
) -> list[bytes]:
    """Load publications of these commits on a topic, in order, until `size_target` bytes are passed.

    Costs O(size_target). Returns at least one, if any can be made. A commit whose body was erased or is
    `unwanted` gives a bare publication.

    A node that can sign on the topic also sends commits that came by another topic, and keeps its signatures in
    `signatures`. Without the topic's key these are left out: other nodes have them. Numbers are all negative (unread
    commits) or all positive.
    """
    if nums and nums[0] < 0:
        return load_unread(connection, nums, size_target)
    cipher, seed = cipher_of(connection), topic.seed
    rows: list[tuple[int, CommitId, bytes, Signature, tuple[int, ...]]] = []
    size = 0
    bare_keys: dict[int, BlockKey] = {}  # of commits that are sent without their bodies, if that may be
    for part in chunks(nums):
        found = {row[0]: row for row in select_in(connection, _PUBLISHED, part)}
        for num in part:
            if num not in found or (rows and size >= size_target):
                continue
            _, commit_id, masked, topic_num, epoch_num, block_nums, *rest = found[num]
            signature, is_proven, block_size, *facts = rest
            read_key = read_key_on(topic, commit_id, epoch_num)
            is_signed = bool(is_proven) and topic_num == topic.num
            if read_key is None or not (is_signed or seed is not None):
                continue
            key = BlockKey(cipher.mask(commit_key_context(commit_id), masked))
            hidden = hide_key(read_key, topic.topic, commit_id, key)
            if not is_signed:
                kept = None if signatures is None else signatures.find(commit_id, hidden)
                signature = kept or Signature(b"")
            rows.append((num, commit_id, hidden, signature, unpack_nums(block_nums)))
            if unwanted.has(*facts):
                bare_keys[num] = key
            size += block_size + 200
        if rows and size >= size_target:
            break
    expected: dict[int, BlockId | None] = {block_num: None for row in rows for block_num in row[4]}
    expected.update((row[4][0], row[1]) for row in rows)
    blocks = read_blocks(connection, expected)
    body_ids = load_body_ids(connection, [row[0] for row in rows if len(row[4]) == 1])
    made: dict[tuple[CommitId, HiddenKey], Signature] = {}
    items: list[bytes] = []
    for num, commit_id, hidden, signature, block_nums in rows:
        encoded, body_id = tuple(blocks[one] for one in block_nums), body_ids.get(num)
        if not signature:
            assert seed is not None, "looked for"
            secret = signing.topic_key_pair(seed)[1]
            signature = sign_publication(secret, topic.topic, hidden, encoded, body_id)
            made[commit_id, hidden] = signature
        if num in bare_keys and body_id is None:
            body_id = _find_spared(encoded, bare_keys[num])
        if body_id is None:
            items.append(encode_publication(topic.topic, hidden, encoded, signature))
        else:
            items.append(encode_bare(topic.topic, hidden, encoded[0], body_id, signature))
    if signatures is not None and made:
        signatures.keep(made)
    return items


def _find_spared(encoded: Sequence[bytes], key: BlockKey) -> ObjectId | None:
    """Return the id of a commit's body that no verdict rests on; None where it has to be sent."""
    block = decode_block(encoded[0])
    said = declared_kind(open_unchecked(block, key), is_root_branch=False)
    return None if said is None or len(encoded) != 2 else ObjectId(decode_block(encoded[1]).block_id)


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
        key = BlockKey(cipher.mask(commit_key_context(commit_id), masked))
        hidden = hide_key(read_key, topic.topic, commit_id, key)
        encoded = tuple(blocks[one] for one in block_nums)
        yield publication_id(topic.topic, hidden, encoded, erased.get(num))
