"""The membership rules M5 to M7 and R1 to R6 once more, over plain sets, written for clarity alone.

The rules are in docs/reference/membership-rules.md. Slow: everything is computed from scratch, for every
set of operations. Members and operations are named by anything.
"""

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

    def admit(self, number: int, op: Op) -> bool:
        """Judge an operation by its past, and keep it if it may be (M5 to M7)."""
        if number == 0:
            self.ops[0], self.needs[0] = op, 0
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
        self.ops[number], self.needs[number] = op, needs
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

    def counts(self, number: int, whole: frozenset[int], counting: frozenset[int]) -> bool:
        """Whether an operation counts, when these removals do (R2, R3)."""
        op = self.ops[number]
        for other in counting - {number}:
            removal = self.ops[other]
            is_concurrent = other not in op.past and number not in removal.past
            is_by_another = removal.user == op.author != removal.author
            if is_by_another and is_concurrent and removal.level < self.needs[number]:
                return False
        return (
            self.needs[number] == 0 or self.level(op.author, op.past, whole, counting) >= self.needs[number]
        )

    def counting(self, whole: frozenset[int]) -> frozenset[int]:
        """The removals that count among `whole` (R4 to R6)."""
        removals = {number for number in whole if self.ops[number].kind == "remove"}
        decided = frozenset(number for number in removals if self.ops[number].user == self.ops[number].author)
        undecided = removals - decided
        while undecided:
            threats = {number: self._threats(number, undecided) for number in undecided}
            group = min((threats[number] | {number} for number in undecided), key=len)
            lost = {number for number in group if not self.counts(number, whole, decided)}
            if not lost and len(group) > 1:
                lost = self._juniors(group, whole, decided)
            if not lost:
                decided |= group
            undecided -= lost or group
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
        return op.user != op.author and any(
            self.ops[one].author == op.user and one not in op.past for one in rests_on - {removal}
        )

    def _juniors(self, group: set[int], whole: frozenset[int], decided: frozenset[int]) -> set[int]:
        """Removals of a circle whose author is below the removed one."""
        held = {
            one: max([0, *self._grants(one, self.ops[one].author, whole, decided).values()]) for one in group
        }
        found = set()
        for one in group:
            user = self.ops[one].user
            theirs = max((held[other] for other in group if self.ops[other].author == user), default=-1)
            mine = self._grants(one, self.ops[one].author, whole, decided)
            is_junior = any(
                all(grant in self.ops[own].past for own, level in mine.items() if level)
                for grant, level in self._grants(one, user, whole, decided).items()
                if level
            )
            if theirs > held[one] or (theirs == held[one] and is_junior):
                found.add(one)
        return found

    def _grants(
        self, removal: int, user: str, whole: frozenset[int], decided: frozenset[int]
    ) -> dict[int, int]:
        """What each grant before a removal gives its user, less what counts against it and is not after the removal."""
        found = {}
        for number in self.ops[removal].past:
            op = self.ops[number]
            level = OWNER if op.kind == "found" and op.author == user else 0
            level = op.level if op.kind == "grant" and op.user == user else level
            if level and self.counts(number, whole, decided):
                for other in decided - {removal}:
                    cut = self.ops[other]
                    if cut.user == user and other not in op.past and removal not in cut.past:
                        level = min(level, cut.level)
                found[number] = level
        return found

    def members(self, whole: frozenset[int]) -> dict[str, int]:
        """Everyone's level after all of `whole`."""
        counting = self.counting(whole)
        users = {op.user for op in self.ops.values()} | {op.author for op in self.ops.values()}
        levels = {user: self.level(user, whole, whole, counting) for user in users - {""}}
        return {user: level for user, level in levels.items() if level}
