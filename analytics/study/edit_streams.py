"""Counts the edits of three ways to keep a timeline sorted: ScuttleSort's, the minimum, and a waiting room.

Counts, for one graph and one order of delivery, what each way of following a timeline would send:

- *reference*: ScuttleSort's commands after its own compression, as its authors publish the algorithm (version 0.0.6). It
  puts a commit behind its causes that are there; when a cause arrives late, each commit behind it whose rank grows
  rises to its new place, from the last to the first. A command that moves what the one before has put somewhere is
  merged with it.
- *net*: the change from before to after each delivery: one insert, and one move for each commit that a longest
  increasing subsequence of the old positions leaves out. No stream of inserts and moves that shows the same is shorter.
- *waiting room*: a commit whose past is not complete stands apart, and moves once when it is: one edit or two.

The work is compiled, on flat arrays and on commits numbered by delivery: `analytics.study.eager_timeline`. Nothing here is
shared with what the node runs, and a test compares with a model of the published algorithm that moves entries of a list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from analytics.study.compiled import Numbers, compiled
from analytics.study.eager_timeline import count_eager
from analytics.study.tangle_models import Graph


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
    cause_starts, causes = _causes_by_delivery(graph, delivery)
    effect_starts, effects = _effects_of(cause_starts, causes)
    names = np.asarray(graph.names, np.int32)[np.asarray(delivery, np.int64)]
    reference, net, ranks_changed = count_eager(cause_starts, causes, effect_starts, effects, names)
    waited, most_waiting = _count_pending(cause_starts, causes, effect_starts, effects)
    return EditCounts(
        commits=len(graph),
        reference=int(reference),  # a number of numpy's where nothing is compiled
        net=int(net),
        waiting_room=len(graph) + int(waited),
        most_waiting=int(most_waiting),
        ranks_changed=int(ranks_changed),
    )


def _causes_by_delivery(graph: Graph, delivery: Sequence[int]) -> tuple[Numbers, Numbers]:
    """Return where the causes of each commit begin in a list, and that list. Commits are numbered by delivery."""
    count = len(graph)
    number = np.empty(count, np.int32)
    number[np.asarray(delivery, np.int64)] = np.arange(count, dtype=np.int32)
    delivered = [graph.causes[commit] for commit in delivery]
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.fromiter(map(len, delivered), np.int32, count), out=starts[1:])
    causes = np.fromiter(chain.from_iterable(delivered), np.int64, int(starts[-1]))
    return starts, number[causes]


@compiled
def _effects_of(cause_starts: Numbers, causes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the effects of each commit, in the order of delivery."""
    count = len(cause_starts) - 1
    starts = np.zeros(count + 1, np.int32)
    for cause in causes:
        starts[cause + 1] += 1
    starts = np.cumsum(starts).astype(np.int32)
    free = starts.copy()
    effects = np.empty(len(causes), np.int32)
    for commit in range(count):
        for cause in causes[cause_starts[commit] : cause_starts[commit + 1]]:
            effects[free[cause]] = commit
            free[cause] += 1
    return starts, effects


@compiled
def _count_pending(
    cause_starts: Numbers, causes: Numbers, effect_starts: Numbers, effects: Numbers
) -> tuple[int, int]:
    """Return how many commits arrive before all of their past has, and how many of them there are at once."""
    count = len(cause_starts) - 1
    missing = cause_starts[1:] - cause_starts[:-1]
    complete = np.empty(count + 1, np.int32)
    waited = waiting = most = 0
    for arrived in range(count):
        if missing[arrived]:
            waited += 1
            waiting += 1
            most = max(most, waiting)
            continue
        complete[0], left = arrived, 1
        while left:
            left -= 1
            commit = complete[left]
            for effect in effects[effect_starts[commit] : effect_starts[commit + 1]]:
                missing[effect] -= 1
                if not missing[effect] and effect < arrived:
                    waiting -= 1
                    complete[left] = effect
                    left += 1
    return waited, most
