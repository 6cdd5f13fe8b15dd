"""Ingest, step 1: decodes and decrypts publications, and gathers what their signatures claim.

Pure. `native_reading` has the usual ones read by a compiled library. `publication_parsing` goes on where the claims have
been checked.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import repeat
from typing import Final, NamedTuple

from protocol.codec import DecodeError, Value
from protocol.crypto import hashing
from protocol.crypto.keys import BlockKey, ConvergenceSecret, EpochKey, ReadKey
from protocol.crypto.signing import Claim
from protocol.formats.block import Block, Reference, WrongKey, decrypt_unchecked
from protocol.formats.body import AnyBody, ErasedBody, decode_body, kind_name
from protocol.formats.commit import (
    NO_BRANCH,
    NO_EPOCH,
    NO_MARK,
    Commit,
    UnknownVersion,
    open_commit,
    open_unchecked,
)
from protocol.formats.declared_kind import declared_kind, decrypt_edit, read_body, unopened_body
from protocol.formats.epochs import BOXES_SIZE_MAX, KEYS_SIZE_MAX, EpochInit, StartParts, open_keys
from protocol.formats.object import BlockLookup, MissingBlocks, open_object
from protocol.formats.publication import Publication, decode_publication, open_hidden_key
from protocol.ids import BlockId, BranchId, BranchMark, CommitId, EpochId, RepoId, TopicKey, root_branch
from verifier.verify import Rejected, author_claim

_MARKS_REMEMBERED_MAX: Final = 4096


class EpochOpening(NamedTuple):
    """Keys that open the commits of one epoch on one topic, or of several epochs that share one key."""

    repo_id: RepoId
    epoch_ids: frozenset[EpochId]
    read_key: ReadKey
    convergence_secret: ConvergenceSecret
    key: EpochKey | None
    """None to who follows one branch alone."""
    mark: BranchMark
    """Of the branch that is followed alone; else empty: it follows from the key."""

    def __repr__(self) -> str:
        """Return a text without the secrets."""
        named = [one.hex() for one in sorted(self.epoch_ids)]
        return f"EpochOpening(repo_id={self.repo_id.hex()}, epoch_ids={named})"


class OpeningKeys(NamedTuple):
    """Keys that open the commits on one topic: of several epochs where these name one topic."""

    topic: TopicKey
    openings: tuple[EpochOpening, ...]
    holds_topic_key: bool
    """True if this node can make the topic's signature itself."""

    def __repr__(self) -> str:
        """Return a text without the secrets."""
        return f"OpeningKeys(topic={self.topic.hex()})"


class DecodedCommit(Value, frozen=True, tag="decoded"):
    """A commit and its body, decoded; signatures not checked yet. No more of the body is read than a verdict rests on."""

    commit: Commit
    body: AnyBody
    parts: StartParts | None = None
    """What the body of an init names."""


class Unread(Value, frozen=True, tag="unread"):
    """A commit of a format that is not known here."""

    commit_id: CommitId


class Candidate(Value, frozen=True):
    """A decoded publication, and what was found in it."""

    publication: Publication
    found: DecodedCommit | Unread | Rejected
    is_checked: bool = False
    """True if the signatures that its batch checks were found to hold when it was read."""


class Drop(Exception):
    """The publication is at fault, not its commit."""


class ReadBatch(Value, frozen=True):
    """Publications that could be read, and how many were dropped for which reason."""

    checks_topics: bool
    """True if each topic's signature is checked, and not only of what no author is known to have signed."""
    candidates: list[Candidate]
    dropped: dict[str, int]


def read_batch(
    keys: OpeningKeys,
    items: Iterable[bytes],
    *,
    with_bare: bool = False,
    checks_topics: bool = False,
    known: Iterable[Candidate | None] = repeat(None),
) -> ReadBatch:
    """Decode and open publications.

    Bare ones are opened if the header states the kind, since their verdict needs no body; with `with_bare` all are. `known`
    are those that were read before, at their places.
    """
    candidates: list[Candidate] = []
    dropped: Counter[str] = Counter()
    for encoded, candidate in zip(items, known):  # noqa: B905  # without end where nothing is known
        try:
            candidates.append(candidate or read_publication(keys, encoded, with_bare=with_bare))
        except Drop as error:
            dropped[str(error)] += 1
    return ReadBatch(checks_topics or not keys.holds_topic_key, candidates, dropped)


def gather_claims(batch: ReadBatch) -> list[Claim]:
    """List the signatures to check: the author's of each readable candidate, and the topic's of the others.

    Claims that were checked before are left out. A node with the topic's key makes the topic's signature anew when it sends
    an accepted publication on, so the author's suffices there. The topic's signature of those that it keeps unaccepted is
    checked later (`prove_topics`). Nodes without the key check each topic signature.
    """
    claims: list[Claim] = []
    for candidate in batch.candidates:
        if candidate.is_checked:
            continue
        if checks_topic(batch, candidate):
            claims.append(topic_claim(candidate.publication))
        if isinstance(candidate.found, DecodedCommit):
            claims.append(author_claim(candidate.found.commit))
    return claims


def checks_topic(batch: ReadBatch, candidate: Candidate) -> bool:
    """Return True if the topic's signature of a candidate is among the claims of its batch."""
    return batch.checks_topics or not isinstance(candidate.found, DecodedCommit)


def topic_claim(publication: Publication) -> Claim:
    """Return the claim that the holder of the topic's key signed a publication."""
    return Claim(publication.topic, publication.digest, publication.signature)


def read_publication(keys: OpeningKeys, encoded: bytes, *, with_bare: bool = False) -> Candidate:
    """Open one publication. Raises Drop where the publication is at fault."""
    try:
        publication = decode_publication(encoded)
    except DecodeError as error:
        raise Drop(f"bad_publication:{error.reason}") from None
    if publication.topic != keys.topic:
        raise Drop("other_topic")
    return Candidate(publication, _read_commit(keys, publication, with_bare=with_bare))


def _read_commit(
    keys: OpeningKeys, publication: Publication, *, with_bare: bool
) -> DecodedCommit | Unread | Rejected:
    """Raises Drop where the publication is at fault."""
    for opening in keys.openings:
        try:
            return _open(opening, publication, with_bare=with_bare)
        except WrongKey:
            continue
    raise Drop("wrong_key")


def _open(
    opening: EpochOpening, publication: Publication, *, with_bare: bool
) -> DecodedCommit | Unread | Rejected:
    """Raises WrongKey where this does not open it, and Drop where the publication is at fault."""
    commit_id = publication.commit_id
    commit_key = open_hidden_key(publication, opening.read_key)
    try:
        commit = open_commit(publication.blocks[0], commit_key, opening.convergence_secret)
    except WrongKey:
        if opening.key is None or commit_id not in opening.epoch_ids:
            raise
        return _open_start(opening, publication, commit_key)  # E6: it was published in an epoch before
    except UnknownVersion:
        if publication.body_id is not None:
            raise Drop("bare") from None  # anyone who can read it may need the body
        return Unread(commit_id)
    except DecodeError as error:
        return Rejected(commit_id, "bad_commit", str(error))
    named = EpochId(commit_id) if commit.content.epoch == NO_EPOCH else commit.content.epoch
    if named not in opening.epoch_ids:
        raise Drop("other_epoch")
    return _read(opening, commit, publication, opening.key, opening.convergence_secret, with_bare=with_bare)


def _open_start(
    opening: EpochOpening, publication: Publication, commit_key: BlockKey
) -> DecodedCommit | Rejected:
    """Open the init of an epoch on that epoch's own topic: it gives the key of the one that it was published in.

    Raises WrongKey.
    """
    assert opening.key is not None, "looked at before"
    blocks = {block.block_id: block for block in publication.blocks[1:]}
    try:
        found = open_unchecked(publication.blocks[0], commit_key)
        body = decode_body(_decrypt_block(blocks, found.content.body))
        if not isinstance(body, EpochInit):
            raise WrongKey(publication.commit_id.hex())
        sealed = _decrypt_block(blocks, body.keys)
    except (DecodeError, UnknownVersion, MissingBlocks) as error:  # what a wrong key gives is like no commit
        raise WrongKey(str(error)) from None
    given = open_keys(opening.key, opening.repo_id, body.states.mark, sealed) or ()
    for one in given:
        if one.epoch == found.content.epoch:
            secret = hashing.convergence_secret(one.key)
            commit = open_commit(publication.blocks[0], commit_key, secret)
            return _read(opening, commit, publication, one.key, secret, with_bare=False)
    raise WrongKey("it does not give the key of its epoch")


def _decrypt_block(blocks: Mapping[BlockId, Block], reference: Reference) -> bytes:
    """Decrypt the only block of an object. The convergence secret is not known yet. Raises MissingBlocks."""
    block = blocks.get(reference.object_id)
    if block is None:
        raise MissingBlocks((reference.object_id,))
    return decrypt_unchecked(block, reference.key)


def _read(
    opening: EpochOpening,
    commit: Commit,
    publication: Publication,
    key: EpochKey | None,
    secret: ConvergenceSecret,
    *,
    with_bare: bool,
) -> DecodedCommit | Rejected:
    """Look at the mark and the body of a commit. Raises Drop where the publication is at fault."""
    expected = NO_MARK
    if commit.content.branch != NO_BRANCH:
        expected = opening.mark if key is None else branch_mark_in(key, commit.content.branch)
    if commit.mark != expected:
        return Rejected(commit.commit_id, "bad_mark", "the mark is not that of its branch in its epoch")
    is_root_branch = commit.branch_id == root_branch(opening.repo_id)
    try:
        return _read_body(commit, publication, secret, is_root_branch=is_root_branch, with_bare=with_bare)
    except MissingBlocks:
        raise Drop("missing_body") from None
    except WrongKey:
        return Rejected(commit.commit_id, "bad_body", "the commit gives a wrong key for its body")
    except DecodeError as error:
        return Rejected(commit.commit_id, "bad_body", str(error))


@lru_cache(maxsize=_MARKS_REMEMBERED_MAX)
def branch_mark_in(key: EpochKey, branch_id: BranchId) -> BranchMark:
    """Derive the mark of a branch in the epoch that has this key."""
    return hashing.branch_mark(hashing.branch_secret(key, branch_id))


def _read_body(
    commit: Commit,
    publication: Publication,
    secret: ConvergenceSecret,
    *,
    is_root_branch: bool,
    with_bare: bool,
) -> DecodedCommit:
    """Raises Drop where the publication is at fault, and as `read_body`."""
    body_id = commit.content.body.object_id
    said = declared_kind(commit, is_root_branch=is_root_branch)
    if publication.body_id is not None:
        if publication.body_id != body_id:
            raise Drop("missing_body")
        if said is None and not with_bare:
            raise Drop("bare")  # a verdict needs the body, which others may have
        return DecodedCommit(commit, ErasedBody("" if said is None else kind_name(said)))
    blocks = {block.block_id: block for block in publication.blocks[1:]}
    if said is not None:
        # It travels as its one block, whatever that may be: it cannot be told what else belongs to it. No verdict rests on
        # what it says, so nobody decodes it before it is asked for: that would be a quarter of all reading.
        if body_id not in blocks:
            raise Drop("missing_body")
        if len(publication.blocks) != 2:
            raise Drop("surplus_blocks")
        return DecodedCommit(commit, unopened_body(said, decrypt_edit(said, commit, blocks.get, secret)))
    used: set[bytes] = set()

    def look_up(block_id: BlockId) -> Block | None:
        used.add(block_id)
        return blocks.get(block_id)

    body, _ = read_body(commit, look_up, secret, is_root_branch=is_root_branch)
    parts = None
    if is_root_branch and isinstance(body, EpochInit):
        parts = open_parts(body, look_up, secret)
    if len(publication.blocks) - 1 != len(used):
        raise Drop("surplus_blocks")
    return DecodedCommit(commit, body, parts)


def open_parts(body: EpochInit, look_up: BlockLookup, secret: ConvergenceSecret) -> StartParts:
    """Open the three objects that an init names. Raises MissingBlocks, WrongKey, DecodeError."""
    boxes, writers_boxes = (
        open_object(one, look_up, secret, size_max=BOXES_SIZE_MAX) for one in (body.boxes, body.writers_boxes)
    )
    return StartParts(boxes, writers_boxes, open_object(body.keys, look_up, secret, size_max=KEYS_SIZE_MAX))
