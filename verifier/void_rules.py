"""Decides which commits of excluded or demoted members are void (N1 to N4): their authors may not write, or no longer.

A void commit was accepted, and stays in its branch's graph; it leaves every view. Rules
(docs/reference/membership-rules.md):

  N1  A content commit is void when its author, by the operations in its own past that count now, may not write (of a
      compaction: not manage branches).
  N2  It is void when a removal of its author by another counts that leaves less than that right, is not in its past, and
      does not name it: a removal names the commits of the removed member's feeds up to the ends that it states.
  N3  It is not void when a commit that adopts it counts.
  N4  A checkpoint is void also when too few approvals of it count, of those in its past (Q2). Nobody can adopt that.

What counts now may change when a removal arrives, and with it what is void; nothing else changes it.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from protocol.body import Adopt, FeedEnd, Grant, Invite, Permission, Remove, Revoke
from protocol.ids import BranchId, CommitId, UserId
from verifier.membership import Membership
from verifier.operations import Demand, Operation
from verifier.quorums import find_checkpoint_demands


@dataclass(frozen=True, slots=True)
class Void:
    """Why a commit is void: the rule, and the operations that make it so (none where rights are missing)."""

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
    """Whether an accepted content commit is void now; `proposal` is a checkpoint's, `needs` what its author must hold.

    `is_in_feed` says whether the feed that ends so contains it.
    """
    now = membership.now()
    if not now.counting:
        return None
    operations = membership.operations
    if proposal is not None and not now.are_met(_demands(membership, proposal, seen)):
        return Void("N4")
    if find_adoption(membership, commit_id, branch) is not None:
        return None  # N3
    removals = tuple(
        removal
        for removal in now.counting_removals_of(author)
        if isinstance(removal.body, Remove)
        and removal.author != author
        and (removal.body.keeps or 0) < needs
        and not operations.is_within(removal, seen)
        and not any(end.branch == branch and is_in_feed(end) for end in removal.body.feeds)
    )
    if removals:
        return Void("N2", removals)
    held = now.permission(author, seen)
    if held is None or held < needs:
        return Void("N1")
    return None


def _demands(membership: Membership, proposal: CommitId, seen: tuple[CommitId, ...]) -> tuple[Demand, ...]:
    demands = find_checkpoint_demands(membership.operations, proposal, membership.at(seen))
    assert demands is not None, "M13: without a quorum it is refused"
    return demands


def find_adoption(membership: Membership, commit_id: CommitId, branch: BranchId) -> Operation | None:
    """An operation that counts and adopts the commit."""
    now = membership.now()
    for adoption in membership.operations.adoptions_of(commit_id):
        if isinstance(adoption.body, Adopt) and adoption.body.branch == branch and now.counts(adoption):
            return adoption
    return None


def find_voiding(membership: Membership, removals: Iterable[CommitId]) -> set[CommitId]:
    """Those of these removals that can make anything void.

    Who leaves voids nothing (R2), and may leave any number of times at once: to look at all that somebody wrote takes a
    second for some thousand commits.
    """
    found = set()
    for raw in removals:
        one = membership.operations[raw]
        if not (isinstance(one.body, Remove) and one.body.user == one.author):
            found.add(raw)
    return found


def find_affected(membership: Membership, removals: Collection[CommitId]) -> set[UserId]:
    """Users whose commits may become void or cease to be when these removals start or cease to count."""
    operations = membership.operations
    affected: set[UserId] = set()
    ahead: list[UserId] = []

    def add(users: Iterable[UserId]) -> None:
        for user in users:
            if user not in affected:
                affected.add(user)
                ahead.append(user)

    for removal in (operations[commit_id] for commit_id in removals):
        if isinstance(removal.body, Remove):
            add([removal.body.user])
        elif isinstance(removal.body, Revoke):
            add(join.author for join in operations.joins_by(removal.body.invitation))
    while ahead:  # whose rights may rest on theirs
        for done in operations.authored_by(ahead.pop()):
            if isinstance(done.body, Grant):
                add([done.body.user])
            elif isinstance(done.body, Invite):
                add(join.author for join in operations.joins_by(done.commit_id))
    return affected
