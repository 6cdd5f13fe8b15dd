"""Builds a commit from a draft: encrypts, signs, and packs it into a publication. Pure.

Where a commit stands (its place in the author's feed, its acks, its rank) is `node.authoring.author`'s to find out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from node.ingest.publication_parsing import Opened
from node.ingest.publication_reading import branch_mark_in
from node.runtime.clock import check_now
from node.runtime.errors import ServiceError
from protocol.codec import DecodeError
from protocol.crypto.keys import BlockKey, ConvergenceSecret, GivenKey, SigningKey, TopicSeed
from protocol.formats.block import Block, Reference
from protocol.formats.body import Body, encode_body
from protocol.formats.commit import NO_BRANCH, NO_MARK, Commit, Content, Links, TanglePlace, create_commit
from protocol.formats.declared_kind import EDITS_OF_VALUES, declare_kind, declared_kind, unopened_body
from protocol.formats.object import build_object
from protocol.formats.publication import Publication, create_publication, encode_publication
from protocol.ids import BranchMark, CommitId, EpochId, ObjectId, TopicKey, UserId
from storage.repos.epochs import Epoch
from verifier.facts import BranchFacts
from verifier.tangle_kinds import GROUP
from verifier.verify import Rejected, sign_off


class AuthorKeys(NamedTuple):
    """Signing user, and the secret key (64 bytes)."""

    user: UserId
    secret: SigningKey


@dataclass(frozen=True, slots=True)
class Target:
    """Branch, epoch and topic to publish a commit in. The topic is one of the epoch's two."""

    facts: BranchFacts
    branch_num: int
    epoch: Epoch
    by_writer: bool
    """True if it goes on the writers' topic: where this node holds the secret of that."""

    @property
    def topic(self) -> TopicKey:
        """The topic's key."""
        stated = self.epoch.writers_topic
        return stated if self.by_writer and stated is not None else self.epoch.topic

    @property
    def seed(self) -> TopicSeed:
        """The topic's seed."""
        seed = self.epoch.seed_of(self.topic)
        assert seed is not None, "it was looked for"
        return seed

    @property
    def convergence_secret(self) -> ConvergenceSecret:
        """Return the secret that blocks are made with."""
        return self.epoch.convergence_secret

    @property
    def mark(self) -> BranchMark:
        """The mark of the branch in the epoch."""
        branch_id = self.facts.branch_id
        return NO_MARK if branch_id == NO_BRANCH else branch_mark_in(self.epoch.key, branch_id)


def aim(facts: BranchFacts, branch_num: int, epoch: Epoch) -> Target:
    """Find the topic of an epoch on which this node publishes commits of a branch."""
    return Target(facts, branch_num, epoch, by_writer=epoch.writers_seed is not None)


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
    document: str = ""
    """Name of the document that the body is of, or carries an edit of; empty for the unnamed one."""
    further_blocks: tuple[Block, ...] = ()
    """Blocks of the objects that the body of an init names."""


@dataclass(frozen=True, slots=True)
class WrittenCommit:
    """A commit as written, ready for the way in."""

    commit_id: CommitId
    key: BlockKey
    encoded: bytes
    timestamp: int
    """Unix milliseconds, as the commit states them."""
    rank: int
    made: Opened | None
    """Result that parsing the commit would give; None where the verdict needs the body (`node.authoring.opening`)."""


@dataclass(frozen=True, slots=True)
class EncodedCommit:
    """A commit in its blocks: its own, then its body's, then what an init names. `body` is the encoding of its body."""

    commit: Commit
    blocks: tuple[Block, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class CommitPosition:
    """Place of a new commit: its epoch, its place in the author's feed, and what it follows."""

    epoch: EpochId
    sequence: int
    previous: CommitId | None = None
    skip: CommitId | None = None
    seen: tuple[CommitId, ...] = ()
    acks: tuple[CommitId, ...] = ()
    rank: int = 0


def encode_draft(
    keys: AuthorKeys, now_ms: int, target: Target, draft: Draft, place: CommitPosition
) -> EncodedCommit:
    """Encode a draft (whose deps are ids) at its place, dated `now_ms` unless it states a time.

    Raises ServiceError.
    """
    try:
        facts, secret = target.facts, target.convergence_secret
        body = encode_body(draft.body)
        reference, body_blocks = build_object(body, secret)
        group = TanglePlace(GROUP, facts.init_id, place.seen)
        content = Content(
            keys.user,
            facts.branch_id,
            place.epoch,
            target.by_writer,
            True,  # this node accepts nothing without its past
            place.sequence,
            place.previous,
            () if facts.is_root_branch else tuple(sorted((group, *draft.tangles), key=_kind_of)),
            now_ms if draft.timestamp is None else draft.timestamp,
            draft.metadata if facts.is_root_branch else declare_kind(draft.body, draft.document),
            reference,
            tuple(GivenKey(file.key) for file in draft.files),
        )
        files = tuple(file.object_id for file in draft.files)
        deps = tuple(dep for dep in draft.deps if isinstance(dep, bytes))
        links = Links(deps=deps, files=files, nfiles=draft.removed_files, lipmaa=place.skip)
        commit, block = create_commit(
            place.acks, place.rank, target.mark, links, content, keys.secret, secret
        )
    except DecodeError as error:
        raise ServiceError("bad_request", f"this cannot be a commit: {error}") from None
    return EncodedCommit(commit, (block, *body_blocks, *draft.further_blocks), body)


def encode_dated(
    keys: AuthorKeys, clock_ms: Callable[[], int], target: Target, draft: Draft, place: CommitPosition
) -> EncodedCommit:
    """Encode a draft at its place, dated by the clock where it says no time. Raises ServiceError, also where that is off."""
    now_ms = clock_ms()
    if draft.timestamp is None:
        check_now(now_ms)
    return encode_draft(keys, now_ms, target, draft, place)


def _kind_of(place: TanglePlace) -> str:
    return place.kind


def make_publication(target: Target, drafted: EncodedCommit) -> WrittenCommit:
    """Make the publication of an encoded commit on its topic."""
    try:
        publication = create_publication(
            target.seed, target.epoch.keys.read_key, drafted.commit.key, drafted.blocks
        )
        encoded = encode_publication(
            publication.topic,
            publication.hidden_key,
            tuple(item.encoded for item in publication.blocks),
            publication.signature,
        )
    except DecodeError as error:
        raise ServiceError("bad_request", f"this cannot be a commit: {error}") from None
    commit, made = drafted.commit, _opened_as_made(target, drafted, publication)
    return WrittenCommit(commit.commit_id, commit.key, encoded, commit.content.timestamp, commit.rank, made)


def _opened_as_made(target: Target, drafted: EncodedCommit, publication: Publication) -> Opened | None:
    """Return an own commit as if it had been opened; None where its header does not say the kind of its body."""
    said = declared_kind(drafted.commit, is_root_branch=target.facts.is_root_branch)
    if said is None:
        return None
    body = unopened_body(said, drafted.body if said in EDITS_OF_VALUES else b"")
    signed = sign_off(drafted.commit, body, holds=True)
    assert not isinstance(signed, Rejected), "this node has signed it"
    return Opened(signed, publication, is_from_topic=False)
