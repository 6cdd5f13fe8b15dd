"""Commits and publications as attackers make them: well formed, and right or wrong as they wish."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace as replace_fields

from node.authoring.drafting import (
    AuthorKeys,
    CommitPosition,
    Draft,
    EncodedCommit,
    Target,
    encode_draft,
)
from protocol.codec import encode
from protocol.crypto import signing
from protocol.crypto.keys import BlockKey, ConvergenceSecret, ReadKey, TopicSeed, UserSeed
from protocol.formats.block import Block, encrypt_block
from protocol.formats.body import Body
from protocol.formats.commit import create_commit, lipmaa
from protocol.formats.content import Post
from protocol.formats.publication import (
    create_publication,
    encode_bare,
    encode_publication,
    hide_key,
    sign_publication,
)
from protocol.ids import BlockId, CommitId, ObjectId, Signature
from protocol.limits.formats import MARK_SIZE

_NOW_MS: Final = 1_700_000_000_000
_POST: Final = Post("x")
_MARK: Final = bytes(MARK_SIZE)


@dataclass(frozen=True, slots=True)
class Forged:
    """A commit's id, and the publication that carries it."""

    commit_id: CommitId
    encoded: bytes


class Feed:
    """The commits of one user in one branch and epoch, on one of the epoch's topics."""

    def __init__(
        self,
        target: Target,
        seed: UserSeed,
        seen: tuple[CommitId, ...],
        ranks: Mapping[CommitId, int] | None = None,
    ) -> None:
        """`seen` is what of the root branch the user says to have seen; `ranks` are those of what it acks."""
        self.target = target
        self.keys = AuthorKeys(*signing.key_pair(seed))
        self._seen = () if target.facts.is_root_branch else seen
        self._ranks = dict(ranks or {})
        self._ids: list[CommitId] = []
        self._made = 0

    @property
    def last(self) -> CommitId | None:
        """The last commit that `go_on` made."""
        return self._ids[-1] if self._ids else None

    def draft(
        self, acks: Sequence[CommitId], body: Body = _POST, *, sequence: int | None = None
    ) -> EncodedCommit:
        """A commit at the next place of the feed, or at another one. Each is another commit, also of equal words.

        Without acks it is the first one of a new branch.
        """
        self._made += 1
        number = sequence or len(self._ids) + 1
        skip = lipmaa(number)
        place = CommitPosition(
            self.target.epoch.epoch_id,
            number,
            previous=self._ids[number - 2] if number > 1 else None,
            skip=self._ids[skip - 1] if skip != number - 1 else None,
            seen=self._seen,
            acks=tuple(acks),
            rank=1 + max(self._ranks.get(one, 0) for one in acks) if acks else 0,
        )
        drafted = encode_draft(self.keys, _NOW_MS + self._made, self.target, Draft(body), place)
        self._ranks[drafted.commit.commit_id] = drafted.commit.rank
        return drafted

    def go_on(self, acks: Sequence[CommitId], body: Body = _POST) -> Forged:
        """The next commit of the feed, published as a writer would."""
        drafted = self.draft(acks, body)
        self._ids.append(drafted.commit.commit_id)
        return publish(self.target, drafted)

    def first(self, acks: Sequence[CommitId], body: Body = _POST) -> Forged:
        """Another first commit of the feed: what becomes of it says nothing of the next one."""
        return publish(self.target, self.draft(acks, body, sequence=1))


def publish(
    target: Target, drafted: EncodedCommit, *, is_signed: bool = True, key: BlockKey | None = None
) -> Forged:
    """A publication with the topic's signature, or a random one; `key` is another than opens the commit."""
    return publish_blocks(target, key or drafted.commit.key, drafted.blocks, is_signed=is_signed)


def publish_blocks(
    target: Target, key: BlockKey, blocks: Sequence[Block], *, is_signed: bool = True
) -> Forged:
    """The same of blocks, of which the first is said to be a commit's."""
    commit_id, topic = CommitId(blocks[0].block_id), target.topic
    hidden = hide_key(target.epoch.keys.read_key, topic, commit_id, key)
    encoded = tuple(block.encoded for block in blocks)
    signature = secrets.token_bytes(64)
    if is_signed:
        topic_secret = signing.topic_key_pair(target.seed)[1]
        signature = sign_publication(topic_secret, topic, hidden, encoded)
    return Forged(commit_id, encode_publication(topic, hidden, encoded, Signature(signature)))


def of_another_version(target: Target, *, is_signed: bool = True) -> Forged:
    """A commit of a format version that nobody knows yet."""
    plaintext = encode(("commit3", secrets.token_bytes(32)))
    block, key = encrypt_block(plaintext, target.convergence_secret, mark=target.mark)
    return publish_blocks(target, key, (block,), is_signed=is_signed)


def without_kind(feed: Feed, acks: Sequence[CommitId], body: Body = _POST) -> Forged:
    """A commit whose header does not say the kind of its body."""
    drafted = feed.draft(acks, body)
    old, target = drafted.commit, feed.target
    content = replace_fields(old.content, metadata=b"")
    commit, block = create_commit(
        old.acks, old.rank, target.mark, old.links, content, feed.keys.secret, target.convergence_secret
    )
    return publish(target, EncodedCommit(commit, (block, *drafted.blocks[1:]), drafted.body))


def on_own_topic(topic_seed: TopicSeed, size: int = 32, *, is_signed: bool = True) -> Forged:
    """What a relay can check of a publication, on a topic of the attacker's own, and nothing behind it."""
    block, key = encrypt_block(secrets.token_bytes(size), ConvergenceSecret(bytes(32)), mark=_MARK)
    made = create_publication(topic_seed, ReadKey(bytes(32)), key, (block,))
    signature = made.signature if is_signed else Signature(secrets.token_bytes(64))
    return Forged(
        made.commit_id, encode_publication(made.topic, made.hidden_key, (block.encoded,), signature)
    )


def bare_on_own_topic(topic_seed: TopicSeed) -> Forged:
    """The same, without a body that never was."""
    block, key = encrypt_block(secrets.token_bytes(32), ConvergenceSecret(bytes(32)), mark=_MARK)
    topic, secret = signing.topic_key_pair(topic_seed)
    hidden = create_publication(topic_seed, ReadKey(bytes(32)), key, (block,)).hidden_key
    body_id = ObjectId(BlockId(secrets.token_bytes(32)))
    signature = sign_publication(secret, topic, hidden, (block.encoded,), body_id)
    return Forged(CommitId(block.block_id), encode_bare(topic, hidden, block.encoded, body_id, signature))
