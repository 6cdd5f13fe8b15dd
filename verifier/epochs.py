"""Epoch rules (E2, E4, E8, E10): what an epoch opens, who may and who surely does hold it, and which is written in.

The definitions and rules stand in membership-rules.md, section E. Each is a function of a set of root branch
commits; `Epochs` answers for any such set (a `Resolution`, or heads), and keeps what is asked of all that is here.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from protocol.formats.body import Grant, Invite, Join, Permission, Remove, RepoInit, Revoke
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, HandedBox
from protocol.ids import CommitId, EpochId, UserId
from protocol.limits.formats import EPOCH_BOX_COUNT_MAX
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution

EPOCHS_TOLD_IN_MAX: Final = 64
"""Latest epochs in which who surely holds none is handed one: a follower who was granted a permission (E10)."""
_REMOVALS_LOOKED_AT: Final = 64
"""Before an epoch, to tell why it was started: an exclusion and its epoch come one after the other."""
_PASTS_REMEMBERED: Final = 1024
"""Pasts of which it is remembered which epochs they have, and what an epoch opens there."""


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """Users for whom an init has boxes (E2), sorted. Of more than a commit can hold, the first."""

    members: tuple[UserId, ...]
    writers: tuple[UserId, ...]


def describe_epoch(before: Resolution) -> EpochPlan:
    """Compute for whom an init has boxes whose past is `before`. Costs O(members)."""
    held = before.members()
    members = sorted(held)[:EPOCH_BOX_COUNT_MAX]
    return EpochPlan(
        tuple(members),
        tuple(user for user in members if held[user] >= Permission.WRITE),
    )


def preferred_epoch(epochs: Iterable[Operation]) -> Operation:
    """Choose among epochs that could be written in (E8): made for the fewest members, then of the smallest id."""
    return min(epochs, key=lambda one: (len(box_holders(one)), one.commit_id))


def box_holders(started: Operation) -> tuple[UserId, ...]:
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
        self._reach: list[int] = []
        """By epoch: all that it opens, by all that is here."""
        self._anchors: dict[CommitId, CommitId] = {}
        """By operation: the last on its chain of single acks, itself included, that starts or opens epochs, or merges."""
        self._within: dict[CommitId, int] = {}
        """By anchor: the epochs that were started in its past, its own included."""
        self._opened: OrderedDict[tuple[CommitId, int], int] = OrderedDict()
        """By anchor and epoch: what the epoch opens within the anchor's past, of those asked for last."""
        self._clean: tuple[Resolution | None, list[Operation]] = (None, [])
        self._unseen_cuts: dict[EpochId, list[Operation]] = {}
        self._published: list[set[UserId]] = []
        """By epoch: who may hold it by what is published in it, or by being handed it."""
        self._joined: list[set[UserId]] = []
        """By epoch: who may hold its writers' secret beside those for whom its init has a box."""
        self._holders = _SureHolders(self)

    def add(self, operation: Operation, acks: tuple[CommitId, ...]) -> None:
        """Take up an operation that was added to `Operations`. Costs O(change), and O(epochs) where it opens some."""
        commit_id, body = operation.commit_id, operation.body
        here = 0
        for anchor in {self._anchors[ack] for ack in acks}:  # a union: the order decides nothing
            here |= self._within[anchor]
        if isinstance(body, RepoInit | EpochInit):
            given = self._mask(operation.start.gives) if operation.start is not None else 0
            num = self._nums[operation.started_epoch] = len(self._given)
            self._given.append(given)
            self._opens.append([])
            self._reach.append(self._close(given) | 1 << num)
            self._published.append({operation.author})
            self._joined.append({operation.author})
            here |= 1 << num
        elif isinstance(body, EpochOpen):
            self._open(self._nums[operation.epoch], operation, self._mask(one.epoch for one in body.epochs))
        if len(acks) == 1 and not isinstance(body, EpochInit | EpochOpen):
            self._anchors[commit_id] = self._anchors[acks[0]]
        else:
            self._anchors[commit_id], self._within[commit_id] = commit_id, here
        self._note_holders(operation)
        self._holders.add(operation)

    def _open(self, num: int, operation: Operation, given: int) -> None:
        self._opens[num].append((operation, given))
        fresh = self._close(given)
        for other, reached in enumerate(self._reach):
            if reached >> num & 1:
                self._reach[other] = reached | fresh

    def _close(self, given: int) -> int:
        for num in _bits(given):
            given |= self._reach[num]
        return given

    def _note_holders(self, operation: Operation) -> None:
        body, num = operation.body, self._nums.get(operation.epoch)
        if num is not None:  # else it is the init of the repo
            self._published[num].add(operation.author)
            if isinstance(body, Grant):
                self._published[num].add(body.user)
            elif isinstance(body, Join) and self._invites_to_write(operation):
                self._joined[num].add(operation.author)
        if isinstance(body, EpochHand):
            handed = self._nums[body.epoch]
            self._published[handed].update(item.user for item in body.boxes)
            self._joined[handed].update(item.user for item in body.boxes if item.writers_box is not None)

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
        anchors = {self._anchors[head] for head in heads}
        here = self._within_all(anchors)
        opened = 0
        for num in _bits(self._mask(one for one in (epoch, *given) if one in self._nums)):
            opened |= self._open_within(num, anchors, heads)
        return not here & ~opened

    def is_within(self, epoch: EpochId, heads: tuple[CommitId, ...]) -> bool:
        """Return True if an epoch was started in the past of these commits, them included (E5). Costs O(heads)."""
        num = self._nums.get(epoch)
        return num is not None and bool(self._within_all({self._anchors[head] for head in heads}) >> num & 1)

    def started_within(self, before: Resolution) -> list[Operation]:
        """Return what starts the epochs of a set, in the order of addition."""
        anchors = {self._anchors[head] for head in before.heads}
        return [self._started(num) for num in _bits(self._within_all(anchors))]

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
            ahead += _bits(fresh)
        return found

    def find_unopened(self, given: Iterable[EpochId], heads: tuple[CommitId, ...]) -> set[EpochId]:
        """Return the epochs in the past of some commits that none of the given ones opens there."""
        anchors = {self._anchors[head] for head in heads}
        opened = 0
        for num in _bits(self._mask(given)):
            opened |= self._open_within(num, anchors, heads)
        return {self._started(num).started_epoch for num in _bits(self._within_all(anchors) & ~opened)}

    def find_followable(
        self,
        epoch: EpochId,
        heads: tuple[CommitId, ...],
        fits: Callable[[CommitId], bool] = lambda _: True,
    ) -> tuple[CommitId, ...]:
        """Return the latest commits that fit, of some heads and their past, whose whole past an epoch opens (E4).

        Not each of their pasts has the start of the epoch, but one has, for a commit names them together (E5). None where
        none has. Costs O(commits that are left out).
        """
        operations, found = self._operations, set[CommitId]()
        ahead, seen = list(heads), set(heads)
        while ahead:
            one = ahead.pop()
            if self.opens_all(epoch, (one,)) and fits(one):
                found.add(one)
                continue
            fresh = [ack for ack in operations.previous(one) if ack not in seen]
            seen.update(fresh)
            ahead += fresh  # a search: its order decides nothing
        latest = operations.reduce(found)
        return latest if latest and self.is_within(epoch, latest) else ()

    # --- which epoch is written in (E8) ---

    def find_clean(self, before: Resolution) -> list[Operation]:
        """Return the tips that are clean, of the operations that `before` is about.

        Costs O(epochs and who may hold them), and O(1) where it was asked last.
        """
        if self._clean[0] is not before:
            self._clean = (before, [tip for tip in before.epoch_tips() if self._is_clean(tip, before)])
        return self._clean[1]

    def is_due(self, before: Resolution) -> bool:
        """Return True if a new epoch must be started: none that could be written in is clean."""
        return bool(before.epoch_tips()) and not self.find_clean(before)

    def find_preferred(self, before: Resolution) -> Operation | None:
        """Return the epoch that members write in, or None if a new one must be started."""
        clean = self.find_clean(before)
        return preferred_epoch(clean) if clean else None

    def is_renewal_due(self, now: Resolution, author: UserId) -> bool:
        """Return True if a link of this author that renews ended, and the epoch that is written in does not know of it.

        Nothing rests on it: no right, no verdict, no order. Costs O(commits by the author, and joins by its links).
        """
        operations, preferred = self._operations, self.find_preferred(now)
        if preferred is None:
            return False  # another epoch must be started anyhow
        return any(
            not operations.precedes(end, preferred)
            for one in operations.authored_by(author)
            if isinstance(one.body, Invite) and one.renews
            for end in self._ends_of(one, one.body.uses, now)
        )

    def _ends_of(self, invitation: Operation, uses: int, now: Resolution) -> list[Operation]:
        """Return what ended a link: revocations that count, and where no use is left, the joins."""
        operations = self._operations
        ends = [one for one in operations.revocations_of(invitation.commit_id) if now.has_effect(one)]
        joins = [one for one in operations.joins_by(invitation.commit_id) if now.counts(one)]
        return ends + (joins if len({join.author for join in joins}) >= uses else [])

    def _is_clean(self, tip: Operation, before: Resolution) -> bool:
        if any(self._is_cut(one, before) for one in self._find_unseen_cuts(tip)):
            return False
        if any(before.permission(user) is None for user in self._who_may_hold(tip, before)):
            return False
        return all(
            (before.permission(user) or 0) >= Permission.WRITE
            for user in self._who_may_hold_writers(tip, before)
        )

    def _find_unseen_cuts(self, tip: Operation) -> Iterator[Operation]:
        """Yield removals and revocations that are not in the past of a tip. Earlier ones are remembered."""
        removals, operations = self._operations.removals, self._operations
        end = bisect_left(removals, tip.num, key=lambda one: one.num)
        known = self._unseen_cuts.get(tip.started_epoch)
        if known is None:
            known = [one for one in removals[:end] if not operations.precedes(one, tip)]
            self._unseen_cuts[tip.started_epoch] = known
        yield from known
        yield from removals[end:]

    def _is_cut(self, removal: Operation, before: Resolution) -> bool:
        """Return True if an epoch has to have this in its past: it counts, and somebody is to read no more by it."""
        if removal.commit_id not in before.counting:
            return False
        if isinstance(removal.body, Remove):
            return removal.body.user != removal.author and (removal.body.keeps or 0) < Permission.WRITE
        assert isinstance(removal.body, Revoke), "the other kind of removal"
        operations = self._operations
        return any(
            before.is_within(join)
            and not operations.precedes(join, removal)
            and not operations.precedes(removal, join)
            for join in operations.joins_by(removal.body.invitation)
        )

    def _who_may_hold(self, tip: Operation, before: Resolution) -> set[UserId]:
        """Return who may hold a tip: also by an epoch that opens it."""
        found: set[UserId] = set()
        for num in self._who_opens(self._nums[tip.started_epoch], before):
            epoch = self._started(num)
            found.update(box_holders(epoch))
            if before.is_whole:
                found |= self._published[num]
                continue
            found.add(epoch.author)
            for one in self._operations.published_in(epoch.started_epoch):
                if before.is_within(one):
                    found.add(one.author)
                    if isinstance(one.body, Grant):
                        found.add(one.body.user)
            found.update(item.user for item in self._handed(epoch, before))
        return found

    def _who_may_hold_writers(self, tip: Operation, before: Resolution) -> set[UserId]:
        """Return who may hold the writers' secret of a tip."""
        found = set(tip.start.writers if tip.start is not None else ())
        if before.is_whole:
            return found | self._joined[self._nums[tip.started_epoch]]
        found.add(tip.author)
        for one in self._operations.published_in(tip.started_epoch):
            if isinstance(one.body, Join) and self._invites_to_write(one) and before.is_within(one):
                found.add(one.author)
        found.update(item.user for item in self._handed(tip, before) if item.writers_box is not None)
        return found

    def _who_opens(self, num: int, before: Resolution) -> list[int]:
        """Return the epochs of a set that open one of them, itself included."""
        if before.is_whole:
            return [other for other, reached in enumerate(self._reach) if reached >> num & 1]
        anchors = {self._anchors[head] for head in before.heads}
        here = self._within_all(anchors)
        return [other for other in _bits(here) if self._open_within(other, anchors, before.heads) >> num & 1]

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
        """Return True if a user surely holds an epoch, by all that is here."""
        return bool(self._holders.held_by(user) >> self._nums[epoch] & 1)

    def find_held(self, user: UserId) -> list[Operation]:
        """Return the epochs that a user surely holds, by all that is here: the latest in canonical order first."""
        held = (self._started(num) for num in _bits(self._holders.held_by(user)))
        return sorted(held, key=self._operations.place, reverse=True)

    def surely_writes(self, user: UserId, epoch: EpochId) -> bool:
        """Return True if a user surely holds the writers' secret of an epoch, by all that is here.

        Costs O(commits by the user, and commits that hand the epoch over).
        """
        started = self._started(self._nums[epoch])
        start = started.start
        if user == started.author:
            return True
        if start is not None and user in start.writers and self.surely_holds(user, started.epoch):
            return True
        for one in self._operations.hands_of(epoch):
            assert isinstance(one.body, EpochHand), "as it is listed"
            given = [item for item in one.body.boxes if item.user == user and item.writers_box is not None]
            if given and self.surely_holds(user, one.epoch):
                return True
        return any(one.epoch == epoch and one.by_writer for one in self._operations.authored_by(user))

    def latest_before(self, init: Operation) -> int:
        """Return the latest epochs that were started in the past of an init, by numbers."""
        before = self._within[init.commit_id] & ~(1 << self._nums[init.started_epoch])
        latest = self._operations.in_order(map(self._started, _bits(before)))[-EPOCHS_TOLD_IN_MAX:]
        return self._mask(one.started_epoch for one in latest)

    def reach(self, num: int) -> int:
        """Return what an epoch opens, by all that is here, by numbers."""
        return self._reach[num]

    def number(self, epoch: EpochId) -> int:
        """Return the number of an epoch that is here."""
        return self._nums[epoch]


class _SureHolders:
    """Epochs that each user surely holds, by all that is here. Once held, an epoch stays so."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs
        self._tops: dict[UserId, list[int]] = {}
        """By user: epochs that open all that it holds. Few, since an epoch opens those before it."""
        self._unread: dict[UserId, set[tuple[int, int]]] = {}
        """By user: in an epoch that it does not hold, a box of another."""
        self._told: dict[tuple[UserId, int], int] = {}
        """By user and epoch: the epochs in which it was handed that one."""
        self._latest: dict[int, int] = {}
        """By epoch: the latest of its init's past. Who was handed it in all of these can read one of them."""

    def held_by(self, user: UserId) -> int:
        """Return the epochs that a user holds."""
        held = 0
        for top in self._tops.get(user, ()):
            held |= self._epochs.reach(top)
        return held

    def add(self, operation: Operation) -> None:
        """Take up an operation."""
        body, number = operation.body, self._epochs.number
        if isinstance(body, RepoInit):
            self._gain(operation.author, number(operation.started_epoch))
            return
        published_in = number(operation.epoch)
        self._gain(operation.author, published_in)
        if isinstance(body, EpochInit):
            self._gain(operation.author, number(operation.started_epoch))
            self._latest[number(operation.started_epoch)] = self._epochs.latest_before(operation)
            self._seal(box_holders(operation), number(operation.started_epoch), published_in)
        elif isinstance(body, EpochHand):
            users, handed = [item.user for item in body.boxes], number(body.epoch)
            self._seal(users, handed, published_in)
            self._tell(users, handed, published_in)
        elif isinstance(body, EpochOpen):
            for user in sorted(self._unread):
                self._read(user)

    def _seal(self, users: Iterable[UserId], epoch: int, published_in: int) -> None:
        for user in users:
            if self.held_by(user) >> published_in & 1:
                self._gain(user, epoch)
            else:
                self._unread.setdefault(user, set()).add((published_in, epoch))

    def _tell(self, users: Iterable[UserId], epoch: int, published_in: int) -> None:
        for user in users:
            told = self._told[user, epoch] = self._told.get((user, epoch), 0) | 1 << published_in
            latest = self._latest.get(epoch, 0)
            if latest and not latest & ~told:
                self._gain(user, epoch)

    def _gain(self, user: UserId, epoch: int) -> None:
        if self._hold(user, epoch):
            self._read(user)

    def _hold(self, user: UserId, epoch: int) -> bool:
        """Note that a user holds an epoch; return True if that is new."""
        if self.held_by(user) >> epoch & 1:
            return False
        opened = self._epochs.reach(epoch)
        kept = [top for top in self._tops.get(user, ()) if not opened >> top & 1]
        self._tops[user] = [*kept, epoch]
        return True

    def _read(self, user: UserId) -> None:
        """Look again at the boxes that the user could not read."""
        unread = self._unread.get(user, set())
        while found := [
            box for box in unread if self.held_by(user) >> box[0] & 1
        ]:  # a closure: no order decides
            unread.difference_update(found)
            for _, epoch in found:
                self._hold(user, epoch)
        if not unread:
            self._unread.pop(user, None)


def _bits(mask: int) -> list[int]:
    """Return the numbers of the bits that are set, in order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


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
    """Tell people why an epoch was started, by what stands in its past and in that of no epoch that it follows.

    Gives `founding`; of the latest removals `removal`, `leave` (a member's own) or `revocation`; else `merge` of several
    epochs, or `renewal`.
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
    if not isinstance(removal.body, Remove):
        return "revocation"
    return "leave" if removal.body.user == removal.author else "removal"
