"""How turns of peers that bring much of a repo pass on: what a look costs, and which time counts."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.runtime.counted_event import CountedEvent
from node.sync.bulk_turns import BulkTurns
from node.sync.conversation import Conversation
from protocol.ids import TopicKey
from protocol.limits.peers import BULK_LOOK_SECONDS, WINDOW_BEHIND_MIN

_REPO, _TOPICS = 1, 20


class _Repo:
    """Tables with one repo, which count how often somebody looks."""

    def __init__(self) -> None:
        self.looks = 0
        self.topics = [SimpleNamespace(topic=TopicKey(bytes([number]) * 32)) for number in range(_TOPICS)]
        self.tables = self

    def topics_in(self, _: int) -> list[SimpleNamespace]:
        self.looks += 1
        return self.topics


class _Peer:
    """Peer that holds much of each topic; its session tells the same progress of all."""

    def __init__(self) -> None:
        self.progress = SimpleNamespace(topic=b"", received=0, behind=10_000, is_joined=True)
        self.session = self
        self.has_left = self.is_all_here = False

    def progress_of(self, _: TopicKey) -> SimpleNamespace:
        return self.progress

    def is_level(self, _: TopicKey) -> bool:
        return self.is_all_here

    def is_ending(self) -> bool:
        return self.has_left


class _Turns:
    """Turns in which the first of two peers leads."""

    def __init__(self) -> None:
        self.repo, self.changes, self.held_back = _Repo(), CountedEvent(), 0.0
        self.turns = BulkTurns(cast("Any", self.repo), self.changes, lambda: self.held_back)
        self.leader, self.other = _Peer(), _Peer()
        self.first, self.second = cast("Conversation", self.leader), cast("Conversation", self.other)
        self.turns.begin(_REPO, self.first)

    def bring(self, count: int) -> None:
        self.leader.progress.received += count
        self.changes.ring()


async def test_however_many_topics_wait_for_a_turn_one_look_is_taken_at_a_change(
    autojump_clock: MockClock,
) -> None:
    at = _Turns()
    async with trio.open_nursery() as nursery:
        for _ in range(_TOPICS):
            nursery.start_soon(at.turns.take, _REPO, at.second)
        await wait_all_tasks_blocked()
        at.repo.looks = 0
        at.bring(1)
        await wait_all_tasks_blocked()
        assert at.repo.looks == 1
    assert trio.current_time() >= BULK_LOOK_SECONDS
    assert not at.turns.is_others(_REPO, at.second)


async def test_time_in_which_receipts_are_held_back_ends_no_turn(autojump_clock: MockClock) -> None:
    at = _Turns()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(at.turns.take, _REPO, at.second)
        await trio.sleep(BULK_LOOK_SECONDS - 1)
        at.held_back = BULK_LOOK_SECONDS - 1
        await trio.sleep(2)
        at.bring(WINDOW_BEHIND_MIN)
        await trio.sleep(BULK_LOOK_SECONDS - 3)
        assert at.turns.is_others(_REPO, at.second)
        at.held_back = 10 * BULK_LOOK_SECONDS
    # A peer that brings nothing loses it, however long somebody asks.
    assert trio.current_time() - began < 5 * BULK_LOOK_SECONDS
    assert not at.turns.is_others(_REPO, at.second)


async def test_who_has_left_takes_no_turn(autojump_clock: MockClock) -> None:
    at = _Turns()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(at.turns.take, _REPO, at.second)
        await wait_all_tasks_blocked()
        at.other.has_left = True
        at.turns.leave(at.first)
        at.turns.leave(at.second)
    assert not at.turns.is_others(_REPO, at.first)
    await at.turns.take(_REPO, at.second)
    at.turns.begin(_REPO, at.second)
    began = trio.current_time()
    await at.turns.take(_REPO, at.first)
    assert trio.current_time() == began


async def test_the_turn_goes_to_who_waits_longest(autojump_clock: MockClock) -> None:
    at = _Turns()
    third = cast("Conversation", _Peer())
    late = cast("Conversation", _Peer())
    taken: list[Conversation] = []

    async def take(peer: Conversation) -> None:
        await at.turns.take(_REPO, peer)
        taken.append(peer)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, at.second)
        await trio.sleep(1)
        nursery.start_soon(take, third)
        await trio.sleep(BULK_LOOK_SECONDS - 0.5)
        nursery.start_soon(take, late)
    assert taken == [at.second, third, late]


@pytest.mark.parametrize("_", range(16), ids=str)  # trio runs tasks that wake together in any order
async def test_a_turn_that_is_over_when_it_begins_goes_on_to_the_next(
    autojump_clock: MockClock, _: int
) -> None:
    """Else the third would find that of the second over, give it to the second again, and never end."""
    at = _Turns()
    third = cast("Conversation", _Peer())
    at.other.is_all_here = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(at.turns.take, _REPO, at.second)
        await wait_all_tasks_blocked()
        nursery.start_soon(at.turns.take, _REPO, third)
        await wait_all_tasks_blocked()
        at.leader.is_all_here = True
        at.changes.ring()
    assert not at.turns.is_others(_REPO, third)
