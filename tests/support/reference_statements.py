"""Statement of a membership checkpoint over plain sets, and what somebody judges by it who has nothing of its past.

The statement is that of docs/specification/profiles/members-checkpoint.md. `Follower` has it and what follows the
checkpoint. It comes to the verdicts and members of who has everything, or raises `Waits`: what it is asked rests on more
than is stated.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.reference_membership import ADMIN, READ, WRITE, Deed, Op, Reference, Right


class Waits(Exception):
    """The statement does not say what is asked: it takes the root branch."""


@dataclass(frozen=True)
class Invitation:
    """An invitation that admits somebody, as it is stated."""

    level: int
    uses: int
    is_late: bool
    users: frozenset[str]
    """Who joined by it, by joins that count."""
    barred: frozenset[str]
    """Of whom a removal counts that is not in its past."""


@dataclass(frozen=True)
class Statement:
    """What a checkpoint states of its past."""

    rights: frozenset[tuple[str, Right]]
    order: frozenset[tuple[int, int]]
    """Of two credentials by which admin or owner is held: the first is in the past of the second."""
    invitations: dict[int, Invitation]
    quorums: dict[int, Op]
    """Quorums in force."""


def state(reference: Reference, whole: frozenset[int]) -> Statement:
    """Return the statement of a closed set."""
    world, ops = reference.world(whole), reference.ops
    users = {name for one in whole for name in (*ops[one].names, ops[one].user, ops[one].author)} - {""}
    rights = frozenset((user, right) for user in users for right in world.held(user))
    high = {right.credential for _, right in rights if right.level >= ADMIN}
    counting = world.counting()
    invitations = {}
    for one in whole:
        is_revoked = any(ops[other].target == one for other in counting)
        if ops[one].kind != "invite" or not world.counts(one) or is_revoked:
            continue
        joins = [other for other in whole if ops[other].kind == "join" and ops[other].target == one]
        invitations[one] = Invitation(
            ops[one].level,
            ops[one].uses,
            ops[one].is_late,
            frozenset(ops[other].author for other in joins if world.counts(other)),
            frozenset(ops[other].removed for other in counting - ops[one].past if ops[other].removed),
        )
    return Statement(
        rights,
        frozenset((one, other) for one in high for other in high if one in ops[other].past),
        invitations,
        {one: ops[one] for one in world.in_force()},
    )


class Follower:
    """What follows a checkpoint, judged by its statement. The past of operations here has what follows it alone."""

    def __init__(self, statement: Statement) -> None:
        self.stated = statement
        self.ops: dict[int, Op] = {}

    def judge(self, number: int, op: Op) -> bool:
        """Return True if an operation may be made (M), and keep it then. Raises Waits."""
        self.ops[number] = op
        try:
            may = self._may_be(number, op)
        except Waits:
            del self.ops[number]
            raise
        if not may:
            del self.ops[number]
        return may

    def members(self, whole: Iterable[int]) -> dict[str, int]:
        """Return the members after the checkpoint and a closed set of what follows it."""
        return _Set(self, frozenset(whole)).members()

    def _may_be(self, number: int, op: Op) -> bool:
        before = _Set(self, op.past)
        mine, theirs = before.level(op.author), before.level(op.user)
        if op.kind == "remove":
            if op.level >= theirs:
                if op.is_leave or mine < WRITE:
                    return False
                raise Waits  # what a member held that left is not stated
            return op.is_leave or self._may_remove(number, op, before, mine)
        if op.kind == "join":
            return self._may_join(op, before)
        if op.kind == "withdraw":
            return self._find(op.target, op.past, "").author == op.author
        if mine < op.needed:
            return False
        match op.kind:
            case "grant":
                return theirs < op.level
            case "invite":
                return op.level <= WRITE
            case "revoke":
                return op.target in self.stated.invitations or bool(self._find(op.target, op.past, "invite"))
            case "quorum":
                return 0 < op.level <= len(op.names) and all(before.level(name) for name in op.names)
            case "approve":
                self._find(op.target, op.past, "propose")
                return any(op.author in one.names for one in before.in_force())
        return True

    def _find(self, number: int, past: frozenset[int], kind: str) -> Op:
        """Return an operation that another names. Of what is not here nothing is known."""
        if number not in past or (kind and self.ops[number].kind != kind):
            raise Waits
        return self.ops[number]

    def _may_remove(self, number: int, op: Op, before: "_Set", mine: int) -> bool:
        if mine < WRITE:
            return False
        if any(one.covers for one in before.in_force()):
            raise Waits  # approvals may be older than the checkpoint
        here = _Set(self, op.past | {number})
        acting = [right for right in here.rights(number) if here.holds(here.deed(number), right)]
        taken = [right for right in before.held(op.user) if right.level > op.level]
        return all(any(self.is_senior(one, right) for one in acting) for right in taken)

    def _may_join(self, op: Op, before: "_Set") -> bool:
        stated = self.stated.invitations.get(op.target)
        if stated is None and (op.target not in op.past or self.ops[op.target].kind != "invite"):
            return False  # all that admit somebody are stated, or here
        if stated is None:
            if not before.counts(op.target):
                return False
            made = self.ops[op.target]
            stated, seen = (
                Invitation(made.level, made.uses, made.is_late, frozenset(), frozenset()),
                made.past,
            )
        else:
            seen = frozenset()
        joined, counting = set(stated.users), before.counting()
        joined |= {
            self.ops[one].author
            for one in op.past
            if self.ops[one].kind == "join" and self.ops[one].target == op.target and before.counts(one)
        }
        return (
            not any(self.ops[one].target == op.target for one in counting)
            and op.author not in stated.barred | {self.ops[one].user for one in counting - seen}
            and not stated.is_late
            and (op.author in joined or len(joined) < stated.uses)
        )

    # --- R1 ---

    def is_senior(self, one: Right, other: Right) -> bool:
        """Return True if it has a higher permission, or the same one by a credential in the other's past."""
        if one.level != other.level:
            return one.level > other.level
        if other.credential in self.ops:  # all that the checkpoint has is in its past
            return one.credential not in self.ops or one.credential in self.ops[other.credential].past
        return (one.credential, other.credential) in self.stated.order

    def carried(self, number: int, user: str) -> int:
        """Return the permission that an operation gives to a member as a credential, or 0."""
        op = self.ops[number]
        if op.kind == "grant":
            return op.level * (op.user == user)
        if op.kind != "join" or op.author != user:
            return 0
        stated = self.stated.invitations.get(op.target)
        return stated.level if stated is not None else self.ops[op.target].level


class _Set:
    """The checkpoint and a closed set of what follows it."""

    def __init__(self, follower: Follower, whole: frozenset[int]) -> None:
        self._follower = follower
        self._ops = follower.ops
        self._whole = whole
        self._removals = [one for one in whole if self._ops[one].kind == "remove"]
        self._revocations = [one for one in whole if self._ops[one].kind == "revoke"]
        self._known: dict[tuple[Deed, Right], bool] = {}

    def level(self, user: str) -> int:
        return max((right.level for right in self.held(user)), default=0)

    def held(self, user: str) -> list[Right]:
        deed = Deed(user, self._whole)
        return [right for right in self._rights_of(deed, READ) if self.holds(deed, right)]

    def members(self) -> dict[str, int]:
        users = {name for one in self._whole for name in (self._ops[one].user, self._ops[one].author)}
        users |= {user for user, _ in self._follower.stated.rights}
        return {user: level for user in sorted(users - {""}) if (level := self.level(user))}

    def counting(self) -> frozenset[int]:
        return frozenset(one for one in (*self._removals, *self._revocations) if self.counts(one))

    def counts(self, number: int) -> bool:
        if number not in self._ops:
            return True  # what is stated counts for all that follows
        op = self._ops[number]
        if op.kind == "join":
            return self.counts(op.target) and not any(
                self._ops[one].target == op.target
                and one not in op.past
                and number not in self._ops[one].past
                and self.counts(one)
                for one in self._revocations
            )
        deed = self.deed(number)
        return not op.needed or any(self.holds(deed, right) for right in self.rights(number))

    def deed(self, number: int) -> Deed:
        op = self._ops[number]
        return Deed(
            op.author, op.past, frozenset(one for one in self._removals if number in self._ops[one].past)
        )

    def rights(self, number: int) -> list[Right]:
        return list(self._rights_of(self.deed(number), self._ops[number].needed))

    def _rights_of(self, deed: Deed, lowest: int) -> list[Right]:
        found = [right for user, right in self._follower.stated.rights if user == deed.author]
        for one in deed.past:
            found += [
                Right(one, level) for level in range(READ, self._follower.carried(one, deed.author) + 1)
            ]
        return [right for right in found if right.level >= lowest]

    def holds(self, deed: Deed, right: Right) -> bool:
        asked = (deed, right)
        if asked not in self._known:
            self._known[asked] = self.counts(right.credential) and not any(
                self._takes(one, right, deed) for one in self._removals
            )
        return self._known[asked]

    def _takes(self, number: int, right: Right, deed: Deed) -> bool:
        removal = self._ops[number]
        if removal.user != deed.author or removal.level >= right.level or number in deed.known_to:
            return False
        if right.credential in self._ops and number in self._ops[right.credential].past:
            return False
        if removal.is_leave:
            return number in deed.past
        return any(
            self._follower.is_senior(acting, right) and self.holds(self.deed(number), acting)
            for acting in self.rights(number)
        )

    def in_force(self) -> list[Op]:
        named = [one for one in self._whole if self._ops[one].kind == "quorum" and self.counts(one)]
        if not named:
            return list(self._follower.stated.quorums.values())
        return [self._ops[one] for one in named if not any(one in self._ops[other].past for other in named)]
