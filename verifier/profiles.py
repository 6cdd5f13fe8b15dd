"""Statements that members make of themselves (`protocol.formats.profiles`): the latest that counts is shown.

Nothing rests on it: no right, no verdict, no order. What is kept is a function of the set of commits, whatever the order of
arrival, and is bounded for each author: of each stated minute the first statement in canonical order, of the latest
PROFILE_STATEMENTS_MAX minutes. So a flood of statements costs a node no more than other commits of the root branch do.
"""

from protocol.formats.profiles import Profile, find_fault
from protocol.ids import UserId
from protocol.limits.formats import PROFILE_INTERVAL_MS, PROFILE_STATEMENTS_MAX
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution


class ProfileStatements:
    """Profile statements of one repo that are considered."""

    def __init__(self) -> None:
        self._by_author: dict[UserId, dict[int, Operation]] = {}
        self.change_count = 0
        """Number of changes of what is considered."""

    def add(self, operation: Operation, operations: Operations) -> None:
        """Consider an operation that was added to `operations`; one whose name breaks the rules says nothing."""
        body = operation.body
        if not isinstance(body, Profile) or (body.name is not None and find_fault(body.name)):
            return
        considered = self._by_author.setdefault(operation.author, {})
        minute = operation.timestamp // PROFILE_INTERVAL_MS
        known = considered.get(minute)
        if known is not None and operations.in_order((known, operation))[0] is known:
            return
        considered[minute] = operation
        if len(considered) > PROFILE_STATEMENTS_MAX:
            # The minutes only grow: one that left has as many later ones for ever, so nothing depends on when it left.
            del considered[min(considered)]
        self.change_count += 1

    def find_latest(self, operations: Operations, now: Resolution) -> dict[UserId, Operation]:
        """Find the statement of each author that is shown: the last in canonical order that counts."""
        found = {}
        for author, considered in self._by_author.items():
            for one in reversed(operations.in_order(considered.values())):
                if now.counts(one):
                    found[author] = one
                    break
        return found

    def considered(self) -> list[Operation]:
        """Return all statements that are considered, of each author at most PROFILE_STATEMENTS_MAX."""
        return [one for of_author in self._by_author.values() for one in of_author.values()]

    def is_free(self, author: UserId, timestamp_ms: int) -> bool:
        """Return True if a statement with this time, as the last in canonical order, would be considered."""
        considered = self._by_author.get(author, {})
        minute = timestamp_ms // PROFILE_INTERVAL_MS
        is_full = len(considered) >= PROFILE_STATEMENTS_MAX
        return minute not in considered and not (is_full and minute < min(considered))
