"""Epoch rules (E2, E4, E8, E10): what an epoch opens, who may and who surely does hold it, and which is written in.

The definitions and rules stand in membership-rules.md, section E. Each is a function of a set of root branch
commits; `Epochs` answers for any such set (a `Resolution`, or heads), and keeps what is asked of all that is here.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from protocol.formats.body import (
    DeviceGrant,
    Grant,
    Invite,
    Join,
    Move,
    Permission,
    RecoveryGrant,
    Remove,
    RepoInit,
    Revoke,
)
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, HandedBox, Prekey
from protocol.ids import CommitId, EpochId, UserId
from protocol.limits.formats import EPOCH_BOX_COUNT_MAX
from verifier.epoch_holders import EpochReach, PossibleHolders, SureHolders
from verifier.operations import EpochStart, Operation, Operations
from verifier.resolution import Resolution
from verifier.user_sets import UserSet, bit_numbers

EPOCHS_TOLD_IN_MAX: Final = 64
"""Latest epochs in which who surely holds none is handed one: a follower who was granted a permission (E10)."""
_GIVES: Final = (Grant, DeviceGrant, RecoveryGrant, Move)
"""Bodies that give a permission to a user whom they name."""
_REMOVALS_LOOKED_AT: Final = 64
"""Before an epoch, to tell why it was started: an exclusion and its epoch come one after the other."""
_PASTS_REMEMBERED: Final = 1024
"""Pasts of which it is remembered which epochs they have, and what an epoch opens there."""


class EpochPlan(NamedTuple):
    """Users for whom an init has boxes (E2), sorted. Of more than a commit can hold, the first."""

    members: tuple[UserId, ...]
    writers: tuple[UserId, ...]


def describe_epoch(before: Resolution) -> EpochPlan:
    """Compute which users get a box in an init whose past is `before`. Costs O(members)."""
    held = before.members()
    members = sorted(held)[:EPOCH_BOX_COUNT_MAX]
    return EpochPlan(
        tuple(members),
        tuple(user for user in members if held[user] >= Permission.WRITE),
    )


def preferred_epoch(epochs: Iterable[Operation]) -> Operation:
    """Choose among epochs that could be written in (E8): of the fewest boxes, then of the smallest id."""
    return min(epochs, key=lambda one: (len(box_holders(one)), one.commit_id))


def box_holders(started: Operation) -> Collection[UserId]:
    """Return the users who have a box in the init of an epoch, sorted: nobody in the founding one."""
    return started.start.members if started.start is not None else ()


class Epochs:
    """Epochs of one repo. Grown with `Operations`, operation by operation.

    Sets of epochs are numbers here, with one bit for each epoch in the order of addition.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._nums: dict[EpochId, int] = {}
        self._given: list[int] = []
        """By epoch: those that its init opens."""
        self._opens: list[list[tuple[Operation, int]]] = []
        """By epoch: what is published in it and opens others, and which."""
        self._reach = EpochReach()
        self._anchors: list[CommitId] = []
        """By number of an operation: the last on its chain of single acks that starts or opens epochs, or merges."""
        self._within: dict[CommitId, int] = {}
        """By anchor: the epochs that were started in its past, its own included."""
        self._opened: OrderedDict[tuple[CommitId, int], int] = OrderedDict()
        """By anchor and epoch: what the epoch opens within the anchor's past, of those asked for last."""
        self._clean: tuple[Resolution | None, list[Operation]] = (None, [])
        self._unseen: dict[EpochId, list[Operation]] = {}
        """By epoch: removals of others and revocations before its start that are not in its past."""
        self._unknown: dict[EpochId, tuple[int, list[Operation]]] = {}
        """By epoch: of how many prekeys it was looked, and those that its past has not."""
        self._prekey_users = 0
        """Users who have stated prekeys."""
        self._unused: list[Operation] = []
        """What states prekeys, and is in no init's past."""
        self._gone: dict[UserId, set[int]] = {}
        """By user: numbers of what states prekeys that others follow which are in an init's past."""
        self._possible = PossibleHolders(self._reach)
        self._sure = SureHolders(self._reach)

    def add(self, operation: Operation, acks: tuple[CommitId, ...]) -> None:
        """Take up an operation that was added to `Operations`. Costs O(change), and O(epochs) where it opens some."""
        commit_id, body = operation.commit_id, operation.body
        author = self._operations.numbers.bit(operation.publisher or operation.author)
        published_in = self._nums.get(operation.epoch)
        before = here = self._within_all(self._anchors_of(acks))
        if isinstance(body, RepoInit | EpochInit):
            self._operations.epoch_pasts.append(here)
            here |= 1 << self._start(operation, author)
        elif isinstance(body, Prekey):
            self._prekey_users |= author
            self._unused.append(operation)
        elif isinstance(body, EpochOpen):
            self._open(self._nums[operation.epoch], operation, self._mask(one.epoch for one in body.epochs))
        if len(acks) == 1 and not isinstance(body, EpochInit | EpochOpen):
            self._anchors += self._anchors_of(acks)
        else:
            self._anchors.append(commit_id)
            self._within[commit_id] = here
        if published_in is not None:  # else it is the init of the repo
            self._note_holders(operation, author, published_in)
            if operation.start is not None:
                num, latest = self._nums[operation.started_epoch], self._latest(before)
                members, prekeys = self._counting(operation, operation.start.members.bits)
                writers = operation.start.writers.bits & members
                self._sure.seal(num, published_in, latest, members, writers, prekeys)
                self._note_used(operation)

    def _anchors_of(self, commits: Iterable[CommitId]) -> set[CommitId]:
        operations = self._operations
        return {self._anchors[operations[one].num] for one in commits}

    def _start(self, operation: Operation, author: int) -> int:
        start = operation.start
        given = self._mask(start.gives) if start is not None else 0
        num = self._nums[operation.started_epoch] = self._reach.start(given)
        self._given.append(given)
        self._opens.append([])
        members, writers = (0, 0) if start is None else (start.members.bits, start.writers.bits)
        self._possible.start(members | author, writers | author)
        self._sure.start(num, author)
        return num

    def _open(self, num: int, operation: Operation, given: int) -> None:
        self._opens[num].append((operation, given))
        self._reach.open(num, given)
        self._sure.open()

    def _note_holders(self, operation: Operation, author: int, num: int) -> None:
        body, bits = operation.body, self._operations.numbers.bits
        self._possible.add(num, author)
        self._sure.write(num, author, by_writer=operation.by_writer)
        if isinstance(body, _GIVES):
            self._possible.add(num, bits([body.user]))
        elif isinstance(body, Join) and self._invites_to_write(operation):
            self._possible.add_writers(num, author)
        elif isinstance(body, EpochHand):
            handed, users = self._nums[body.epoch], bits(item.user for item in body.boxes)
            writers = bits(item.user for item in body.boxes if item.writers_box is not None)
            self._possible.add(handed, users)
            self._possible.add_writers(handed, writers)
            users, prekeys = self._counting(operation, users)
            self._sure.hand(handed, num, users, writers & users, prekeys)

    def _counting(self, operation: Operation, members: int) -> tuple[int, dict[int, int]]:
        """Return those of members whose boxes in an operation count, and the numbers of the prekeys that they go to (E10).

        Costs O(members who have stated prekeys).
        """
        operations, prekeys = self._operations, dict[int, int]()
        for user in operations.numbers.users(members & self._prekey_users):
            stated = operations.newest_prekey(user, lambda one: operations.precedes(one, operation))
            bit = operations.numbers.bit(user)
            if stated is not None and stated.num in self._gone.get(user, ()):
                members &= ~bit
            elif stated is not None:
                prekeys[bit] = stated.num
        return members, prekeys

    def _note_used(self, init: Operation) -> None:
        """Let boxes count no more that are for earlier prekeys than an init knows: their owners may have forgotten these.

        Costs O(prekeys that no other init knows), and for each of their users as `Operations.find_preceding`.
        """
        operations = self._operations
        unused, self._unused = self._unused, []
        used: dict[UserId, list[Operation]] = {}
        for one in unused:
            if operations.precedes(one, init):
                used.setdefault(one.author, []).append(one)
            else:
                self._unused.append(one)
        for author, known in used.items():
            gone = self._gone.setdefault(author, set())
            others = [one for one in operations.prekeys_of(author) if one.num not in gone]
            earlier = {one.num for one in operations.find_preceding(others, known)}
            gone |= earlier
            self._sure.forget(operations.numbers.bit(author), earlier)

    def describe_start(self, plan: EpochPlan, gives: Collection[EpochId]) -> EpochStart:
        """Return what an init states that has boxes as planned, and opens some epochs of its past."""
        numbers, shared = self._operations.numbers, self._operations.shared
        members, writers = (UserSet(numbers, numbers.bits(users)) for users in plan)
        return EpochStart(members, writers, tuple(shared(one) for one in sorted(gives)))

    def _mask(self, epochs: Iterable[EpochId]) -> int:
        mask = 0
        for epoch in epochs:
            mask |= 1 << self._nums[epoch]
        return mask

    def _started(self, num: int) -> Operation:
        return self._operations.epochs[num]

    def find(self, epoch: EpochId) -> Operation | None:
        """Return the operation that starts an epoch, if it is here."""
        num = self._nums.get(epoch)
        return None if num is None else self._started(num)

    # --- opening (E4) ---

    def opens_all(self, epoch: EpochId, heads: tuple[CommitId, ...], given: Iterable[EpochId] = ()) -> bool:
        """Return True if an epoch opens all epochs in the past of these commits, them included.

        `given` are epochs that a new commit opens in it; the epoch may be one that this commit starts. Costs O(1) where that
        past is one of the latest asked about, else O(epochs, and what opens some).
        """
        anchors = self._anchors_of(heads)
        here = self._within_all(anchors)
        opened = 0
        for num in bit_numbers(self._mask(one for one in (epoch, *given) if one in self._nums)):
            opened |= self._open_within(num, anchors, heads)
        return not here & ~opened

    def is_within(self, epoch: EpochId, heads: tuple[CommitId, ...]) -> bool:
        """Return True if an epoch was started in the past of these commits, them included (E5). Costs O(heads)."""
        num = self._nums.get(epoch)
        return num is not None and bool(self._within_all(self._anchors_of(heads)) >> num & 1)

    def started_within(self, before: Resolution) -> list[Operation]:
        """Return what starts the epochs of a set, in the order of addition."""
        anchors = self._anchors_of(before.heads)
        return [self._started(num) for num in bit_numbers(self._within_all(anchors))]

    def opened_within(self, before: Resolution) -> list[tuple[Operation, list[EpochId]]]:
        """Return what starts the epochs of a set, each with the other epochs that it opens there, by id.

        Costs O(pairs of epochs).
        """
        anchors = self._anchors_of(before.heads)
        found: list[tuple[Operation, list[EpochId]]] = []
        for num in bit_numbers(self._within_all(anchors)):
            opened = self._open_within(num, anchors, before.heads) & ~(1 << num)
            others = sorted(self._started(one).started_epoch for one in bit_numbers(opened))
            found.append((self._started(num), others))
        return found

    def _within_all(self, anchors: Iterable[CommitId]) -> int:
        here = 0
        for anchor in anchors:
            here |= self._within[anchor]
        return here

    def _open_within(self, num: int, anchors: Collection[CommitId], heads: tuple[CommitId, ...]) -> int:
        """Compute what an epoch opens within the past of some commits."""
        if len(anchors) > 1:
            return self._walk(num, self._within_all(anchors), heads)
        (anchor,) = anchors
        known = self._opened.get((anchor, num))
        if known is None:
            known = self._opened[anchor, num] = self._walk(num, self._within[anchor], (anchor,))
            if len(self._opened) > _PASTS_REMEMBERED:
                self._opened.popitem(last=False)
        return known

    def _walk(self, num: int, here: int, heads: tuple[CommitId, ...]) -> int:
        found, ahead = 1 << num, [num]
        while ahead:  # a closure: the order of the walk decides nothing
            at = ahead.pop()
            given = self._given[at]
            for one, opened in self._opens[at]:
                if opened & ~(found | given) and self._operations.is_within(one, heads):
                    given |= opened
            fresh = given & here & ~found
            found |= fresh
            ahead += bit_numbers(fresh)
        return found

    def find_unopened(self, given: Iterable[EpochId], heads: tuple[CommitId, ...]) -> set[EpochId]:
        """Return the epochs in the past of some commits that none of the given ones opens there."""
        anchors = self._anchors_of(heads)
        opened = 0
        for num in bit_numbers(self._mask(given)):
            opened |= self._open_within(num, anchors, heads)
        return {self._started(num).started_epoch for num in bit_numbers(self._within_all(anchors) & ~opened)}

    def find_followable(
        self,
        epoch: EpochId,
        heads: tuple[CommitId, ...],
        fits: Callable[[CommitId], bool] = lambda _: True,
    ) -> tuple[CommitId, ...]:
        """Return the latest commits that fit, of some heads and their past, whose past together an epoch opens (E4).

        Together: what opens an epoch may stand beside what was written in it. So all are asked at first, and each that
        has an unopened epoch in its past is left out, until the rest opens all. One of them has the start of the epoch
        in its past (E5); none where none has. Costs O(commits that are left out), and at most one round an epoch.
        """
        num = self._nums.get(epoch)
        latest, before = heads, None
        while num is not None and latest and latest != before:
            anchors = self._anchors_of(latest)
            unopened = self._within_all(anchors) & ~self._open_within(num, anchors, latest)
            latest, before = self._find_latest(latest, unopened, fits), latest
        return latest if latest and self.is_within(epoch, latest) else ()

    def _find_latest(
        self, heads: tuple[CommitId, ...], unopened: int, fits: Callable[[CommitId], bool]
    ) -> tuple[CommitId, ...]:
        """Return the latest commits that fit, of some heads and their past, without `unopened` epochs in their own past."""
        operations, found = self._operations, set[CommitId]()
        ahead, seen = list(heads), set(heads)
        while ahead:
            one = ahead.pop()
            if not self._within_all(self._anchors_of((one,))) & unopened and fits(one):
                found.add(one)
                continue
            fresh = [ack for ack in operations.previous(one) if ack not in seen]
            seen.update(fresh)
            ahead += fresh  # a search: its order decides nothing
        return operations.reduce(found)

    # --- which epoch is written in (E8) ---

    def find_clean(self, before: Resolution) -> list[Operation]:
        """Return the tips that are clean, of the operations that `before` is about.

        Costs O(epochs and who may hold them), and O(1) where it was asked last.
        """
        if self._clean[0] is not before:
            tips = before.epoch_tips()
            last = self._find_last_cut(min((tip.num for tip in tips), default=0), before)
            self._clean = (before, [tip for tip in tips if tip.num > last and self._is_clean(tip, before)])
        return self._clean[1]

    def is_due(self, before: Resolution) -> bool:
        """Return True if a new epoch must be started: none that could be written in is clean."""
        return bool(before.epoch_tips()) and not self.find_clean(before)

    def find_preferred(self, before: Resolution) -> Operation | None:
        """Return the epoch that members write in, or None if a new one must be started."""
        clean = self.find_clean(before)
        return preferred_epoch(clean) if clean else None

    def find_used_up_links(self, now: Resolution, authors: Collection[UserId]) -> list[Operation]:
        """Return these authors' links that renew, have no use left, and are not revoked.

        Nothing rests on it, nor on `is_renewal_due`: no right, no verdict, no order. Costs O(invitations, and joins by
        these links).
        """
        return [
            link
            for link, uses in self._renewing_links(authors)
            if not self._revocations_of(link, now)
            and len({one.author for one in self._operations.joins_by(link.commit_id) if now.counts(one)})
            >= uses
        ]

    def is_renewal_due(self, now: Resolution, authors: Collection[UserId]) -> bool:
        """Return True if the epoch that is written in does not know a revocation of these authors' links that renew.

        Costs O(invitations).
        """
        preferred = self.find_preferred(now)
        return preferred is not None and any(  # else another epoch must be started anyhow
            not self._operations.precedes(end, preferred)
            for link, _ in self._renewing_links(authors)
            for end in self._revocations_of(link, now)
        )

    def _renewing_links(self, authors: Collection[UserId]) -> Iterator[tuple[Operation, int]]:
        for one in self._operations.invitations:
            if one.renews and one.author in authors and isinstance(one.body, Invite):
                yield one, one.body.uses

    def _revocations_of(self, invitation: Operation, now: Resolution) -> list[Operation]:
        return [one for one in self._operations.revocations_of(invitation.commit_id) if now.has_effect(one)]

    def _is_clean(self, tip: Operation, before: Resolution) -> bool:
        if any(self._is_cut(one, before) for one in self._find_unseen(tip)):
            return False
        if self._knows_less(tip, before):
            return False
        if before.is_whole:
            members, writers = before.holders()
            num = self._nums[tip.started_epoch]
            return not self._possible.of(num) & ~members and not self._possible.of_writers(num) & ~writers
        if any(before.permission(user) is None for user in self._who_may_hold(tip, before)):
            return False
        return all(
            (before.permission(user) or 0) >= Permission.WRITE
            for user in self._who_may_hold_writers(tip, before)
        )

    def _knows_less(self, tip: Operation, before: Resolution) -> bool:
        """Return True if another init of a set, whether it counts or not, knows a member's prekey that a tip does not know.

        Costs O(epochs that the tip does not follow, and for each prekeys that the tip does not know).
        """
        operations, num = self._operations, self._nums[tip.started_epoch]
        if not (unknown := self.find_unknown_prekeys(tip)):
            return False
        here = self._within_all(self._anchors_of(before.heads))
        beside = [
            self._started(one) for one in bit_numbers(here & ~operations.epoch_pasts[num] & ~(1 << num))
        ]
        return any(
            operations.precedes(one, other) and before.permission(one.author) is not None
            for other in beside
            for one in unknown
        )

    def find_unknown_prekeys(self, epoch: Operation) -> list[Operation]:
        """Return the statements of prekeys that the past of an epoch's init has not. Costs O(those that are new)."""
        operations = self._operations
        looked_at, found = self._unknown.get(epoch.started_epoch, (0, []))
        fresh = operations.prekeys[looked_at:]
        if fresh:
            found = [*found, *(one for one in fresh if not operations.precedes(one, epoch))]
            self._unknown[epoch.started_epoch] = len(operations.prekeys), found
        return found

    def _find_last_cut(self, since: int, before: Resolution) -> int:
        """Return the number of the last operation since one that each epoch has to have in its past, or -1.

        Leaves are none, and any reader may leave any number of times.
        """
        for one in reversed(self._operations.contestable):
            if one.num < since:
                break
            if self._is_cut(one, before):
                return one.num
        return -1

    def _find_unseen(self, tip: Operation) -> list[Operation]:
        """Return the removals of others and revocations before a tip that are not in its past. They are remembered."""
        removals, operations = self._operations.contestable, self._operations
        known = self._unseen.get(tip.started_epoch)
        if known is None:
            end = bisect_left(removals, tip.num, key=lambda one: one.num)
            known = [one for one in removals[:end] if not operations.precedes(one, tip)]
            self._unseen[tip.started_epoch] = known
        return known

    def _is_cut(self, removal: Operation, before: Resolution) -> bool:
        """Return True if an epoch has to have this in its past: it counts, and somebody is to read no more by it."""
        if not before.acts_of(removal):
            return False
        if isinstance(removal.body, Remove):
            return (removal.body.keeps or 0) < Permission.WRITE
        assert isinstance(removal.body, Revoke), "the other kind of removal"
        operations = self._operations
        return any(
            before.is_within(join)
            and not operations.precedes(join, removal)
            and not operations.precedes(removal, join)
            for join in operations.joins_by(removal.body.invitation)
        )

    def _who_may_hold(self, tip: Operation, before: Resolution) -> set[UserId]:
        """Return who may hold a tip of a set that is not all there is: also by an epoch that opens it."""
        found: set[UserId] = set()
        for num in self._who_opens(self._nums[tip.started_epoch], before):
            epoch = self._started(num)
            found.update(box_holders(epoch))
            found.add(epoch.author)
            for one in self._operations.published_in(epoch.started_epoch):
                if before.is_within(one):
                    found.add(one.publisher or one.author)
                    if isinstance(one.body, _GIVES):
                        found.add(one.body.user)
            found.update(item.user for item in self._handed(epoch, before))
        return found

    def _who_may_hold_writers(self, tip: Operation, before: Resolution) -> set[UserId]:
        """Return who may hold the writers' secret of a tip."""
        found = set(tip.start.writers if tip.start is not None else ())
        found.add(tip.author)
        for one in self._operations.published_in(tip.started_epoch):
            if isinstance(one.body, Join) and self._invites_to_write(one) and before.is_within(one):
                found.add(one.author)
        found.update(item.user for item in self._handed(tip, before) if item.writers_box is not None)
        return found

    def _who_opens(self, num: int, before: Resolution) -> list[int]:
        """Return the epochs of a set that open one of them, itself included."""
        anchors = self._anchors_of(before.heads)
        here = self._within_all(anchors)
        return [
            other for other in bit_numbers(here) if self._open_within(other, anchors, before.heads) >> num & 1
        ]

    def _handed(self, epoch: Operation, before: Resolution) -> Iterator[HandedBox]:
        for one in self._operations.hands_of(epoch.started_epoch):
            if isinstance(one.body, EpochHand) and before.is_within(one):
                yield from one.body.boxes

    def _invites_to_write(self, join: Operation) -> bool:
        assert isinstance(join.body, Join), "called so"
        invitation = self._operations[join.body.invitation].body
        return isinstance(invitation, Invite) and invitation.permission >= Permission.WRITE

    # --- who surely holds (E10) ---

    def surely_holds(self, user: UserId, epoch: EpochId) -> bool:
        """Return True if a user surely holds an epoch, by all that is here. Costs O(1)."""
        return bool(self.sure_holders(epoch) & self._operations.numbers.bit(user))

    def sure_holders(self, epoch: EpochId) -> int:
        """Return the set of who surely holds an epoch, by all that is here (`UserNumbers`). Costs O(1)."""
        return self._sure.of(self._nums[epoch])

    def is_handed(self, hand: Operation, user: UserId) -> bool:
        """Return True if a box of a user in a hand-over counts."""
        return bool(self._counting(hand, self._operations.numbers.bit(user))[0])

    def find_held(self, user: UserId) -> list[Operation]:
        """Return the epochs that a user surely holds, by all that is here: the latest in canonical order first."""
        held = self._sure.held_by(self._operations.numbers.bit(user))
        return sorted(map(self._started, bit_numbers(held)), key=self._operations.place, reverse=True)

    def surely_writes(self, user: UserId, epoch: EpochId) -> bool:
        """Return True if a user surely holds the writers' secret of an epoch, by all that is here."""
        return bool(self.sure_writers(epoch) & self._operations.numbers.bit(user))

    def sure_writers(self, epoch: EpochId) -> int:
        """Return the users who hold the writers' secret of an epoch beyond doubt, judged by all commits here.

        Costs O(epochs in which it was handed over).
        """
        return self._sure.of_writers(self._nums[epoch])

    def _latest(self, before: int) -> int:
        """Return the latest of some epochs."""
        latest = self._operations.in_order(map(self._started, bit_numbers(before)))[-EPOCHS_TOLD_IN_MAX:]
        return self._mask(one.started_epoch for one in latest)


def find_followed(operations: Operations, epoch: Operation) -> list[Operation]:
    """Return what starts the epochs that an epoch follows directly: those of its past that no other of these follows.

    Costs O(epochs).
    """
    found: list[Operation] = []
    for one in reversed(operations.epochs):
        if operations.precedes(one, epoch) and not any(operations.precedes(one, later) for later in found):
            found.append(one)
    return sorted(found, key=lambda one: one.commit_id)


def epoch_reason(operations: Operations, epoch: Operation) -> str:
    """Return the reason why an epoch was started, as people read it.

    It is found in the root commits of its past that are in the past of no epoch before it. Gives `founding`; of the
    latest removals `removal`, `leave` (a member's own) or `revocation`; else `merge` of several epochs, or `renewal`.
    """
    if not isinstance(epoch.body, EpochInit):
        return "founding"
    before = find_followed(operations, epoch)
    end = bisect_left(operations.removals, epoch.num, key=lambda one: one.num)
    found = {
        _kind_of(one)
        for one in operations.removals[max(end - _REMOVALS_LOOKED_AT, 0) : end]
        if not (isinstance(one.body, Remove) and (one.body.keeps or 0) >= Permission.WRITE)
        and operations.precedes(one, epoch)
        and not any(operations.precedes(one, other) for other in before)
    }
    for reason in ("removal", "leave", "revocation"):
        if reason in found:
            return reason
    return "merge" if len(before) > 1 else "renewal"


def _kind_of(removal: Operation) -> str:
    if isinstance(removal.body, Revoke):
        return "revocation"
    return "leave" if removal.is_leave else "removal"
