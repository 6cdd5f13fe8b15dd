"""Requests of this user that are at work: others give way to them, for a bounded time and in turns."""

import trio
import trio.testing
from trio.testing import MockClock

from node.runtime.user_requests import FIRST_SECONDS, GivingWay, UserRequests
from tests.support.machine import fail_after
from tests.support.turns import Steps


async def test_nobody_waits_while_no_request_is_at_work() -> None:
    requests = UserRequests()
    giving_way = GivingWay(requests, 1)
    with requests.at_work():
        pass
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    await giving_way.wait()
    await requests.wait(1)
    trio.lowlevel.remove_instrument(steps)
    assert steps.count == 0


async def test_what_gives_way_waits_until_the_last_request_is_over_and_a_bounded_time(
    autojump_clock: MockClock,
) -> None:
    requests = UserRequests()

    async def work(seconds: float) -> None:
        with requests.at_work():
            await trio.sleep(seconds)

    for lasts, waited in ((0.5, 0.5), (0.875, 0.75)):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, 0.25)
            nursery.start_soon(work, lasts)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            await requests.wait(0.75)
            assert trio.current_time() - began == waited


async def _is_at_work(requests: UserRequests, after: float) -> bool:
    await trio.sleep(after)
    return requests.are_at_work


async def test_to_a_request_that_takes_long_others_give_way_no_more(autojump_clock: MockClock) -> None:
    """It mostly waits for a peer itself: `ravel join`, or a file that is fetched."""
    requests = UserRequests(trio.current_time)
    with requests.at_work():
        assert [await _is_at_work(requests, seconds) for seconds in (FIRST_SECONDS - 0.25, 0.25)] == [
            True,
            False,
        ]
        with requests.at_work():
            assert await _is_at_work(requests, 0), "another one"
        assert await _is_at_work(requests, FIRST_SECONDS - 0.25), "by the latest that came"
        assert not await _is_at_work(requests, 0.25)


async def test_all_that_give_way_have_one_turn_in_that_time_in_the_order_of_their_coming(
    autojump_clock: MockClock,
) -> None:
    requests = UserRequests()
    giving_way = GivingWay(requests, 0.1)
    turns = list[tuple[int, float]]()

    async def give_way(number: int) -> None:
        await giving_way.wait()
        turns.append((number, round(trio.current_time() - began, 6)))

    with fail_after(60):
        async with trio.open_nursery() as nursery:
            with requests.at_work():
                began = trio.current_time()
                for number in range(5):
                    nursery.start_soon(give_way, number)
                    await trio.testing.wait_all_tasks_blocked()
                await trio.sleep(0.35)
    assert turns == [(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.35), (4, 0.35)]
