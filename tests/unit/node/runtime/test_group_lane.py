"""A lane works on requests together, and no cancelled request harms another."""

from collections.abc import Sequence
from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.runtime.group_lane import GroupLane


class Work:
    """Answers each request with its double, when it is let to; refuses negative ones."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.gates: list[trio.Event] = []

    async def __call__(self, requests: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(requests))
        gate = trio.Event()
        self.gates.append(gate)
        await gate.wait()
        if 13 in requests:
            raise OSError("the disk is full")
        return [2 * one if one >= 0 else ValueError(one) for one in requests]


class Asking:
    """Requests in tasks of their own, with what became of each."""

    def __init__(self, nursery: trio.Nursery, count_max: int = 10) -> None:
        self.lock = trio.StrictFIFOLock()
        self.lane: GroupLane[int, int] = GroupLane(self.lock, count_max)
        self.work = Work()
        self.outcomes: dict[int, int | str] = {}
        self.scopes: dict[int, trio.CancelScope] = {}
        self._nursery = nursery

    async def ask(self, *requests: int) -> None:
        """Ask, and return when all wait."""
        for request in requests:
            self._nursery.start_soon(self._run, request)
            await wait_all_tasks_blocked()

    async def let(self, number: int) -> None:
        """Let a group be answered."""
        self.work.gates[number].set()
        await wait_all_tasks_blocked()

    async def _run(self, request: int) -> None:
        with trio.CancelScope() as self.scopes[request]:
            try:
                self.outcomes[request] = await self.lane.run(request, self.work)
            except (ValueError, OSError) as error:
                self.outcomes[request] = type(error).__name__
            await trio.lowlevel.checkpoint()
            return
        self.outcomes.setdefault(request, "cancelled")


async def test_what_waits_is_worked_on_together_and_each_gets_its_own_answer() -> None:
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery)
        await asking.ask(1, 2, -3, 4)
        assert asking.work.groups == [[1]]
        await asking.let(0)
        assert asking.work.groups == [[1], [2, -3, 4]]
        await asking.ask(5)
        await asking.let(1)
        await asking.let(2)
    assert asking.outcomes == {1: 2, 2: 4, -3: "ValueError", 4: 8, 5: 10}


async def test_a_group_has_a_largest_size() -> None:
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery, count_max=2)
        await asking.ask(1, 2, 3, 4)
        for number in range(3):
            await asking.let(number)
    assert asking.work.groups == [[1], [2, 3], [4]]
    assert asking.outcomes == {1: 2, 2: 4, 3: 6, 4: 8}


async def test_what_fails_as_a_whole_fails_for_each_and_for_no_later_one() -> None:
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery)
        await asking.ask(1, 2, 13)
        await asking.let(0)
        await asking.ask(4)
        await asking.let(1)
        await asking.let(2)
    assert asking.outcomes == {1: 2, 2: "OSError", 13: "OSError", 4: 8}


async def test_a_request_that_leaves_before_it_was_taken_is_not_worked_on() -> None:
    """A follower that leaves, and a leader, whose place the next one takes."""
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery)
        await asking.ask(1, 2, 3, 4)
        asking.scopes[3].cancel()
        asking.scopes[2].cancel()
        await wait_all_tasks_blocked()
        await asking.let(0)
        await asking.let(1)
    assert asking.work.groups == [[1], [4]]
    assert asking.outcomes == {1: 2, 2: "cancelled", 3: "cancelled", 4: 8}


async def test_a_group_is_worked_on_to_its_end_though_its_leader_and_others_have_left() -> None:
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery)
        await asking.ask(1, 2, 3)
        await asking.let(0)
        asking.scopes[2].cancel()
        asking.scopes[3].cancel()
        await wait_all_tasks_blocked()
        assert 3 not in asking.outcomes, "it is told when its work is done, and not before"
        await asking.let(1)
    assert asking.outcomes == {1: 2, 2: 4, 3: 6}
    assert not asking.lock.locked()


async def test_other_work_that_holds_the_lock_comes_between() -> None:
    """Requests that come meanwhile form one group."""
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery)
        async with asking.lock:
            await asking.ask(1, 2, 3)
            assert asking.work.groups == []
        await wait_all_tasks_blocked()
        assert asking.work.groups == [[1, 2, 3]]
        await asking.let(0)
    assert asking.outcomes == {1: 2, 2: 4, 3: 6}


async def test_nobody_waits_for_a_group_when_the_process_ends() -> None:
    lane: GroupLane[int, int] = GroupLane(trio.StrictFIFOLock(), 10)

    async def work(requests: Sequence[int]) -> list[int | Exception]:
        await wait_all_tasks_blocked()
        if len(requests) == 1:
            return [0]
        raise KeyboardInterrupt

    async def ask(request: int) -> None:
        with suppress(RuntimeError):  # what the others are told
            await lane.run(request, work)

    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            for request in range(3):
                nursery.start_soon(ask, request)
    assert caught.group_contains(KeyboardInterrupt)


class _Gathered:
    """Lane that gathers for a second and answers at once, with when each group was taken."""

    def __init__(self, count_max: int = 10) -> None:
        self.lane: GroupLane[int, int] = GroupLane(trio.StrictFIFOLock(), count_max, 1.0)
        self.groups: list[tuple[float, list[int]]] = []
        self._began = trio.current_time()

    async def work(self, requests: Sequence[int]) -> list[int | Exception]:
        self.groups.append((trio.current_time() - self._began, sorted(requests)))
        return [*requests]

    async def ask(self, request: int, after: float = 0.0) -> None:
        await trio.sleep(after)
        await self.lane.run(request, self.work)


async def test_a_lone_client_never_waits_for_others(autojump_clock: MockClock) -> None:
    gathered = _Gathered()
    for request in range(3):
        await gathered.ask(request)
    assert gathered.groups == [(0.0, [0]), (0.0, [1]), (0.0, [2])]


async def test_after_a_group_of_several_the_next_gathers_what_comes_within_its_time(
    autojump_clock: MockClock,
) -> None:
    gathered = _Gathered()
    async with trio.open_nursery() as nursery:
        async with gathered.lane._lock:
            nursery.start_soon(gathered.ask, 1)
            nursery.start_soon(gathered.ask, 2)
            await trio.sleep(10)
        for request, after in ((3, 10.25), (4, 11.0), (5, 11.5), (6, 20.0)):
            nursery.start_soon(gathered.ask, request, after - 10)
    assert gathered.groups == [(10.0, [1, 2]), (11.25, [3, 4]), (12.5, [5]), (20.0, [6])]


async def test_a_full_group_waits_for_no_more(autojump_clock: MockClock) -> None:
    gathered = _Gathered(count_max=2)
    async with trio.open_nursery() as nursery, gathered.lane._lock:
        for request in range(5):
            nursery.start_soon(gathered.ask, request)
            await wait_all_tasks_blocked()
    assert gathered.groups == [(0.0, [0, 1]), (0.0, [2, 3]), (1.0, [4])]


async def test_a_leader_that_leaves_while_it_gathers_harms_nobody(autojump_clock: MockClock) -> None:
    gathered = _Gathered()
    async with trio.open_nursery() as nursery:
        async with gathered.lane._lock:
            nursery.start_soon(gathered.ask, 1)
            nursery.start_soon(gathered.ask, 2)
            await trio.sleep(10)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as leading:
                leading.start_soon(gathered.ask, 3, 0.1)
                await trio.sleep(0.2)
                nursery.start_soon(gathered.ask, 4)
                await trio.sleep(0.2)
                scope.cancel()
    assert [requests for _, requests in gathered.groups] == [[1, 2], [4]]


async def test_requests_of_one_client_are_worked_on_in_order_and_each_gets_its_own_answer() -> None:
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery, count_max=3)
        await asking.ask(1)
        answers: list[int | Exception] = []

        async def ask_each() -> None:
            answers.extend(await asking.lane.run_each([2, -3, 4, 5, 6], asking.work))

        nursery.start_soon(ask_each)
        await wait_all_tasks_blocked()
        await asking.ask(7)
        for number in range(3):
            await asking.let(number)
        assert asking.work.groups == [[1], [2, -3, 4], [5, 6, 7]]
    assert [type(answer) if isinstance(answer, Exception) else answer for answer in answers] == [
        4,
        ValueError,
        8,
        10,
        12,
    ]
    assert asking.outcomes == {1: 2, 7: 14}


async def test_a_client_that_leaves_takes_back_what_no_group_has_taken() -> None:
    async with trio.open_nursery() as nursery:
        asking = Asking(nursery, count_max=2)
        scope = trio.CancelScope()

        async def ask_each() -> None:
            with scope:
                await asking.lane.run_each([1, 2, 3, 4, 5], asking.work)

        nursery.start_soon(ask_each)
        await wait_all_tasks_blocked()
        await asking.ask(6)
        scope.cancel()
        await asking.let(0)
        await asking.let(1)
    assert asking.work.groups == [[1, 2], [6]]
    assert asking.outcomes == {6: 12}


async def test_one_client_of_many_requests_never_waits_for_others(autojump_clock: MockClock) -> None:
    gathered = _Gathered()
    for _ in range(2):
        await gathered.lane.run_each([1, 2, 3], gathered.work)
    assert gathered.groups == [(0.0, [1, 2, 3])] * 2
