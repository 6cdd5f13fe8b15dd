"""One timer for all connections: those without a request end, and those with long answers look for their clients."""

import trio
from trio.testing import MockClock

from node.api.connection_watch import IDLE_SECONDS, ConnectionWatch
from tests.support.machine import fail_after


class _Connection:
    def __init__(self) -> None:
        self.ended: list[float] = []
        self.looked: list[float] = []

    def end_idle(self) -> None:
        self.ended.append(trio.current_time())

    def look_for_client(self) -> None:
        self.looked.append(trio.current_time())


async def test_each_connection_is_dealt_with_when_its_time_is_over(autojump_clock: MockClock) -> None:
    watch, first, second, answering, left = ConnectionWatch(), *(_Connection() for _ in range(4))
    began = trio.current_time()
    with fail_after(100):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            watch.wait_for_request(first)
            watch.wait_for_request(left)
            watch.wait_for_request(answering)
            watch.begin_answer(answering)
            await trio.sleep(2)
            watch.wait_for_request(second)
            watch.forget(left)
            await trio.sleep(20)
            assert len(first.ended) == len(second.ended) == 1
            assert IDLE_SECONDS <= first.ended[0] - began <= IDLE_SECONDS + 1
            assert IDLE_SECONDS + 2 <= second.ended[0] - began <= IDLE_SECONDS + 3
            assert left.ended == left.looked == answering.ended == []
            assert 0 < answering.looked[0] - began <= 1
            watch.wait_for_request(answering)  # and its time begins
            looks, began = len(answering.looked), trio.current_time()
            await trio.sleep(20)
            assert len(answering.looked) == looks
            assert IDLE_SECONDS <= answering.ended[0] - began <= IDLE_SECONDS + 1
            nursery.cancel_scope.cancel()


async def test_without_connections_no_timer_runs(autojump_clock: MockClock) -> None:
    watch, one = ConnectionWatch(), _Connection()
    with fail_after(100):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            watch.wait_for_request(one)
            await trio.sleep(20)
            assert one.ended
            assert nursery.child_tasks
            # A clock that jumps does so to the next deadline: that of this test, and not of a timer before it.
            await trio.testing.wait_all_tasks_blocked()
            assert trio.lowlevel.current_statistics().seconds_to_next_deadline > 10
            nursery.cancel_scope.cancel()
