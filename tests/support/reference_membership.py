"""The membership rules M3 to M8, M12 to M14, M17 to M20, Q1 to Q3 and R1 to R6 over plain sets, written for clarity alone.

The rules are in docs/specification/membership-rules.md; words and names are those of its definitions. Slow: everything is
computed from scratch for every set of operations, by the recursion as the rules state it. Members are names, operations
numbers, causes before effects. Only the choice between proposals looks at their ids.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

READ, WRITE, MANAGE, ADMIN, OWNER = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Op:
    """One operation; `past` is everything before it, closed.

    found: `names` are the founders            grant, lend, remove: `user` gets, or is left with, `level`
    invite: to `level`, for `uses` users       join, revoke: `target` is the invitation
    quorum: `names` sign, `level` of them      propose: to leave `user` with `level`; approve: `target` is the proposal
    act: anything else, which needs `level`    withdraw: `target` is an act of its author's
    move: `target` is the credential that `user` gets
    friends: `names` are the friends, of whom `level` must sign
    recover: as lend, by `target`, which names friends; `names` signed
    """

    author: str
    past: frozenset[int]
    kind: str = "act"
    user: str = ""
    level: int = WRITE
    names: tuple[str, ...] = ()
    target: int = -1
    uses: int = 1
    is_late: bool = False
    """An invitation has this if its date of expiry is over for every join."""
    covers: bool = True
    """A quorum has this if it covers removals."""
    is_of_device: bool = False
    """A removal has this if all that it is to take is by own device grants (`lend`, `recover`) of its author's."""
    publisher: str = ""
    """Signer of the commit of a `recover`. Its author is the member."""

    @property
    def is_leave(self) -> bool:
        """Return True if it takes something from its own author."""
        return self.kind == "move" or (self.kind == "remove" and self.user == self.author)

    @property
    def removed(self) -> str:
        """Return the member from whom it takes something."""
        return self.author if self.kind == "move" else self.user

    @property
    def leaves(self) -> int:
        """Return the permission that a removal leaves."""
        return 0 if self.kind == "move" else self.level

    @property
    def is_device_grant(self) -> bool:
        """Return True if a device of its author gets a permission by it."""
        return self.kind in ("lend", "recover")

    @property
    def needed(self) -> int:
        """Return the permission that it needs, or 0."""
        if self.is_of_device or self.kind in ("approve", "move", "friends"):
            return READ
        if self.is_leave:
            return 0
        needs = {"found": 0, "join": 0, "withdraw": 0, "quorum": OWNER, "propose": WRITE}
        levels = {
            "grant": max(ADMIN, self.level),
            "act": self.level,
            "lend": self.level,
            "recover": self.level,
        }
        return {**needs, **levels}.get(self.kind, ADMIN)


class Right(NamedTuple):
    """One permission of one credential."""

    credential: int
    level: int


@dataclass(frozen=True)
class Deed:
    """Act for which a right is asked: its author and past, and the removals that have it in their past or name it."""

    author: str
    past: frozenset[int]
    known_to: frozenset[int] = frozenset()
    removal: int | None = None
    """The removal of another that this is."""
    passes_leaves: bool = False
    """No leave of the author is asked."""


class Reference:
    """All operations of one history, by number; 0 founds it."""

    def __init__(self, id_of: Callable[[int], bytes] = lambda number: number.to_bytes(4)) -> None:
        self.ops: dict[int, Op] = {}
        self._id_of = id_of
        self._worlds: dict[frozenset[int], World] = {}

    def admit(self, number: int, op: Op) -> bool:
        """Judge an operation by its past, and keep it if it may be."""
        if op.kind == "recover":
            if not self._is(op.target, "friends", op.past):
                return False
            op = replace(op, author=self.ops[op.target].author, publisher=op.author)
        if op.kind == "remove" and not op.is_leave:
            taken = self.to_take(op)
            is_of_device = bool(taken) and all(self.is_own(right, op.author, op.past) for right in taken)
            op = replace(op, is_of_device=is_of_device)
        self.ops[number] = op
        if not self._may_be(number, op):
            del self.ops[number]
        return number in self.ops

    def world(self, whole: frozenset[int]) -> "World":
        """Return the rights in a closed set."""
        if whole not in self._worlds:
            self._worlds[whole] = World(self, whole)
        return self._worlds[whole]

    def members(self, whole: frozenset[int]) -> dict[str, int]:
        """Return everybody who holds a permission after a set, with the highest."""
        return self.world(whole).members()

    def place(self, number: int) -> tuple[int, bytes]:
        """Return the place in canonical order."""
        return self._rank(number), self._id_of(number)

    def _rank(self, number: int) -> int:
        """Return the length of the longest path to the founding."""
        ranks: dict[int, int] = {}
        for one in sorted({number} | self.ops[number].past, key=lambda one: len(self.ops[one].past)):
            ranks[one] = 1 + max((ranks[other] for other in self.ops[one].past), default=-1)
        return ranks[number]

    # --- M ---

    def _may_be(self, number: int, op: Op) -> bool:
        """Return True if an operation may be made, by its own past alone."""
        if op.kind == "found":
            return not op.past
        before = self.world(op.past)
        mine, theirs = before.level(op.author), before.level(op.user)
        if op.kind == "remove":
            return op.level < mine if op.is_leave else self._may_remove(number, op, mine)
        if op.kind == "join":
            return self._may_join(op, before)
        if op.kind == "withdraw":
            return op.target in op.past and self.ops[op.target].author == op.author
        if op.is_device_grant:
            is_signed = op.kind == "lend" or self._may_recover(op, before)
            return mine >= op.level > theirs and is_signed and self._may_lend(op, before)
        if op.kind == "move":
            return self._may_move(op, before)
        if op.kind == "friends":
            return mine >= READ and self._may_name(op)
        return mine >= op.needed and {
            "grant": not any(
                right.level >= op.level and not self.ops[right.credential].is_device_grant
                for right in before.held(op.user)
            ),
            "invite": op.level <= WRITE,
            "revoke": self._is(op.target, "invite", op.past),
            "quorum": 0 < op.level <= len(op.names) and all(before.level(name) for name in op.names),
            "approve": self._is(op.target, "propose", op.past)
            and any(op.author in self.ops[one].names for one in before.in_force()),
        }.get(op.kind, True)

    def _is(self, number: int, kind: str, past: Collection[int]) -> bool:
        return number in past and self.ops[number].kind == kind

    def to_take(self, op: Op) -> list[Right]:
        """Return the rights that a removal of another is to take."""
        before = self.world(op.past)
        held = [right for right in before.held(op.user) if right.level > op.level]
        return held or [right for right in before.held_but_for_leaves(op.user) if right.level > op.level]

    def _may_remove(self, number: int, op: Op, mine: int) -> bool:
        """Return True if all that it is to take is junior to a right by which it is held, and its author may write (M7).

        For a device removal a reader suffices.
        """
        here = World(self, op.past | {number})  # not remembered: nobody has accepted it yet
        acting = [right for right in here.rights(number) if here.holds(here.deed(number), right)]
        taken = self.to_take(op)
        return (
            bool(taken)
            and mine >= (READ if op.is_of_device else WRITE)
            and all(any(self.is_senior(one, right) for one in acting) for right in taken)
        )

    def _may_lend(self, op: Op, before: "World") -> bool:
        """Return True if a right that is not lent has the permission, and few were lent before (M17)."""
        authors = {op.author} | self.forerunners(op.author, op.past)
        own = {one for one in op.past if self.ops[one].is_device_grant and self.ops[one].author in authors}
        others = {self.ops[one].user for one in own} - {op.author, op.user}
        holders = [user for user in others if any(right.credential in own for right in before.held(user))]
        published = [one for one in own if self.ops[one].kind == "lend" and self.ops[one].author == op.author]
        return (
            any(
                right.level >= op.level and not self.ops[right.credential].is_device_grant
                for right in before.held(op.author)
            )
            and (op.kind == "recover" or len(published) <= 63)
            and len(holders) <= 14
        )

    def forerunners(self, user: str, past: frozenset[int]) -> set[str]:
        """Return the authors of moves to a user in a past, and their forerunners there."""
        found: set[str] = set()
        ahead = {user}
        while ahead:
            ahead = {
                self.ops[one].author
                for one in past
                if self.ops[one].kind == "move" and self.ops[one].user in ahead
            } - found
            found |= ahead
        return found

    def is_own(self, right: Right, user: str, past: frozenset[int]) -> bool:
        """Return True if a user's own device grant gives a right, by its forerunners in a past."""
        credential = self.ops[right.credential]
        return credential.is_device_grant and credential.author in {user} | self.forerunners(user, past)

    def _may_move(self, op: Op, before: "World") -> bool:
        """Return True if a place may pass to a device (M18)."""
        chain = [op.target]
        while chain[-1] in op.past and self.ops[chain[-1]].kind == "move":
            chain.append(self.ops[chain[-1]].target)
        mine, theirs = before.held(op.author), before.held(op.user)
        return (
            any(right.credential == op.target for right in mine)
            and self.ops[op.target].kind in ("found", "grant", "join", "move")
            and len(chain) - 1 <= 15
            and op.user != op.author
            and bool(theirs)
            and all(self.is_own(right, op.author, op.past) for right in theirs)
        )

    def _may_name(self, op: Op) -> bool:
        """Return True if these may be friends, and so many of them asked (M19)."""
        count = len(op.names)
        return count == len({*op.names} - {op.author}) <= 15 and (
            count < 2 * op.level <= 2 * count if count else op.level == 0
        )

    def _may_recover(self, op: Op, before: "World") -> bool:
        """Return True if friends may let a device in (M20), beside what M17 asks."""
        naming = self.ops[op.target]
        others = [self.ops[one] for one in op.past]
        return (
            before.level(op.publisher) >= READ
            and not any(
                one.kind == "friends" and one.author == op.author and op.target in one.past for one in others
            )
            and not any(
                one.kind == "recover" and (one.target, one.user) == (op.target, op.user) for one in others
            )
            and len(set(op.names)) == len(op.names) >= max(naming.level, 1)
            and set(op.names) <= set(naming.names)
        )

    def _may_join(self, op: Op, before: "World") -> bool:
        """Return True if an invitation admits the author (M4)."""
        if not self._is(op.target, "invite", op.past) or not before.counts(op.target):
            return False
        invitation = self.ops[op.target]
        joins = {one for one in op.past if self.ops[one].target == op.target and self.ops[one].kind == "join"}
        joined = {self.ops[one].author for one in joins if before.counts(one)}
        removals = [one for one in before.counting() if self.ops[one].removed == op.author]
        return (
            not any(self.ops[one].target == op.target for one in before.counting())
            and all(one in invitation.past for one in removals)
            and not invitation.is_late
            and (op.author in joined or len(joined) < invitation.uses)
        )

    # --- R1 ---

    def is_senior(self, one: Right, other: Right) -> bool:
        """Return True if it has a higher permission, or the same one by an origin in the past of the other's."""
        return one.level > other.level or (
            one.level == other.level
            and self.origin(one.credential) in self.ops[self.origin(other.credential)].past
        )

    def origin(self, credential: int) -> int:
        """Return the origin of a credential's rights."""
        return self.origin(self.ops[credential].target) if self.ops[credential].kind == "move" else credential

    def carried(self, number: int, user: str) -> int:
        """Return the permission that an operation gives to a member as a credential, or 0."""
        op = self.ops[number]
        if op.kind == "found":
            return OWNER * (user in op.names)
        if op.kind in ("grant", "lend", "recover"):
            return op.level * (op.user == user)
        if op.kind == "move":
            return self.carried(op.target, op.author) * (op.user == user)
        return self.ops[op.target].level * (op.author == user) if op.kind == "join" else 0


class World:
    """One closed set of operations, and the rights in it."""

    def __init__(self, reference: Reference, whole: frozenset[int]) -> None:
        self._reference = reference
        self._ops = reference.ops
        self.whole = whole
        self._removals = [one for one in whole if self._ops[one].kind in ("remove", "move")]
        self._revocations = [one for one in whole if self._ops[one].kind == "revoke"]
        self._known: dict[tuple[Deed, Right, Right | None], bool] = {}

    def level(self, user: str, past: frozenset[int] | None = None) -> int:
        """Return the permission of a member after the set, or after some of it, by what counts in all of it."""
        return max((right.level for right in self.held(user, past)), default=0)

    def held(self, user: str, past: frozenset[int] | None = None) -> list[Right]:
        """Return the rights that a member holds after the set, or after some of it."""
        known_to = frozenset(self._removals) - (self.whole if past is None else past)
        deed = Deed(user, self.whole if past is None else past, known_to)
        return [right for right in self.rights_of(deed, READ) if self.holds(deed, right)]

    def held_but_for_leaves(self, user: str) -> list[Right]:
        """Return the rights that a member would hold after the set if its leaves took nothing there (M7)."""
        deed = Deed(user, self.whole, passes_leaves=True)
        return [right for right in self.rights_of(deed, READ) if self.holds(deed, right)]

    def members(self) -> dict[str, int]:
        """Return everybody who holds a permission, with the highest."""
        ops = [self._ops[one] for one in self.whole]
        users = {name for op in ops for name in (*op.names, op.user, op.author)} - {""}
        return {user: level for user in sorted(users) if (level := self.level(user))}

    def counting(self) -> frozenset[int]:
        """Return the removals and revocations that count, leaves among them."""
        return frozenset(
            one
            for one in (*self._removals, *self._revocations)
            if self._ops[one].is_leave or self.counts(one)
        )

    # --- R2 ---

    def counts(self, number: int, below: Right | None = None) -> bool:
        """Return True if an operation counts; with `below`, as far as is told by what acts by rights senior to it."""
        op = self._ops[number]
        if op.kind == "join":
            return self.counts(op.target, below) and not any(
                self._ops[one].target == op.target
                and one not in op.past
                and number not in self._ops[one].past
                and self._acts(one, below)
                for one in self._revocations
            )
        deed = self.deed(number)
        return not op.needed or any(self.holds(deed, right, below) for right in self.rights(number))

    def _acts(self, number: int, below: Right | None, *, on: Right | None = None) -> bool:
        """Return True if a right senior to `on` and to `below`, where these are given, holds a removal or revocation."""
        is_senior = self._reference.is_senior
        return any(
            (below is None or is_senior(acting, below))
            and (on is None or is_senior(acting, on))
            and self.holds(self.deed(number), acting)
            for acting in self.rights(number)
        )

    # --- R3 ---

    def deed(self, number: int) -> Deed:
        """Return an operation of the set as an act for which rights are asked."""
        op = self._ops[number]
        known_to = frozenset(one for one in self._removals if number in self._ops[one].past)
        return Deed(op.author, op.past, known_to, number if op.kind == "remove" else None)

    def rights(self, number: int) -> list[Right]:
        """Return the rights that suffice for an operation: its author's, and those of quorums for a removal."""
        op = self._ops[number]
        found = list(self.rights_of(self.deed(number), op.needed))
        if op.kind == "move":
            found = [right for right in found if right.credential == op.target]
        if op.kind == "remove" and not op.is_of_device:
            found += [Right(one, OWNER) for one in self._reference.world(op.past).covering()]
        return found

    def rights_of(self, deed: Deed, lowest: int) -> Iterator[Right]:
        """Yield the rights of a deed's author, from a permission on, by credentials in its past."""
        for one in deed.past:
            for level in range(lowest, self._reference.carried(one, deed.author) + 1):
                yield Right(one, level)

    def holds(self, deed: Deed, right: Right, below: Right | None = None) -> bool:
        """Return True if a right is held: its credential counts, no removal takes it, and approvals suffice.

        For a right by a move, the move's author holds for the move what it passes on.
        """
        asked = (deed, right, below)
        if asked not in self._known:
            credential = self._ops[right.credential]
            is_own = credential.kind != "quorum"
            self._known[asked] = (
                (
                    self.holds(self.deed(right.credential), Right(credential.target, right.level), below)
                    if credential.kind == "move"
                    else self.counts(right.credential, below)
                )
                and not (is_own and any(self.takes(one, right, deed, below) for one in self._removals))
                and (deed.removal is None or self._is_approved(deed.removal, right))
            )
        return self._known[asked]

    def may(self, deed: Deed, needed: int) -> bool:
        """Return True if the author of a deed holds for it a right to what it needs."""
        return any(self.holds(deed, right) for right in self.rights_of(deed, needed))

    # --- R4, R5 ---

    def takes(self, number: int, right: Right, deed: Deed, below: Right | None = None) -> bool:
        """Return True if a removal takes a right from a deed."""
        removal = self._ops[number]
        if removal.removed != deed.author or removal.leaves >= right.level:
            return False
        if number in self._ops[right.credential].past or number in deed.known_to:
            return False
        if removal.is_leave:
            return number in deed.past and not deed.passes_leaves
        if removal.is_of_device and not self._reference.is_own(right, removal.author, removal.past):
            return False
        return self._acts(number, below, on=right)

    # --- R6, Q ---

    def _is_approved(self, removal: int, right: Right) -> bool:
        return all(
            len({self._ops[one].author for one in given if self.counts(one, right)}) >= threshold
            for threshold, given in self._demands(removal)
        )

    def in_force(self) -> list[int]:
        """Return the quorums that count and that no counting quorum follows (Q1)."""
        named = [one for one in self.whole if self._ops[one].kind == "quorum" and self.counts(one)]
        return [one for one in named if not any(one in self._ops[other].past for other in named)]

    def covering(self) -> list[int]:
        """Return the quorums in force that cover removals."""
        return [one for one in self.in_force() if self._ops[one].covers]

    def _demands(self, removal: int) -> list[tuple[int, list[int]]]:
        """Return threshold and approvals of each quorum in force before a removal that covers removals (Q2, Q3)."""
        op, before = self._ops[removal], self._reference.world(self._ops[removal].past)
        quorums = [] if op.is_leave or op.is_of_device else before.covering()
        spent = [one for one in op.past if self._is_removal_by_another(one, op.user)]
        proposals = [
            one
            for one in op.past
            if self._ops[one].kind == "propose"
            and (self._ops[one].user, self._ops[one].level) == (op.user, op.level)
            and not any(one in self._ops[other].past for other in spent)
        ]
        for proposal in sorted(proposals, key=self._reference.place) if quorums else ():
            given = self._first_approvals(proposal, op.past)
            asked = [
                (self._ops[one].level, [given[name] for name in self._ops[one].names if name in given])
                for one in quorums
            ]
            if all(len(approvals) >= threshold for threshold, approvals in asked):
                return asked
        return [(self._ops[one].level, []) for one in quorums]

    def _is_removal_by_another(self, number: int, user: str) -> bool:
        op = self._ops[number]
        return op.kind == "remove" and op.user == user and not op.is_leave and not op.is_of_device

    def _first_approvals(self, proposal: int, past: frozenset[int]) -> dict[str, int]:
        """Return by signer the first approval in canonical order that counts in a removal's past."""
        before = self._reference.world(past)
        approvals = [
            one for one in past if self._ops[one].kind == "approve" and self._ops[one].target == proposal
        ]
        counting = [one for one in approvals if before.counts(one)]
        return {
            self._ops[one].author: one for one in sorted(counting, key=self._reference.place, reverse=True)
        }
