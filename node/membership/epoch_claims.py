"""`Claims`: keys that are said to be an epoch's, tried within bounds, and in turns where the bounds are reached (E7).

Anyone who holds an epoch can sign on its topic with an author made up for that, and claim what he likes. So claims of who is
no member take turns: a false one delays the right one, and never keeps it out. Members wait behind no others.
"""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import Any, Final

from protocol.crypto.keys import EpochKey
from protocol.formats.commit import Commit
from protocol.ids import CommitId, EpochId, Mark, TopicKey, UserId
from protocol.limits.peers import (
    CLAIM_TURN_SECONDS,
    CLAIMS_LOOKED_AT,
    EPOCHS_AWAITED_MAX,
    EPOCHS_CLAIMED_BY_MEMBER_MAX,
    EPOCHS_CLAIMED_BY_OTHERS_MAX,
    PENDING_COUNT_MAX,
    REJECTION_COUNT_MAX,
)
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo

REMEMBERED_MAX: Final = 5 * PENDING_COUNT_MAX + REJECTION_COUNT_MAX
"""Commits of one repo of which something is remembered, of each kind: as many as wait on five topics, and rejected ones that
are kept. 130 bytes each, 8 MB at most; the store has 500 bytes or more of each. Beyond it the first are looked at again:
0.2 ms each, whenever keys are taken."""


class ClaimKind(IntEnum):
    """Kinds of commits that give keys, in the order in which they are looked at."""

    MEMBERS = 1
    WRITERS = 2
    """By who is no member, on a writers' topic: there not everybody can make authors up."""
    OTHERS = 3


@dataclass(slots=True)
class ClaimMemory:
    """Memory of a repo's claims from one look to the next. After a restart all commits are looked at again."""

    looked_at: dict[CommitId, None] = field(default_factory=dict)
    """Commits that were not accepted, and say nothing new any more; who was looked at last is last."""
    closed: dict[CommitId, TopicKey] = field(default_factory=dict)
    """Rejected commits among these, by topics that were not followed then."""
    opened: dict[CommitId, None] = field(default_factory=dict)
    """Accepted commits of which this user's box for writers was opened."""
    marks: dict[EpochId, Mark] = field(default_factory=dict)
    """Marks as inits state them that wait, or have waited."""
    right: set[EpochId] = field(default_factory=set)
    """Epochs of which a key was here that is no claim."""
    began: dict[tuple[EpochId, EpochKey], float] = field(default_factory=dict)
    """Since when a key is tried, in seconds of a clock that only goes forward."""
    givers: dict[tuple[EpochId, EpochKey], tuple[CommitId, ClaimKind]] = field(default_factory=dict)
    """Commit that gave each key, and its kind."""
    left_out: dict[CommitId, ClaimKind] = field(default_factory=dict)
    """Commits that had more than there was room for, with their kinds; who had a turn last is last. Who finds no room keeps
    the place: else those looked at first, always the same, would have each turn that ends."""
    left_at: int = 0
    """How many claims there were then."""

    def forget_all_but(self, names: Collection[tuple[EpochId, EpochKey]]) -> None:
        """Forget what is no claim any more."""
        self.began = {name: began for name, began in self.began.items() if name in names}
        self.givers = {name: giver for name, giver in self.givers.items() if name in names}

    def forget_surplus(self) -> None:
        """Forget the oldest looks of each kind beyond REMEMBERED_MAX, and the last of those that were left out."""
        kinds: tuple[dict[Any, Any], ...] = self.looked_at, self.closed, self.opened, self.marks
        for kept in kinds:
            for one in list(islice(kept, max(len(kept) - REMEMBERED_MAX, 0))):
                del kept[one]
        while len(self.left_out) > REMEMBERED_MAX:
            self.looked_at.pop(self.left_out.popitem()[0], None)

    def note_right(self, epochs: set[EpochId]) -> None:
        """Note of which epochs a key is here that is no claim: a link may have brought it. Their inits may say more now."""
        for epoch_id in epochs - self.right:
            self.looked_at.pop(CommitId(epoch_id), None)
        self.right = epochs

    def forget_looks(self) -> None:
        """Look at all commits again."""
        self.looked_at.clear()
        self.closed.clear()
        self.opened.clear()

    def is_spent(self, commit_id: CommitId) -> bool:
        """Return True if a commit gives nothing more, as far as it could be read."""
        return commit_id in self.looked_at and commit_id not in self.left_out and commit_id not in self.closed

    def find_left_out(self) -> list[CommitId]:
        """Return the first commits of each kind, which are to be looked at again."""
        return [
            commit_id
            for kind in ClaimKind
            for commit_id in [one for one, its in self.left_out.items() if its is kind][:CLAIMS_LOOKED_AT]
        ]


@dataclass(slots=True)
class Claims:
    """Epochs and people of a repo as far as they are known while commits that give keys are looked at."""

    repo: Repo
    accepted: set[EpochId]
    marks: dict[EpochId, Mark]
    """Of epochs whose inits were accepted, or have come here."""
    members: list[UserId]
    """Sorted."""
    turns: ClaimMemory
    now: float
    epochs: dict[EpochId, list[Epoch]] = field(default_factory=dict)
    """Keys that are here, and those that are taken up now."""
    _open: list[Epoch] = field(default_factory=list)
    """Of these, what is said to be the key of an epoch whose init was not accepted."""
    gone: list[Epoch] = field(default_factory=list)
    """Those that leave."""
    is_full: bool = False
    """True if a key of the commit that is looked at was left out."""
    has_had_turn: bool = False
    """True if it took the place of another."""
    awaits_turn: bool = False
    """True if no turn was over in which it could take the place of another."""

    def add(self, epoch: Epoch) -> None:
        """Know one more key."""
        self.epochs.setdefault(epoch.epoch_id, []).append(epoch)
        if epoch.claimed_by is not None and epoch.epoch_id not in self.accepted:
            self._open.append(epoch)
            self.turns.began.setdefault((epoch.epoch_id, epoch.key), self.now)

    def begin_look(self) -> None:
        """Begin with another commit."""
        self.is_full = self.has_had_turn = self.awaits_turn = False

    def end_look(self, commit_id: CommitId, kind: ClaimKind) -> None:
        """Note whether a commit has more than there was room for. One that had a turn is looked at again after the rest."""
        if self.has_had_turn or not self.awaits_turn:
            self.turns.left_out.pop(commit_id, None)
        if self.is_full:
            self.turns.left_out.setdefault(commit_id, kind)
        if not (self.has_had_turn and self.is_full):
            self.turns.looked_at[commit_id] = None

    def find(self, epoch_id: EpochId, mark: Mark) -> Epoch | None:
        """Return the epoch with the key that gives its mark."""
        fitting = [one for one in self.epochs.get(epoch_id, ()) if one.keys.mark == mark]
        return min(fitting, key=lambda one: one.claimed_by is not None, default=None)

    def lacks_giver(self, epoch: Epoch) -> bool:
        """Return True if a key is tried and a restart has forgotten who gave it: then it would have one turn more."""
        name = (epoch.epoch_id, epoch.key)
        return name in self.turns.began and name not in self.turns.givers

    def count(self) -> int:
        """Count the keys that are tried though their epochs' inits are not here."""
        return len(self._claimed(is_seen=False))

    def drop_false(self) -> None:
        """Have those leave that do not give the marks of their epochs."""
        for epoch in [one for same in self.epochs.values() for one in same]:
            mark = self.marks.get(epoch.epoch_id)
            if epoch.claimed_by is not None and mark is not None and epoch.keys.mark != mark:
                self._leave(epoch)

    def kind_of(self, commit: Commit) -> ClaimKind:
        """Return the kind of a commit that gives keys."""
        if self.is_member(commit.content.author):
            return ClaimKind.MEMBERS
        return ClaimKind.WRITERS if commit.content.by_writer else ClaimKind.OTHERS

    def make_room(self, by: Commit, *, is_seen: bool) -> bool:
        """Make room for another key of a commit; return False if there is none. `is_seen` is True if the init of its
        epoch is here.

        A claim by a user who is no member takes the place of the oldest such claim whose turn is over.
        """
        author, on_writers = by.content.author, by.content.by_writer
        if self.is_member(author):
            own = [one for one in self._claimed(is_seen=is_seen) if one.claimed_by == author]
            return len(own) < (EPOCHS_AWAITED_MAX if is_seen else EPOCHS_CLAIMED_BY_MEMBER_MAX)
        if self.has_had_turn:
            return False  # the others come first
        bound = EPOCHS_AWAITED_MAX if is_seen else EPOCHS_CLAIMED_BY_OTHERS_MAX
        others = self._of_others(is_seen=is_seen)
        if len(others) < bound:
            return True
        kinds: dict[bool, list[Epoch]] = {True: [], False: []}
        for one in others:
            kinds[self._is_on_writers(one)].append(one)
        has_share = len(kinds[on_writers]) >= bound // 2
        over = [one for one in kinds[on_writers if has_share else not on_writers] if self._is_over(one)]
        if not over:
            self.awaits_turn = True
            return False
        self._leave(min(over, key=lambda one: (self.turns.began[one.epoch_id, one.key], one.num)))
        self.has_had_turn = True
        return True

    def wait(self) -> float | None:
        """Seconds until there may be room for claims that were left out, if nothing else changes."""
        began = min(
            (self.turns.began[one.epoch_id, one.key] for one in self._all_of_others()), default=self.now
        )
        left = began + CLAIM_TURN_SECONDS - self.now
        return (left if left > 0 else CLAIM_TURN_SECONDS) if self.turns.left_out else None

    def is_time_to_look_again(self) -> bool:
        """Return True if there may be room now for claims that were left out."""
        if not self.turns.left_out:
            return False
        return self.count() < self.turns.left_at or any(map(self._is_over, self._all_of_others()))

    def _claimed(self, *, is_seen: bool) -> list[Epoch]:
        return [one for one in self._open if (one.epoch_id in self.marks) == is_seen]

    def _of_others(self, *, is_seen: bool) -> list[Epoch]:
        claimed = self._claimed(is_seen=is_seen)
        return [one for one in claimed if one.claimed_by is not None and not self.is_member(one.claimed_by)]

    def _all_of_others(self) -> list[Epoch]:
        return [*self._of_others(is_seen=False), *self._of_others(is_seen=True)]

    def _is_on_writers(self, epoch: Epoch) -> bool:
        _, kind = self.turns.givers.get((epoch.epoch_id, epoch.key), (None, ClaimKind.OTHERS))
        return kind is ClaimKind.WRITERS

    def _is_over(self, epoch: Epoch) -> bool:
        return self.turns.began[epoch.epoch_id, epoch.key] + CLAIM_TURN_SECONDS <= self.now

    def _leave(self, epoch: Epoch) -> None:
        name = (epoch.epoch_id, epoch.key)
        self.epochs[epoch.epoch_id].remove(epoch)
        self._open = [one for one in self._open if one is not epoch]
        self.gone.append(epoch)
        self.turns.began.pop(name, None)
        giver = self.turns.givers.pop(name, None)
        if giver is not None:  # it has another turn when the others had theirs
            self.turns.left_out[giver[0]] = giver[1]

    def is_member(self, user: UserId) -> bool:
        """Return True if a user is a member, as far as is known here."""
        place = bisect_left(self.members, user)
        return place < len(self.members) and self.members[place] == user
