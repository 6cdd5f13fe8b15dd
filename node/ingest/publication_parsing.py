"""Ingest, step 2: sorts read publications by whether their signatures hold.

Pure: nothing here looks at the store, so batches may be opened while others are stored. Opening a batch has three parts:

    read_batch     decode, compute ids, open the commit and what verdicts need of its body
    check_claims   all signatures of the batch at once, because they are what takes the time
    settle_batch   sort by whether the claims hold

`reading_workers` runs the first two in another process.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from node.ingest.publication_reading import (
    Drop,
    OpeningKeys,
    Readable,
    ReadBatch,
    Unread,
    checks_topic,
    gather_claims,
    read_batch,
    read_publication,
    topic_claim,
)
from protocol.body import Body, UnknownBody
from protocol.codec import Value
from protocol.commit import Commit
from protocol.publication import Publication
from protocol.signing import check_claims
from storage.commits.pending import UNREAD, PendingPublication
from storage.repos.repos import Branch
from verifier.verify import Rejected, SignedCommit, sign_off

CARRIER_FAULTS: Final = frozenset({"bad_publication", "other_topic", "bad_topic_signature"})
"""Reasons for a drop that anyone who passed the publication on could see, be it a replica or a relay: grounds to part. The
others only a replica sees, and a relay that carries them in good faith is not to blame."""


class Opened(Value, frozen=True):
    """A publication whose commit could be read and is signed by its author."""

    signed: SignedCommit
    publication: Publication
    is_from_topic: bool
    """Whether the topic's signature was checked, and not the author's alone."""


@dataclass(slots=True)
class OpenedBatch:
    """What `open_batch` made of some publications of one branch."""

    opened: list[Opened] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    waiting: list[PendingPublication] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def opening_keys(branch: Branch) -> OpeningKeys:
    """What opens the commits of a branch on the topic that it is given with."""
    return OpeningKeys(
        branch.topic,
        branch.read_key,
        branch.convergence_secret,
        branch.facts.is_root_branch,
        branch.topic_seed is not None,
    )


def open_batch(
    branch: Branch, items: Iterable[bytes], *, with_bare: bool = False, checks_topics: bool = False
) -> OpenedBatch:
    """Read, check and settle publications of one branch in one go; `with_bare` all bare ones (`read_batch`)."""
    batch = read_batch(opening_keys(branch), items, with_bare=with_bare, checks_topics=checks_topics)
    return settle_batch(batch, check_claims(gather_claims(batch)))


def open_kept_back(branch: Branch, items: Iterable[bytes]) -> OpenedBatch:
    """Read what was kept until its causes came. All signatures were checked before it was kept, and are not again."""
    batch = read_batch(opening_keys(branch), items, checks_topics=True)
    return settle_batch(batch, [True] * len(gather_claims(batch)))


def read_pending(branch: Branch, encoded: bytes) -> tuple[Commit, Body | UnknownBody] | None:
    """A commit that is kept until its causes come, and its body. Its signature was checked before it was kept."""
    try:
        found = read_publication(opening_keys(branch), encoded).found
    except Drop:
        return None
    return (found.commit, found.body) if isinstance(found, Readable) else None


def settle_batch(batch: ReadBatch, claims_hold: Sequence[bool]) -> OpenedBatch:
    """Sort candidates by what became of their claims (one answer for each claim of `gather_claims`, in order)."""
    opened = OpenedBatch(dropped=Counter(batch.dropped))
    answers = iter(claims_hold)
    for candidate in batch.candidates:
        was_checked = checks_topic(batch, candidate)
        is_from_topic = next(answers) if was_checked else True
        result: SignedCommit | Rejected | PendingPublication
        match candidate.found:
            case Readable(commit, body):
                result = sign_off(commit, body, holds=next(answers))
            case Unread(commit_id):
                result = PendingPublication(commit_id, candidate.publication.encoded, (), reason=UNREAD)
            case rejected:
                result = rejected
        if isinstance(result, Rejected) and not was_checked:  # it is remembered
            (is_from_topic,) = check_claims([topic_claim(candidate.publication)])
        if not is_from_topic:
            opened.dropped["bad_topic_signature"] += 1
        elif isinstance(result, SignedCommit):
            opened.opened.append(Opened(result, candidate.publication, was_checked))
        elif isinstance(result, Rejected):
            opened.rejected.append(result)
        else:
            opened.waiting.append(result)
    return opened


def join_batches(parts: Sequence[OpenedBatch]) -> OpenedBatch:
    """What some batches came to, in their order."""
    joined = OpenedBatch()
    for part in parts:
        joined.opened += part.opened
        joined.rejected += part.rejected
        joined.waiting += part.waiting
        joined.dropped.update(part.dropped)
    return joined


def prove_topics(unproven: Iterable[Opened]) -> OpenedBatch:
    """Check the topic's signatures of publications that are to be kept without being accepted."""
    batch = OpenedBatch()
    for opened in unproven:
        (holds,) = check_claims([topic_claim(opened.publication)])
        if holds:
            batch.opened.append(Opened(opened.signed, opened.publication, is_from_topic=True))
        else:
            batch.dropped["bad_topic_signature"] += 1
    return batch
