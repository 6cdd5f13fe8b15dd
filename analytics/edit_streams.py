"""How many edits keep a timeline in order while commits arrive in any order: ScuttleSort's stream, and shorter ones.

Counts, for one graph and one order of delivery, what each way of following a timeline would send:

- *reference*: ScuttleSort's commands after its own compression, as its authors publish the algorithm (version 0.0.6). It
  puts a commit behind its causes that are there; when a cause arrives late, each commit behind it whose rank grows
  rises to its new place, from the last to the first. A command that moves what the one before has put somewhere is
  merged with it.
- *net*: the change from before to after each delivery: one insert, and one move for each commit that a longest
  increasing subsequence of the old positions leaves out. No stream of inserts and moves that shows the same is shorter.
- *waiting room*: a commit whose past is not complete stands apart, and moves once when it is: one edit or two.

Pure Python on numbers; nothing here is shared with what the node runs, and a test compares with a model of the published
algorithm that moves entries of a list.

The published algorithm keeps a list and the index of every entry in it. Between two late causes that list is sorted by
(rank, name), so here it is a sorted list of names per rank. A move is counted if something stands between the place
a commit has and the one it gets; its neighbours, not its index, tell that.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from analytics.tangle_models import Graph

_ABSENT = -1


@dataclass(frozen=True, slots=True)
class EditCounts:
    """Edits of one replay, over all commits."""

    commits: int
    reference: int
    net: int
    waiting_room: int
    most_waiting: int  # commits whose past was not complete, at the worst moment
    ranks_changed: int  # provisional ranks that grew later, counted each time


def replay(graph: Graph, delivery: Sequence[int]) -> EditCounts:
    """Count the edits. `delivery` holds every commit of the graph once."""
    timeline = _EagerTimeline(graph)
    reference = net = 0
    for commit in delivery:
        sent, least = timeline.take(commit)
        reference += sent
        net += least
    waited, most_waiting = _count_waiting(graph, delivery)
    return EditCounts(
        commits=len(graph),
        reference=reference,
        net=net,
        waiting_room=len(graph) + waited,
        most_waiting=most_waiting,
        ranks_changed=timeline.ranks_changed,
    )


class _EagerTimeline:
    """Shows each commit at once, behind its causes that are there, and moves it when more of them arrive."""

    def __init__(self, graph: Graph) -> None:
        count = len(graph)
        self._causes, self._names = graph.causes, graph.names
        self._commit = [0] * count  # by name
        for commit, name in enumerate(graph.names):
            self._commit[name] = commit
        self._rank = [_ABSENT] * count
        self._effects: list[list[int]] = [[] for _ in range(count)]  # known ones of commits that are there
        self._waiting: list[list[int]] = [
            [] for _ in range(count)
        ]  # what is there and acks this, which is not
        self._names_by_rank: list[list[int]] = []
        self.ranks_changed = 0

    def take(self, commit: int) -> tuple[int, int]:
        """A commit arrives: how many edits ScuttleSort sends, and how many are needed."""
        rank = 0
        for cause in self._causes[commit]:
            known = self._rank[cause]
            if known == _ABSENT:
                self._waiting[cause].append(commit)
            else:
                self._effects[cause].append(commit)
                rank = max(rank, known + 1)
        self._rank[commit] = rank
        insort(self._names_at(rank), self._names[commit])

        sent = _Sent(commit)  # its insert, with which moves of itself that follow are merged
        before: dict[int, tuple[int, int]] = {}  # where commits stood whose rank has grown since
        for effect in self._waiting[commit]:
            if self._rank[effect] <= rank:
                self._raise(effect, commit, sent, before)
            self._effects[commit].append(effect)
        self._waiting[commit].clear()
        return sent.count, 1 + self._moves_needed(commit, before)

    def _names_at(self, rank: int) -> list[int]:
        while len(self._names_by_rank) <= rank:
            self._names_by_rank.append([])
        return self._names_by_rank[rank]

    def _raise(self, effect: int, cause: int, sent: "_Sent", before: dict[int, tuple[int, int]]) -> None:
        """An effect that stands too early for this cause rises, and all that is behind it."""
        grown = self._grown_ranks(effect, self._rank[cause] + 1)
        self.ranks_changed += len(grown)
        self._names_at(max(grown.values()))
        for commit in grown:
            before.setdefault(commit, (self._rank[commit], self._names[commit]))
        places = [
            (self._rank[commit], self._names[commit] * 1.0, commit) for commit in grown if commit != effect
        ]
        places.append((*self._first_move(effect, cause, grown, sent), effect))
        places.sort(reverse=True)
        for rank, place, commit in places:
            if commit != effect:
                self._take_out(rank, self._names[commit])
            if self._is_passed(rank, place, grown[commit], self._names[commit]):
                sent.move(commit)
            self._rank[commit] = grown[commit]
            insort(self._names_by_rank[grown[commit]], self._names[commit])

    def _grown_ranks(self, effect: int, rank: int) -> dict[int, int]:
        """New ranks of all commits whose rank grows if that of `effect` becomes `rank`: by old rank, each settled once."""
        ranks, names = self._rank, self._names
        grown = {effect: rank}
        queue = [(ranks[effect], names[effect])]
        while queue:
            _, name = heapq.heappop(queue)
            commit = self._commit[name]
            rank = grown[commit] + 1
            for later in self._effects[commit]:
                if ranks[later] < rank:
                    if later not in grown:
                        heapq.heappush(queue, (ranks[later], names[later]))
                        grown[later] = rank
                    elif grown[later] < rank:
                        grown[later] = rank
        return grown

    def _first_move(self, effect: int, cause: int, grown: dict[int, int], sent: "_Sent") -> tuple[int, float]:
        """The effect is moved before what is behind it has made way; gives its place then, between names of a rank."""
        rank, name = self._rank[effect], self._names[effect]
        self._take_out(rank, name)
        if (rank, name) < (self._rank[cause], self._names[cause]):
            sent.move(effect)
            return self._rank[cause], self._names[cause] + 0.5
        # It stands behind the cause already, at the same rank, and rises until something of its new rank is in the way.
        rest = self._names_by_rank[rank]
        has_moved, blocked_by = bisect_left(rest, name) < len(rest), name
        for other in self._names_at(rank + 1):
            if other > name or self._commit[other] in grown:
                blocked_by = other
                break
            has_moved = True
        if not has_moved:
            return rank, float(name)
        sent.move(effect)
        return rank + 1, blocked_by - 0.5

    def _take_out(self, rank: int, name: int) -> None:
        names = self._names_by_rank[rank]
        del names[bisect_left(names, name)]

    def _is_passed(self, rank: int, place: float, new_rank: int, name: int) -> bool:
        """Whether anything stands between a place and (new rank, name), which is behind it."""
        here = self._names_by_rank[rank]
        first = bisect_left(here, place)
        if rank == new_rank:
            return bisect_left(here, name) > first
        if first < len(here) or any(self._names_by_rank[rank + 1 : new_rank]):
            return True
        there = self._names_by_rank[new_rank]
        return bool(there) and there[0] < name

    def _moves_needed(self, arrived: int, before: dict[int, tuple[int, int]]) -> int:
        """How many of the others are not in a longest increasing subsequence: of where they stood, in today's order."""
        if not before:
            return 0
        first = min(rank for rank, _ in before.values())
        last = max(self._rank[commit] for commit in before)
        size = len(self._names)
        old_places = {self._names[commit]: rank * size + name for commit, (rank, name) in before.items()}
        arrived_name = self._names[arrived]
        # Patience sorting: ends[k] is the smallest end of all increasing subsequences of length k + 1.
        ends: list[int] = []
        count = 0
        for rank in range(first, last + 1):
            start = rank * size
            for name in self._names_by_rank[rank]:
                if name == arrived_name:
                    continue
                place = old_places.get(name, start + name)
                count += 1
                if not ends or place > ends[-1]:
                    ends.append(place)
                else:
                    ends[bisect_left(ends, place)] = place
        return count - len(ends)


class _Sent:
    """Counts ScuttleSort's commands for one arrival: those in a row for one commit are one."""

    def __init__(self, inserted: int) -> None:
        self.count = 1
        self._last = inserted

    def move(self, commit: int) -> None:
        """A move is sent."""
        self.count += commit != self._last
        self._last = commit


def _count_waiting(graph: Graph, delivery: Sequence[int]) -> tuple[int, int]:
    """How many commits arrive before all of their past has, and how many of them there are at once."""
    missing = [len(causes) for causes in graph.causes]
    effects: list[list[int]] = [[] for _ in graph.causes]
    for commit, causes in enumerate(graph.causes):
        for cause in causes:
            effects[cause].append(commit)
    is_here = [False] * len(missing)
    waited = waiting = most = 0
    for arrived in delivery:
        is_here[arrived] = True
        if missing[arrived]:
            waited += 1
            waiting += 1
            most = max(most, waiting)
            continue
        complete = [arrived]
        while complete:
            for effect in effects[complete.pop()]:
                missing[effect] -= 1
                if not missing[effect] and is_here[effect]:
                    waiting -= 1
                    complete.append(effect)
    return waited, most
