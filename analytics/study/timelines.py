"""Three in-memory timelines that emit edits: causal, waiting room, eager. All end in order (rank, commit id).

- `CausalTimeline`: a commit enters once all its causes are here. One insert each, nothing moves.
- `WaitingRoomTimeline`: what lacks causes is shown at once, behind all the rest, in the order of its arrival, and moves
  once, to its place. At most two edits each.
- `EagerTimeline`: a commit is shown at once where what is known of its causes puts it, and moves as more becomes known:
  what ScuttleSort (Tschudin, 2022) does, with the fewest edits that there can be.

What each promises meanwhile stands in docs/research/studies.md. All take commits in any order, singly or in batches, any
bytes as ids, and what was delivered before without effect. A void commit (`void`) leaves by a remove, and keeps its rank.

They know nothing of checkpoints: the canonical order of a branch begins with how many of these a commit has passed. So
they give the order of a branch that has none, or of what is between two. The order of a branch that a node stores is an
index in its database, and needs none of this.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from operator import attrgetter

from analytics.reading.limits import TIMELINE_PENDING_COUNT_MAX
from analytics.study.causes import Causes, Entry, Refusal
from analytics.study.net_moves import net_moves
from analytics.study.ranked_order import RankedOrder

Delivery = tuple[bytes, Iterable[bytes]]
"""A commit id and the ids that the commit acks."""


@dataclass(frozen=True, slots=True)
class InsertEdit:
    """Put the commit in, so that it stands at `position`."""

    commit_id: bytes
    position: int


@dataclass(frozen=True, slots=True)
class MoveEdit:
    """Take the commit out at `old`, then put it in so that it stands at `new`."""

    commit_id: bytes
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class RemoveEdit:
    """Take the commit out at `position`."""

    commit_id: bytes
    position: int


Edit = InsertEdit | MoveEdit | RemoveEdit


@dataclass(frozen=True, slots=True)
class TimelineChange:
    """Effects of deliveries: edits, each for the list that the one before leaves, and refusals."""

    edits: tuple[Edit, ...]
    refused: tuple[tuple[bytes, Refusal], ...] = ()


class _Timeline(ABC):
    """Base of the three timelines. At most `pending_max` commits wait; what comes beyond is refused, and may come again."""

    def __init__(self, *, pending_max: int = TIMELINE_PENDING_COUNT_MAX) -> None:
        self._causes = Causes(pending_max)
        self._order = RankedOrder()
        self._void: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[bytes]:
        """Return the ids that are shown, in order."""
        return map(attrgetter("commit_id"), self._order)

    def __contains__(self, commit_id: object) -> bool:
        """Return True if the commit was taken, shown or not."""
        return commit_id in self._causes

    @property
    def pending_count(self) -> int:
        """Count of commits that lack a cause, directly or through others."""
        return self._causes.pending_count

    def missing(self) -> list[bytes]:
        """Return what is acked and not here, sorted: what to ask others for."""
        return self._causes.missing()

    def position(self, commit_id: bytes) -> int | None:
        """Return where the commit stands; None where it is not shown. KeyError where it was not taken."""
        entry = self._causes[commit_id]
        return self._order.position(entry) if entry.is_placed else None

    def add(self, commit_id: bytes, acks: Iterable[bytes]) -> TimelineChange:
        """Take one commit."""
        return self.add_many([(commit_id, acks)])

    def add_many(self, deliveries: Iterable[Delivery]) -> TimelineChange:
        """Take some commits together: the edits lead from the list before all of them to the one after."""
        came: list[Entry] = []
        completed: list[Entry] = []
        refused: list[tuple[bytes, Refusal]] = []
        for commit_id, acks in deliveries:
            if commit_id in self._causes:
                continue
            entry = self._causes.add(commit_id, acks)
            if isinstance(entry, Refusal):
                refused.append((commit_id, entry))
                continue
            came.append(entry)
            self._came(entry)
            completed += self._causes.complete(entry)
        return TimelineChange(tuple(self._edits(came, completed)), tuple(refused))

    def void(self, commit_ids: Iterable[bytes]) -> TimelineChange:
        """Show these no more, whether they are here yet or not."""
        edits: list[Edit] = []
        for commit_id in commit_ids:
            self._void.add(commit_id)
            if commit_id in self._causes:
                edits += self._hide(self._causes[commit_id])
        return TimelineChange(tuple(edits))

    def restore(self, commit_ids: Iterable[bytes]) -> TimelineChange:
        """Show these again that were void."""
        edits: list[Edit] = []
        for commit_id in commit_ids:
            if commit_id in self._void:
                self._void.remove(commit_id)
                if commit_id in self._causes:
                    entry = self._causes[commit_id]
                    edits += self._edits([entry], [] if entry.lacking else [entry])
        return TimelineChange(tuple(edits))

    def _came(self, _entry: Entry) -> None:
        """Take up a new commit. Its effects may have ranks that are too low, which matters only where they are shown."""
        return

    @abstractmethod
    def _edits(self, came: Sequence[Entry], completed: Sequence[Entry]) -> list[Edit]:
        """Show what came, and what has all its causes now."""

    def _hide(self, entry: Entry) -> list[Edit]:
        return [RemoveEdit(entry.commit_id, self._order.remove(entry))] if entry.is_placed else []

    def _shown(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        if not self._void:
            return entries
        return (entry for entry in entries if entry.commit_id not in self._void)


class CausalTimeline(_Timeline):
    """Shows a commit once all its causes are here."""

    def _edits(self, _came: Sequence[Entry], completed: Sequence[Entry]) -> list[Edit]:
        return [InsertEdit(entry.commit_id, self._order.insert(entry)) for entry in self._shown(completed)]


class WaitingRoomTimeline(_Timeline):
    """Shows a commit at once: at its place when all its causes are here, and behind all these until then."""

    def __init__(self, *, pending_max: int = TIMELINE_PENDING_COUNT_MAX) -> None:
        super().__init__(pending_max=pending_max)
        # Numbers in the order of arrival, increasing, and who has them; 0 stands for none.
        self._numbers: list[int] = []
        self._numbered: dict[int, Entry] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._order) + len(self._numbers)

    def __iter__(self) -> Iterator[bytes]:
        room = (self._numbered[number].commit_id for number in self._numbers)
        return chain(super().__iter__(), room)

    def position(self, commit_id: bytes) -> int | None:
        """Return where the commit stands; None where it is not shown. KeyError where it was not taken."""
        entry = self._causes[commit_id]
        if not entry.number:
            return super().position(commit_id)
        return len(self._order) + bisect_left(self._numbers, entry.number)

    def _edits(self, came: Sequence[Entry], completed: Sequence[Entry]) -> list[Edit]:
        edits: list[Edit] = []
        for entry in self._shown(completed):
            if entry.number:
                left = self._leave(entry)
                edits.append(MoveEdit(entry.commit_id, left, self._order.insert(entry)))
            else:
                edits.append(InsertEdit(entry.commit_id, self._order.insert(entry)))
        for entry in self._shown(came):
            if entry.lacking:
                edits.append(InsertEdit(entry.commit_id, len(self)))
                self._number += 1
                entry.number = self._number
                self._numbers.append(entry.number)
                self._numbered[entry.number] = entry
        return edits

    def _leave(self, entry: Entry) -> int:
        at = bisect_left(self._numbers, entry.number)
        del self._numbers[at], self._numbered[entry.number]
        entry.number = 0
        return len(self._order) + at

    def _hide(self, entry: Entry) -> list[Edit]:
        return [RemoveEdit(entry.commit_id, self._leave(entry))] if entry.number else super()._hide(entry)


class EagerTimeline(_Timeline):
    """Shows a commit at once by its provisional rank, the longest path that is known, and moves it as that grows.

    The edits of a delivery are the fewest that there can be: an insert for each commit that came, and a move for each
    item outside a longest run that keeps its order. Moves come first.
    """

    def __init__(self, *, pending_max: int = TIMELINE_PENDING_COUNT_MAX) -> None:
        super().__init__(pending_max=pending_max)
        self._before: dict[int, list[Entry]] = {}  # what stood at the ranks that changed in this delivery
        self._unplaced = set[Entry]()  # what came in this delivery, and what is void and waits

    def _came(self, entry: Entry) -> None:
        if entry.effects:
            self._rise(entry)
        self._unplaced.add(entry)

    def _rise(self, entry: Entry) -> None:
        """Raise what follows from an entry, each once: lower ranks first, so that their causes are final.

        Where a whole rank rises by as much, and nothing above it by more, all that is above does as it does, and is
        shifted as it stands: most of what rises.
        """
        leaving: dict[int, list[Entry]] = {}
        arriving: defaultdict[int, list[Entry]] = defaultdict(list)
        ranks: list[int] = []
        rising = [entry]
        while True:
            for cause in rising:
                above = cause.rank
                if cause.is_placed:  # not so the first, and what is void
                    arriving[above].append(cause)
                cause.level = above
                above += 1
                for effect in cause.effects:
                    rank = effect.rank
                    if rank < above:
                        if effect.level == rank:  # for the first time
                            if rank in leaving:
                                leaving[rank].append(effect)
                            else:
                                leaving[rank] = [effect]
                                heappush(ranks, rank)
                        effect.rank = above
            if not ranks:
                break
            lowest = heappop(ranks)
            rising = leaving[lowest]
            if shift := self._common_rise(lowest, ranks, leaving):
                for rank in (lowest, *ranks):
                    del leaving[rank]
                self._order.shift(lowest, shift)
                break
        self._order.rerank(leaving, arriving, self._before)

    def _common_rise(self, rank: int, higher: Sequence[int], leaving: Mapping[int, Sequence[Entry]]) -> int:
        """Return by how much all entries at this rank and above rise; 0 if not all rise by as much.

        What waits has its rank from a cause at the rank below, which waits too if that is above all that waits no longer.
        So it rises by no less than a whole rank below it does, and by no more than the most that any cause of it does.
        """
        rising = leaving[rank]
        shift = rising[0].rank - rank
        is_common = (
            len(rising) == self._order.count(rank)
            and rank > self._causes.rank_max
            and all(entry.rank == rank + shift for entry in rising)
            and not self._before  # which speaks of ranks as they are
            and all(entry.rank <= other + shift for other in higher for entry in leaving[other])
            and all(entry.level < rank for entry in self._unplaced)
        )
        return shift if is_common else 0

    def _edits(self, came: Sequence[Entry], _completed: Sequence[Entry]) -> list[Edit]:
        edits: list[Edit] = []
        if self._before:
            low, high = min(self._before), max(self._before)
            levels = self._order.window(low, high)
            before = [self._before.get(low + number, level) for number, level in enumerate(levels)]
            self._before = {}
            start = self._order.start(low)
            moves = net_moves(list(chain.from_iterable(before)), list(chain.from_iterable(levels)))
            edits += [MoveEdit(entry.commit_id, start + old, start + new) for entry, old, new in moves]
        shown = sorted(self._shown(came), key=attrgetter("rank", "commit_id"))
        edits += [InsertEdit(entry.commit_id, self._order.insert(entry)) for entry in shown]
        if self._void:
            self._unplaced = {entry for entry in self._unplaced if entry.lacking and not entry.is_placed}
        else:
            self._unplaced.clear()
        return edits

    def _hide(self, entry: Entry) -> list[Edit]:
        if entry.lacking:
            self._unplaced.add(entry)
        return super()._hide(entry)
