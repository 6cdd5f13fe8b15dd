"""Packs branches into tasks by their sizes, so that none has much more to do than others. Knows nothing of Spark.

Large branches get tasks first, the largest to the task that has least (longest processing time first: at most a third over
the best packing). Small ones, of which there are many, are spread evenly over the tasks that are left.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Packing:
    """Numbers of tasks: one for each large branch, then from `first_small` on those that share the other branches."""

    large: Mapping[bytes, int]
    first_small: int
    tasks: int


def pack(sizes: Mapping[bytes, int], rest: int, at_once: int, task_commits: int) -> Packing:
    """Pack large branches of these `sizes`, and small ones of `rest` commits, into tasks of about `task_commits`.

    As many tasks run `at_once`: one more than a multiple would leave the others without any.
    """
    total = sum(sizes.values()) + rest
    tasks = at_once * max(1, -(-total // (at_once * task_commits)))
    for_small = max(round(tasks * rest / total), 1) if rest else 0
    bins = min(len(sizes), max(tasks - for_small, 1))
    tasks = max(tasks, bins + 1) if rest or not sizes else bins
    loads = [(0, number) for number in range(bins)]
    large: dict[bytes, int] = {}
    for branch, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        load, number = heapq.heappop(loads)
        large[branch] = number
        heapq.heappush(loads, (load + size, number))
    return Packing(large, bins, tasks)
