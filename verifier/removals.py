"""Rights that hold the removals and revocations of a set, found from the most senior right down.

    acts[R]       the rights by which removal R is held; none: R does not count
    a whole set   for each (right, R), seniors first: if R is held by the right, add the right to acts[R]     (`decide`)
    some more     the same for those that arrive; where an answer changes, ask the later rights of the removals
                  that rest on something of the removed member that R does not have in its past                (`settle`)

Whether a right holds a removal rests on rights that are senior to it (`rights`), so each question is asked once, after all
that its answer rests on, and the result is a function of the set. The order among equal places means nothing.

A question costs the removals of one member and a chain of credentials; an arrival costs what rests on it. The worst found
are n admins who each exclude the next, arriving from the junior end: n + 1 questions for one arrival.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from protocol.formats.body import (
    Approve,
    DeviceGrant,
    Grant,
    Invite,
    Join,
    Move,
    Quorum,
    RecoveryGrant,
    Remove,
    Revoke,
)
from protocol.ids import CommitId, UserId
from verifier.operations import NO_RIGHTS, Operation, Operations, Right
from verifier.resolution import Settled
from verifier.rights import Rights, left_by, place_of, rights_for


@dataclass(slots=True)
class Resting:
    """Members and removals that depend on what some removals take."""

    users: set[UserId] = field(default_factory=set)
    """Users whose operations may count no longer or again, or who may hold other permissions."""
    removals: list[Operation] = field(default_factory=list)
    """Removals and revocations whose rights may change."""


def find_resting(operations: Operations, removals: Iterable[Operation]) -> Resting:
    """Find operations that may begin or cease to count when other rights hold these removals.

    These are the operations of the removed members that the removals did not know, and what depends on them. Costs
    O(these).
    """
    resting = Resting()
    found: set[CommitId] = set()
    ahead: list[Operation] = []

    def add(some: Iterable[Operation]) -> None:
        for one in some:
            if one.commit_id not in found:
                found.add(one.commit_id)
                ahead.append(one)

    def add_resting_on(credential: Operation, user: UserId) -> None:
        resting.users.add(user)
        granted = operations.granted(credential)
        add(
            one
            for one in operations.deciding_by(user)
            if (one.needs or 0) <= granted and operations.precedes(credential, one)
        )

    for removal in removals:
        if isinstance(removal.body, Remove):
            resting.users.add(removal.body.user)
            add(
                one
                for one in operations.deciding_by(removal.body.user)
                if _may_lose(operations, one, removal)
            )
        elif isinstance(removal.body, Revoke):
            joins = operations.joins_by(removal.body.invitation)
            add(join for join in joins if _are_beside(operations, join, removal))
    while ahead:
        one = ahead.pop()
        match one.body:
            case Grant() | DeviceGrant() | RecoveryGrant() | Move():
                add_resting_on(one, one.body.user)
            case Join():
                add_resting_on(one, one.author)
            case Invite():
                add(operations.joins_by(one.commit_id))
            case Quorum() | Approve():
                add(operations.resting_on(one.commit_id))
            case _:
                resting.removals.append(one)
    return resting


def _may_lose(operations: Operations, operation: Operation, removal: Operation) -> bool:
    """Return True if a removal may take from an operation of the removed member what it needs, acts by or passes on."""
    is_above = (
        operation.is_contestable
        or isinstance(operation.body, Move)
        or (operation.needs or 0) > left_by(removal)
    )
    return is_above and not operations.precedes(operation, removal)


def _are_beside(operations: Operations, one: Operation, other: Operation) -> bool:
    return not operations.precedes(one, other) and not operations.precedes(other, one)


def decide(
    operations: Operations, heads: tuple[CommitId, ...], common: Operation, before: Settled
) -> Settled:
    """Settle the removals and revocations within some heads.

    Args:
        operations: All that is here.
        heads: Operations of which the pasts make the set.
        common: An operation that each of the heads is or follows, and all else is before or after.
        before: How those up to `common` are settled. What follows them takes nothing from them.
    """
    removals = operations.contestable_after(common, heads)
    if not removals:
        return before
    run = _Run(operations, before.overruled, lambda one: operations.is_within(one, heads), removals)
    run.ask_all(removals)
    return Settled(before.count + len(removals), run.overruled())


def settle(
    operations: Operations, before: Settled, arrived: Sequence[Operation]
) -> tuple[Settled, list[Operation], int]:
    """Settle all removals and revocations that are here, when some have come to others.

    Args:
        operations: All that is here, those that have come included.
        before: How the others are settled.
        arrived: Removals and revocations that have come.

    Returns:
        How all are settled, those that are held by other rights than before, and the number of questions asked.
    """
    run = _Run(operations, before.overruled, lambda _one: True, arrived)
    run.ask_all(arrived, spreads=True)
    return Settled(before.count + len(arrived), run.overruled()), run.changed(), run.asked


class _Run:
    """One pass over the rights of removals, seniors first.

    Verdicts that it needs are computed anew: each when all is known that it rests on, so that none is outdated.
    """

    def __init__(
        self,
        operations: Operations,
        overruled: Mapping[CommitId, frozenset[Right]],
        is_within: Callable[[Operation], bool],
        undecided: Collection[Operation],
    ) -> None:
        self._operations = operations
        self._overruled = overruled
        self._is_within = is_within
        self._rights = Rights(operations, is_within, self._acts_of)
        self._acts: dict[CommitId, frozenset[Right]] = {one.commit_id: NO_RIGHTS for one in undecided}
        self.asked = 0

    def ask_all(self, removals: Iterable[Operation], *, spreads: bool = False) -> None:
        """Ask whether each right of some removals is held; with `spreads`, also of those that a changed answer touches."""
        ahead: list[tuple[tuple[int, int], CommitId, Right]] = []
        awaited: set[tuple[CommitId, Right]] = set()

        def add(removal: Operation, after: tuple[int, int] | None) -> None:
            for right in rights_for(self._operations, removal):
                place = place_of(self._operations, right)
                if (after is None or place > after) and (removal.commit_id, right) not in awaited:
                    awaited.add((removal.commit_id, right))
                    heapq.heappush(ahead, (place, removal.commit_id, right))

        for removal in removals:
            add(removal, None)
        while ahead:
            place, commit_id, right = heapq.heappop(ahead)
            awaited.remove((commit_id, right))
            removal = self._operations[commit_id]
            if self._ask(removal, right) and spreads:
                for other in find_resting(self._operations, [removal]).removals:
                    add(other, place)

    def _ask(self, removal: Operation, right: Right) -> bool:
        """Ask whether a right holds a removal; return True if the answer is another than before."""
        self.asked += 1
        acts = self._acts_of(removal)
        is_held = self._rights.holds(self._rights.deed_of(removal), right)
        if is_held == (right in acts):
            return False
        self._acts[removal.commit_id] = acts ^ {right}
        return True

    def _acts_of(self, removal: Operation) -> frozenset[Right]:
        """Return the rights by which a removal counts."""
        known = self._acts.get(removal.commit_id)
        if known is not None:
            return known
        if not self._is_within(removal):
            return NO_RIGHTS
        return self._overruled.get(removal.commit_id, removal.acts)

    def changed(self) -> list[Operation]:
        """Return the removals that other rights hold than before, those that have come included where any does."""
        return [self._operations[commit_id] for commit_id in self._acts]

    def overruled(self) -> Mapping[CommitId, frozenset[Right]]:
        """Return the removals of the set that other rights hold than their own pasts say."""
        found = dict(self._overruled)
        for commit_id, acts in self._acts.items():
            if acts == self._operations[commit_id].acts:
                found.pop(commit_id, None)
            else:
                found[commit_id] = acts
        return found if found != self._overruled else self._overruled
