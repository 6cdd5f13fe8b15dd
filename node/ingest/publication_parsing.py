"""Ingest, step 2: sorts read publications by whether their signatures hold.

Pure: nothing here looks at the store, so batches may be opened while others are stored. Opening a batch has three parts:

    read_batch     decode, compute ids, open the commit and what verdicts need of its body
    check_claims   all signatures of the batch at once, because they are what takes the time
    settle_batch   sort by whether the claims hold

`native_reading` does the first two for publications of the usual form.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from node.ingest.publication_reading import (
    DecodedCommit,
    Drop,
    EpochOpening,
    OpeningKeys,
    ReadBatch,
    Unread,
    checks_topic,
    gather_claims,
    read_batch,
    read_publication,
    topic_claim,
)
from protocol.codec import Value
from protocol.crypto import hashing
from protocol.crypto.signing import check_claims
from protocol.formats.commit import NO_MARK
from protocol.formats.publication import Publication
from protocol.ids import RepoId
from storage.commits.pending import UNREAD, PendingPublication
from storage.repos.epochs import Topic
from verifier.verify import Rejected, SignedCommit, sign_off

NO_REPO: Final = RepoId(bytes(32))
"""Stands for the repo of a branch that is followed alone: such a branch is no root branch."""
CARRIER_FAULTS: Final = frozenset({"bad_publication", "other_topic", "bad_topic_signature"})
"""Reasons for a drop that anyone who passed the publication on could see, be it a replica or a relay: grounds to part. The
others only a replica sees, and a relay that carries them in good faith is not to blame."""


class Opened(Value, frozen=True):
    """A publication whose commit could be read and is signed by its author."""

    signed: SignedCommit
    publication: Publication
    is_from_topic: bool
    """True if the topic's signature was checked, and not the author's alone."""


@dataclass(slots=True)
class OpenedBatch:
    """Commits that `open_batch` has read from some publications of one topic, and what it dropped."""

    opened: list[Opened] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    waiting: list[PendingPublication] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def opening_keys(topic: Topic) -> OpeningKeys:
    """Return the keys that open the commits on a topic. Each stands once, though several epochs may have it."""
    openings: dict[bytes, EpochOpening] = {}
    channel = topic.channel
    if channel is not None:
        assert topic.branch_id is not None, "a channel is one branch's"
        read_key = hashing.branch_read_key(channel.branch_secret)
        mark, secret = hashing.branch_mark(channel.branch_secret), channel.convergence_secret
        alone = EpochOpening(NO_REPO, frozenset((channel.epoch,)), read_key, secret, None, mark)
        return OpeningKeys(topic.topic, (alone,), topic.seed is not None)
    for epoch, is_view in (
        *((one, topic.is_link) for one in topic.epochs),
        *((one, False) for one in topic.writers_of),
    ):
        keys = epoch.keys
        read_key = keys.read_key
        if is_view and topic.branch_id is not None:
            read_key = hashing.branch_read_key(hashing.branch_secret(epoch.key, topic.branch_id))
        known = openings.get(read_key + epoch.repo_id)
        epoch_ids = frozenset((epoch.epoch_id,)) | (frozenset() if known is None else known.epoch_ids)
        openings[read_key + epoch.repo_id] = EpochOpening(
            epoch.repo_id, epoch_ids, read_key, keys.convergence_secret, epoch.key, NO_MARK
        )
    return OpeningKeys(topic.topic, tuple(openings.values()), topic.seed is not None)


def open_batch(
    topic: Topic, items: Iterable[bytes], *, with_bare: bool = False, checks_topics: bool = False
) -> OpenedBatch:
    """Read, check and settle publications of one topic in one go; `with_bare` all bare ones (`read_batch`)."""
    batch = read_batch(opening_keys(topic), items, with_bare=with_bare, checks_topics=checks_topics)
    return settle_batch(batch, check_claims(gather_claims(batch)))


def open_kept_back(topic: Topic, items: Iterable[bytes]) -> OpenedBatch:
    """Read what was kept until its causes came. All signatures were checked before it was kept, and are not again."""
    batch = read_batch(opening_keys(topic), items, checks_topics=True)
    return settle_batch(batch, [True] * len(gather_claims(batch)))


def read_pending(topic: Topic, encoded: bytes) -> DecodedCommit | None:
    """Read a commit that is kept until its causes come, with its body. Its signature was checked before it was kept."""
    try:
        found = read_publication(opening_keys(topic), encoded).found
    except Drop:
        return None
    return found if isinstance(found, DecodedCommit) else None


def settle_batch(batch: ReadBatch, claims_hold: Sequence[bool]) -> OpenedBatch:
    """Sort candidates by the answers to their claims. `answers` has one for each claim of `gather_claims`, in order."""
    opened = OpenedBatch(dropped=Counter(batch.dropped))
    answers = iter(claims_hold)
    for candidate in batch.candidates:
        was_checked = checks_topic(batch, candidate)
        is_from_topic = candidate.is_checked or not was_checked or next(answers)
        result: SignedCommit | Rejected | PendingPublication
        match candidate.found:
            case DecodedCommit(commit, body, parts):
                result = sign_off(commit, body, parts, holds=candidate.is_checked or next(answers))
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
    """Join the results of some batches, in their order."""
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


def find_carrier_fault(dropped: Iterable[str]) -> str:
    """Return the first reason for which the peer that brought a publication is at fault, or an empty text."""
    faults = sorted(reason for reason in dropped if reason.partition(":")[0] in CARRIER_FAULTS)
    return faults[0] if faults else ""
