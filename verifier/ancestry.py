"""Which acks of a commit are implied by its others, found near the top of the graph.

A rank is larger than those of all ancestors, so the walk goes down rank by rank and never below the lowest ack. It is
bounded by a count that everyone applies alike: what is found depends on the commit and its past alone.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """Where a commit stands in its branch: its rank, and what it acks."""

    rank: int
    acks: Sequence[bytes]


def find_implied(
    acks: Sequence[bytes],
    load_places: Callable[[Iterable[bytes]], Mapping[bytes, Place]],
    *,
    floor: int = 0,
    visits_max: int,
) -> set[bytes]:
    """Those of `acks` that one of the `visits_max` latest commits acks, among the acks and their ancestors.

    Latest is by (rank, id). `floor` is a rank: acks below it are known not to be implied, so that nothing need be looked
    for down there. `load_places` gives the places of commits, all of which must be known.
    """
    places = dict(load_places(acks))
    levels: dict[int, set[bytes]] = {}
    for ack in acks:
        levels.setdefault(places[ack].rank, set()).add(ack)
    floor = max(floor, min(levels, default=0))
    ranks = [-rank for rank in levels]
    heapq.heapify(ranks)
    found: set[bytes] = set()
    visited = 0
    while ranks and -ranks[0] > floor and visited < visits_max:
        level: Sequence[bytes] = list(levels.pop(-heapq.heappop(ranks)))
        if (
            visited + len(level) > visits_max
        ):  # the bound falls into this rank: the larger ids are the later ones
            level = sorted(level, reverse=True)[: visits_max - visited]
        visited += len(level)
        followed = {ack for commit_id in level for ack in places[commit_id].acks}
        found |= followed.intersection(acks)
        places.update(load_places(followed - places.keys()))
        for commit_id in followed:
            rank = places[commit_id].rank
            if rank not in levels:
                levels[rank] = set()
                heapq.heappush(ranks, -rank)
            levels[rank].add(commit_id)
    return found


def find_outside(
    ends: Iterable[bytes],
    inside: Iterable[bytes],
    load_places: Callable[[Iterable[bytes]], Mapping[bytes, Place]],
) -> set[bytes]:
    """Those of `ends` and their ancestors that are neither among `inside` nor ancestors of these.

    It costs what lies above the lowest rank of what is found. `load_places` gives the places of commits, all of which
    must be known.
    """
    covered = set(inside)
    uncovered = set(ends) - covered
    places = dict(load_places(covered | uncovered))
    levels: dict[int, list[bytes]] = {}
    for commit_id, place in places.items():
        levels.setdefault(place.rank, []).append(commit_id)
    ranks = [-rank for rank in levels]
    heapq.heapify(ranks)
    found: set[bytes] = set()
    while uncovered:
        level = levels.pop(-heapq.heappop(ranks))
        below = {ack for commit_id in level for ack in places[commit_id].acks}
        found |= uncovered.intersection(level)
        covered.update(ack for commit_id in level if commit_id in covered for ack in places[commit_id].acks)
        uncovered = (uncovered | below) - covered - found
        new = load_places(below - places.keys())
        places.update(new)
        for commit_id, place in new.items():
            if place.rank not in levels:
                levels[place.rank] = []
                heapq.heappush(ranks, -place.rank)
            levels[place.rank].append(commit_id)
    return found
