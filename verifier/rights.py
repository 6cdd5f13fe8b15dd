"""Rights in one set of membership operations: which are held, which removals take, which operations count.

Rules R1 to R6 of membership-rules.md, by its words: `is_senior` (R1), `Rights.counts` (R2), `Rights.holds`
(R3), `Rights.takes` (R4, R5), `Rights.are_met` (R6). A *right* is one permission of one credential.

    counts(x)       leads to holds(x, right)             for rights that suffice for x, or for who invited and who revoked
    holds(x, right) leads to counts(right's origin)      and to what takes the right from x, or on the way of moves from them
    takes(r, right) leads to the rights that hold r      of those alone that are senior to `right`

All of these are senior to what was asked, and a move is as senior as what it passes on. So the recursion ends at the
founding with one answer. It is cut in the middle: `acts` tells the rights that hold a removal, and `removals` finds them
from the most senior right down. What is left goes from a credential to credentials in its past, without recursion of
Python: a chain of grants may be longer than its stack.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from protocol.formats.body import Join, Move, Permission, Quorum, Remove
from protocol.ids import CommitId, UserId
from verifier.operations import COUNCIL, Demand, Demands, Operation, Operations, Right


def is_senior(operations: Operations, one: Right, other: Right) -> bool:
    """Return True if the first right is senior to the other one (R1).

    A right is senior by a higher permission, or by the same one if its origin is in the past of the other's.
    """
    if one.permission != other.permission:
        return one.permission > other.permission
    return operations.precedes(operations.origin(one.credential), operations.origin(other.credential))


def left_by(removal: Operation) -> int:
    """Return the permission that a removal leaves, 0 where it excludes, or is a move."""
    assert isinstance(removal.body, Remove | Move)
    return (removal.body.keeps or 0) if isinstance(removal.body, Remove) else 0


def place_of(operations: Operations, right: Right) -> tuple[int, int]:
    """Return a place in an order in which senior rights stand first. Equal places mean nothing."""
    rank, _ = operations.place(operations.origin(right.credential))
    return -right.permission, rank


def is_own_device_grant(
    operations: Operations, credential: Operation, user: UserId, is_here: Callable[[Operation], bool]
) -> bool:
    """Return True if a credential is a device grant by a user, or by its forerunners by moves that are here."""
    return credential.is_device_grant and (
        credential.author == user or credential.author in operations.with_forerunners(user, is_here)
    )


def credentials_for(operations: Operations, operation: Operation, needs: Permission) -> list[Operation]:
    """Return the credentials in an operation's past with rights that would suffice for it: of a move, what it passes on."""
    if isinstance(operation.body, Move):
        return [operations[operation.body.credential]]
    return [
        credential
        for credential in operations.grants_of(operation.author)
        if operations.granted(credential) >= needs and operations.precedes(credential, operation)
    ]


def rights_for(operations: Operations, operation: Operation) -> Iterator[Right]:
    """Yield the rights that would suffice for an operation, by credentials in its past."""
    council = next((right for right in operation.acts if right.permission == COUNCIL), None)
    if council is not None:
        yield council
        return
    if operation.needs is not None:
        for credential in credentials_for(operations, operation, operation.needs):
            yield from rights_of(credential, operation.needs, operations.granted(credential))
    for quorum in {demand.quorum: None for one in operation.demands for demand in one.of_each}:
        yield Right(quorum, Permission.OWNER)


def rights_of(credential: Operation, lowest: int, highest: int) -> Iterator[Right]:
    """Yield the rights of a credential from one permission to another, the highest first."""
    for permission in range(highest, lowest - 1, -1):
        yield Right(credential.commit_id, Permission(permission))


@dataclass(frozen=True, slots=True)
class Deed:
    """Something for which a right is asked: an operation, a content commit, or all that comes after a set."""

    user: UserId
    follows: Callable[[Operation], bool]
    """Returns True of an operation in its past."""
    is_known_to: Callable[[Operation], bool]
    """Returns True of a removal that has it in its past, or names it."""
    demands: tuple[Demands, ...] = ()
    ignores_leaves: bool = False
    """What a removal of another is to take is asked as if no leave of the member took anything (M7)."""


class Rights:
    """Rights in one set of operations, as far as it is known which rights hold the removals among them."""

    def __init__(
        self,
        operations: Operations,
        is_within: Callable[[Operation], bool],
        acts: Callable[[Operation], Collection[Right]],
        *,
        has_no_removals: bool = False,
    ) -> None:
        """Work on the operations for which `is_within` returns True.

        `acts` returns the rights that hold a removal or revocation of the set. For other operations it returns none. If
        `has_no_removals`, all operations of the set count.
        """
        self._operations = operations
        self._is_within = is_within
        self._acts = acts
        self._is_calm = has_no_removals
        self._verdicts: dict[UserId, dict[CommitId, bool]] = {}
        self._verdicts_below: dict[Right, dict[CommitId, bool]] = {}

    def take_verdicts(self, earlier: "Rights", users: Iterable[UserId]) -> None:
        """Take away the verdicts in a smaller set, and forget those on what these users did."""
        self._verdicts, earlier._verdicts = earlier._verdicts, {}
        for user in users:
            self._verdicts.pop(user, None)

    # --- R2 ---

    def counts(self, operation: Operation, below: Right | None = None) -> bool:
        """Return True if an operation of the set counts (R2).

        With `below`, as far as removals and revocations tell that act by rights senior to it (R6).
        """
        if self._is_calm or (operation.needs is None and not isinstance(operation.body, Join)):
            return True
        if operation.is_contestable:
            assert below is None, "nothing rests on a removal but what it takes"
            return bool(self._acts(operation))
        known = self._known(operation, below)
        if known is None:
            self._judge_with_causes(operation, below)
            known = self._known(operation, below)
            assert known is not None, "just judged"
        return known

    def _known(self, operation: Operation, below: Right | None) -> bool | None:
        if below is None:
            return self._verdicts.get(operation.author, {}).get(operation.commit_id)
        return self._verdicts_below.get(below, {}).get(operation.commit_id)

    def _judge_with_causes(self, operation: Operation, below: Right | None) -> None:
        """Judge an operation after all that its verdict rests on, which is in its past."""
        found: dict[CommitId, tuple[Operation, list[Operation]]] = {}
        ahead = [operation]
        while ahead:
            one = ahead.pop()
            if one.commit_id not in found and self._known(one, below) is None:
                rests_on = self._rests_on(one)
                found[one.commit_id] = one, rests_on
                ahead += (self._operations.origin(other.commit_id) for other in rests_on)
        for one, rests_on in sorted(found.values(), key=lambda pair: pair[0].num):
            if below is None:
                verdicts = self._verdicts.setdefault(one.author, {})
            else:
                verdicts = self._verdicts_below.setdefault(below, {})
            verdicts[one.commit_id] = self._judge(one, rests_on, below)

    def _rests_on(self, operation: Operation) -> list[Operation]:
        """Return the invitation of a join; of another operation, the credentials of rights that suffice."""
        if isinstance(operation.body, Join):
            return [self._operations[operation.body.invitation]]
        return (
            [] if operation.needs is None else credentials_for(self._operations, operation, operation.needs)
        )

    def _judge(self, operation: Operation, rests_on: list[Operation], below: Right | None) -> bool:
        if isinstance(operation.body, Join):
            return self.counts(rests_on[0], below) and not self.revokers(operation, below)
        if operation.needs is None:
            return True
        deed, needs = self.deed_of(operation), operation.needs
        return any(self.highest(deed, one, needs, below) is not None for one in rests_on)

    def revokers(self, join: Operation, below: Right | None = None) -> list[Operation]:
        """Return the revocations that count and are concurrent with a join by their invitation; of another kind, none."""
        if not isinstance(join.body, Join):
            return []
        precedes = self._operations.precedes
        return [
            revocation
            for revocation in self._operations.revocations_of(join.body.invitation)
            if any(self._is_asked(acting, below) for acting in self._acts(revocation))
            and not precedes(revocation, join)
            and not precedes(join, revocation)
        ]

    # --- R3 ---

    def deed_of(self, operation: Operation) -> Deed:
        """Return what is asked about an operation of the set."""
        operations = self._operations
        return Deed(
            operation.author,
            lambda other: operations.precedes(other, operation),
            lambda removal: operations.precedes(operation, removal),
            operation.demands,
        )

    def deed_after(
        self, user: UserId, heads: Sequence[CommitId] | None = None, *, ignores_leaves: bool = False
    ) -> Deed:
        """Return what is asked about a user after some heads of the set, or after all of it."""
        if heads is None:
            return Deed(user, self._is_within, lambda _removal: False, ignores_leaves=ignores_leaves)
        is_within = self._operations.is_within
        return Deed(user, lambda one: is_within(one, heads), lambda removal: not is_within(removal, heads))

    def holds(self, deed: Deed, right: Right) -> bool:
        """Return True if a right is held for a deed (R3): its credential counts, and no removal takes it.

        That of the council is, wherever it suffices (Q4). Of a move, its origin is to count, and no removal to take the
        right from any holder on the way (`removals_taking`). So no question asks for lower rights than its own.

        Args:
            deed: What is done, with its past.
            right: A right by a credential in that past, of the user or of a quorum.
        """
        if right.permission == COUNCIL:
            return True
        credential = self._operations.origin(right.credential)
        if not self.counts(credential):
            return False
        is_own = not isinstance(credential.body, Quorum)
        if is_own and any(True for _ in self.removals_taking(deed, right)):
            return False
        return self.is_approved(deed.demands, right)

    def highest(
        self, deed: Deed, credential: Operation, lowest: int = Permission.READ, below: Right | None = None
    ) -> Permission | None:
        """Return the highest permission, at least `lowest`, of a credential's rights that are held for a deed; None if
        there is none.

        A removal that takes a right also takes the lower ones of the same credential, down to the permission that it
        leaves.
        """
        permission = int(self._operations.granted(credential))
        if permission < lowest or not self.counts(self._operations.origin(credential.commit_id), below):
            return None
        while permission >= lowest:
            right = Right(credential.commit_id, Permission(permission))
            taker = next(self.removals_taking(deed, right, below), None)
            if taker is None:
                return Permission(permission)
            permission = left_by(taker)
        return None

    def removals_taking(self, deed: Deed, right: Right, below: Right | None = None) -> Iterator[Operation]:
        """Yield the removals that take a right from a deed, the latest first; then those that took it before a move.

        The latter take the right of the same permission, by the credential passed on, from the move of an earlier holder
        (R3). Costs O(removals of the user, and of at most MOVE_COUNT_MAX earlier holders).
        """
        operations = self._operations
        for removal in reversed(operations.removals_of(deed.user)):
            if self.takes(removal, right, deed, below):
                yield removal
        for move in operations.moves_of(operations[right.credential]):
            assert isinstance(move.body, Move), "of these it is made"
            passed_on, at_move = Right(move.body.credential, right.permission), self.deed_of(move)
            for removal in reversed(operations.removals_of(move.author)):
                if self.takes(removal, passed_on, at_move, below):
                    yield removal

    # --- R4, R5 ---

    def takes(self, removal: Operation, right: Right, deed: Deed, below: Right | None = None) -> bool:
        """Return True if a removal of the deed's user takes a right from the deed (R4, R5).

        A removal takes rights above the permission that it leaves, if they are junior to a right that holds the
        removal. It takes nothing from a credential that has it in its past, nor from a deed that it has in its own past
        or names. A leave takes rights from what follows it; a move does, whether it counts or not. A device removal takes
        those alone that its author's own device grants give.
        """
        operations = self._operations
        if left_by(removal) >= right.permission:
            return False
        credential = operations[right.credential]
        if removal.is_leave:
            is_heard = not deed.ignores_leaves and deed.follows(removal)
            return is_heard and not operations.precedes(removal, credential)
        if removal.is_device_removal and not (
            credential.is_device_grant and operations.is_behind(removal, credential.author)
        ):
            return False
        return (
            any(
                self._is_asked(acting, below) and is_senior(operations, acting, right)
                for acting in self._acts(removal)
            )
            and not operations.precedes(removal, credential)
            and not deed.is_known_to(removal)
        )

    def _is_asked(self, acting: Right, below: Right | None) -> bool:
        return below is None or is_senior(self._operations, acting, below)

    # --- R6 ---

    def is_approved(self, demands: tuple[Demands, ...], right: Right) -> bool:
        """Return True if a removal has the approvals that quorums ask for where a right is to hold it."""
        found = next((one.of_each for one in demands if one.right == right), None)
        return not demands or (found is not None and self.are_met(found, right))

    def are_met(self, demands: Iterable[Demand], right: Right | None = None) -> bool:
        """Return True if enough of the approvals count that quorums ask for (Q2).

        Args:
            demands: Of a removal or a checkpoint.
            right: Of a removal, the right that would hold it: approvals count as far as what is senior to it tells (R6).
        """
        operations = self._operations
        return all(
            sum(self.counts(operations[approval], right) for approval in demand.approvals) >= demand.threshold
            for demand in demands
        )
