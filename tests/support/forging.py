"""Commits by a member who holds the secrets and writes what no Ravel would: any body, under any word about its kind."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

from nacl.bindings import (
    crypto_core_ed25519_scalar_add,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_scalarmult_ed25519_base_noclamp,
)

from protocol import signing
from protocol.block import Block, Reference
from protocol.body import (
    Body,
    BranchFork,
    Carried,
    Checkpoint,
    Grant,
    Permission,
    encode_body,
)
from protocol.commit import Content, HeaderKeys, Links, TanglePlace, create_commit, lipmaa
from protocol.content import Compaction, Files, Post
from protocol.declared_kind import declare_kind
from protocol.ids import BranchId, CommitId, EpochId, ObjectId, Signature, UserId
from protocol.keys import BlockKey, GivenKey, TopicSeed, UserSeed
from protocol.limits.formats import BODY_SIZE_MAX, LEAF_SIZE
from protocol.object import build_object
from protocol.publication import create_publication, decode_publication, encode_bare, encode_publication
from storage.repos.repos import Branch
from tests.support.builders import NOW_MS, World
from tests.support.ids import as_commit_id

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


class Forger:
    """A member with the right to write, and its feed in the world's branch, or in another one."""

    def __init__(self, world: World, seed: UserSeed = _FORGER, branch: Branch | None = None) -> None:
        self.user, self._secret = signing.key_pair(seed)
        self._world, self._branch = world, branch or world.branch
        grant, _ = world.author.write(
            world.replica.root_branch(world.repo), Grant(self.user, Permission.WRITE, None)
        )
        self._seen = grant.commit_id
        self._feed: list[CommitId] = []

    def write(
        self,
        body: bytes,
        metadata: bytes | None = None,
        acks: Sequence[CommitId] = (),
        *,
        body_key: BlockKey | None = None,
    ) -> bytes:
        """A publication of a commit with this body, said to be a post; `body_key` is another than it has."""
        branch = self._branch
        reference, blocks = build_object(body, branch.convergence_secret)
        reference = Reference(reference.object_id, body_key or reference.key)
        follows = tuple(acks) or (self._seen if branch.facts.is_root_branch else branch.facts.root_id,)
        group = TanglePlace("group", self._world.repo.init_id, (self._seen,))
        sequence = len(self._feed) + 1
        skip = lipmaa(sequence)
        content = Content(
            self.user,
            branch.branch_id,
            EpochId(self._world.repo.init_id),
            sequence,
            self._feed[-1] if self._feed else None,
            () if branch.facts.is_root_branch else (group,),
            NOW_MS + sequence,
            declare_kind(POST) if metadata is None else metadata,
            reference,
            HeaderKeys(acks=(GivenKey(b""),) * len(follows)),
        )
        links = Links(lipmaa=self._feed[skip - 1] if skip != sequence - 1 else None)
        commit, block = create_commit(follows, links, content, self._secret, branch.convergence_secret)
        self._feed.append(commit.commit_id)
        return self.publish(commit.key, (block, blocks[-1]))

    def publish(self, key: BlockKey, blocks: tuple[Block, ...]) -> bytes:
        """Blocks as they travel on the branch's topic."""
        branch = self._branch
        assert branch.topic_seed is not None
        publication = create_publication(branch.topic_seed, branch.read_key, key, blocks, b"n" * 24)
        encoded = tuple(block.encoded for block in publication.blocks)
        return encode_publication(publication.topic, publication.sealed_key, encoded, publication.signature)


def bare_of(encoded: bytes) -> bytes:
    """The bare publication of a whole one: anyone who has this can make it."""
    whole = decode_publication(encoded)
    own, body = whole.blocks
    return encode_bare(whole.topic, whole.sealed_key, own.encoded, ObjectId(body.block_id), whole.signature)


def sign_at_random(seed: TopicSeed, message: bytes) -> Signature:
    """A valid Ed25519 signature, by a random number where RFC 8032 (5.1.6) derives one from key and message."""
    digest = hashlib.sha512(seed).digest()
    scalar = bytearray(digest[:32])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    secret = crypto_core_ed25519_scalar_reduce(bytes(scalar) + bytes(32))
    nonce = crypto_core_ed25519_scalar_reduce(secrets.token_bytes(64))
    point = crypto_scalarmult_ed25519_base_noclamp(nonce)
    key = crypto_scalarmult_ed25519_base_noclamp(secret)
    challenge = crypto_core_ed25519_scalar_reduce(hashlib.sha512(point + key + message).digest())
    product = crypto_core_ed25519_scalar_mul(challenge, secret)
    return Signature(point + crypto_core_ed25519_scalar_add(nonce, product))
