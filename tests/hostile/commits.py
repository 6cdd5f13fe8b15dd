"""Commits and publications as attackers make them: well formed, and right or wrong as they wish."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec.structs import replace as replace_fields
from nacl import bindings

from node.authoring.drafting import AuthorKeys, CommitPosition, Draft, EncodedCommit, encode_draft
from protocol import signing
from protocol.block import Block, encrypt_block
from protocol.body import Body
from protocol.codec import encode
from protocol.commit import HeaderKeys, create_commit, lipmaa
from protocol.content import Post
from protocol.ids import BlockId, CommitId, ObjectId, Signature
from protocol.keys import BlockKey, ConvergenceSecret, GivenKey, ReadKey, TopicSeed, UserSeed
from protocol.publication import (
    NONCE_SIZE,
    create_publication,
    encode_bare,
    encode_publication,
    sign_publication,
)
from storage.repos.repos import Branch

_NOW_MS: Final = 1_700_000_000_000
_POST: Final = Post("x")


@dataclass(frozen=True, slots=True)
class Forged:
    """A commit's id, and the publication that carries it."""

    commit_id: CommitId
    encoded: bytes


class Feed:
    """The commits of one user in one branch, on the topic that `branch` is on."""

    def __init__(self, branch: Branch, seed: UserSeed, seen: tuple[CommitId, ...]) -> None:
        """`seen` is what of the root branch the user says to have seen."""
        self.branch = branch
        self.keys = AuthorKeys(*signing.key_pair(seed))
        self._seen = () if branch.facts.is_root_branch else seen
        self._ids: list[CommitId] = []
        self._made = 0

    @property
    def last(self) -> CommitId | None:
        """The last commit that `go_on` made."""
        return self._ids[-1] if self._ids else None

    def draft(
        self, acks: Sequence[CommitId], body: Body = _POST, *, sequence: int | None = None
    ) -> EncodedCommit:
        """A commit at the next place of the feed, or at another one. Each is another commit, also of equal words."""
        self._made += 1
        number = sequence or len(self._ids) + 1
        skip = lipmaa(number)
        place = CommitPosition(
            self.branch.facts.epoch_id,
            number,
            previous=self._ids[number - 2] if number > 1 else None,
            skip=self._ids[skip - 1] if skip != number - 1 else None,
            seen=self._seen,
            acks=tuple(acks),
            keys=HeaderKeys(acks=(GivenKey(b""),) * len(acks)),
        )
        return encode_draft(self.keys, _NOW_MS + self._made, self.branch, Draft(body), place)

    def go_on(self, acks: Sequence[CommitId], body: Body = _POST) -> Forged:
        """The next commit of the feed, published as a writer would."""
        drafted = self.draft(acks, body)
        self._ids.append(drafted.commit.commit_id)
        return publish(self.branch, drafted)

    def first(self, acks: Sequence[CommitId], body: Body = _POST) -> Forged:
        """Another first commit of the feed: what becomes of it says nothing of the next one."""
        return publish(self.branch, self.draft(acks, body, sequence=1))


def publish(
    branch: Branch, drafted: EncodedCommit, *, is_signed: bool = True, key: BlockKey | None = None
) -> Forged:
    """A publication with the topic's signature, or a random one; `key` is another than opens the commit."""
    return publish_blocks(branch, key or drafted.commit.key, drafted.blocks, is_signed=is_signed)


def publish_blocks(
    branch: Branch, key: BlockKey, blocks: Sequence[Block], *, is_signed: bool = True
) -> Forged:
    """The same of blocks, of which the first is said to be a commit's."""
    commit_id, nonce = blocks[0].block_id, secrets.token_bytes(NONCE_SIZE)
    sealed_key = nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
        key, branch.topic + commit_id, nonce, branch.read_key
    )
    encoded = tuple(block.encoded for block in blocks)
    signature = secrets.token_bytes(64)
    if is_signed:
        assert branch.topic_seed is not None, "only who holds the topic's key signs"
        topic_secret = signing.key_pair(branch.topic_seed)[1]
        signature = sign_publication(topic_secret, branch.topic, sealed_key, encoded)
    return Forged(
        CommitId(commit_id), encode_publication(branch.topic, sealed_key, encoded, Signature(signature))
    )


def of_another_version(branch: Branch, *, is_signed: bool = True) -> Forged:
    """A commit of a format version that nobody knows yet."""
    plaintext = encode(("commit2", secrets.token_bytes(32)))
    block, key = encrypt_block(plaintext, branch.convergence_secret)
    return publish_blocks(branch, key, (block,), is_signed=is_signed)


def without_kind(feed: Feed, acks: Sequence[CommitId], body: Body = _POST) -> Forged:
    """A commit whose header does not say the kind of its body."""
    drafted = feed.draft(acks, body)
    old = drafted.commit
    content = replace_fields(old.content, metadata=b"")
    commit, block = create_commit(
        old.acks, old.links, content, feed.keys.secret, feed.branch.convergence_secret
    )
    return publish(feed.branch, EncodedCommit(commit, (block, *drafted.blocks[1:])))


def on_own_topic(topic_seed: TopicSeed, size: int = 32, *, is_signed: bool = True) -> Forged:
    """What a relay can check of a publication, on a topic of the attacker's own, and nothing behind it."""
    block, key = encrypt_block(secrets.token_bytes(size), ConvergenceSecret(bytes(32)))
    made = create_publication(topic_seed, ReadKey(bytes(32)), key, (block,), secrets.token_bytes(NONCE_SIZE))
    signature = made.signature if is_signed else Signature(secrets.token_bytes(64))
    return Forged(
        CommitId(block.block_id), encode_publication(made.topic, made.sealed_key, (block.encoded,), signature)
    )


def bare_on_own_topic(topic_seed: TopicSeed) -> Forged:
    """The same, without a body that never was."""
    block, key = encrypt_block(secrets.token_bytes(32), ConvergenceSecret(bytes(32)))
    nonce = secrets.token_bytes(NONCE_SIZE)
    topic, secret = signing.topic_key_pair(topic_seed)
    sealed = create_publication(topic_seed, ReadKey(bytes(32)), key, (block,), nonce).sealed_key
    body_id = ObjectId(BlockId(secrets.token_bytes(32)))
    signature = sign_publication(secret, topic, sealed, (block.encoded,), body_id)
    return Forged(CommitId(block.block_id), encode_bare(topic, sealed, block.encoded, body_id, signature))


def of_a_reader(branch: Branch) -> Branch:
    """What who may not write holds of a branch: its topic's key only where it is the root branch."""
    return branch if branch.facts.is_root_branch else replace(branch, topic_seed=None)
