"""Resolves removals that contradict each other: which of them count (rules R4 to R6 of `resolution`).

Removals are decided group by group: one waits for every other that could void it, or what its author's right to it may
rest on. Groups are circles of such, or single removals.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from protocol.body import Remove
from protocol.ids import CommitId, UserId
from verifier.components import find_components
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution, could_void, left_by

_GRANTS_COMPARED_MAX: Final = 64
"""Grants of one member whose places are compared to tell who was there first: an admin can make any number."""


def find_counting(
    operations: Operations, heads: tuple[CommitId, ...], before: frozenset[CommitId]
) -> frozenset[CommitId]:
    """Ids of the removals and revocations that count among the operations within `heads`.

    `before` are those that count among what the last common operation of the heads has in its past, itself included.
    Everything else has that operation in its past, so it takes nothing from these and changes nothing about them.
    """
    removals = operations.removals_after(operations.last_common(heads), heads)
    # Who leaves needs no right to, so nothing can void it; it voids nothing either.
    leaving = {one.commit_id for one in removals if one.needs is None}
    others = [one for one in removals if one.needs is not None]
    return _Decision(operations, heads, others, before | leaving).counting


class _Decision:
    """Decides some removals, when it is known which others count."""

    def __init__(
        self,
        operations: Operations,
        heads: Sequence[CommitId],
        removals: list[Operation],
        before: frozenset[CommitId],
    ) -> None:
        self._operations = operations
        self._removals = removals
        self._rests_on = [operations.foundations(removal) for removal in removals]
        so_far = Resolution(operations, heads, before)
        groups = self._groups(range(len(removals)))
        while groups:
            group = groups.pop(0)
            kept = [index for index in group if so_far.counts(removals[index])]
            if len(kept) == len(group) > 1:
                kept = self._without_juniors(group, so_far)
            if len(kept) < len(group):
                groups = self._groups(kept) + groups
                continue
            so_far = so_far.having([removals[index] for index in group])
        self.counting = so_far.counting

    def _groups(self, indexes: Iterable[int]) -> list[list[int]]:
        """Circles of removals that could void each other, and single ones; what could void others comes first."""
        chosen = list(indexes)
        if len(chosen) < 2:
            return [chosen] if chosen else []
        edges = {
            index: [other for other in chosen if self._reaches(self._removals[index], self._rests_on[other])]
            for index in chosen
        }
        return find_components(edges)

    def _reaches(self, removal: Operation, foundations: Mapping[UserId, Sequence[Operation]]) -> bool:
        """Whether the removal could take away what another rests on: something that it does not have in its past."""
        if isinstance(removal.body, Remove):
            candidates: Iterable[Operation] = foundations.get(removal.body.user, ())
        else:  # a revocation: joins of anybody
            candidates = (one for some in foundations.values() for one in some)
        return any(
            one.commit_id != removal.commit_id
            and could_void(removal, one)
            and not self._operations.precedes(one, removal)
            for one in candidates
        )

    def _without_juniors(self, group: list[int], so_far: Resolution) -> list[int]:
        """Those of a circle whose author is not below the one whom it removes (R4)."""
        held = {index: self._held(self._removals[index], so_far) for index in group}
        highest: dict[UserId, int] = {}
        for index in group:
            author = self._removals[index].author
            highest[author] = max(highest.get(author, 0), held[index])
        kept: list[int] = []
        for index in group:
            removal = self._removals[index]
            if isinstance(removal.body, Remove) and removal.body.user in highest:
                other = highest[removal.body.user]
                if other > held[index] or (other == held[index] and self._is_junior(removal, so_far)):
                    continue
            kept.append(index)
        return kept

    def _held(self, removal: Operation, so_far: Resolution) -> int:
        """What its author holds for the removal: by grants in its past, cut by all that counts and is not after it."""
        operations = self._operations
        cuts = [
            one
            for one in so_far.counting_removals_of(removal.author)
            if one.commit_id != removal.commit_id and not operations.precedes(removal, one)
        ]
        levels = [0]
        for grant in operations.supports(removal):
            if so_far.counts(grant):
                left = [left_by(cut) or 0 for cut in cuts if not operations.precedes(cut, grant)]
                levels.append(min([int(operations.granted(grant)), *left]))
        return max(levels)

    def _is_junior(self, removal: Operation, so_far: Resolution) -> bool:
        """Whether the removed one's membership began in the past of all that its author's rests on."""
        assert isinstance(removal.body, Remove)
        authors = self._membership(removal.author, removal, so_far)
        others = self._membership(removal.body.user, removal, so_far)
        return any(all(self._operations.precedes(grant, own) for own in authors) for grant in others)

    def _membership(self, user: UserId, removal: Operation, so_far: Resolution) -> list[Operation]:
        """Grants in the removal's past that make the user a member, by what counts and is not after it; the first ones."""
        operations = self._operations
        exclusions = [
            one
            for one in so_far.counting_removals_of(user)
            if left_by(one) is None
            and one.commit_id != removal.commit_id
            and not operations.precedes(removal, one)
        ]
        grants = [
            grant
            for grant in operations.grants_of(user)
            if operations.precedes(grant, removal)
            and all(operations.precedes(exclusion, grant) for exclusion in reversed(exclusions))
            and so_far.counts(grant)
        ]
        return operations.in_order(grants)[:_GRANTS_COMPARED_MAX]
