"""Epoch rules: which epoch members write in, when the next one is due, and who can read it.

Exclusions start epochs, and anyone who makes them at the same time forks the tangle of epochs. Rules
(docs/reference/membership-rules.md):

  E1  Of the epochs that count and that none that counts follows, members write in the one that was made for the fewest
      members; between equals, in the one of the smallest id.
  E2  A new epoch is due when a removal counts that leaves less than writing, or a revocation that voids a join, and is
      not in the past of the one that is written in; but not when a member leaves what it did not hold there any more.
      Anyone who may, starts it before writing anything else; it follows all.
  E3  An epoch's init has what `describe_epoch` says of its past (M9 holds it to that).
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from protocol.body import BranchAdd, Grant, Permission, Remove, RepoInit, Revoke
from protocol.epochs import EpochAdd, EpochHistory, EpochInit
from protocol.ids import BranchId, EpochId, TopicKey, UserId
from protocol.limits.formats import EPOCH_BOX_COUNT_MAX, EPOCH_TIP_COUNT_MAX
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution

_REMOVALS_LOOKED_AT: Final = 64
"""Before an epoch, when it is told why it was started: an exclusion and its epoch come one after the other."""


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """What an epoch's init names: ids in their order. Of more than a commit can hold, the first are named."""

    previous: tuple[EpochId, ...]
    members: tuple[UserId, ...]


def describe_epoch(before: Resolution) -> EpochPlan:
    """What the init of an epoch has to name that is started after these operations."""
    return EpochPlan(
        tuple(tip.started_epoch for tip in before.epoch_tips())[:EPOCH_TIP_COUNT_MAX],
        tuple(sorted(before.members())[:EPOCH_BOX_COUNT_MAX]),
    )


def find_preferred(epochs: Iterable[Operation]) -> Operation:
    """The epoch to write in, of those that could be (E1)."""
    return min(epochs, key=lambda one: (_size(one), one.commit_id))


def is_epoch_due(operations: Operations, now: Resolution) -> bool:
    """Whether a new epoch is due (E2)."""
    tips = now.epoch_tips()
    if not tips:
        return False
    # Not that there are several: who write at the same time would start the next ones for ever.
    preferred = find_preferred(tips)
    leavers: dict[UserId, Permission | None] = {}
    for one in reversed(operations.removals):
        if one.commit_id not in now.counting:
            continue
        if isinstance(one.body, Remove):
            user, left = one.body.user, one.body.keeps or 0
            is_due = left < Permission.WRITE
            if is_due and one.author == user:
                # Also who was excluded may leave at any time, and again, by what it had seen before: nothing is to follow.
                if user not in leavers:
                    leavers[user] = _held_in(operations, now, preferred, user)
                is_due = left < (leavers[user] or 0)
        else:
            assert isinstance(one.body, Revoke), "the other kind of removal"
            is_due = any(not now.counts(join) for join in operations.joins_by(one.body.invitation))
        if is_due and not operations.precedes(one, preferred):
            return True
    return False


def _held_in(operations: Operations, now: Resolution, epoch: Operation, user: UserId) -> Permission | None:
    """With what permission, at most, a user was given an epoch's secrets: what it held for who started it, or got beside."""
    later = [one for one in operations.grants_of(user) if not operations.precedes(one, epoch)]
    held = now.permission(user, (epoch.commit_id,))
    return max((held, *map(operations.granted, later)), key=lambda one: one or 0)


def why_started(operations: Operations, epoch: Operation) -> str:
    """Why an epoch was started, for people: by what stands in its past and in that of no epoch that it follows.

    `founding`; of the latest removals `removal`, `leave` (a member's own) or `revocation`; else `merge` of several epochs,
    or `renewal`.
    """
    if not isinstance(epoch.body, EpochInit):
        return "founding"
    before = [operations[raw] for raw in epoch.body.previous]
    end = bisect_left(operations.removals, epoch.num, key=lambda one: one.num)
    found = {
        _kind_of(one)
        for one in operations.removals[max(end - _REMOVALS_LOOKED_AT, 0) : end]
        if not (isinstance(one.body, Remove) and (one.body.keeps or 0) >= Permission.WRITE)
        and operations.precedes(one, epoch)
        and not any(operations.precedes(one, other) for other in before)
    }
    for reason in ("removal", "leave", "revocation"):
        if reason in found:
            return reason
    return "merge" if len(before) > 1 else "renewal"


def _kind_of(removal: Operation) -> str:
    if not isinstance(removal.body, Remove):
        return "revocation"
    return "leave" if removal.body.user == removal.author else "removal"


def find_readers(operations: Operations, *, is_sure: bool = True) -> dict[EpochId, set[UserId]]:
    """By epoch: users who hold its secrets, as far as commits tell.

    They wrote in it, or have a box in a commit of an epoch that they hold; in the first, anyone who was granted something
    is taken for a reader, and (unless `is_sure`) in the others too: they may follow by a link. Who holds an epoch holds
    those before it, by its history.
    """
    readers = {epoch.started_epoch: _who_may_read(operations, epoch, is_sure) for epoch in operations.epochs}
    boxes = [
        (
            one.started_epoch if isinstance(one.body, EpochInit) else one.body.epoch,
            one.epoch,
            _boxed(one.body),
        )
        for one in [*operations.epochs, *operations.epoch_adds]
        if isinstance(one.body, EpochInit | EpochAdd)
    ]
    size = -1
    while size != (size := sum(map(len, readers.values()))):
        for opened, published_in, users in boxes:
            readers[opened] |= users & readers.get(published_in, set())
        for epoch in reversed(operations.epochs):
            if isinstance(epoch.body, EpochInit):
                for previous in epoch.body.previous:
                    readers[previous] |= readers[epoch.started_epoch]
    return readers


def _who_may_read(operations: Operations, epoch: Operation, is_sure: bool) -> set[UserId]:
    found = {epoch.author}
    for one in operations.published_in(epoch.started_epoch):
        found.add(one.author)
        if isinstance(one.body, Grant) and (isinstance(epoch.body, RepoInit) or not is_sure):
            found.add(one.body.user)
    return found


def _boxed(body: EpochInit | EpochAdd) -> set[UserId]:
    return {box.user for box in body.boxes}


def lacks_writing(operations: Operations, now: Resolution, epoch: Operation, user: UserId) -> bool:
    """Whether a reader of an epoch who may write now may have been given its read secret alone."""
    grants = [one for one in operations.grants_of(user) if not operations.precedes(one, epoch)]
    if not grants or user == epoch.author:
        return False  # what gave the right was known to who sealed
    for grant in grants:
        if grant.epoch == epoch.commit_id and operations.granted(grant) >= Permission.WRITE:
            return False  # sealed by the grant, or in the invitation's link
    sealed = [epoch, *(one for one in operations.epoch_adds if _is_addition(one, epoch, user))]
    return not any(may_write_at(now, one, user) for one in sealed)


def may_write_at(now: Resolution, one: Operation, user: UserId) -> bool:
    """Whether a user held the right to write where an operation was made, as it counts now."""
    return (now.permission(user, (one.commit_id,)) or 0) >= Permission.WRITE


def _is_addition(one: Operation, epoch: Operation, user: UserId) -> bool:
    return (
        isinstance(one.body, EpochAdd)
        and one.body.epoch == epoch.commit_id
        and any(box.user == user for box in one.body.boxes)
    )


def find_topics(operations: Operations, epoch: Operation) -> list[tuple[BranchId, TopicKey]]:
    """Branches of an epoch and their topics, as commits state them: of several statements, the first is taken."""
    found = [
        (one.body.branch, one.body.topic)
        for one in operations.published_in(epoch.started_epoch)
        if isinstance(one.body, BranchAdd)
    ]
    for added in additions_to(operations, epoch):
        found += [(item.branch, item.topic) for item in added.topics]
    return found


def find_opened(operations: Operations, epoch: EpochId) -> set[EpochId]:
    """Earlier epochs that anyone who reads this one can open, by its history and theirs."""
    histories: dict[EpochId, set[EpochId]] = {}
    for history in operations.histories:
        if isinstance(history.body, EpochHistory):
            histories.setdefault(history.epoch, set()).update(item.epoch for item in history.body.earlier)
    opened: set[EpochId] = set()
    ahead = [epoch]
    while ahead:
        fresh = histories.get(ahead.pop(), set()) - opened
        opened |= fresh
        ahead += fresh
    return opened


def additions_to(operations: Operations, epoch: Operation) -> list[EpochAdd]:
    """What was added to an epoch."""
    return [
        one.body
        for one in operations.epoch_adds
        if isinstance(one.body, EpochAdd) and one.body.epoch == epoch.commit_id
    ]


def _size(epoch: Operation) -> int:
    return len(epoch.body.boxes) if isinstance(epoch.body, EpochInit) else 0
