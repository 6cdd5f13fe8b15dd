"""Chooses which pending commits are judged again now that their parents are here, in which order, within a budget.

Whole chains are woken before the first of them is judged, on the guess that it will be accepted: so a chain costs one
round of verdicts and not one for each link. Nothing rests on the guess, since verdicts look at what is accepted: what was
woken too early waits again, and what lacks other causes as well is not touched by a guess.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from protocol.limits.peers import RELEASED_CAUSE_COUNT_MAX, RELEASED_COUNT_MAX, RELEASED_SIZE_MAX
from storage.commits.pending_release import (
    ReleasedCommit,
    is_any_pending,
    load_ready,
    mark_ready,
    release_if_accepted,
    settle_causes,
)


@dataclass(slots=True)
class Budget:
    """Remainder of what a transaction may release."""

    commits: int = RELEASED_COUNT_MAX
    size: int = RELEASED_SIZE_MAX
    causes: int = RELEASED_CAUSE_COUNT_MAX
    has_left_some: bool = False
    """True if commits were marked as ready for want of it."""


def _have_room(released: list[ReleasedCommit], budget: Budget) -> bool:
    return len(released) < budget.commits and sum(one.size for one in released) < budget.size


def find_released(
    connection: Connection, settled: dict[int, bool], budget: Budget, *, with_ready: bool
) -> list[ReleasedCommit]:
    """Commits to judge now, causes before effects; of `settled` those remain that there was no time for."""
    if min(budget.commits, budget.size, budget.causes) <= 0 or not (settled or with_ready):
        return []
    if not is_any_pending(connection):
        settled.clear()
        return []
    released = load_ready(connection, budget.commits + 1) if with_ready else []
    if settled and _have_room(released, budget):
        found = settle_causes(connection, settled, budget.causes)
        budget.causes -= found.count
        settled.clear()
        settled.update(found.left)
        released += found.released
    front = [one.key for one in released if not one.is_doomed]
    # What there is no room for is then of one step, in which none waits for another: it may be judged in any order later.
    while front and budget.causes > 0 and _have_room(released, budget):
        further, looked_at = release_if_accepted(connection, front, budget.causes)
        budget.causes -= looked_at
        released += further
        front = [one.key for one in further]
    chosen: list[ReleasedCommit] = []
    for one in released:
        if len(chosen) >= budget.commits or (chosen and one.size > budget.size):
            break
        chosen.append(one)
        budget.size -= one.size
    budget.commits -= len(chosen)
    if len(chosen) < len(released):
        mark_ready(connection, released[len(chosen) :])
        budget.has_left_some = True
    return chosen
