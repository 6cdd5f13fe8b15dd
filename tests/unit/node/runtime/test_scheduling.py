"""Who pays for what: budgets, turns by what was used, and work in slices."""

from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.runtime import scheduling
from node.runtime.scheduling import (
    NOBODY,
    SHORT_COUNT_MAX,
    FairLock,
    Ledger,
    SlicePace,
    WorkAccount,
    WorkBill,
)
from node.runtime.user_requests import GivingWay, UserRequests
from node.sync.connection import Ended
from protocol.ids import PeerId
from protocol.limits.peers import (
    ACCOUNTS_MAX,
    FRAME_SECONDS,
    FRUITLESS_FORGIVEN_SHARE,
    FRUITLESS_SECONDS_MAX,
    FRUITLESS_SLOWED_SECONDS,
    FRUITLESS_SLOWED_SHARE,
    GIVING_WAY_FRUITLESS_SECONDS,
    PAUSED_WORK_SECONDS_MIN,
    SLICE_SECONDS,
    SLOWED_PAUSE_SECONDS_MAX,
    STRANGERS_SLOWED_SECONDS,
)
from protocol.session.messages import Goodbye, KeepAlive
from tests.support.builders import World, writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes
from tests.support.relays import open_relay
from tests.support.strangers import met


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _account() -> WorkAccount:
    return WorkAccount(_Clock())


def test_work_of_use_costs_nothing_however_much_it_is() -> None:
    account = _account()
    for _ in range(2000):  # a million commits
        bill = WorkBill(account)
        bill.charge(0.2)
        bill.earn()
        assert account.pop_pause() == 0
    assert account.used > 10 * FRUITLESS_SECONDS_MAX
    assert not account.is_over


def test_a_clock_that_goes_back_neither_charges_nor_forgives() -> None:
    clock = _Clock()
    clock.now = 1000.0
    account = WorkAccount(clock)
    account.charge(0.01)
    clock.now = 1.0
    assert account.fruitless == pytest.approx(0.01)
    assert not account.is_over


def test_fruitless_work_slows_then_ends_and_is_forgiven_by_and_by() -> None:
    clock = _Clock()
    account = WorkAccount(clock)

    def is_over() -> bool:
        return account.is_over

    account.charge(FRUITLESS_SLOWED_SECONDS)
    assert account.pop_pause() == 0
    account.charge(0.25)
    pause = account.pop_pause()
    assert pause == SLOWED_PAUSE_SECONDS_MAX
    assert account.pop_pause() == pause, "its other connections wait as well"
    clock.now += pause
    assert account.pop_pause() == 0, "for the same work but once"
    account.charge(FRUITLESS_SECONDS_MAX - account.fruitless)
    assert not is_over()
    account.charge(0.001)
    assert is_over()
    assert account.pop_pause() == SLOWED_PAUSE_SECONDS_MAX
    clock.now += 10
    assert is_over(), "a peer that returns at once is none the better"
    clock.now += (FRUITLESS_SECONDS_MAX - FRUITLESS_SLOWED_SECONDS) / FRUITLESS_FORGIVEN_SHARE
    assert not is_over()


def test_many_connections_of_one_account_get_one_share_of_the_processor() -> None:
    clock = _Clock()
    account = WorkAccount(clock, slowed_after=0)
    account.charge(PAUSED_WORK_SECONDS_MIN)
    done, ready_at = 0.0, [0.0] * 20
    while clock.now < 1:
        for number, due in enumerate(ready_at):
            if due <= clock.now:
                account.charge(FRAME_SECONDS)
                done += FRAME_SECONDS
                ready_at[number] = clock.now + account.pop_pause()
        clock.now += FRAME_SECONDS
    assert done == pytest.approx(FRUITLESS_SLOWED_SHARE, rel=0.1)


def test_strangers_are_slowed_sooner_than_a_peer() -> None:
    ledger = Ledger(_Clock())
    strangers, peer = ledger.of_strangers("a"), ledger.of_peer(PeerId(b"p"))
    for account in (strangers, peer):
        account.charge(STRANGERS_SLOWED_SECONDS + PAUSED_WORK_SECONDS_MIN)
    assert strangers.pop_pause() > 0
    assert peer.pop_pause() == 0


def test_a_pause_ends_though_the_clock_is_set_back() -> None:
    clock = _Clock()
    clock.now = 1000.0
    account = WorkAccount(clock, slowed_after=0)
    account.charge(1.0)
    account.pop_pause()
    clock.now = 1.0
    assert account.pop_pause() <= SLOWED_PAUSE_SECONDS_MAX


def test_a_piece_of_work_earns_back_its_own_cost_alone() -> None:
    account = _account()
    good, bad = WorkBill(account), WorkBill(account)
    good.charge(1)
    bad.charge(2)
    good.earn()
    bad.earn(0.25)
    assert account.fruitless == pytest.approx(1.5)


def test_strangers_of_a_network_share_an_account_and_only_so_many_are_remembered() -> None:
    ledger = Ledger(_Clock())
    assert ledger.of_strangers("a") is ledger.of_strangers("a")
    assert ledger.of_strangers("a") is not ledger.of_strangers("b")
    assert ledger.of_peer(PeerId(b"p")) is ledger.of_peer(PeerId(b"p"))
    guilty = ledger.of_strangers("a")
    guilty.charge(10)
    for number in range(ACCOUNTS_MAX + 1):
        ledger.of_peer(PeerId(number.to_bytes(4, "big")))
    assert len(ledger) == ACCOUNTS_MAX
    assert ledger.of_strangers("a") is guilty, "one that owes something is kept before others"


def test_what_is_dear_makes_slices_smaller_at_once_and_what_is_cheap_larger_by_and_by() -> None:
    pace = SlicePace()
    first = pace.count
    pace.note(first, SLICE_SECONDS / 4)
    assert first < pace.count < 4 * first
    pace.note(pace.count, 1.0)
    assert pace.count < first
    for _ in range(20):
        pace.note(1, 0.004)  # mostly the transaction
    assert pace.count < first
    pace.note(2, 100.0)
    assert pace.count == 1


async def test_an_expensive_account_delays_only_itself() -> None:
    lock, order = FairLock(), list[str]()
    dear, cheap = _account(), _account()

    async def work(name: str, account: WorkAccount, seconds: float) -> None:
        bill = WorkBill(account)
        async with lock.held(bill, 1000):
            order.append(name)
            bill.charge(seconds)

    async with trio.open_nursery() as nursery, lock.held(WorkBill(_account())):
        for _ in range(3):
            nursery.start_soon(work, "dear", dear, 1.0)
            await wait_all_tasks_blocked()
        for _ in range(20):
            nursery.start_soon(work, "cheap", cheap, 0.04)
            await wait_all_tasks_blocked()
    assert order[:2] == ["dear", "cheap"]
    assert order.index("dear", 1) >= 20, "a second of one account is worth twenty-five slices of the other"
    assert len(order) == 23


async def test_an_account_that_has_worked_alone_does_not_wait_for_ever_after() -> None:
    lock, order = FairLock(), list[str]()
    old, new = _account(), _account()
    for _ in range(100):
        bill = WorkBill(old)
        async with lock.held(bill):
            bill.charge(1.0)

    async def work(name: str, account: WorkAccount) -> None:
        bill = WorkBill(account)
        async with lock.held(bill):
            order.append(name)
            bill.charge(0.5)

    async with trio.open_nursery() as nursery, lock.held(WorkBill(_account())):
        nursery.start_soon(work, "old", old)
        for _ in range(10):
            nursery.start_soon(work, "new", new)
        await wait_all_tasks_blocked()
    assert order.index("old") < 6


async def test_slices_of_an_account_that_owes_go_after_requests_of_the_user_one_at_a_time(
    autojump_clock: MockClock,
) -> None:
    requests, slices = UserRequests(lambda: 0.0), list[str]()
    lock = FairLock(8, GivingWay(requests, 0.02))
    ledger = Ledger(trio.current_time)
    owes, useful, own = (ledger.of_peer(PeerId(name * 32)) for name in (b"o", b"u", NOBODY))
    owes.charge(GIVING_WAY_FRUITLESS_SECONDS + 0.1)
    useful.charge(GIVING_WAY_FRUITLESS_SECONDS)
    own.charge(1.0)

    async def work(name: str, account: WorkAccount) -> None:
        async with lock.held(WorkBill(account)):
            slices.append(name)

    async with trio.open_nursery() as nursery:
        with requests.at_work():
            for _ in range(5):
                nursery.start_soon(work, "owes", owes)
            nursery.start_soon(work, "useful", useful)
            nursery.start_soon(work, "own", own)
            await trio.sleep(0.01)
            assert sorted(slices) == ["own", "useful"]
            await trio.sleep(0.04)
            assert slices.count("owes") == 2
        await wait_all_tasks_blocked()
        assert slices.count("owes") == 5


async def test_short_work_of_an_account_goes_first_and_long_work_is_not_kept_waiting_for_ever() -> None:
    lock, order, account = FairLock(), list[str](), _account()

    async def work(name: str, count: int) -> None:
        async with lock.held(WorkBill(account), count):
            order.append(name)

    async with trio.open_nursery() as nursery, lock.held(WorkBill(account)):
        nursery.start_soon(work, "long", SHORT_COUNT_MAX + 1)
        await wait_all_tasks_blocked()
        for number in range(12):
            nursery.start_soon(work, f"short {number}", SHORT_COUNT_MAX)
        await wait_all_tasks_blocked()
    assert order.index("long") == 8, "after as many as may overtake it"
    assert len(order) == 13


@pytest.mark.parametrize("when", ["waiting", "handed over"])
async def test_who_is_cancelled_while_it_waits_holds_up_nobody(when: str) -> None:
    lock, scope = FairLock(), trio.CancelScope()

    async def wait() -> None:
        with scope:
            async with lock.held(WorkBill(_account())):
                raise AssertionError("it was cancelled")

    with fail_after(1):
        async with trio.open_nursery() as nursery, lock.held(WorkBill(_account())):
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            scope.cancel()
            if when == "waiting":
                await wait_all_tasks_blocked()
        async with lock.held(WorkBill(_account())):
            pass


@pytest.mark.parametrize(
    "ticks_of_slice, is_at_work, least", [(0.6, False, 3), (0.1, False, 1), (0.11, True, 6)]
)
async def test_a_batch_is_stored_in_slices_and_whole_at_the_end(
    tmp_path: Path,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    ticks_of_slice: float,
    is_at_work: bool,
    least: int,
) -> None:
    """In shorter ones while a request of the user is at work."""
    items = world.write("a, a <- b, b <- c, c <- d, d <- e, e <- f")
    replica, branch = world.copy()
    topic = writing_topic(replica, branch)
    ticks = count()
    with open_nodes(tmp_path, "alice") as (alice,):
        hub = alice.hub
        monkeypatch.setattr(hub, "replica", replica)
        monkeypatch.setattr(hub.intake, "_replica", replica)
        monkeypatch.setattr(hub.intake, "_cpu_clock", lambda: next(ticks) * ticks_of_slice * SLICE_SECONDS)
        transactions = 0
        write = replica.database.write

        def count_writes(*args: Any, **options: Any) -> Any:  # noqa: ANN401  # handed on
            nonlocal transactions
            transactions += 1
            return write(*args, **options)

        monkeypatch.setattr(replica.database, "write", count_writes)
        happened = trio.Event()
        happened.set()
        bill = WorkBill(WorkAccount(_Clock()))
        with hub.user_requests.at_work() if is_at_work else nullcontext():
            ingested = await hub.intake.ingest(topic, items, happened, None, bill)
        assert len(ingested.accepted[topic.topic]) == 6
        assert ingested.left == []
        assert least <= transactions <= least + 3
        assert bill.total > least * ticks_of_slice * SLICE_SECONDS


async def test_a_peer_over_its_budget_is_told_and_left_and_not_taken_again(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "FRUITLESS_SECONDS_MAX", 100e-6)
    monkeypatch.setattr(scheduling, "FRUITLESS_SLOWED_SECONDS", 40e-6)
    with open_nodes(tmp_path, "alice") as (alice,):
        for _ in range(2):
            async with met(alice) as stranger:
                await stranger.say(*[KeepAlive()] * 10)
                assert await stranger.hear(Goodbye) == Goodbye("over_budget")
            assert stranger.ended == Ended("over_budget")


async def test_a_peer_that_joins_a_topic_has_an_account_of_its_own(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        alice.hub.ledger.of_strangers("").charge(1.0)
        async with met(alice) as stranger:
            await stranger.join(alice.epoch().topic)
            (account,) = (one.account for one in alice.hub.sources if hasattr(one, "account"))
            assert account is not alice.hub.ledger.of_strangers("")
            assert account.fruitless < 0.9
            await stranger.stream.aclose()


async def test_a_relay_gives_strangers_as_much_time_as_peers(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,), open_relay(tmp_path) as relay:
        for node in (alice, relay):
            async with met(node):
                await wait_all_tasks_blocked()
                (account,) = (one.account for one in node.hub.sources if hasattr(one, "account"))
                account.charge(STRANGERS_SLOWED_SECONDS + PAUSED_WORK_SECONDS_MIN)
                assert (account.pop_pause() == 0) == (node is relay)
