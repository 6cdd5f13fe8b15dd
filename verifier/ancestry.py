"""Search in a graph of acks: what some commits follow and others do not.

A rank is larger than those of all ancestors, so the walk goes down rank by rank.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from protocol.ids import CommitId

LoadPlaces = Callable[[Iterable[CommitId]], "Mapping[CommitId, GraphNode]"]
"""Gives the places of commits, all of which must be known."""


class GraphNode(NamedTuple):
    """Node of a branch's graph: its rank, and what it acks."""

    rank: int
    acks: Sequence[CommitId]


def find_outside(
    ends: Iterable[CommitId],
    inside: Iterable[CommitId],
    load_places: LoadPlaces,
) -> set[CommitId]:
    """Find the commits among `ends` and their ancestors that are neither among `inside` nor ancestors of `inside`.

    Costs O(commits above the lowest rank of the result).

    Args:
        ends: Ids of 32 bytes.
        inside: Ids of 32 bytes.
        load_places: Loads rank and acks of commits, all of which are known; called once for each rank.
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
