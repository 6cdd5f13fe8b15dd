"""Time that a peer may take for a block: what stands before it on a slow line adds to it, silence and trickles do not."""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.sync.block_requests import BlockRequests, RequestTimeout
from protocol.ids import BlockId
from protocol.limits.peers import (
    FETCH_AHEAD_SIZE_MAX,
    FETCH_RATE_MIN,
    FETCH_SECONDS_MAX,
    FETCH_TIMEOUT_SECONDS,
    FETCHED_COUNT_MAX,
    OUTGOING_SIZE_MAX,
)

BLOCK = BlockId(b"b" * 32)
STEP = FETCH_TIMEOUT_SECONDS / 2
LONGEST = FETCH_SECONDS_MAX + FETCH_AHEAD_SIZE_MAX / FETCH_RATE_MIN


async def _late(questions: BlockRequests, bring: Callable[[], None], *, ahead: int = 0) -> float:
    """Ask for a block that never comes; the seconds until it is late. `bring` is called each STEP."""

    async def bring_on() -> None:
        while True:
            await trio.sleep(STEP)
            bring()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bring_on)
        began = trio.current_time()
        with pytest.raises(RequestTimeout):
            await questions.ask(BLOCK, lambda: True, lambda: ahead)
        nursery.cancel_scope.cancel()
    return trio.current_time() - began


@pytest.mark.parametrize("rate", [20_000, 100_000])
async def test_a_block_behind_all_that_a_slow_line_may_have_to_bring_is_not_late(
    autojump_clock: MockClock, rate: int
) -> None:
    """Before the question all that may wait here went out, and before the answer all that may wait there."""
    questions = BlockRequests()

    async def bring() -> None:
        for _ in range(int(2 * OUTGOING_SIZE_MAX / rate / STEP) + 1):
            await trio.sleep(STEP)
            questions.note_progress(int(rate * STEP))
        questions.settle(BLOCK, b"here")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bring)
        assert await questions.ask(BLOCK, lambda: True, lambda: 0) == b"here"
    assert trio.current_time() >= 2 * OUTGOING_SIZE_MAX / rate


async def test_time_is_given_for_what_waits_before_the_question(autojump_clock: MockClock) -> None:
    questions = BlockRequests()
    took = await _late(questions, lambda: questions.note_progress(0), ahead=OUTGOING_SIZE_MAX)
    assert took == pytest.approx(FETCH_SECONDS_MAX + OUTGOING_SIZE_MAX / FETCH_RATE_MIN)


async def test_little_news_gives_a_peer_no_more_time(autojump_clock: MockClock) -> None:
    questions = BlockRequests()
    took = await _late(questions, lambda: questions.note_progress(100))
    assert FETCH_SECONDS_MAX < took < FETCH_SECONDS_MAX + STEP


async def test_news_without_end_gives_a_peer_no_time_beyond_what_may_stand_before_a_block(
    autojump_clock: MockClock,
) -> None:
    questions = BlockRequests()
    took = await _late(questions, lambda: questions.note_progress(OUTGOING_SIZE_MAX))
    assert took == pytest.approx(LONGEST)


async def test_a_silent_peer_is_late_after_its_last_news(autojump_clock: MockClock) -> None:
    questions = BlockRequests()
    assert await _late(questions, lambda: None, ahead=OUTGOING_SIZE_MAX) == FETCH_TIMEOUT_SECONDS


async def test_the_time_in_which_nothing_is_read_does_not_count_as_silence(autojump_clock: MockClock) -> None:
    questions = BlockRequests()
    questions.pause()
    went_on = 3 * FETCH_TIMEOUT_SECONDS

    async def resume() -> None:
        await trio.sleep(went_on)
        questions.resume()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(resume)
        assert await _late(questions, lambda: None) == went_on + FETCH_TIMEOUT_SECONDS


async def test_what_is_sent_before_a_question_is_counted_once_it_has_a_place(
    autojump_clock: MockClock,
) -> None:
    questions = BlockRequests()
    queued = 0
    counted: list[int] = []

    def count() -> int:
        counted.append(queued)
        return queued

    async with trio.open_nursery() as nursery:
        first = [BlockId(bytes([number]) * 32) for number in range(FETCHED_COUNT_MAX)]
        for one in first:
            nursery.start_soon(questions.ask, one, lambda: True, lambda: 0)
        await wait_all_tasks_blocked()
        nursery.start_soon(questions.ask, BLOCK, lambda: True, count)
        await wait_all_tasks_blocked()
        queued = 5
        questions.settle(first[0], None)
        await wait_all_tasks_blocked()
        for one in (*first[1:], BLOCK):
            questions.settle(one, None)
    assert counted == [5]
