"""Several peers that hold what a newcomer lacks: one at a time brings it, and another goes on where that one ends."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.sync.connection import Connection
from node.sync.topic_work import TopicWork
from protocol.limits.peers import BATCHES_IN_FLIGHT_MAX, BULK_LOOK_SECONDS
from protocol.session.outputs import LoadPlan
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes, share, until_equal
from tests.support.relays import until

pytestmark = pytest.mark.slow
_POSTS, _BATCH = 100, 8


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("node.sync.windows", "node.sync.bulk_turns"):
        monkeypatch.setattr(f"{name}.WINDOW_BEHIND_MIN", 30)
    monkeypatch.setattr("protocol.session.transfer.BATCH_COUNT_MAX", _BATCH)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[Node]]:
    """Alice and carol who hold all, and bob who has a link."""
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, carol)
        for number in range(_POSTS):
            alice.write(alice.branch(), str(number))
        async with connected(carol, alice):
            await until_equal(carol, alice)
        await bob.joiner.begin(alice.invite(alice.repo()))
        yield [alice, bob, carol]


def _received(node: Node, connection: Connection) -> int:
    """How many publications of posts came on a connection, also ones that were here."""
    topic = node.epoch().writers_topic
    assert topic is not None
    progress = connection.session.progress_of(topic)
    return 0 if progress is None else progress.came


async def test_two_peers_that_hold_the_same_bring_it_once(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    async with connected(bob, alice) as (first, _), connected(bob, carol) as (second, _):
        await until_equal(bob, alice)
        await trio.sleep(2 * BULK_LOOK_SECONDS)
        counts = [_received(alice, one) for one in (first, second)]
        assert sum(counts) <= _POSTS + BATCHES_IN_FLIGHT_MAX * _BATCH, counts
        alice.write(alice.branch(), "later")
        async with connected(alice, carol):
            await until_equal(bob, alice)
            topic = alice.epoch().writers_topic
            assert topic is not None
            await until(lambda: all(one.is_level(topic) for one in bob.hub.sources))


async def test_the_other_goes_on_where_the_first_is_cut(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, carol = nodes
    async with AsyncExitStack() as stack, connected(bob, carol) as (second, _):
        first, _ = await stack.enter_async_context(connected(bob, alice))
        await until(lambda: _received(alice, first) + _received(alice, second) > _POSTS // 3)
        by_first = _received(alice, first) > _received(alice, second)
        await stack.aclose()
        await until_equal(bob, carol)
        assert ids(bob) == ids(alice)
        assert by_first or _received(alice, second) <= _POSTS + 2


async def test_a_peer_that_says_to_have_much_and_brings_nothing_holds_the_others_back_for_seconds(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, carol = nodes
    plan, topic = TopicWork.plan, alice.epoch().writers_topic

    def withhold(work: TopicWork, wanted: LoadPlan) -> None:
        if work._hub is not alice.hub or wanted.topic != topic:
            plan(work, wanted)

    monkeypatch.setattr(TopicWork, "plan", withhold)
    async with connected(bob, alice):
        await trio.sleep(5)
        began = trio.current_time()
        async with connected(bob, carol):
            await until_equal(bob, carol)
        assert trio.current_time() - began < 2 * BULK_LOOK_SECONDS
