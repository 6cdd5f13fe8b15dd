"""Quorum rules (Q1 to Q4): how many signers must approve a removal or a checkpoint, and what counts.

Rules (docs/specification/membership-rules.md):

  Q1  Of the quorums that count, those are in force that none that counts follows. Where several were named at the same
      time, each asks for its own: nothing decides between them.
  Q2  A quorum is satisfied while approvals of one proposal by as many of its signers as its threshold says count. Of a
      checkpoint they count like anything that their authors did; of a removal as R6 says. The proposal itself need not
      count.
  Q3  A proposal to remove somebody is used up by another's removal of that member that has it in its past, whether that
      counts or not. A device removal uses up none.
  Q4  Who holds a founder's owner by an init that states a council signs for that founder: the founder itself, or to whom
      moves passed it on. For enough founders together they remove anybody, founders too. By its own past a removal is the
      council's or is not; nothing is above it, so that it counts for good.

Where several proposals ask for the same removal, it rests on the first in canonical order that is not used up and has the
approvals; of each signer, on its first approval that counts there. All of these are in the removal's past, so that its id
fixes them, for each right by which the removal may be held: a signer whom less senior rights exclude goes on signing (R6).

A quorum that covers removals is also a credential of owner to its signers together (`rights.rights_for`): a removal that
they approved is their act, no matter who publishes it. An approval is a commit in the root branch, signed like every
commit: no other signature has to be carried or checked.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from protocol.formats.body import (
    Approve,
    CouncilInit,
    Permission,
    ProposeCheckpoint,
    ProposeRemoval,
    Quorum,
    Remove,
)
from protocol.ids import BranchId, CommitId, UserId
from verifier.operations import COUNCIL, Demand, Operation, Operations, Right
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution


def find_in_force(operations: Operations, before: Resolution) -> list[Operation]:
    """Return the quorums in force after `before`, in canonical order (Q1)."""
    tips: list[Operation] = []
    for one in reversed(operations.quorums):
        if (
            before.is_within(one)
            and not any(operations.precedes(one, tip) for tip in tips)
            and before.counts(one)
        ):
            tips.append(one)
    return operations.in_order(tips)


def find_covering(operations: Operations, before: Resolution) -> list[Operation]:
    """Return those of the quorums in force that cover removals."""
    in_force = find_in_force(operations, before)
    return [one for one in in_force if isinstance(one.body, Quorum) and one.body.removals]


def find_demands(
    operations: Operations,
    before: Resolution,
    proposal: Operation,
    quorums: Sequence[Operation],
    right: Right | None = None,
) -> tuple[Demand, ...]:
    """Find what each of these quorums demands, with the first approval by each signer that counts there (Q2).

    Args:
        operations: All that is here.
        before: What counts in the past of the removal or checkpoint.
        proposal: What was approved of.
        quorums: Quorums in force.
        right: Of a removal, the right that would hold it: approvals count as R6 says.

    Returns:
        One demand for each quorum; approvals in the order of signers, each the first in canonical order.
    """
    approvals: dict[UserId, CommitId] = {}
    for one in operations.in_order(operations.approvals_of(proposal.commit_id)):
        if one.author not in approvals and before.is_within(one) and before.counts(one, right):
            approvals[one.author] = one.commit_id
    return tuple(
        Demand(
            one.commit_id,
            one.body.threshold,
            tuple(approvals[user] for user in one.body.signers if user in approvals),
        )
        for one in quorums
        if isinstance(one.body, Quorum)
    )


def find_removal_demands(
    operations: Operations,
    body: Remove,
    before: Resolution,
    quorums: Sequence[Operation],
    right: Right,
) -> tuple[Demand, ...] | None:
    """Return what these quorums ask of the removal of another member that a right is to hold.

    None where no proposal of it has the approvals.
    """
    for proposal in _proposals_of(operations, body, before):
        demands = find_demands(operations, before, proposal, quorums, right)
        if before.are_met(demands, right):
            return demands
    return None


def find_council(operations: Operations) -> CouncilInit | None:
    """Return the init that states a council; None where there is none."""
    init = operations.epochs[0].body if operations.epochs else None
    return init if isinstance(init, CouncilInit) else None


def find_founders(operations: Operations, user: UserId, before: Resolution) -> set[UserId]:
    """Return the founders of the council for whom a user signs after `before` (Q4)."""
    if find_council(operations) is None:
        return set()
    found: set[UserId] = set()
    for right in before.rights_held(user, Permission.OWNER):
        if operations.origin(right.credential).num == 0:  # the init
            moves = list(operations.moves_of(operations[right.credential]))
            found.add(moves[-1].author if moves else user)
    return found


def find_council_signers(operations: Operations, before: Resolution) -> dict[UserId, set[UserId]]:
    """Return who signs for the council after `before`, each with the founders for whom it does (Q4).

    Founders come first, in the order of the init. Costs O(users who ever were given admin, and the rights of these).
    """
    council = find_council(operations)
    if council is None:
        return {}
    users = dict.fromkeys((*council.owners, *sorted(operations.admins())))
    every = {user: find_founders(operations, user, before) for user in users}
    return {user: founders for user, founders in every.items() if founders}


def find_council_right(operations: Operations, body: Remove, before: Resolution) -> Right | None:
    """Return the council's right where who signs for enough founders approved of a removal, else None (Q4)."""
    council = find_council(operations)
    if council is None:
        return None
    founders_of: dict[UserId, set[UserId]] = {}
    for proposal in _proposals_of(operations, body, before):
        approved: set[UserId] = set()
        for user in find_approving(operations, proposal, before):
            if user not in founders_of:
                founders_of[user] = find_founders(operations, user, before)
            approved |= founders_of[user]
        if len(approved) >= council.council:
            return Right(operations.epochs[0].commit_id, COUNCIL)
    return None


def find_approving(operations: Operations, proposal: Operation, before: Resolution) -> set[UserId]:
    """Return the authors of the approvals of a proposal, whether these count or not."""
    given = operations.approvals_of(proposal.commit_id)
    return {one.author for one in given if before.is_within(one)}


def _proposals_of(operations: Operations, body: Remove, before: Resolution) -> Iterator[Operation]:
    """Yield the approved proposals of just this removal that are not used up, in canonical order (Q3).

    Costs O(removals of the member times proposals that a signer approved).
    """
    earlier = [
        one
        for one in operations.removals_of(body.user)
        if one.author != body.user  # else it could use them up itself
        and not one.is_device_removal
        and before.is_within(one)
    ]
    approved = [
        proposal
        for proposal in operations.proposed_removals_of(body.user)
        if operations.approvals_of(proposal.commit_id)  # any writer may propose, as often as it likes
    ]
    for proposal in operations.in_order(approved):
        if (
            isinstance(proposal.body, ProposeRemoval)
            and proposal.body.keeps == body.keeps
            and before.is_within(proposal)
            and not any(operations.precedes(proposal, one) for one in earlier)
        ):
            yield proposal


def find_checkpoint_demands(
    operations: Operations, proposal: CommitId, before: Resolution
) -> tuple[Demand, ...] | None:
    """Return what the quorums in force demand of a proposed checkpoint; None without such a proposal or quorum."""
    found = operations.find(proposal)
    if found is None or not isinstance(found.body, ProposeCheckpoint) or not before.is_within(found):
        return None
    return find_demands(operations, before, found, find_in_force(operations, before)) or None


def authorise_checkpoint(
    operations: Operations,
    proposal: CommitId,
    branch: BranchId,
    acks: tuple[CommitId, ...],
    before: Resolution,
) -> None:
    """Raise CommitRefused unless a checkpoint that acks these is what a proposal asked for, and approved (M13)."""
    demands = find_checkpoint_demands(operations, proposal, before)
    if demands is None:
        raise CommitRefused(
            "unknown_proposal", "M13: no such proposal in the commit's past, or no quorum there"
        )
    body = operations[proposal].body
    assert isinstance(body, ProposeCheckpoint), "looked for"
    if body.branch != branch or set(body.commits) != set(acks):
        raise CommitRefused("bad_checkpoint", "M13: not the heads that were proposed")
    if not before.are_met(demands):
        raise CommitRefused("needs_quorum", "M13: too few signers approved of this checkpoint")


def check_quorum(body: Quorum, before: Resolution) -> None:
    """Raise CommitRefused unless a quorum's signers are members, each once and in order, and enough (M13)."""
    if any(later <= earlier for earlier, later in pairwise(body.signers)):
        raise CommitRefused("bad_quorum", "M13: signers are not in order, or named twice")
    if body.threshold > len(body.signers):
        raise CommitRefused("bad_quorum", "M13: the threshold is more than all signers")
    if any(before.permission(user) is None for user in body.signers):
        raise CommitRefused("bad_quorum", "M13: a signer who is no member")


def check_approval(operations: Operations, author: UserId, body: Approve, before: Resolution) -> None:
    """Raise CommitRefused unless there is such a proposal, and the author signs for a quorum or the council (M14)."""
    proposal = operations.find(body.proposal)
    if (
        proposal is None
        or not isinstance(proposal.body, ProposeCheckpoint | ProposeRemoval)
        or not before.is_within(proposal)
    ):
        raise CommitRefused("unknown_proposal", "M14: no such proposal in the commit's past")
    quorums = [one.body for one in find_in_force(operations, before)]
    if any(isinstance(quorum, Quorum) and author in quorum.signers for quorum in quorums):
        return
    if not isinstance(proposal.body, ProposeRemoval) or not find_founders(operations, author, before):
        raise CommitRefused("not_permitted", "M14: no quorum in force names the author, nor does the council")
