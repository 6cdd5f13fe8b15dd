"""Branches are packed into tasks by size: none of these has much more to do than others, and none nothing."""

from collections import Counter
from statistics import median

import pytest

from analytics.order.packing import pack
from analytics.reading.limits import TASK_COMMITS


def _loads(sizes: dict[bytes, int], rest: int, at_once: int) -> list[float]:
    packing = pack(sizes, rest, at_once, TASK_COMMITS)
    loads: Counter[int] = Counter()
    for branch, size in sizes.items():
        assert packing.large[branch] < packing.first_small
        loads[packing.large[branch]] += size
    of_small = packing.tasks - packing.first_small
    assert (of_small > 0) is (rest > 0)
    return [*loads.values(), *([rest / max(of_small, 1)] * of_small)]


@pytest.mark.parametrize("at_once", [2, 16, 200, 400])
@pytest.mark.parametrize("size", [1_000_000, 1_900_000])
def test_of_300_branches_of_a_million_commits_no_task_gets_more_than_twice_the_median(
    size: int, at_once: int
) -> None:
    loads = _loads({bytes([number // 250, number % 250]): size for number in range(300)}, 0, at_once)
    assert max(loads) <= 2 * median(loads)
    assert max(loads) <= 2 * size


@pytest.mark.parametrize("at_once", [2, 16, 200])
def test_branches_of_many_sizes_leave_no_task_without_work(at_once: int) -> None:
    sizes = {number.to_bytes(2): 1_900_000 // number + 100_000 for number in range(1, 400)}
    loads = _loads(sizes, 20_000_000, at_once)
    assert max(loads) <= max(2 * median(loads), max(sizes.values()) + 100_000)


def test_few_branches_get_a_task_each_and_no_branches_one() -> None:
    assert pack({b"a": 500_000, b"b": 300_000}, 0, 8, TASK_COMMITS).tasks == 2
    assert pack({}, 0, 8, TASK_COMMITS).tasks == 8
    assert pack({}, 17_000_000, 8, TASK_COMMITS).tasks == 24
    one = pack({b"a": 150_000}, 10, 1, TASK_COMMITS)
    assert (one.large, one.first_small, one.tasks) == ({b"a": 0}, 1, 2)
