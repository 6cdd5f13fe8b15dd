"""Batches of a connection are stored in order where that matters, and only so much of them waits."""

import trio
from trio.testing import wait_all_tasks_blocked

from node.ingest.batch_order import BatchOrder, ByteBudget, Previous
from protocol.ids import TopicKey

OWN, BIG, SMALL = TopicKey(b"root"), TopicKey(b"big"), TopicKey(b"small")


async def _is_ready(previous: Previous) -> bool:
    happened = trio.Event()

    async def wait() -> None:
        await previous.wait()
        happened.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return happened.is_set()


async def test_a_batch_waits_for_earlier_ones_of_its_topic_and_of_epochs_own_topics_alone() -> None:
    turns = BatchOrder()
    first, first_done = turns.next(BIG, is_own=False)
    second, _ = turns.next(BIG, is_own=False)
    small, _ = turns.next(SMALL, is_own=False)
    assert [await _is_ready(one) for one in (first, second, small)] == [True, False, True]
    own, own_done = turns.next(OWN, is_own=True)
    later, _ = turns.next(SMALL, is_own=False)
    first_done.set()
    assert [await _is_ready(one) for one in (second, own, later)] == [True, True, False]
    own_done.set()
    assert not await _is_ready(later), "the small one before it is not stored yet"


async def test_no_more_is_read_while_too_much_waits() -> None:
    byte_budget = ByteBudget(size_max=10)
    read = trio.Event()

    async def read_more() -> None:
        await byte_budget.has_room()
        read.set()

    async with trio.open_nursery() as nursery:
        with byte_budget.holding([b"12345"]):
            with byte_budget.holding([b"1234", b"5"]):
                nursery.start_soon(read_more)
                await wait_all_tasks_blocked()
                assert not read.is_set()
            await wait_all_tasks_blocked()
            assert read.is_set()
