"""Builds a commit from a draft: encrypts, signs, and packs it into a publication. Pure but for random nonces.

Where a commit stands (its place in the author's feed, its acks, the keys to them) is `node.authoring.author`'s to find
out.
"""

import secrets
from dataclasses import dataclass, field
from typing import NamedTuple

from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from protocol import signing
from protocol.block import Block, Reference
from protocol.body import Body, encode_body
from protocol.codec import DecodeError
from protocol.commit import Commit, Content, HeaderKeys, Links, TanglePlace, create_commit
from protocol.declared_kind import declare_kind
from protocol.ids import CommitId, EpochId, ObjectId, UserId
from protocol.keys import BlockKey, SigningKey
from protocol.object import build_object
from protocol.publication import NONCE_SIZE, create_publication, encode_publication
from storage.repos.repos import Branch, Epoch, branch_keys
from verifier.facts import BranchFacts
from verifier.tangle_kinds import GROUP


class AuthorKeys(NamedTuple):
    """Who signs: the user, and the secret key (64 bytes)."""

    user: UserId
    secret: SigningKey


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be written: its body, what it acks (None: the branch's heads), its time in unix milliseconds (None: now).

    It adds `files` and removes others by their object ids; `deps` are the commits that had added these. An ack or a dep is a
    commit id, or the index of an earlier draft of the same call, whose id is not known yet.
    """

    body: Body
    acks: tuple[CommitId | int, ...] | None = None
    timestamp: int | None = None
    deps: tuple[CommitId | int, ...] = ()
    files: tuple[Reference, ...] = ()
    removed_files: tuple[ObjectId, ...] = ()
    tangles: tuple[TanglePlace, ...] = ()
    """Places in further tangles than the repo's."""
    metadata: bytes = b""
    """Of a commit of the root branch; elsewhere the body's kind stands there."""


@dataclass(frozen=True, slots=True)
class WrittenCommit:
    """A commit as written, ready for the way in."""

    commit_id: CommitId
    key: BlockKey
    encoded: bytes
    timestamp: int
    """Unix milliseconds, as the commit states them."""
    rank: int | None = None
    """Known when it is stored."""

    def with_rank(self, rank: int | None) -> "WrittenCommit":
        """As it was stored."""
        return WrittenCommit(self.commit_id, self.key, self.encoded, self.timestamp, rank)


@dataclass(frozen=True, slots=True)
class EncodedCommit:
    """A commit in its blocks: its own, then its body's."""

    commit: Commit
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class CommitPosition:
    """Where a new commit stands: its epoch, its place in the author's feed, what it follows, and the keys to that."""

    epoch: EpochId
    sequence: int
    previous: CommitId | None = None
    skip: CommitId | None = None
    seen: tuple[CommitId, ...] = ()
    acks: tuple[CommitId, ...] = ()
    keys: HeaderKeys = field(default_factory=HeaderKeys)


def encode_draft(
    keys: AuthorKeys, now_ms: int, branch: Branch, draft: Draft, place: CommitPosition
) -> EncodedCommit:
    """The commit that a draft (whose deps are ids) becomes at its place, dated `now_ms` where it says no time.

    Raises ServiceError.
    """
    try:
        reference, body_blocks = build_object(encode_body(draft.body), branch.convergence_secret)
        group = TanglePlace(GROUP, branch.facts.init_id, place.seen)
        content = Content(
            keys.user,
            branch.branch_id,
            place.epoch,
            place.sequence,
            place.previous,
            () if branch.facts.is_root_branch else tuple(sorted((group, *draft.tangles), key=_kind_of)),
            now_ms if draft.timestamp is None else draft.timestamp,
            draft.metadata if branch.facts.is_root_branch else declare_kind(draft.body),
            reference,
            place.keys,
        )
        files = tuple(file.object_id for file in draft.files)
        deps = tuple(dep for dep in draft.deps if isinstance(dep, bytes))
        links = Links(deps=deps, files=files, nfiles=draft.removed_files, lipmaa=place.skip)
        commit, block = create_commit(place.acks, links, content, keys.secret, branch.convergence_secret)
    except DecodeError as error:
        raise ServiceError("bad_request", f"this cannot be a commit: {error}") from None
    return EncodedCommit(commit, (block, *body_blocks))


def _kind_of(place: TanglePlace) -> str:
    return place.kind


def make_publication(branch: Branch, drafted: EncodedCommit) -> WrittenCommit:
    """An encoded commit as it travels in its branch."""
    if branch.topic_seed is None:
        raise ServiceError(
            "not_permitted", "this node may read the branch and not write to it", READ_ONLY_ADVICE
        )
    try:
        publication = create_publication(
            branch.topic_seed,
            branch.read_key,
            drafted.commit.key,
            drafted.blocks,
            secrets.token_bytes(NONCE_SIZE),
        )
        encoded = encode_publication(
            publication.topic,
            publication.sealed_key,
            tuple(item.encoded for item in publication.blocks),
            publication.signature,
        )
    except DecodeError as error:
        raise ServiceError("bad_request", f"this cannot be a commit: {error}") from None
    commit = drafted.commit
    return WrittenCommit(commit.commit_id, commit.key, encoded, commit.content.timestamp)


def new_branch(facts: BranchFacts, epoch: Epoch) -> Branch:
    """A branch on a topic that is not stored yet, to be written to."""
    keys = branch_keys(facts.repo_id, epoch.read_secret, epoch.write_secret, facts.branch_id, 0)
    assert keys.topic_seed is not None, "the write secret is there"
    return Branch(
        num=0,
        repo_num=0,
        topic_num=0,
        epoch_num=0,
        name="",
        generation=0,
        topic=signing.public_key(keys.topic_seed),
        topic_commit_count=0,
        commit_count=0,
        void_count=0,
        is_archived=False,
        facts=facts,
        convergence_secret=keys.convergence_secret,
        read_key=keys.read_key,
        topic_seed=keys.topic_seed,
    )
