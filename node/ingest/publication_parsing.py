"""Ingest, step 1: decodes and decrypts publications, and checks the authors' signatures.

Pure: nothing here looks at the store, so batches may be opened while others are stored. The work comes in two parts,
with all signature checks of a batch between them, because they are what takes the time:

    read_batch     decode, compute ids, open the commit and its body; gather what the signatures claim
    settle_batch   sort by whether the claims hold
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from protocol.block import Block, WrongKey
from protocol.body import Body, ErasedBody, UnknownBody, kind_name
from protocol.codec import DecodeError, Value
from protocol.commit import Commit, UnknownVersion, open_commit
from protocol.declared_kind import declared_kind, read_body
from protocol.ids import BlockId
from protocol.object import MissingBlocks
from protocol.publication import Publication, WrongReadKey, decode_publication, open_sealed_key
from protocol.signing import Claim, check_claims
from storage.commits.pending import UNREAD, PendingPublication
from storage.repos.repos import Branch
from verifier.verify import Rejected, SignedCommit, author_claim, sign_off

CARRIER_FAULTS: Final = frozenset({"bad_publication", "other_topic", "bad_topic_signature"})
"""Reasons for a drop that anyone who passed the publication on could see, be it a replica or a relay: grounds to part. The
others only a replica sees, and a relay that carries them in good faith is not to blame."""


class Opened(Value, frozen=True):
    """A publication whose commit could be read and is signed by its author."""

    signed: SignedCommit
    publication: Publication
    encoded: bytes
    is_from_topic: bool
    """Whether the topic's signature was checked, and not the author's alone."""


@dataclass(slots=True)
class OpenedBatch:
    """What `open_batch` made of some publications of one branch."""

    opened: list[Opened] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    waiting: list[PendingPublication] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


class _Readable(Value, frozen=True):
    """A commit and its body, decoded; signatures not checked yet."""

    commit: Commit
    body: Body | UnknownBody


class _Candidate(Value, frozen=True):
    """A decoded publication, and what was found in it."""

    encoded: bytes
    publication: Publication
    found: _Readable | Rejected | PendingPublication


class _Drop(Exception):
    """The publication is at fault, not its commit."""


@dataclass(slots=True)
class ReadBatch:
    """Publications that could be read, and the claims of their signatures."""

    checks_topics: bool
    """Whether each topic's signature is checked, and not only of what no author is known to have signed."""
    candidates: list[_Candidate] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def open_batch(
    branch: Branch, items: Iterable[bytes], *, with_bare: bool = False, checks_topics: bool = False
) -> OpenedBatch:
    """Read, check and settle publications of one branch in one go; `with_bare` all bare ones (`read_batch`)."""
    batch = read_batch(branch, items, with_bare=with_bare, checks_topics=checks_topics)
    return settle_batch(batch, check_claims(batch.claims))


def open_kept_back(branch: Branch, items: Iterable[bytes]) -> OpenedBatch:
    """Read what was kept until its causes came. All signatures were checked before it was kept, and are not again."""
    batch = read_batch(branch, items, checks_topics=True)
    return settle_batch(batch, [True] * len(batch.claims))


def read_batch(
    branch: Branch, items: Iterable[bytes], *, with_bare: bool = False, checks_topics: bool = False
) -> ReadBatch:
    """Decode and open publications. Each readable candidate claims its author's signature, and the others their topic's.

    Of bare ones those whose header says the body's kind, as no verdict rests on it; `with_bare` the others, too.
    A holder of the topic's key makes the topic's signature itself when it sends on what it accepted, and believes that by
    its author's: it checks the topic's of what it keeps without accepting it (`prove_topics`). The others check each.
    """
    batch = ReadBatch(checks_topics=checks_topics or branch.topic_seed is None)
    for encoded in items:
        try:
            candidate = _read_publication(branch, encoded, with_bare=with_bare)
        except _Drop as error:
            batch.dropped[str(error)] += 1
            continue
        publication = candidate.publication
        batch.candidates.append(candidate)
        if _checks_topic(batch, candidate):
            batch.claims.append(_topic_claim(publication))
        if isinstance(candidate.found, _Readable):
            batch.claims.append(author_claim(candidate.found.commit))
    return batch


def read_pending(branch: Branch, encoded: bytes) -> tuple[Commit, Body | UnknownBody] | None:
    """A commit that is kept until its causes come, and its body. Its signature was checked before it was kept."""
    try:
        found = _read_publication(branch, encoded).found
    except _Drop:
        return None
    return (found.commit, found.body) if isinstance(found, _Readable) else None


def settle_batch(batch: ReadBatch, claims_hold: Sequence[bool]) -> OpenedBatch:
    """Sort candidates by what became of their claims (one answer for each claim, in order)."""
    opened = OpenedBatch(dropped=batch.dropped)
    answers = iter(claims_hold)
    for candidate in batch.candidates:
        was_checked = _checks_topic(batch, candidate)
        is_from_topic = next(answers) if was_checked else True
        result: SignedCommit | Rejected | PendingPublication
        match candidate.found:
            case _Readable(commit, body):
                result = sign_off(commit, body, holds=next(answers))
            case other:
                result = other
        if isinstance(result, Rejected) and not was_checked:  # it is remembered
            (is_from_topic,) = check_claims([_topic_claim(candidate.publication)])
        if not is_from_topic:
            opened.dropped["bad_topic_signature"] += 1
        elif isinstance(result, SignedCommit):
            opened.opened.append(Opened(result, candidate.publication, candidate.encoded, was_checked))
        elif isinstance(result, Rejected):
            opened.rejected.append(result)
        else:
            opened.waiting.append(result)
    return opened


def prove_topics(unproven: Iterable[Opened]) -> OpenedBatch:
    """Check the topic's signatures of publications that are to be kept without being accepted."""
    batch = OpenedBatch()
    for opened in unproven:
        (holds,) = check_claims([_topic_claim(opened.publication)])
        if holds:
            batch.opened.append(Opened(opened.signed, opened.publication, opened.encoded, is_from_topic=True))
        else:
            batch.dropped["bad_topic_signature"] += 1
    return batch


def _checks_topic(batch: ReadBatch, candidate: _Candidate) -> bool:
    return batch.checks_topics or not isinstance(candidate.found, _Readable)


def _topic_claim(publication: Publication) -> Claim:
    return Claim(publication.topic, publication.digest, publication.signature)


def _read_publication(branch: Branch, encoded: bytes, *, with_bare: bool = False) -> _Candidate:
    """Raises _Drop where the publication is at fault."""
    try:
        publication = decode_publication(encoded)
    except DecodeError as error:
        raise _Drop(f"bad_publication:{error.reason}") from None
    if publication.topic != branch.topic:
        raise _Drop("other_topic")
    return _Candidate(encoded, publication, _read_commit(branch, publication, encoded, with_bare=with_bare))


def _read_commit(
    branch: Branch, publication: Publication, encoded: bytes, *, with_bare: bool
) -> _Readable | Rejected | PendingPublication:
    """Raises _Drop where the publication is at fault."""
    commit_id = publication.commit_id
    try:
        key = open_sealed_key(publication, branch.read_key)
        commit = open_commit(publication.blocks[0], key, branch.convergence_secret)
    except WrongReadKey:
        raise _Drop("seal_broken") from None
    except WrongKey:
        raise _Drop("wrong_key") from None
    except UnknownVersion:
        if publication.body_id is not None:
            raise _Drop("bare") from None  # anyone who can read it may need the body
        return PendingPublication(commit_id, encoded, (), reason=UNREAD)
    except DecodeError as error:
        return Rejected(commit_id, "bad_commit", str(error))
    try:
        return _Readable(commit, _read_body(branch, commit, publication, with_bare=with_bare))
    except MissingBlocks:
        raise _Drop("missing_body") from None
    except WrongKey:
        return Rejected(commit_id, "bad_body", "the commit gives a wrong key for its body")
    except DecodeError as error:
        return Rejected(commit_id, "bad_body", str(error))


def _read_body(
    branch: Branch, commit: Commit, publication: Publication, *, with_bare: bool
) -> Body | UnknownBody:
    is_root_branch = branch.facts.is_root_branch
    said = declared_kind(commit, is_root_branch=is_root_branch)
    if publication.body_id is not None:
        if publication.body_id != commit.content.body.object_id:
            raise _Drop("missing_body")
        if said is None and not with_bare:
            raise _Drop("bare")  # a verdict needs the body, which others may have
        return ErasedBody("" if said is None else kind_name(said))
    blocks = {block.block_id: block for block in publication.blocks[1:]}
    used: set[bytes] = set()

    def look_up(block_id: BlockId) -> Block | None:
        used.add(block_id)
        return blocks.get(block_id)

    body, _ = read_body(commit, look_up, branch.convergence_secret, is_root_branch=is_root_branch)
    # A body whose kind is said travels as its one block, whatever that may be: it cannot be told what else belongs to it.
    if len(publication.blocks) - 1 != (len(used) if said is None else 1):
        raise _Drop("surplus_blocks")
    return body
