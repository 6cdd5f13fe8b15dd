"""Decides which content commits are void (N1 to N4): their authors hold no right to write, or too few have approved.

A content commit is one of any branch but the root branch. A void one was accepted, and stays in its branch's graph; it
leaves every view. Rules (docs/specification/membership-rules.md):

  N1  A content commit is void if its author holds for it (R3) no right to write (for a compaction: to manage).
  N2  What a removal of another member names is as if in its past. It names commits of that member by an end in their
      branch: if the end's commit is here, is the member's and stands at the sequence that the end states, all that the
      way back from it passes, over feed links that name a commit of the same author and branch at the sequence before.
      Else the commits up to that sequence, if no two of them have the same; if two have, none.
  N3  It is not void by N1 if a commit that adopts it counts.
  N4  A checkpoint is void also if too few approvals of it count, of those in its past (Q2). Nobody can adopt that.

What counts now may change when a removal arrives, and with it what is void; nothing else changes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from protocol.formats.body import Adopt, FeedEnd, Permission, Remove
from protocol.ids import BranchId, CommitId, UserId
from verifier.membership import Membership
from verifier.operations import Demand, Operation
from verifier.quorums import find_checkpoint_demands
from verifier.removals import find_resting
from verifier.rights import Deed


@dataclass(frozen=True, slots=True)
class Void:
    """Reason why a commit is void: the rule, and the removals that make it so.

    It has no removals if approvals are missing, or if a credential of its author ceased to count.
    """

    rule: str
    operations: tuple[Operation, ...] = ()


def find_void(
    membership: Membership,
    commit_id: CommitId,
    branch: BranchId,
    author: UserId,
    seen: tuple[CommitId, ...],
    is_in_feed: Callable[[FeedEnd], bool],
    proposal: CommitId | None = None,
    needs: Permission = Permission.WRITE,
) -> Void | None:
    """Return why an accepted content commit is void now, or None if it is not.

    Args:
        membership: What is here of the repo's root branch.
        commit_id: The commit.
        branch: Its branch.
        author: Who signed it.
        seen: The root branch commits that it follows.
        is_in_feed: Returns True of an end in this branch that names the commit (N2).
        proposal: Of a checkpoint, what it makes.
        needs: What its author must hold for it.
    """
    now, operations = membership.now(), membership.operations
    if now.has_no_removals:
        return None
    if proposal is not None and not now.are_met(_demands(membership, proposal, seen)):
        return Void("N4")
    if find_adoption(membership, commit_id, branch) is not None:
        return None  # N3

    def is_named(removal: Operation) -> bool:
        assert isinstance(removal.body, Remove), "nothing else takes rights from content"
        return any(end.branch == branch and is_in_feed(end) for end in removal.body.feeds)

    deed = Deed(author, lambda one: operations.is_within(one, seen), is_named)
    return None if now.may(deed, needs) else Void("N1", tuple(now.takers_from(deed, needs)))


def _demands(membership: Membership, proposal: CommitId, seen: tuple[CommitId, ...]) -> tuple[Demand, ...]:
    demands = find_checkpoint_demands(membership.operations, proposal, membership.at(seen))
    assert demands is not None, "M13: without a quorum it is refused"
    return demands


def find_adoption(membership: Membership, commit_id: CommitId, branch: BranchId) -> Operation | None:
    """Return the first operation in canonical order that counts and adopts the commit, or None."""
    now, operations = membership.now(), membership.operations
    for adoption in operations.in_order(operations.adoptions_of(commit_id)):
        if isinstance(adoption.body, Adopt) and adoption.body.branch == branch and now.counts(adoption):
            return adoption
    return None


def find_affected(membership: Membership, changed: Iterable[Operation]) -> set[UserId]:
    """Return the users whose commits may become void or cease to be when other rights hold these removals than before."""
    return find_resting(membership.operations, changed).users
