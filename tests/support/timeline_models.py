"""Timelines as they are defined, written for clarity: what the ones in `analytics.study.timelines` are held against."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analytics.study.timelines import Edit, InsertEdit, MoveEdit

Graph = Mapping[bytes, Sequence[bytes]]
"""What each commit that is here acks."""


def ranks(graph: Graph) -> dict[bytes, int]:
    """The longest path that is known from each commit."""
    found: dict[bytes, int] = {}

    def rank(commit_id: bytes) -> int:
        if commit_id not in found:
            found[commit_id] = 1 + max((rank(ack) for ack in graph[commit_id] if ack in graph), default=-1)
        return found[commit_id]

    for commit_id in graph:
        rank(commit_id)
    return found


def ordered(graph: Graph) -> list[bytes]:
    """By (rank, id)."""
    rank = ranks(graph)
    return sorted(graph, key=lambda commit_id: (rank[commit_id], commit_id))


def past(graph: Graph, commit_id: bytes) -> set[bytes]:
    """All that leads to a commit through commits that are here, and what is missing among it."""
    found: set[bytes] = set()
    ahead = list(graph.get(commit_id, ()))
    while ahead:
        ack = ahead.pop()
        if ack not in found:
            found.add(ack)
            ahead += graph.get(ack, ())
    return found


def complete(graph: Graph) -> dict[bytes, Sequence[bytes]]:
    """The commits of which all causes are here, with what these ack."""
    return {commit_id: acks for commit_id, acks in graph.items() if past(graph, commit_id) <= graph.keys()}


def replay(start: Sequence[bytes], edits: Iterable[Edit]) -> Iterator[list[bytes]]:
    """The list after each edit."""
    shown = list(start)
    for edit in edits:
        if isinstance(edit, InsertEdit):
            assert 0 <= edit.position <= len(shown)
            shown.insert(edit.position, edit.commit_id)
        elif isinstance(edit, MoveEdit):
            assert shown.pop(edit.old) == edit.commit_id
            assert 0 <= edit.new <= len(shown)
            shown.insert(edit.new, edit.commit_id)
        else:
            assert shown.pop(edit.position) == edit.commit_id
        yield list(shown)


def respects_causes(shown: Sequence[bytes], graph: Graph) -> bool:
    """Whether everything stands after all that leads to it through commits that are shown."""
    here = {commit_id: graph[commit_id] for commit_id in shown}
    place = {commit_id: number for number, commit_id in enumerate(shown)}
    return all(
        place[cause] < place[commit_id]
        for commit_id in shown
        for cause in past(here, commit_id)
        if cause in place
    )


def fewest_edits(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    """An insert for each new item, and a move for each other outside a longest increasing run."""
    place = {commit_id: number for number, commit_id in enumerate(before)}
    ends: list[int] = []
    for commit_id in after:
        if commit_id in place:
            at = bisect_left(ends, place[commit_id])
            ends[at : at + 1] = [place[commit_id]]
    return len(after) - len(ends)


class ScuttleSort:
    """The published algorithm (Tschudin, 2022), for acyclic graphs: counts the edits that it sends, compressed.

    Every commit begins at the place of its last known cause and rises, one arriving edge after the other; what follows
    from it gets higher ranks and rises too, from the end of the list on. Consecutive edits of one item are sent as one.
    """

    def __init__(self) -> None:
        self.shown: list[bytes] = []
        self._rank: dict[bytes, int] = {}
        self._graph: dict[bytes, list[bytes]] = {}
        self._edges: dict[bytes, list[bytes]] = {}  # known ones, from cause to effects
        self._sent: list[int] = []  # where each edit put its item

    def add(self, commit_id: bytes, acks: Sequence[bytes]) -> int:
        """Take a commit, and give how many edits it costs."""
        self._graph[commit_id] = list(acks)
        self._rank[commit_id] = 0
        self._edges[commit_id] = []
        known = [ack for ack in acks if ack in self._rank]
        start = max((self.shown.index(ack) for ack in known), default=0)
        self.shown.insert(start, commit_id)
        self._sent = [start]
        for ack in known:
            self._edges[ack].append(commit_id)
            self._follow(commit_id, ack)
        if not known:
            self._climb(commit_id)
        for effect, effect_acks in self._graph.items():
            if commit_id in effect_acks:
                self._follow(effect, commit_id)
                self._edges[commit_id].append(effect)
        return len(self._sent)

    def _follow(self, effect: bytes, cause: bytes) -> None:
        visited = {effect}
        ahead = [(effect, self._rank[cause] + 1)]
        while ahead:
            commit_id, rank = ahead.pop()
            visited.add(commit_id)
            if self._rank[commit_id] < rank:
                self._rank[commit_id] = rank
                ahead += [(following, rank + 1) for following in self._edges[commit_id]]
        here, there = self.shown.index(effect), self.shown.index(cause)
        if here < there:
            self._move(here, there)
        for commit_id in sorted(visited, key=self.shown.index, reverse=True):
            self._climb(commit_id)

    def _climb(self, commit_id: bytes) -> None:
        here = place = self.shown.index(commit_id)
        rank, last = self._rank[commit_id], len(self.shown) - 1
        while place < last and self._rank[self.shown[place + 1]] < rank:
            place += 1
        while place < last and (self._rank[self.shown[place + 1]], self.shown[place + 1]) < (rank, commit_id):
            place += 1
        if here < place:
            self._move(here, place)

    def _move(self, old: int, new: int) -> None:
        self.shown.insert(new, self.shown.pop(old))
        if self._sent[-1] == old:
            self._sent[-1] = new
        else:
            self._sent.append(new)
