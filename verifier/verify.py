"""Validates commits (rules V1 to V12). Only this module makes `SignedCommit` and `VerifiedCommit`.

Two steps, so that the costly one may run beside others:

  sign_off   Commit -> SignedCommit | Rejected      by the result of checking `author_claim`
  judge      SignedCommit -> Accepted | Pending | Rejected | Misplaced

Every rule that rejects is local: it looks at the commit, at the commits that it acks, and at the root branch. `judge` runs
the rules in this order, and the first that fails decides:

  V1  The commit says the epoch of the topic that it came on, and which of the epoch's topics that is; or it is the init of
      that epoch. Where not, it is dropped and not rejected.
  V2  It has no acks if and only if it is the branch's first commit. Of a branch that was not added yet the first commit
      waits until it is; another needs the addition in the past of its place.
  V8  A body that names files names as many as the header adds, and the header adds or removes some.
  V3  Outside the root branch it says which root branch commits its author had seen (its place in the group tangle).
  V4  No cause of it was rejected. (A cause is what it acks, or names in its place in the group tangle.)
  V5  All causes are accepted here; else it is pending until they are.
  V6  It acks commits of its branch; its rank is one more than their highest; its place has all of theirs in its past, and
      names root branch commits; and none of what it acks acks another of that (V10).
  V11 Its epoch was started in its own past (E5).
      An init waits here for the key of the epoch that it starts (E3).
  V7  Its author was permitted to, in its own causal past (membership rules M). Who follows a branch by itself cannot know:
      there the topic's signature stands for it, which only holders of the writers' secret can make.
  V12 Its epoch opens every epoch in its own past (E4).

  V9  Outside the root branch, a commit whose header says that its body is of an erasable kind
  (`protocol.formats.declared_kind`) is
      judged by its header alone, as one that says this: anyone who never sees the body comes to the same verdict. What its
      body turns out to be changes none; one that is not what was said says nothing.

Feed links, deps and negative deps are the author's words: no rule looks at where they lead.

A verdict of rejection depends on the commit and its past alone, so every node rejects it, and for good. Pending is no
verdict on the commit, only on what is known here.
"""

from dataclasses import dataclass
from typing import Final

from protocol.codec import Value
from protocol.crypto.hashing import wait_mark
from protocol.crypto.signing import Claim
from protocol.formats.body import (
    Body,
    Checkpoint,
    ErasedBody,
    Permission,
    RepoInit,
    UnknownBody,
    UnopenedBody,
    body_kind,
    content_of,
)
from protocol.formats.commit import NO_EPOCH, Commit
from protocol.formats.content import Compaction, Files
from protocol.formats.declared_kind import declared_kind, unopened_body
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, StartParts
from protocol.ids import CommitId, EpochId, Mark, root_branch
from verifier.facts import BranchFacts, CommitFacts, CommitLookup, TopicFacts
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.refusal import CommitRefused, Seniors
from verifier.tangle_kinds import GROUP

_MAKER: Final = object()


class SignedCommit(Value, frozen=True):
    """A commit whose author's signature holds, with its decoded body. Made by `sign_off` only."""

    commit: Commit
    body: Body | UnknownBody
    parts: StartParts | None
    """Content that the body of an init names."""
    maker: object

    def __post_init__(self) -> None:
        """Refuse to exist when made elsewhere."""
        assert self.maker is _MAKER, "only sign_off makes a SignedCommit"


class VerifiedCommit(Value, frozen=True):
    """A commit that may be believed, and in the root branch the operation on the membership that it is."""

    commit: Commit
    body: Body | UnknownBody
    seen: tuple[CommitId, ...]
    """Root branch commits of its place in the group tangle, as it names them."""
    operation: Operation | None
    maker: object

    def __post_init__(self) -> None:
        """Refuse to exist when made elsewhere."""
        assert self.maker is _MAKER, "only judge makes a VerifiedCommit"


class Accepted(Value, frozen=True):
    """All causes are here and every rule holds."""

    verified: VerifiedCommit


@dataclass(frozen=True, slots=True)
class Pending:
    """Verdict: nothing speaks against a commit, but causes are not here, or something else is awaited.

    `awaited` is the mark of that (`key_mark`, `pin_mark`); no peer can be asked for it.
    """

    signed: SignedCommit
    missing: tuple[CommitId, ...]
    awaited: Mark | None = None


class Rejected(Value, frozen=True, tag="rejected"):
    """A rule speaks against it, for good."""

    commit_id: CommitId
    code: str
    detail: str
    seniors: Seniors | None = None


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Verdict: a commit was published where it does not belong (V1). Its publisher is to blame, not its author."""

    code: str


Verdict = Accepted | Pending | Rejected | Misplaced


class _MisplacedCommit(Exception):
    """Raised by V1; the code."""


def author_claim(commit: Commit) -> Claim:
    """Return the claim of the author's signature, to be checked, perhaps among many, before `sign_off`."""
    return Claim(commit.content.author, commit.digest, commit.signature)


def sign_off(
    commit: Commit, body: Body | UnknownBody, parts: StartParts | None = None, *, holds: bool
) -> SignedCommit | Rejected:
    """Return the commit signed if its author's claim holds, else rejected (docs/specification/protocol.md, section 6).

    Args:
        commit: A commit that was decoded.
        body: Its decoded body.
        parts: Of an epoch's init, what its body names.
        holds: Result of checking `author_claim`.
    """
    if not holds:
        return Rejected(commit.commit_id, "bad_signature", "the author did not sign this")
    return SignedCommit(commit, body, parts, _MAKER)


def without_body(signed: SignedCommit) -> SignedCommit:
    """Return a commit without its body. The header declares its kind, so the verdict is the same (V9)."""
    assert isinstance(signed.body, UnopenedBody), "else a verdict may rest on it"
    return SignedCommit(signed.commit, ErasedBody(signed.body.tag), None, _MAKER)


def key_mark(epoch: EpochId) -> Mark:
    """Compute the mark under which an init waits for the key of the epoch that it starts."""
    return wait_mark(b"key", epoch)


def pin_mark(first: CommitId) -> Mark:
    """Compute the mark under which a branch's first commit waits for the branch to be added."""
    return wait_mark(b"pin", first)


def find_causes(commit: Commit) -> tuple[CommitId, ...]:
    """Return what must be accepted before a commit can be, each once."""
    place = commit.place(GROUP)
    return tuple(dict.fromkeys(commit.acks + (() if place is None else place.previous)))


def find_seen(branch: BranchFacts, commit: Commit) -> tuple[CommitId, ...]:
    """Return the root branch commits that the place of an accepted commit names.

    None in the root branch, nor in a branch that is followed by itself: what it names is not here.
    """
    place = commit.place(GROUP)
    return () if place is None or branch.is_root_branch or not branch.has_members else place.previous


def judge(
    signed: SignedCommit,
    topic: TopicFacts,
    branch: BranchFacts,
    lookup: CommitLookup,
    membership: Membership,
) -> Verdict:
    """Judge a signed commit by the rules V1 to V12 and M1 to M17 (docs/specification/protocol.md, section 6).

    Costs O(acks), what its rights and its epoch ask of the membership, and for an init or a hand-over O(boxes).

    Args:
        signed: The commit, with its body.
        topic: Facts of the topic that it came on.
        branch: Facts of its branch.
        lookup: What is accepted, rejected and held here; it must not change meanwhile.
        membership: Grown by all root branch commits that are accepted here.

    Returns:
        Accepted, Rejected (for good, and by every node), Pending on what is known here, or Misplaced: its publisher's fault.
    """
    try:
        return _judge(signed, topic, branch, lookup, membership)
    except _MisplacedCommit as error:
        return Misplaced(str(error))
    except CommitRefused as error:
        return Rejected(signed.commit.commit_id, error.code, error.detail, error.seniors)


def _judge(
    signed: SignedCommit,
    topic: TopicFacts,
    branch: BranchFacts,
    lookup: CommitLookup,
    membership: Membership,
) -> Verdict:
    commit, body = signed.commit, signed.body
    said = declared_kind(commit, is_root_branch=branch.is_root_branch)
    if said is not None:  # V9
        body = unopened_body(said)
        assert body_kind(signed.body) == body.tag, "a body that is not what was said was read as one"
    _check_topic(commit, topic, branch)
    is_first = commit.commit_id == branch.root_id
    if (not commit.acks) != is_first:
        raise CommitRefused("second_root", "V2: a branch has the one root that was pinned when it was added")
    _check_files(commit, body)
    seen = _group_previous(commit, branch)
    if not branch.has_members:  # its author's rights are the word of who holds the topic's key
        seen = ()
    is_content = branch.has_members and not branch.is_root_branch
    needs = Permission.MANAGE if isinstance(body, Compaction) else Permission.WRITE
    place = (branch.branch_id, commit.content.epoch, commit.content.author, needs, seen)
    is_usual = is_content and membership.passed_place == place
    facts: dict[CommitId, CommitFacts] = {}
    missing: list[CommitId] = []
    for cause in commit.acks if is_usual else dict.fromkeys(commit.acks + seen):
        known = lookup.accepted(cause)
        if known is not None:
            facts[cause] = known
        elif lookup.is_rejected(cause):
            raise CommitRefused("rejected_cause", f"V4: {cause.hex()} was rejected")
        else:
            missing.append(cause)
    if missing:  # V5
        return Pending(signed, tuple(missing))

    _check_graph(commit, branch, facts)
    operation = None
    if branch.is_root_branch:
        key, awaited = None, None
        if isinstance(body, EpochInit) or (isinstance(body, RepoInit) and is_first):
            key = lookup.epoch_key(EpochId(commit.commit_id), body.states.mark)
            awaited = None if key is not None else key_mark(EpochId(commit.commit_id))
        elif isinstance(body, EpochHand):
            key = lookup.epoch_key(body.epoch, body.mark)
        _check_epoch(commit, commit.acks, membership)
        if awaited is not None:  # E3
            return Pending(signed, (), awaited)
        operation = membership.authorise_root_commit(commit, body, key, signed.parts)
        _check_opens(commit, operation, membership)
    elif is_content:
        _check_seen(branch, commit, seen, facts, membership, is_usual=is_usual)
        if not is_usual:
            adds = membership.operations.branch_adds(branch.branch_id)
            if not is_first and not any(membership.operations.is_within(one, seen) for one in adds):
                raise CommitRefused(
                    "unknown_branch", "V2: the branch was not added in the past of the commit's place"
                )
            _check_epoch(commit, seen, membership)
            if is_first and not adds:
                return Pending(signed, (), pin_mark(commit.commit_id))
            membership.authorise_content(commit.content.author, seen, needs)
        if isinstance(body, Checkpoint):
            membership.authorise_checkpoint(body.proposal, branch.branch_id, commit.acks, seen)
        if not is_usual and not membership.epochs.opens_all(commit.content.epoch, seen):
            raise CommitRefused("closed_epoch", "V12: its epoch does not open all epochs in its past")
        if not is_first:
            membership.passed_place = place
    return Accepted(VerifiedCommit(commit, signed.body, seen, operation, _MAKER))


def find_checkpoint(body: object, branch: BranchFacts) -> Checkpoint | None:
    """Return a body that moves its branch's order. In the root branch the kind has no rules (protocol.md section 5)."""
    return body if isinstance(body, Checkpoint) and not branch.is_root_branch else None


def _check_topic(commit: Commit, topic: TopicFacts, branch: BranchFacts) -> None:
    epoch, is_link = commit.content.epoch, topic.branch_id is not None
    if (branch.is_root_branch and commit.commit_id == branch.init_id) != (epoch == NO_EPOCH):
        raise _MisplacedCommit("other_epoch")
    if commit.content.by_writer and epoch in topic.writers_of:
        return  # also where an init has stated a link topic as its writers' topic: others know no link
    if is_link and topic.branch_id != branch.branch_id:
        raise _MisplacedCommit("other_branch")
    if EpochId(commit.commit_id) in topic.epochs:
        return  # E6: an init travels on the topic of the epoch that it starts
    if epoch not in topic.epochs or (commit.content.by_writer and not is_link):
        raise _MisplacedCommit("other_epoch")


def _check_graph(commit: Commit, branch: BranchFacts, facts: dict[CommitId, CommitFacts]) -> None:
    """Check what the commits say that it acks (V6, V10)."""
    acked, rank = set(commit.acks), -1
    for ack in commit.acks:
        known = facts[ack]
        if known.branch_id != branch.branch_id:
            raise CommitRefused("ack_of_other_branch", "V6: acks stay in the branch")
        if len(acked) > 1 and not acked.isdisjoint(known.acks):
            raise CommitRefused("implied_ack", f"V10: {ack.hex()} acks another ack")
        rank = max(rank, known.rank)
    if commit.rank != rank + 1:
        raise CommitRefused("bad_rank", f"V6: its rank is {rank + 1}, and it says {commit.rank}")


def _check_seen(
    branch: BranchFacts,
    commit: Commit,
    seen: tuple[CommitId, ...],
    facts: dict[CommitId, CommitFacts],
    membership: Membership,
    *,
    is_usual: bool,
) -> None:
    """Check that its place is in the root branch, and has all in its past that acked commits' places name (V6)."""
    operations = membership.operations
    for cause in () if is_usual else seen:
        if facts[cause].branch_id != root_branch(branch.repo_id):
            raise CommitRefused("bad_group_place", "V6: the group tangle's previous are root branch commits")
    # Together: pair by pair, a commit that acks as many as it can would cost two million questions.
    named = {one for ack in commit.acks if (before := facts[ack].seen) != seen for one in before}
    further = [operations[one] for one in named.difference(seen, (branch.init_id,))]
    if further and len(operations.find_preceding(further, [operations[one] for one in seen])) < len(further):
        raise CommitRefused("bad_group_place", "V6: its place lacks what an acked commit's place has")


def _check_epoch(commit: Commit, heads: tuple[CommitId, ...], membership: Membership) -> None:
    """Check that the commit's epoch was started in its past (V11). The repo's first commit starts its own."""
    if heads and not membership.epochs.is_within(commit.content.epoch, heads):
        raise CommitRefused("unknown_epoch", "V11: its epoch was not started in its past")


def _check_opens(commit: Commit, operation: Operation, membership: Membership) -> None:
    """Check that its epoch opens all epochs of its past (V12), of a root branch commit."""
    body, epoch, given = operation.body, commit.content.epoch, tuple[EpochId, ...]()
    if not commit.acks:
        return
    if isinstance(body, EpochInit):
        assert operation.start is not None, "an init starts an epoch"
        epoch, given = operation.started_epoch, operation.start.gives
    elif isinstance(body, EpochOpen):
        given = tuple(one.epoch for one in body.epochs)
    elif isinstance(body, EpochHand):
        epoch = body.epoch
    if not membership.epochs.opens_all(epoch, commit.acks, given):
        raise CommitRefused("closed_epoch", "V12: its epoch does not open all epochs in its past")


def _check_files(commit: Commit, body: Body | UnknownBody) -> None:
    links, content = commit.links, content_of(body)
    if isinstance(content, Files) and (
        len(content.added) != len(links.files) or not links.files + links.nfiles
    ):
        raise CommitRefused("bad_files", "V8: not one name for each file, or no file at all")


def _group_previous(commit: Commit, branch: BranchFacts) -> tuple[CommitId, ...]:
    place = commit.place(GROUP)
    if branch.is_root_branch:
        if place is not None:
            raise CommitRefused("bad_group_place", "V3: the root branch is in the group tangle by its acks")
        return ()
    if place is None or place.root != branch.init_id or not place.previous:
        raise CommitRefused("bad_group_place", "V3: no place after the repo's init")
    return place.previous
