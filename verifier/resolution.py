"""Resolves concurrent membership operations (like Matrix state resolution): which count, and who may do what then.

A function of the set alone: the operations within some heads. The rules R1 to R6 (docs/reference/membership-rules.md):

  R1  A *removal* takes a member's permissions down to what it leaves, also those that are granted concurrently; what is
      granted with the removal in its past is not touched.
  R2  A removal by another voids what the member did concurrently, where that needs more than is left.
  R3  An operation counts while it is not void, and its author holds what it needs by operations in its past that count.
      A removal that a quorum approved counts while enough of the approvals do (Q2).
      A join counts while its invitation does; a *revocation* voids the joins that were made concurrently.
  R4  Of removals that could void each other in a circle, those do not count that what was decided before leaves without
      right; then those whose author is below the one whom it removes: by the permission that each holds for the removal,
      else because the other's membership precedes.
  R5  Removals of a circle that R4 leaves all count.
  R6  What others could void is decided after these.

`removal_conflicts` finds which removals count (R4 to R6). `tests/support/reference_membership.py` says the same in a hundred
lines, over plain sets.
"""

from collections.abc import Callable, Iterable, Sequence

from protocol.body import Join, Permission, Remove, RepoInit, Revoke
from protocol.ids import CommitId, UserId
from verifier.operations import Demand, Operation, Operations


class Resolution:
    """The verdict on the operations within `heads`. `counting` are the ids of the removals that count.

    What nobody asks for is not computed, and what is, is remembered.
    """

    def __init__(
        self, operations: Operations, heads: Sequence[CommitId], counting: frozenset[CommitId]
    ) -> None:
        self._operations = operations
        self.heads = heads if isinstance(heads, tuple) else tuple(heads)
        self.counting = counting
        # Of all there is, membership need not be looked up; what comes later is not within.
        self._is_whole = self.heads is operations.heads() or self.heads == operations.heads()
        self._size = len(operations)
        self._verdicts: dict[CommitId, bool] = {}
        self._judged: set[UserId] = set()  # authors of what has a verdict
        self._held: dict[UserId, Permission | None] = {}
        self._epoch_tips: tuple[Operation, ...] | None = None

    def having(self, removals: Sequence[Operation]) -> "Resolution":
        """The same, when these removals count too. What they cannot touch is not judged again."""
        added = frozenset(removal.commit_id for removal in removals)
        other = Resolution(self._operations, self.heads, self.counting | added)
        targets = {one.body.user for one in removals if isinstance(one.body, Remove)}
        if len(targets) == len(removals) and targets.isdisjoint(self._judged):  # no revocation, nobody judged
            other._verdicts, other._judged = self._verdicts, self._judged
        return other

    def with_more(self, heads: tuple[CommitId, ...]) -> "Resolution":
        """The same when all that is here now belongs to it, and no further removal counts. Verdicts rest on pasts."""
        other = Resolution(self._operations, heads, self.counting)
        other._verdicts, other._judged = self._verdicts, self._judged
        return other

    # --- answers ---

    def is_within(self, operation: Operation) -> bool:
        """Whether the operation is in this set."""
        if self._is_whole:
            return operation.num < self._size
        return self._operations.is_within(operation, self.heads)

    def permission(self, user: UserId, heads: Sequence[CommitId] | None = None) -> Permission | None:
        """The highest permission that the user holds after `heads` (of this set; default: all of it), or None."""
        if heads is not None:
            return self._level(user, lambda operation: self._operations.is_within(operation, heads))
        if user not in self._held:
            self._held[user] = self._level(user, self.is_within)
        return self._held[user]

    def members(self) -> dict[UserId, Permission]:
        """Every member with the highest permission held."""
        users = self._operations.users()
        return {user: held for user in users if (held := self.permission(user)) is not None}

    def counts(self, operation: Operation) -> bool:
        """Whether an operation within this set counts."""
        if not self.counting:  # nothing takes away what everybody had when they did it
            return True
        if operation.commit_id not in self._verdicts:
            self._settle(operation)
        return self._verdicts[operation.commit_id]

    def counting_removals_of(self, user: UserId) -> list[Operation]:
        """Removals of this user that count."""
        return [one for one in self._operations.removals_of(user) if one.commit_id in self.counting]

    def are_met(self, demands: Iterable[Demand]) -> bool:
        """Whether enough of the approvals count that quorums ask for (Q2)."""
        operations = self._operations
        return all(
            sum(self.counts(operations[raw]) for raw in demand.approvals) >= demand.threshold
            for demand in demands
        )

    def voiders(self, operation: Operation) -> list[Operation]:
        """Removals and revocations that count and void this operation (R2, R3)."""
        operations = self._operations
        return [
            one
            for one in _aimed_at(operations, operation)
            if one.commit_id in self.counting
            and could_void(one, operation)
            and _leaves_too_little(one, operation)
            and not operations.precedes(operation, one)
            and not operations.precedes(one, operation)
        ]

    def effective_grants(self, user: UserId) -> list[Operation]:
        """What the user's membership rests on: grants that count and of which no removal leaves nothing."""
        operations = self._operations
        exclusions = [one for one in self.counting_removals_of(user) if left_by(one) is None]
        return [
            grant
            for grant in operations.grants_of(user)
            if self.is_within(grant)
            and all(operations.precedes(exclusion, grant) for exclusion in reversed(exclusions))
            and self.counts(grant)
        ]

    def epoch_tips(self) -> tuple[Operation, ...]:
        """What starts the epochs that count and that none that counts follows, by id."""
        if self._epoch_tips is None:
            tips: list[Operation] = []
            for one in reversed(self._operations.epochs):
                if (
                    self.is_within(one)
                    and not any(self._operations.precedes(one, tip) for tip in tips)
                    and self.counts(one)
                ):
                    tips.append(one)
            self._epoch_tips = tuple(sorted(tips, key=lambda tip: tip.commit_id))
        return self._epoch_tips

    # --- R1 to R3 ---

    def _level(self, user: UserId, is_seen: Callable[[Operation], bool]) -> Permission | None:
        operations = self._operations
        removals = [one for one in reversed(self.counting_removals_of(user)) if is_seen(one)]
        highest = 0
        for grant in reversed(operations.grants_of(user)):  # late ones are cut by fewer removals
            level = int(operations.granted(grant))
            if level <= highest or not is_seen(grant):
                continue
            for removal in removals:
                if not operations.precedes(removal, grant):
                    level = min(level, left_by(removal) or 0)
                    if level <= highest:
                        break
            if level > highest and self.counts(grant):
                highest = level
        return Permission(highest) if highest else None

    def _settle(self, operation: Operation) -> None:
        """Judge an operation after all that its verdict rests on, which is in its past."""
        found: dict[CommitId, Operation] = {}
        ahead = [operation]
        while ahead:
            one = ahead.pop()
            if one.commit_id not in found and one.commit_id not in self._verdicts:
                found[one.commit_id] = one
                ahead += self._operations.rests_on(one)
        for one in sorted(found.values(), key=lambda one: one.num):
            self._judged.add(one.author)
            self._verdicts[one.commit_id] = self._judge(one)

    def _judge(self, operation: Operation) -> bool:
        operations = self._operations
        if isinstance(operation.body, RepoInit):
            return True
        if self.voiders(operation):
            return False
        if isinstance(operation.body, Join):
            return self._verdicts[operation.body.invitation]
        if operation.needs is None:
            return True
        held = self._level(operation.author, lambda other: operations.precedes(other, operation))
        return held is not None and held >= operation.needs and self.are_met(operation.demands)


def could_void(removal: Operation, operation: Operation) -> bool:
    """Whether a removal is aimed at the author of an operation, or a revocation at the join that it is."""
    match removal.body:
        case Remove():
            return operation.author == removal.body.user != removal.author
        case Revoke():
            return isinstance(operation.body, Join) and operation.body.invitation == removal.body.invitation
    return False


def left_by(removal: Operation) -> Permission | None:
    """What a removal leaves to the member."""
    assert isinstance(removal.body, Remove)
    return removal.body.keeps


def _aimed_at(operations: Operations, operation: Operation) -> Iterable[Operation]:
    if isinstance(operation.body, Join):
        return operations.revocations_of(operation.body.invitation)
    return operations.removals_by_others(operation.author)


def _leaves_too_little(removal: Operation, operation: Operation) -> bool:
    return isinstance(removal.body, Revoke) or (left_by(removal) or 0) < (operation.needs or 0)
