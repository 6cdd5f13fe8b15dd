"""Resolution of concurrent membership operations: which of a set count, and who may do what after them.

A function of the set alone: the operations within some heads. `rights` has the rules R1 to R6
(membership-rules.md), `removals` finds which rights hold the removals of a set. The tests compare both with
`tests/support/reference_membership.py`, which states the rules over plain sets.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from protocol.formats.body import Permission
from protocol.formats.epochs import Prekey
from protocol.ids import AgreementKey, CommitId, UserId
from verifier.operations import NO_RIGHTS, Demand, Operation, Operations, Right
from verifier.rights import Deed, Rights, is_senior, rights_for, rights_of


@dataclass(frozen=True, slots=True)
class Settled:
    """Rights that hold the removals and revocations of a set: those of their own pasts, but where `overruled` has others."""

    count: int = 0
    """Removals and revocations of the set, without leaves."""
    overruled: Mapping[CommitId, frozenset[Right]] = field(default_factory=dict)


class Resolution:
    """Verdict on the operations within `heads`, computed when it is asked for, and remembered."""

    def __init__(self, operations: Operations, heads: Sequence[CommitId], settled: Settled) -> None:
        """Resolve the operations within `heads`, of which it is known how their removals are `settled`."""
        self._operations = operations
        self.heads = heads if isinstance(heads, tuple) else tuple(heads)
        self.settled = settled
        # Of all there is, membership need not be looked up; what comes later is not within.
        self._is_whole = operations.are_heads(self.heads)
        last = (operations[head].num for head in self.heads)
        self._end = len(operations) if self._is_whole else max(last, default=-1) + 1
        """A number that is larger than those of all within."""
        self._rights = Rights(operations, self.is_within, self.acts_of, has_no_removals=not settled.count)
        self._held: dict[UserId, Permission | None] = {}
        self._holders: tuple[int, int] | None = None
        self._unsure: set[UserId] = set()
        """Users of whom `_holders` may be outdated."""
        self._epoch_tips: tuple[Operation, ...] | None = None
        self._counting: frozenset[CommitId] | None = None

    def grown(
        self,
        heads: tuple[CommitId, ...],
        settled: Settled,
        touched: Iterable[UserId],
        resting: Iterable[UserId] = (),
        *,
        has_epochs: bool = True,
    ) -> "Resolution":
        """Return the resolution of a larger set, which takes over this resolution's memory.

        This one works its answers out again when it is asked: no two resolutions share their memory.

        Args:
            heads: The heads of the larger set.
            settled: The settled removals of the larger set.
            touched: Users whose permissions may differ because of the added operations.
            resting: Users whose own operations may have begun or ceased to count, and whose permissions may differ.
            has_epochs: False if no added operation starts an epoch.
        """
        other = Resolution(self._operations, heads, settled)
        other._held, self._held = self._held, {}
        other._rights.take_verdicts(self._rights, resting)
        other._holders, self._holders = self._holders, None
        other._unsure, self._unsure = self._unsure, set()
        for users in (touched, resting):
            for user in users:
                other._held.pop(user, None)
                other._unsure.add(user)
        if not has_epochs and settled is self.settled:
            other._epoch_tips = self._epoch_tips
        return other

    # --- answers ---

    @property
    def is_whole(self) -> bool:
        """True if the set is all that is here, now."""
        return self._is_whole and self._end == len(self._operations)

    @property
    def has_no_removals(self) -> bool:
        """Return True if the set has no removals and revocations, so that all of it counts."""
        return not self.settled.count

    @property
    def counting(self) -> frozenset[CommitId]:
        """Return the ids of the removals and revocations that count, without leaves.

        A leave counts wherever it is. A reader may leave any number of times at once.
        """
        if self._counting is None:
            chosen = self._operations.contestable if self.settled.count else ()
            self._counting = frozenset(one.commit_id for one in chosen if self.acts_of(one))
        return self._counting

    def is_within(self, operation: Operation) -> bool:
        """Return True if the operation is in this set."""
        if self._is_whole or operation.num >= self._end:
            return operation.num < self._end
        return self._operations.is_within(operation, self.heads)

    def permission(self, user: UserId, heads: Sequence[CommitId] | None = None) -> Permission | None:
        """Return the highest permission that the user holds after `heads` (of this set; default: all of it), or None."""
        if heads is not None:
            return self._highest(user, heads)
        if user not in self._held:
            self._held[user] = self._highest(user)
        return self._held[user]

    def members(self) -> dict[UserId, Permission]:
        """Return every member with the highest permission held, sorted by id."""
        users = self._operations.users()
        return {user: held for user in users if (held := self.permission(user)) is not None}

    def holders(self) -> tuple[int, int]:
        """Return two sets, the members and the users who may write (`UserNumbers`).

        Costs O(users) once. A resolution that has grown costs O(users whose permissions may have changed).
        """
        if self._holders is None:
            self._holders, self._unsure = (0, 0), set(self._operations.users())
        members, writers = self._holders
        for user in sorted(self._unsure):
            held, bit = self.permission(user), self._operations.numbers.bit(user)
            members = members & ~bit if held is None else members | bit
            writers = writers | bit if (held or 0) >= Permission.WRITE else writers & ~bit
        self._holders, self._unsure = (members, writers), set()
        return self._holders

    def counts(self, operation: Operation, below: Right | None = None) -> bool:
        """Return True if an operation within this set counts (R2), or as far as what acts above a right tells (R6)."""
        return self._rights.counts(operation, below)

    def is_undiminished(self, credential: Operation) -> bool:
        """Return True if a credential counts, and if it is a move, passes on all that the first of its chain gives."""
        of_nobody = self._rights.deed_after(
            UserId(b"")
        )  # no removal takes anything from it, but on the way to it
        return self._rights.highest(of_nobody, credential) == self._operations.granted(credential)

    def acts_of(self, removal: Operation) -> frozenset[Right]:
        """Return the rights that hold a removal or revocation; none where it does not count or is not within this set."""
        if not self.is_within(removal):
            return NO_RIGHTS
        return self.settled.overruled.get(removal.commit_id, removal.acts)

    def has_effect(self, removal: Operation) -> bool:
        """Return True if a removal or revocation is within this set and counts. A move does as a leave."""
        return self.is_within(removal) if removal.is_leave else bool(self.acts_of(removal))

    def counting_removals_of(self, user: UserId) -> list[Operation]:
        """Return the removals of this user that count, leaves and moves among them."""
        return [one for one in self._operations.removals_of(user) if self.has_effect(one)]

    def rights_held(self, user: UserId, lowest: int = Permission.READ) -> list[Right]:
        """Return the rights that a user holds after this set, from a permission on."""
        deed = self._rights.deed_after(user)
        return [right for right in self._rights_for(deed, lowest) if self._rights.holds(deed, right)]

    def credentials_of(self, user: UserId) -> list[Operation]:
        """Return the credentials that make a user a member: those of which a right is held."""
        held = {right.credential for right in self.rights_held(user)}
        return [one for one in self._operations.grants_of(user) if one.commit_id in held]

    def may(self, deed: Deed, needs: Permission) -> bool:
        """Return True if the user of a deed holds a right that suffices for it (R3)."""
        return any(
            self._rights.highest(deed, credential, needs) is not None
            for credential in self._operations.grants_of(deed.user)
            if deed.follows(credential)
        )

    def takers_from(self, deed: Deed, needs: Permission) -> list[Operation]:
        """Return the removals that take a deed's sufficient rights, by credentials that count."""
        operations, rights = self._operations, self._rights
        found = {
            one.commit_id: one
            for right in self._rights_for(deed, needs)
            if rights.counts(operations.origin(right.credential))
            for one in rights.removals_taking(deed, right)
        }
        return operations.in_order(found.values())

    def voiders(self, operation: Operation) -> list[Operation]:
        """Return the removals and revocations that take from an operation what it needs."""
        if operation.needs is not None:
            return self.takers_from(self._rights.deed_of(operation), operation.needs)
        return self._operations.in_order(self._rights.revokers(operation))

    def are_met(self, demands: Iterable[Demand], right: Right | None = None) -> bool:
        """Return True if enough of the approvals count that quorums ask for (Q2): of a removal as R6 says of a right."""
        return self._rights.are_met(demands, right)

    def are_approved(self, operation: Operation) -> bool:
        """Return True if an operation has the approvals that quorums ask for, by one of the rights that suffice (R6)."""
        rights = rights_for(self._operations, operation)
        return any(self._rights.is_approved(operation.demands, one) for one in rights)

    # --- prekeys (E2) ---

    def prekeys_of(self, user: UserId) -> list[Operation]:
        """Return what states prekeys of a user in this set, causes first.

        Costs O(prekeys of the user that came before the last of the set).
        """
        stated = self._operations.prekeys_of(user)
        end = bisect_left(stated, self._end, key=lambda one: one.num)
        return [one for one in stated[:end] if self.is_within(one)]

    def prekey_of(self, user: UserId) -> AgreementKey | None:
        """Return the prekey to which boxes of a user go; None where they go to the user's own key.

        Costs as `Operations.newest_prekey`.
        """
        newest = self._operations.newest_prekey(user, self.is_within)
        if newest is None:
            return None
        assert isinstance(newest.body, Prekey), "a prekey is stated by such a body"
        return newest.body.key

    def epoch_tips(self) -> tuple[Operation, ...]:
        """Return what starts the epochs that count and that none that counts follows, by id.

        Costs O(epochs) once for a set, however many are concurrent.
        """
        if self._epoch_tips is None:
            tips: list[Operation] = []
            followed, operations = 0, self._operations
            for num in reversed(range(len(operations.epochs))):
                one = operations.epochs[num]
                if not followed >> num & 1 and self.is_within(one) and self.counts(one):
                    tips.append(one)
                    followed |= operations.epoch_pasts[num]
            self._epoch_tips = tuple(sorted(tips, key=lambda tip: tip.commit_id))
        return self._epoch_tips

    # --- removals (M7) ---

    def find_taken(self, user: UserId, keeps: Permission | None) -> list[Right]:
        """Return the rights that a removal by another is to take from a user after this set (M7).

        Where the user holds none above what is left, leaves are passed over: its key still acts by older pasts.
        """
        lowest = Permission.READ if keeps is None else keeps + 1
        if held := self.rights_held(user, lowest):
            return held
        deed = self._rights.deed_after(user, ignores_leaves=True)
        return [one for one in self._rights_for(deed, lowest) if self._rights.holds(deed, one)]

    def are_junior(self, taken: Iterable[Right], acting: Collection[Right]) -> bool:
        """Return True if for each of some rights one of others is senior to it."""
        return all(any(is_senior(self._operations, one, right) for one in acting) for right in taken)

    # --- steps ---

    def _highest(self, user: UserId, heads: Sequence[CommitId] | None = None) -> Permission | None:
        deed = self._rights.deed_after(user, heads)
        highest: Permission | None = None
        for credential in reversed(self._operations.grants_of(user)):  # late ones are taken by fewer removals
            lowest = Permission.READ if highest is None else highest + 1
            if self._operations.granted(credential) >= lowest and deed.follows(credential):
                highest = self._rights.highest(deed, credential, lowest) or highest
        return highest

    def _rights_for(self, deed: Deed, needs: int) -> Iterable[Right]:
        """Yield the rights by credentials in a deed's past that would suffice for it."""
        for credential in self._operations.grants_of(deed.user):
            if deed.follows(credential):
                yield from rights_of(credential, needs, self._operations.granted(credential))
