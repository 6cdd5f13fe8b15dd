"""Which membership operations of a set count, and who may do what after them.

A function of the set alone: the operations within some heads. The rules R1 to R6 (docs/membership.md):

  R1  A *removal* takes a member's permissions down to what it leaves, also those that are granted concurrently; what is
      granted with the removal in its past is not touched.
  R2  It voids what the member did without having it in the past of the removal, where that needs more than is left.
  R3  An operation counts while it is not void, and its author holds what it needs by operations in its past that count.
      A join counts while its invitation does; a *revocation* voids the joins that it does not have in its past.
  R4  Of removals that void each other in a circle, those count not whose author is below the one whom it removes: by the
      permission held when removing, else because the other's membership precedes.
  R5  Removals of a circle that R4 leaves all count.
  R6  What others void is decided after these.

Removals are decided group by group: one waits for every other that could void it or what its author's rights rest on.
`tests/reference_membership.py` says the same in a hundred lines, over plain sets.
"""

from collections.abc import Callable, Iterable, Sequence

from protocol.body import Join, Permission, Remove, RepoInit, Revoke
from verifier.components import find_components
from verifier.operations import Operation, Operations


class Resolution:
    """The verdict on the operations within `heads`. `counting` are the ids of the removals that count.

    What nobody asks for is not computed, and what is, is remembered.
    """

    def __init__(self, operations: Operations, heads: Sequence[bytes], counting: frozenset[bytes]) -> None:
        self._operations = operations
        self.heads = tuple(heads)
        self.counting = counting
        self._verdicts: dict[bytes, bool] = {}
        self._held: dict[bytes, Permission | None] = {}

    # --- answers ---

    def permission(self, user: bytes, heads: Sequence[bytes] | None = None) -> Permission | None:
        """The highest permission that the user holds after `heads` (of this set; default: all of it), or None."""
        if heads is not None:
            return self._level(user, lambda operation: self._operations.is_within(operation, heads))
        if user not in self._held:
            self._held[user] = self._level(
                user, lambda operation: self._operations.is_within(operation, self.heads)
            )
        return self._held[user]

    def members(self) -> dict[bytes, Permission]:
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

    def counting_removals_of(self, user: bytes) -> list[Operation]:
        """Removals of this user that count."""
        return [one for one in self._operations.removals_of(user) if one.commit_id in self.counting]

    def voiders(self, operation: Operation) -> list[Operation]:
        """Removals and revocations that count and void this operation (R2, R3)."""
        aimed: Iterable[Operation] = self._operations.removals_of(operation.author)
        if isinstance(operation.body, Join):
            aimed = self._operations.revocations_of(operation.body.invitation)
        return [one for one in aimed if one.commit_id in self.counting and self._would_void(one, operation)]

    def effective_grants(self, user: bytes) -> list[Operation]:
        """What the user's membership rests on: grants that count and of which no removal leaves nothing."""
        operations = self._operations
        return [
            grant
            for grant in operations.grants_of(user)
            if operations.is_within(grant, self.heads)
            and self.counts(grant)
            and not any(
                _left(removal) is None and not operations.precedes(removal, grant)
                for removal in self.counting_removals_of(user)
            )
        ]

    # --- R1 to R3 ---

    def _level(self, user: bytes, is_seen: Callable[[Operation], bool]) -> Permission | None:
        operations = self._operations
        removals = [one for one in self.counting_removals_of(user) if is_seen(one)]
        highest = 0
        for grant in operations.grants_of(user):
            level = int(operations.granted(grant))
            if level <= highest or not is_seen(grant) or not self.counts(grant):
                continue
            for removal in removals:
                if not operations.precedes(removal, grant):
                    level = min(level, _left(removal) or 0)
            highest = max(highest, level)
        return Permission(highest) if highest else None

    def _would_void(self, removal: Operation, operation: Operation) -> bool:
        """Whether the removal, if it counts, voids the operation."""
        if operation.commit_id == removal.commit_id:
            return False
        match removal.body:
            case Remove():
                is_aimed = operation.author == removal.body.user
                is_aimed = is_aimed and (_left(removal) or 0) < (operation.needs or 0)
            case Revoke():
                is_aimed = (
                    isinstance(operation.body, Join) and operation.body.invitation == removal.body.invitation
                )
            case _:
                is_aimed = False
        operations = self._operations
        return (
            is_aimed
            and not operations.precedes(operation, removal)
            and not operations.precedes(removal, operation)
        )

    def _settle(self, operation: Operation) -> None:
        """Judge an operation after all that its verdict rests on, which is in its past."""
        found: dict[bytes, Operation] = {}
        ahead = [operation]
        while ahead:
            one = ahead.pop()
            if one.commit_id not in found and one.commit_id not in self._verdicts:
                found[one.commit_id] = one
                ahead += supports(self._operations, one)
        for one in sorted(found.values(), key=lambda one: one.num):
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
        return held is not None and held >= operation.needs


def find_counting(operations: Operations, heads: Sequence[bytes]) -> frozenset[bytes]:
    """Ids of the removals and revocations that count among the operations within `heads` (R4 to R6)."""
    return _Decision(operations, heads).counting


class _Decision:
    """Decides removals group by group, those first that nothing undecided could void."""

    def __init__(self, operations: Operations, heads: Sequence[bytes]) -> None:
        self._operations = operations
        self._removals = [one for one in operations.removals if operations.is_within(one, heads)]
        self._rests_on = [self._foundations(removal) for removal in self._removals]
        self.counting: frozenset[bytes] = frozenset()
        groups = self._groups(range(len(self._removals)))
        while groups:
            group = groups.pop(0)
            kept = self._without_juniors(group)
            if len(kept) < len(group):
                groups = self._groups(kept) + groups
                continue
            so_far = Resolution(operations, heads, self.counting)
            here = [self._removals[index] for index in group]
            self.counting |= {removal.commit_id for removal in here if so_far.counts(removal)}

    def _foundations(self, removal: Operation) -> list[Operation]:
        """The removal and everything that its author's right to it may rest on."""
        found = {removal.commit_id: removal}
        ahead = [removal]
        while ahead:
            for one in supports(self._operations, ahead.pop()):
                if one.commit_id not in found:
                    found[one.commit_id] = one
                    ahead.append(one)
        return list(found.values())

    def _groups(self, indexes: Iterable[int]) -> list[list[int]]:
        """Circles of removals that could void each other, and single ones."""
        chosen = list(indexes)
        edges = {
            index: [
                other for other in chosen if self._could_void(self._removals[index], self._rests_on[other])
            ]
            for index in chosen
        }
        return find_components(edges)

    def _could_void(self, removal: Operation, foundations: list[Operation]) -> bool:
        """Whether the removal could take away what another rests on: something that it does not have in its past."""
        return any(
            one.commit_id != removal.commit_id
            and _is_aimed(removal, one)
            and not self._operations.precedes(one, removal)
            for one in foundations
        )

    def _without_juniors(self, group: list[int]) -> list[int]:
        """Those of a circle whose author is not below the one whom it removes (R4)."""
        if len(group) == 1:
            return group
        highest: dict[bytes, int] = {}
        for removal in (self._removals[index] for index in group):
            highest[removal.author] = max(highest.get(removal.author, 0), removal.held or 0)
        kept: list[int] = []
        for index in group:
            removal = self._removals[index]
            if isinstance(removal.body, Remove) and removal.body.user in highest:
                held, other = removal.held or 0, highest[removal.body.user]
                if other > held or (other == held and removal.is_junior):
                    continue
            kept.append(index)
        return kept


def supports(operations: Operations, operation: Operation) -> list[Operation]:
    """What its author's right to an operation may rest on directly; all of it is in the operation's past."""
    if isinstance(operation.body, Join):
        return [operations[operation.body.invitation]]
    grants = operations.grants_of(operation.author)
    return [grant for grant in grants if operations.precedes(grant, operation)]


def _is_aimed(removal: Operation, operation: Operation) -> bool:
    match removal.body:
        case Remove():
            return operation.author == removal.body.user
        case Revoke():
            return isinstance(operation.body, Join) and operation.body.invitation == removal.body.invitation
    return False


def _left(removal: Operation) -> Permission | None:
    assert isinstance(removal.body, Remove)
    return removal.body.keeps
