"""Commits by a member who holds the secrets and writes what no Ravel would: any body, under any word about its kind."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, Final

from nacl.bindings import (
    crypto_core_ed25519_scalar_add,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_scalarmult_ed25519_base_noclamp,
)

from node.authoring.drafting import Target, aim
from protocol.crypto import signing
from protocol.crypto.keys import BlockKey, Seed, SigningKey, TopicSeed, UserSeed
from protocol.formats.block import Block, Reference, encrypt_block
from protocol.formats.body import (
    Body,
    BranchFork,
    Carried,
    Checkpoint,
    Grant,
    Permission,
    encode_body,
)
from protocol.formats.commit import Content, Links, TanglePlace, create_commit, lipmaa
from protocol.formats.content import Compaction, Files, Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.object import build_object
from protocol.formats.publication import create_publication, decode_publication, encode_bare
from protocol.ids import BranchId, BranchMark, CommitId, ObjectId, Signature, UserId
from protocol.limits.formats import ACK_COUNT_MAX, BODY_SIZE_MAX, LEAF_SIZE
from storage.commits.commits import load_places
from storage.commits.heads import load_heads
from storage.repos.repos import Branch
from tests.support.builders import NOW_MS, World
from tests.support.ids import as_commit_id
from verifier.tangle_kinds import GROUP

_FORGER = UserSeed(b"f" * 32)

BAD_BODIES: Final[dict[str, bytes]] = {
    "no value": b"\xc1",
    "no tag": b"\x90",
    "bad shape": b"\x91\xa5post1",
    "another version": b"\x92\xa5post2\xa1x",
    "a byte over the bound": b"\x92\xa5post1\xc6" + bytes(BODY_SIZE_MAX - 6),
    "a tree": bytes(LEAF_SIZE + 1),
    "compaction": encode_body(Compaction(())),
    "checkpoint": encode_body(Checkpoint(as_commit_id(b"p" * 32))),
    "files": encode_body(Files(())),
    "fork": encode_body(BranchFork(BranchId(b"b" * 32), (as_commit_id(b"c" * 32),))),
    "carried": encode_body(
        Carried(
            BranchId(b"b" * 32), as_commit_id(b"c" * 32), UserId(b"a" * 32), 1, encode_body(Post("words"))
        )
    ),
}
"""Bodies that are none, or of other kinds than posts."""
POST: Final[Body] = Post("words")


_RANKS: Final[dict[CommitId, int]] = {}
"""Of all that forgers have made, which no store may have."""


def forge(
    world: World,
    target: Target,
    body: bytes,
    acks: Sequence[CommitId],
    secret: SigningKey,
    *,
    links: Links | None = None,
    rank: int | None = None,
    mark: BranchMark | None = None,
    body_key: BlockKey | None = None,
    published_as: Target | None = None,
    seed: TopicSeed | None = None,
    **changes: object,
) -> bytes:
    """A publication by anyone who holds the secrets: as it should be, but for what is given.

    `changes` are fields of the content; `published_as` is where it is published, if that is not where it says. `seed` is of
    the topic, where the target's node does not know it.
    """
    facts = target.facts
    reference, blocks = build_object(body, target.convergence_secret)
    group = TanglePlace(GROUP, facts.init_id, heads_of(world, world.replica.root_branch(world.repo)))
    fields: dict[str, object] = {
        "author": UserId(secret[32:]),
        "branch": facts.branch_id,
        "epoch": target.epoch.epoch_id,
        "by_writer": target.by_writer,
        "whole": True,
        "feed_sequence": 1,
        "feed_previous": None,
        "tangles": () if facts.is_root_branch else (group,),
        "timestamp": NOW_MS,
        "metadata": b"",
        "body": Reference(reference.object_id, body_key or reference.key),
    }
    content = Content(**(fields | changes))  # type: ignore[arg-type]  # a table of overrides
    commit, block = create_commit(
        tuple(acks),
        rank_behind(world, acks) if rank is None else rank,
        target.mark if mark is None else mark,
        links or Links(),
        content,
        secret,
        target.convergence_secret,
    )
    _RANKS[commit.commit_id] = commit.rank
    return publish(published_as or target, commit.key, (block, blocks[-1]), seed)


def target_in(world: World, branch: Branch) -> Target:
    """Where the world's node publishes what it writes in a branch now."""
    return aim(branch.facts, branch.num, world.replica.writing_epoch(world.repo))


def publish(target: Target, key: BlockKey, blocks: tuple[Block, ...], seed: TopicSeed | None = None) -> bytes:
    """Blocks as they travel on the topic."""
    return create_publication(seed or target.seed, target.epoch.keys.read_key, key, blocks).encoded


def later_version(world: World) -> bytes:
    """A publication in the world's branch whose commit is of a version that nobody knows yet."""
    target = target_in(world, world.branch)
    acks = (as_commit_id(b"a" * 32),)
    block, key = encrypt_block(b"\x92\xa7commit3\xc0", target.convergence_secret, (), acks, 1, target.mark)
    return publish(target, key, (block,))


def heads_of(world: World, branch: Branch) -> tuple[CommitId, ...]:
    """The heads of a branch at the world's node."""
    with world.replica.database.read() as connection:
        return tuple(commit_id for commit_id, _ in load_heads(connection, branch.num, ACK_COUNT_MAX))


def rank_behind(world: World, acks: Sequence[CommitId]) -> int:
    """The rank of a commit that acks these; of those that nobody has made, 0 is taken."""
    with world.replica.database.read() as connection:
        stored = load_places(connection, acks)
    return 1 + max((stored[ack].rank if ack in stored else _RANKS.get(ack, 0) for ack in acks), default=-1)


class Forger:
    """A member with the right to write, and its feed in the world's branch, or in another one."""

    def __init__(self, world: World, seed: UserSeed = _FORGER, branch: Branch | None = None) -> None:
        self.user, self.secret = signing.key_pair(seed)
        self._world, self._branch = world, branch or world.branch
        grant, _ = world.author.write(
            world.replica.root_branch(world.repo), Grant(self.user, Permission.WRITE)
        )
        self.grant = grant.commit_id
        self.place: tuple[CommitId, ...] | None = None
        """What it names as its place in the group tangle; None: what the world's node would name."""
        self._feed: list[CommitId] = []

    @property
    def target(self) -> Target:
        """Where it publishes."""
        return target_in(self._world, self._branch)

    def write(
        self,
        body: bytes,
        metadata: bytes | None = None,
        acks: Sequence[CommitId] = (),
        *,
        body_key: BlockKey | None = None,
    ) -> bytes:
        """A publication of a commit with this body, said to be a post; `body_key` is another than it has."""
        facts = self._branch.facts
        sequence = len(self._feed) + 1
        skip = lipmaa(sequence)
        changes: dict[str, Any] = {
            "author": self.user,
            "feed_sequence": sequence,
            "feed_previous": self._feed[-1] if self._feed else None,
            "timestamp": NOW_MS + sequence,
            "metadata": declare_kind(POST) if metadata is None else metadata,
        }
        if self.place is not None:
            changes["tangles"] = (TanglePlace(GROUP, facts.init_id, self.place),)
        item = forge(
            self._world,
            self.target,
            body,
            tuple(acks) or (self.grant if facts.is_root_branch else facts.root_id,),
            self.secret,
            links=Links(lipmaa=self._feed[skip - 1] if skip != sequence - 1 else None),
            body_key=body_key,
            **changes,
        )
        self._feed.append(decode_publication(item).commit_id)
        return item


def bare_of(encoded: bytes) -> bytes:
    """The bare publication of a whole one: anyone who has this can make it."""
    whole = decode_publication(encoded)
    own, body = whole.blocks
    return encode_bare(whole.topic, whole.hidden_key, own.encoded, ObjectId(body.block_id), whole.signature)


def sign_at_random(seed: Seed, message: bytes, claimed: bytes = b"") -> Signature:
    """A valid Ed25519 signature, by a random number where RFC 8032 (5.1.6) derives one from key and message.

    `claimed`: as one of another key, which differs from the seed's by a point of small order.
    """
    digest = hashlib.sha512(seed).digest()
    scalar = bytearray(digest[:32])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    secret = crypto_core_ed25519_scalar_reduce(bytes(scalar) + bytes(32))
    nonce = crypto_core_ed25519_scalar_reduce(secrets.token_bytes(64))
    point = crypto_scalarmult_ed25519_base_noclamp(nonce)
    key = claimed or crypto_scalarmult_ed25519_base_noclamp(secret)
    challenge = crypto_core_ed25519_scalar_reduce(hashlib.sha512(point + key + message).digest())
    product = crypto_core_ed25519_scalar_mul(challenge, secret)
    return Signature(point + crypto_core_ed25519_scalar_add(nonce, product))
