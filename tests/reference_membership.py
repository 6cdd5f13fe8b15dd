"""The membership rules M5 to M7 and R1 to R6 (docs/membership.md) once more, over plain sets, written for clarity alone.

Slow: everything is computed from scratch, for every set of operations. Members and operations are named by anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass

READ, WRITE, MANAGE, ADMIN, OWNER = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Op:
    """Founds the repo (no user), grants a level, or takes a user's level down to one (0: excludes)."""

    author: str
    past: frozenset[int]
    kind: str = "other"
    user: str = ""
    level: int = 0


class Reference:
    """All operations of one history, by number, causes first; 0 founds it."""

    def __init__(self) -> None:
        self.ops: dict[int, Op] = {}
        self.needs: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.juniors: set[int] = set()

    def admit(self, number: int, op: Op) -> bool:
        """Judge an operation by its past, and keep it if it may be (M5 to M7)."""
        if number == 0:
            self.ops[0], self.needs[0], self.held[0] = op, 0, 0
            return True
        counting = self.counting(op.past)
        held = self.level(op.author, op.past, op.past, counting)
        theirs = self.level(op.user, op.past, op.past, counting)
        if op.kind == "grant":
            needs, is_legal = max(ADMIN, op.level), theirs < op.level
        elif op.kind == "remove" and op.user == op.author:
            needs, is_legal = 0, op.level < theirs
        elif op.kind == "remove":
            needs, is_legal = max(ADMIN, theirs), op.level < theirs and op.user != self.ops[0].author
        else:
            needs, is_legal = WRITE, True
        if held < needs or not is_legal:
            return False
        self.ops[number], self.needs[number], self.held[number] = op, needs, held
        mine = self.membership(op.author, op.past, counting)
        if op.kind == "remove" and needs:
            for grant in self.membership(op.user, op.past, counting):
                if all(grant in self.ops[own].past for own in mine):
                    self.juniors.add(number)
        return True

    def level(self, user: str, seen: frozenset[int], whole: frozenset[int], counting: frozenset[int]) -> int:
        """What the user holds after `seen`, when `whole` is known (R1)."""
        levels = [0]
        for number in seen:
            op = self.ops[number]
            granted = OWNER if op.kind == "found" and op.author == user else 0
            granted = op.level if op.kind == "grant" and op.user == user else granted
            if granted and self.counts(number, whole, counting):
                left = [
                    self.ops[other].level
                    for other in counting & seen
                    if self.ops[other].user == user and other not in op.past
                ]
                levels.append(min([granted, *left]))
        return max(levels)

    def membership(self, user: str, whole: frozenset[int], counting: frozenset[int]) -> list[int]:
        """Grants that make the user a member."""
        found = []
        for number in whole:
            op = self.ops[number]
            is_grant = (op.kind == "found" and op.author == user) or (op.kind == "grant" and op.user == user)
            excluded = any(
                self.ops[other].user == user and self.ops[other].level == 0 and other not in op.past
                for other in counting
            )
            if is_grant and not excluded and self.counts(number, whole, counting):
                found.append(number)
        return found

    def counts(self, number: int, whole: frozenset[int], counting: frozenset[int]) -> bool:
        """Whether an operation counts, when these removals do (R2, R3)."""
        op = self.ops[number]
        for other in counting - {number}:
            removal = self.ops[other]
            is_concurrent = other not in op.past and number not in removal.past
            if removal.user == op.author and is_concurrent and removal.level < self.needs[number]:
                return False
        return (
            self.needs[number] == 0 or self.level(op.author, op.past, whole, counting) >= self.needs[number]
        )

    def counting(self, whole: frozenset[int]) -> frozenset[int]:
        """The removals that count among `whole` (R4 to R6)."""
        decided: frozenset[int] = frozenset()
        undecided = {number for number in whole if self.ops[number].kind == "remove"}
        while undecided:
            threats = {number: self._threats(number, undecided) for number in undecided}
            group = min((threats[number] | {number} for number in undecided), key=len)
            if len(group) > 1 and (juniors := self._juniors(group)):
                undecided -= juniors
            else:
                decided |= {number for number in group if self.counts(number, whole, decided)}
                undecided -= group
        return decided

    def _threats(self, number: int, undecided: set[int]) -> set[int]:
        """Undecided removals that could void this one, directly or by what could void them."""
        found: set[int] = set()
        ahead = [number]
        for one in ahead:
            direct = {other for other in undecided if self._could_void(other, one)} - found
            found |= direct
            ahead += direct
        return found

    def _could_void(self, removal: int, number: int) -> bool:
        rests_on, ahead = {number}, [number]
        for one in ahead:
            author, past = self.ops[one].author, self.ops[one].past
            grants = {
                other
                for other in past
                if (self.ops[other].kind == "grant" and self.ops[other].user == author)
                or (self.ops[other].kind == "found" and self.ops[other].author == author)
            }
            ahead += grants - rests_on
            rests_on |= grants
        op = self.ops[removal]
        return any(self.ops[one].author == op.user and one not in op.past for one in rests_on - {removal})

    def _juniors(self, group: set[int]) -> set[int]:
        highest: Mapping[str, int] = {
            self.ops[one].author: max(
                self.held[other] for other in group if self.ops[other].author == self.ops[one].author
            )
            for one in group
        }
        found = set()
        for one in group:
            theirs = highest.get(self.ops[one].user, -1)
            if theirs > self.held[one] or (theirs == self.held[one] and one in self.juniors):
                found.add(one)
        return found

    def members(self, whole: frozenset[int]) -> dict[str, int]:
        """Everyone's level after all of `whole`."""
        counting = self.counting(whole)
        users = {op.user for op in self.ops.values()} | {op.author for op in self.ops.values()}
        levels = {user: self.level(user, whole, whole, counting) for user in users - {""}}
        return {user: level for user, level in levels.items() if level}
