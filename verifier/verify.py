"""Validates commits (rules V1 to V10). Only this module makes `SignedCommit` and `VerifiedCommit`.

Two steps, so that the costly one may run beside others:

  sign_off   Commit -> SignedCommit | Rejected      by the result of checking `author_claim`
  judge      SignedCommit -> Accepted | Pending | Rejected

`judge` runs the rules in this order, and the first that fails decides:

  V1  The commit says the branch and the epoch it was published in. Where not, it is dropped and not rejected.
  V2  It has no acks if and only if it is the branch's pinned root.
  V3  Outside the root branch it says which root branch commits its author had seen (its place in the group tangle).
  V4  No cause of it was rejected. (A cause is what it acks, depends on, or follows in its feed or in the group tangle.)
  V5  All causes are accepted here; else it is pending until they are.
  V6  Acks, deps and feed links point where such links may point.
  V7  Its author was permitted to, in its own causal past (membership rules M1 to M15). Who follows a branch by itself
      cannot know: there the topic's signature stands for it, which only holders of the write secret can make.

  V8  A body that names files names as many as the header adds, and the header adds or removes some.
  V9  Outside the root branch, a commit whose header says that its body is of an erasable kind (`protocol.declared_kind`) is
      judged by its header alone, as one that says this: anyone who never sees the body comes to the same verdict. What its
      body turns out to be changes none; one that is not what was said says nothing.
  V10 No ack is implied by another (`verifier.ancestry`). It comes last because it may walk over thousands of commits:
      an author without the right to write must not be able to cause that.

A verdict of rejection depends on the commit and its past alone, so every node rejects it, and for good. Pending is no
verdict on the commit, only on what is known here.
"""

from dataclasses import dataclass
from typing import Final

from protocol.body import (
    Body,
    Checkpoint,
    Permission,
    UnknownBody,
    body_kind,
    content_of,
)
from protocol.codec import Value
from protocol.commit import NO_EPOCH, Commit, Content, lipmaa
from protocol.content import Compaction, Files
from protocol.declared_kind import declared_kind, unopened_body
from protocol.ids import CommitId, root_branch
from protocol.signing import Claim
from verifier.facts import BranchFacts, CommitFacts, CommitLookup
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.refusal import CommitRefused, Seniors
from verifier.tangle_kinds import GROUP

_MAKER: Final = object()


class SignedCommit(Value, frozen=True):
    """A commit whose author's signature holds, with its decoded body. Made by `sign_off` only."""

    commit: Commit
    body: Body | UnknownBody
    maker: object

    def __post_init__(self) -> None:
        """Refuse to exist when made elsewhere."""
        assert self.maker is _MAKER, "only sign_off makes a SignedCommit"


class VerifiedCommit(Value, frozen=True):
    """A commit that may be believed, with its rank and, in the root branch, the operation on the membership that it is."""

    commit: Commit
    body: Body | UnknownBody
    rank: int
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
    """Nothing speaks against it, but these causes are not here."""

    signed: SignedCommit
    missing: tuple[CommitId, ...]


class Rejected(Value, frozen=True, tag="rejected"):
    """A rule speaks against it, for good."""

    commit_id: CommitId
    code: str
    detail: str
    seniors: Seniors | None = None


@dataclass(frozen=True, slots=True)
class Misplaced:
    """It was published where it does not belong (V1): its publisher is to blame, so nothing is held against the commit."""

    code: str


Verdict = Accepted | Pending | Rejected | Misplaced


class _MisplacedCommit(Exception):
    """Raised by V1; the code."""


def author_claim(commit: Commit) -> Claim:
    """What the author's signature claims; to be checked, perhaps among many, before `sign_off`."""
    return Claim(commit.content.author, commit.digest, commit.signature)


def sign_off(commit: Commit, body: Body | UnknownBody, *, holds: bool) -> SignedCommit | Rejected:
    """A commit whose author's claim was checked: it holds, or the commit is rejected."""
    if not holds:
        return Rejected(commit.commit_id, "bad_signature", "the author did not sign this")
    return SignedCommit(commit, body, _MAKER)


def find_causes(commit: Commit, branch: BranchFacts) -> tuple[CommitId, ...]:
    """What must be accepted before a commit that was published in the branch can be; some may stand twice."""
    place = None if branch.is_root_branch or not branch.has_members else commit.place(GROUP)
    return _find_causes(commit, () if place is None else place.previous)


def _find_causes(commit: Commit, seen: tuple[CommitId, ...]) -> tuple[CommitId, ...]:
    links, previous = commit.links, commit.content.feed_previous
    return (
        commit.acks
        + (() if previous is None else (previous,))
        + (() if links.lipmaa is None else (links.lipmaa,))
        + seen
        + links.deps
        + links.ndeps
    )


def judge(signed: SignedCommit, branch: BranchFacts, lookup: CommitLookup, membership: Membership) -> Verdict:
    """The verdict on a signed commit that was published in `branch`."""
    try:
        return _judge(signed, branch, lookup, membership)
    except _MisplacedCommit as error:
        return Misplaced(str(error))
    except CommitRefused as error:
        return Rejected(signed.commit.commit_id, error.code, error.detail, error.seniors)


def _judge(
    signed: SignedCommit, branch: BranchFacts, lookup: CommitLookup, membership: Membership
) -> Verdict:
    commit, body = signed.commit, signed.body
    said = declared_kind(commit, is_root_branch=branch.is_root_branch)
    if said is not None:  # V9
        body = unopened_body(said)
        assert body_kind(signed.body) == body.tag, "a body that is not what was said was read as one"
    _check_place(commit, branch)
    _check_files(commit, body)
    seen = _group_previous(commit, branch)
    if not branch.has_members:  # its author's rights are the word of who holds the topic's key
        seen = ()
    facts: dict[CommitId, CommitFacts] = {}
    missing: list[CommitId] = []
    for cause in dict.fromkeys(_find_causes(commit, seen)):
        known = lookup.accepted(cause)
        if known is not None:
            facts[cause] = known
        elif lookup.is_rejected(cause):
            raise CommitRefused("rejected_cause", f"V4: {cause.hex()} was rejected")
        else:
            missing.append(cause)
    if missing:  # V5
        return Pending(signed, tuple(missing))

    _check_links(commit, branch, facts, seen)
    operation = None
    if branch.is_root_branch:
        operation = membership.authorise_root_commit(commit, body)
    elif branch.has_members:
        needs = Permission.MANAGE if isinstance(body, Compaction) else Permission.WRITE
        membership.authorise_content(commit.content.author, seen, needs)
        if isinstance(body, Checkpoint):
            membership.authorise_checkpoint(body.proposal, branch.branch_id, commit.acks, seen)
    ranks = [facts[ack].rank for ack in commit.acks]
    if len(ranks) > 1:
        _check_implied(commit, ranks, lookup)
    rank = 1 + max(ranks, default=-1)
    return Accepted(VerifiedCommit(commit, signed.body, rank, operation, _MAKER))


def _check_place(commit: Commit, branch: BranchFacts) -> None:
    if commit.branch_id != branch.branch_id:
        raise _MisplacedCommit("other_branch")
    is_init = branch.is_root_branch and commit.commit_id == branch.init_id
    if commit.content.epoch != (NO_EPOCH if is_init else branch.epoch_id):
        raise _MisplacedCommit("other_epoch")
    if (not commit.acks) != (commit.commit_id == branch.root_id):
        raise CommitRefused("second_root", "V2: a branch has the one root that was pinned when it was added")


def _check_implied(commit: Commit, ranks: list[int], lookup: CommitLookup) -> None:
    """What nobody acks yet is an ancestor of none, so most merges are decided without looking at the graph."""
    top = max(ranks)
    suspects = [
        rank for ack, rank in zip(commit.acks, ranks, strict=True) if rank < top and lookup.is_acked(ack)
    ]
    if not suspects:
        return
    implied = lookup.walks.find_implied(commit.commit_id, commit.acks, lookup.ancestors, floor=min(suspects))
    if implied:
        raise CommitRefused("implied_ack", f"V10: {min(implied).hex()} is implied by another ack")


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


def _check_links(
    commit: Commit, branch: BranchFacts, facts: dict[CommitId, CommitFacts], seen: tuple[CommitId, ...]
) -> None:
    content, links = commit.content, commit.links
    for cause in commit.acks + links.deps + links.ndeps:
        if facts[cause].branch_id != branch.branch_id:
            raise CommitRefused("ack_of_other_branch", "V6: acks and deps stay in the branch")
    for cause in seen:
        if facts[cause].branch_id != root_branch(branch.repo_id):
            raise CommitRefused("bad_group_place", "V6: the group tangle's previous are root branch commits")
    if content.feed_previous is not None:
        _check_feed_link(content, facts[content.feed_previous], content.feed_sequence - 1)
    if links.lipmaa is not None:
        _check_feed_link(content, facts[links.lipmaa], lipmaa(content.feed_sequence))


def _check_feed_link(content: Content, fact: CommitFacts, sequence: int) -> None:
    if fact.feed_sequence != sequence or fact.author != content.author or fact.branch_id != content.branch:
        raise CommitRefused("bad_feed_link", "V6: a feed link to another feed or place")
