"""Finds implied parents (acks) of a commit: ancestors of its other parents. The walk is bounded (IMPLIED_ACK_VISITS_MAX).

A rank is larger than those of all ancestors, so the walk goes down rank by rank and never below the lowest ack. It is
bounded by a count that everyone applies alike: what is found depends on the commit and its past alone. Merges follow one
another, so a walk goes on from where an earlier one of the same line ended (`AckWalks`); this changes no answer.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from protocol.ids import NO_COMMIT, CommitId

LoadPlaces = Callable[[Iterable[CommitId]], "Mapping[CommitId, GraphNode]"]
"""Gives the places of commits, all of which must be known."""

_LINES_KEPT_MAX: Final = 4
"""Walks that are remembered, the latest used: a history of some branches that are merged into each other has as many."""
_ANSWERS_KEPT_MAX: Final = 1024
"""Commits of which the answer is remembered: more than a batch has."""


class GraphNode(NamedTuple):
    """Where a commit stands in its branch: its rank, and what it acks."""

    rank: int
    acks: Sequence[CommitId]


class AckWalks:
    """Looks for implied acks, and remembers what it has walked: an honest history of merges is walked once, not each time.

    What is remembered are facts of content-addressed commits, so it stays true if a transaction is undone. One remembered
    walk has at most 2 * `visits_max` commits; a walk that grew beyond is forgotten.
    """

    def __init__(self, visits_max: int) -> None:
        """`visits_max`: how many of the latest ancestors are looked at."""
        self._visits_max = visits_max
        self._lines: list[_Walk] = []  # the latest used first
        self._answers: dict[CommitId, set[CommitId]] = {}  # the latest last
        self.visits = 0
        """Commits that were walked over or loaded so far, by all searches: what they cost."""

    def find_implied(
        self, commit_id: CommitId, acks: Sequence[CommitId], load_places: LoadPlaces, *, floor: int = 0
    ) -> set[CommitId]:
        """Those of `acks` of a commit that one of the `visits_max` latest commits acks, among the acks and their ancestors.

        Latest is by (rank, id). `floor` is a rank: acks below it are known not to be implied, so that nothing need be looked
        for down there.
        """
        if commit_id in self._answers:  # a refused one is judged again once its topic's signature was checked
            return self._answers[commit_id]
        own = load_places(acks)
        floor = max(floor, min((place.rank for place in own.values()), default=0))
        walk = self._go_on(own, load_places, floor)
        if walk is None:
            walk = _Walk(self._visits_max, own)
            walk.go_down(load_places, floor)
        found = {ack for ack in acks if walk.ranks[ack] >= floor and walk.is_acked(ack)}
        self.visits += walk.visits
        if commit_id != NO_COMMIT:
            self._answers[commit_id] = found
        if len(self._answers) > _ANSWERS_KEPT_MAX:
            del self._answers[next(iter(self._answers))]
        walk.end_with(commit_id, acks)
        if walk.is_reusable:
            self._lines = [walk, *self._lines[: _LINES_KEPT_MAX - 1]]
        return found

    def _go_on(
        self, own: Mapping[CommitId, GraphNode], load_places: LoadPlaces, floor: int
    ) -> "_Walk | None":
        """The walk of these acks, continued from one that it meets; None where that one has missed too much since."""
        walk = _Walk(self._visits_max, own)
        for line in sorted(self._lines, key=lambda line: -line.tip_rank):
            if line.tip_rank <= floor:
                break
            walk.go_down(load_places, floor, above=line.tip_rank)
            if line.tip in walk.ranks:  # then all that the line has walked is an ancestor here, too
                self._lines.remove(line)
                self.visits += walk.visits
                line.merge(walk)
                line.go_down(load_places, floor, new_max=self._visits_max)
                if line.visits <= self._visits_max:
                    return line
                self.visits += line.visits
                return None
        walk.go_down(load_places, floor)
        return walk


class _Walk:
    """Ancestors of one commit that were found so far: all of those above a rank, and what these ack.

    A level (all that is known of one rank) is *open* until it was walked over. All above the highest open one is known.
    """

    def __init__(self, visits_max: int, places: Mapping[CommitId, GraphNode]) -> None:
        self.tip = NO_COMMIT
        self.tip_rank = -1
        self.ranks: dict[CommitId, int] = {}
        self.visits = 0  # since it was last taken up
        self.is_reusable = True
        self._visits_max = visits_max
        self._acked_by: dict[CommitId, tuple[int, CommitId]] = {}  # the latest commit that acks it
        self._open: dict[int, dict[CommitId, Sequence[CommitId]]] = {}  # by rank: commits, each with its acks
        self._open_ranks: list[int] = []  # a heap, negative
        self._edge: int | None = None  # the lowest rank that was walked over
        self._count = 0  # commits of this rank and above
        self._add(places)

    def go_down(
        self, load_places: LoadPlaces, floor: int, *, above: int = -1, new_max: int | None = None
    ) -> None:
        """Walk over the ranks above `floor` and `above` that the bound allows; give up after so many new commits."""
        while self._open_ranks and (new_max is None or self.visits <= new_max):
            rank = -self._open_ranks[0]
            is_new = self._edge is None or rank < self._edge
            if rank <= above or (is_new and (rank <= floor or self._count >= self._visits_max)):
                return
            heapq.heappop(self._open_ranks)
            self._walk_over(rank, self._open.pop(rank), load_places, is_new=is_new)

    def _walk_over(
        self, rank: int, level: dict[CommitId, Sequence[CommitId]], load_places: LoadPlaces, *, is_new: bool
    ) -> None:
        if is_new:
            self._edge = rank
            self._count += len(level)
        if len(level) > self._visits_max:  # the larger ids are the later ones, and the only ones that count
            level = {raw: level[raw] for raw in sorted(level, reverse=True)[: self._visits_max]}
            self.is_reusable = False
        followed: set[CommitId] = set()
        for commit_id, acks in level.items():
            self._note_acks(rank, commit_id, acks)
            followed.update(acks)
        self.visits += len(level)
        new = [raw for raw in followed if raw not in self.ranks]
        if new:
            self._add(load_places(new))

    def _note_acks(self, rank: int, commit_id: CommitId, acks: Sequence[CommitId]) -> None:
        acker = (rank, commit_id)
        for ack in acks:
            if self._acked_by.get(ack, (-1, NO_COMMIT)) < acker:
                self._acked_by[ack] = acker

    def _add(self, places: Mapping[CommitId, GraphNode]) -> None:
        for commit_id, (rank, acks) in places.items():
            self.ranks[commit_id] = rank
            self._count += self._edge is not None and rank >= self._edge
            self._open_level(rank)[commit_id] = acks
        self.visits += len(places)

    def _open_level(self, rank: int) -> dict[CommitId, Sequence[CommitId]]:
        if rank not in self._open:
            self._open[rank] = {}
            heapq.heappush(self._open_ranks, -rank)
        return self._open[rank]

    def is_acked(self, commit_id: CommitId) -> bool:
        """Whether one of the latest of these commits acks it."""
        acker = self._acked_by.get(commit_id)
        if acker is None or self._count <= self._visits_max:
            return acker is not None
        later = sum(
            rank > acker[0] or (rank == acker[0] and raw > acker[1]) for raw, rank in self.ranks.items()
        )
        return later < self._visits_max

    def merge(self, other: "_Walk") -> None:
        """Know what another walk has found, which has met this one's tip."""
        fresh = [raw for raw in other.ranks if raw not in self.ranks]
        for raw in fresh:
            rank = self.ranks[raw] = other.ranks[raw]
            self._count += self._edge is not None and rank >= self._edge
            still_open = other._open.get(rank, {})
            if raw in still_open:
                self._open_level(rank)[raw] = still_open[raw]
        for raw, (rank, acker) in other._acked_by.items():
            self._note_acks(rank, acker, (raw,))
        self.is_reusable = self.is_reusable and other.is_reusable
        self.visits = 0

    def end_with(self, commit_id: CommitId, acks: Sequence[CommitId]) -> None:
        """From now on this is the walk of a commit with these acks, which all are in it."""
        self.tip, self.tip_rank = commit_id, 1 + max((self.ranks[ack] for ack in acks), default=-1)
        self.ranks[commit_id] = self.tip_rank
        self._count += self._edge is not None
        self._note_acks(self.tip_rank, commit_id, acks)
        self.visits = 0
        self.is_reusable = (
            self.is_reusable and self._edge is not None and len(self.ranks) <= 2 * self._visits_max
        )


def find_implied_once(
    acks: Sequence[CommitId], load_places: LoadPlaces, *, floor: int = 0, visits_max: int
) -> set[CommitId]:
    """What `AckWalks.find_implied` finds, and remember nothing."""
    return AckWalks(visits_max).find_implied(NO_COMMIT, acks, load_places, floor=floor)


def find_outside(
    ends: Iterable[CommitId],
    inside: Iterable[CommitId],
    load_places: LoadPlaces,
) -> set[CommitId]:
    """Those of `ends` and their ancestors that are neither among `inside` nor ancestors of these.

    It costs what lies above the lowest rank of what is found.
    """
    covered = set(inside)
    uncovered = set(ends) - covered
    places = dict(load_places(covered | uncovered))
    levels: dict[int, list[CommitId]] = {}
    for commit_id, place in places.items():
        levels.setdefault(place.rank, []).append(commit_id)
    ranks = [-rank for rank in levels]
    heapq.heapify(ranks)
    found: set[CommitId] = set()
    while uncovered:
        level = levels.pop(-heapq.heappop(ranks))
        below = {ack for commit_id in level for ack in places[commit_id].acks}
        found |= uncovered.intersection(level)
        covered.update(ack for commit_id in level if commit_id in covered for ack in places[commit_id].acks)
        uncovered = (uncovered | below) - covered - found
        # Not `below - places.keys()`: that goes over all of `places` at every rank.
        new = load_places({raw for raw in below if raw not in places})
        places.update(new)
        for commit_id, place in new.items():
            if place.rank not in levels:
                levels[place.rank] = []
                heapq.heappush(ranks, -place.rank)
            levels[place.rank].append(commit_id)
    return found
