"""The store stays under the bound on its size: old contents of others leave by days that all repos share."""

import os
from collections.abc import AsyncIterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.care import disk_bound
from node.care.disk_bound import RAISED_SECONDS, STEPS, choose_days
from node.care.freeing import SpaceFreeing
from node.care.fsck import check_store
from node.care.giving_up import PostAges
from node.content.file_fetching import FileFetcher
from node.sync.hub import Hub
from node.sync.kept_parts import find_keepers, keep_contents
from protocol.limits.formats import LEAF_SIZE
from storage.blobs.old_sizes import measure_store
from storage.engine.database import StorageError
from storage.repos.repos import DAY_MS
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node, open_nodes, share
from tests.unit.node.care.test_giving_up import NOW_MS, START_MS, _exclude, erase, online, opened, posts, rule
from tests.unit.node.care.test_giving_up_files import _files, _stream, places, read

pytestmark = pytest.mark.slow
DATA = os.urandom(4 * LEAF_SIZE)
OLD = [os.urandom(20_000).hex() for _ in range(5)]
"""Posts whose bodies make up most of a small store."""
DAY = 86_400.0
OF_CAROL, OF_LATE = "of carol", "of late"
ALL = {*OLD, OF_CAROL, OF_LATE}
FRESH_MS = NOW_MS - 5 * DAY_MS


@pytest.fixture
async def nodes(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[list[Node]]:
    """Alice, carol and bob on the 200th day. Alice wrote long posts and added a file on the first, which carol has opened.

    Carol wrote one then, and alice one five days ago.
    """
    with open_nodes(tmp_path, "alice", "carol", "bob") as (alice, carol, bob):
        await share(alice, carol, bob)
        for text in OLD:
            alice.write(alice.branch(), text)
        await _files(alice).add("main", "old", _stream(DATA))
        async with online((carol, alice), seconds=DAY):
            carol.write(carol.branch(), OF_CAROL)
        for node in (alice, carol, bob):
            node.set_clock(FRESH_MS)
        alice.write(alice.branch(), OF_LATE)
        for node in (alice, carol, bob):
            node.set_clock(NOW_MS)
        async with online((carol, alice), seconds=DAY):
            assert await read(carol) == DATA
        yield [alice, carol, bob]


def _size(node: Node) -> int:
    with node.replica.database.read() as connection:
        return measure_store(node.replica.database, connection)


def _bound(node: Node, size_max: int) -> SpaceFreeing:
    """Bound a node's store from now on, as a start with that configuration does."""
    node.hub.bound.size_max = size_max
    return SpaceFreeing(node.hub, node.author.user)


async def _here(node: Node) -> set[str | None]:
    """Texts of the posts that are here."""
    return {*await posts(node)} - {None}


async def _look(freeing: SpaceFreeing, times: int = 4, seconds: float = disk_bound.LOOK_SECONDS) -> None:
    for _ in range(times):
        await freeing.look()
        await trio.sleep(seconds)


def _state(node: Node) -> tuple[str, int]:
    return node.hub.bound.state, node.repo().bound_days


async def test_files_leave_first_and_no_more_than_has_to(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    size_max = _size(carol) - LEAF_SIZE
    freeing = _bound(carol, size_max)
    async with online((carol, alice), seconds=DAY):
        await _look(freeing)
        assert _state(carol) == ("under", 180), "the most days that suffice"
        assert _size(carol) <= size_max
        assert await places(carol) == ["away"]
        assert await _here(carol) == ALL
        assert await read(carol) == DATA, "it comes when it is opened, and leaves again"
        await _look(freeing)
        assert _size(carol) <= size_max
        assert await places(carol) == ["away"]


async def test_posts_leave_where_files_do_not_suffice_and_own_ones_stay(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    freeing = _bound(carol, _size(carol) - len(DATA) - 60_000)
    async with online((carol, alice), seconds=DAY):
        await _look(freeing)
        assert carol.hub.bound.state == "under"
        assert await _here(carol) == {OF_CAROL, OF_LATE}
        assert await _here(alice) == ALL
        assert {*await opened(carol)} == ALL
    carol.replica.close()
    assert check_store(tmp_path / "carol", STORE_KEY).problems == []
    carol.open()
    assert carol.repo().kept_days == 180, "a start tells peers the same"


async def test_peers_are_told_before_they_show_anything(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """So none gives up for carol's sake what she gives up for its."""
    alice, carol, _ = nodes
    freeing, told = _bound(carol, _size(carol) - LEAF_SIZE), list[bool]()
    write = Hub.write

    async def look_then_write(self: Hub, *work: Any) -> object:  # noqa: ANN401  # as `write` takes it
        if self is carol.hub and getattr(work[0], "__name__", "") == "_give_up_file":
            topics = alice.replica.topics.values()
            told.append(not any(find_keepers(alice.hub, topic, alice.branch().num) for topic in topics))
        return await write(self, *work)

    monkeypatch.setattr(Hub, "write", look_then_write)
    async with online((carol, alice), seconds=DAY):
        await _look(freeing)
    assert told == [True]


async def test_what_only_this_node_has_stays_and_is_said(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    erase(alice, [*OLD, OF_CAROL])
    freeing = _bound(carol, 100_000)
    async with online((carol, alice), seconds=DAY):
        await _look(freeing, 6, 900)
        assert _state(carol) == ("stuck", 180), "fewer days would have nothing more go"
        assert await _here(carol) == ALL
        assert await places(carol) == ["away"]
        assert carol.hub.bound.size > 100_000


async def test_fewer_days_are_kept_where_nobody_shows_what_is_older(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    erase(alice, [*OLD, OF_CAROL])
    for node, days in ((alice, 20), (carol, 20)):
        node.set_clock(NOW_MS + days * DAY_MS)
    freeing = _bound(carol, 100_000)
    async with online((carol, alice), seconds=DAY):
        await _look(freeing, 6, 900)
        assert _state(carol) == ("stuck", 14)
        assert await _here(carol) == {*OLD, OF_CAROL}


async def test_nothing_leaves_while_nobody_is_connected_and_the_days_stay(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    freeing = _bound(carol, 100_000)
    await _look(freeing, 1)
    assert _state(carol) == ("under", 0), "nobody has had time to connect yet"
    await _look(freeing, 4, 900)
    assert _state(carol) == ("alone", 0)
    assert await _here(carol) == ALL
    async with online((carol, alice), seconds=DAY):
        await _look(freeing, 3)
        assert await places(carol) == ["away"], "at the next look, once somebody is"


async def test_who_is_a_member_of_nothing_waits_for_no_computer(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    carol = nodes[1]
    _exclude(monkeypatch, carol.author.user)
    await _look(_bound(carol, 100_000), 3)
    assert carol.hub.bound.state == "stuck"


async def test_two_whose_stores_are_full_give_nothing_up_for_each_other(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, bob = nodes
    async with online((bob, alice)):
        pass
    both = [_bound(node, 100_000) for node in (carol, bob)]
    async with online((carol, alice), (bob, alice)):
        for freeing in both:
            await freeing._bound.look(is_freed=True)
    async with online((carol, bob)):
        for freeing in both:
            await _look(freeing)
    for node in (carol, bob):
        assert await _here(node) == ALL
        assert node.hub.bound.state == "alone"


async def test_days_go_up_a_step_at_a_time_and_only_for_what_fits(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    freeing = _bound(carol, _size(carol) - len(DATA) - 60_000)
    async with online((carol, alice), seconds=10 * DAY):
        await _look(freeing)
        small = _size(carol)
        carol.hub.bound.size_max = small * 2
        await _look(freeing, 2)
        assert _state(carol) == ("under", 180), "not at once"
        carol.hub.bound.size_max = small * 4 // 3 + 20_000
        await _look(freeing, 4, RAISED_SECONDS)
        assert _state(carol) == ("under", 180), "what would come again does not fit"
        carol.hub.bound.size_max = small * 2
        seen = []
        for _ in range(8):
            await _look(freeing, 1, RAISED_SECONDS + 1)
            seen.append(carol.repo().bound_days)
        assert seen == [365, 730, 1095, 1825, 3650, 0, 0, 0]
        assert await _here(carol) == ALL
        assert _size(carol) < carol.hub.bound.growing_max, "so it does not go down again"


@pytest.mark.parametrize("rows_in", ["postgresql"], indirect=True)
async def test_posts_stay_where_they_take_nothing_of_what_is_bounded(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    await _files(carol).add("main", "own", _stream(os.urandom(LEAF_SIZE)))
    carol.set_clock(NOW_MS + 20 * DAY_MS)
    freeing = _bound(carol, LEAF_SIZE // 2)
    async with online((carol, alice), seconds=10 * DAY):
        await _look(freeing, 6, 900)
        assert _state(carol) == ("stuck", 180)
        assert await places(carol) == ["away", "only_here"]
        assert await _here(carol) == ALL


async def test_what_a_look_gave_up_before_it_failed_is_freed_first(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    freeing = _bound(carol, _size(carol) - LEAF_SIZE)

    async def fail(self: PostAges, *_: object) -> int:
        raise StorageError("the disk is full")

    async with online((carol, alice), seconds=DAY):
        with monkeypatch.context() as failing:
            failing.setattr(PostAges, "_look_at", fail)
            keep_contents(carol.replica, carol.repo(), None, 100, carol.now())
            with pytest.raises(StorageError):
                await freeing.look()
        keep_contents(carol.replica, carol.repo(), None, 0, carol.now())
        await _look(freeing)
        assert _state(carol) == ("under", 180)
        assert await _here(carol) == ALL, "what was given up before made room enough"


async def test_a_bound_that_is_taken_away_leaves_what_this_user_chose(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    keep_contents(carol.replica, carol.repo(), None, 365, carol.now())
    freeing = _bound(carol, 100_000)
    async with online((carol, alice), seconds=DAY):
        await _look(freeing)
        assert (carol.repo().chosen_days, carol.repo().kept_days) == (365, 180)
        keep_contents(carol.replica, carol.repo(), None, 90, carol.now())
        assert carol.repo().kept_days == 90
    carol.hub.bound.size_max = 0
    await freeing.look()
    assert (carol.repo().kept_days, carol.repo().bound_days) == (90, 0)


async def test_a_repo_that_comes_later_has_the_same_days(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    freeing = _bound(carol, 100_000)
    async with online((carol, alice), seconds=DAY):
        await _look(freeing, 1)
    made, _ = carol.create_repo("later")
    assert carol.replica.repos[made.num].bound_days == 180


async def test_files_that_nobody_has_opened_come_while_there_is_room(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, bob = nodes
    async with online((bob, alice)):
        keep_contents(bob.replica, bob.repo(), None, keeps_files=True)
        bob.hub.proofs.rule_changed(bob.repo().num)
        fetcher = FileFetcher(bob.hub, _files(bob))
        bob.hub.bound.size_max = _size(bob) * 8 // 7
        await fetcher.look()
        assert await places(bob) == ["away"]
        bob.hub.bound.size_max = 0
        await fetcher.look()
        assert await places(bob) == ["here"]


def _older(**bytes_of: int) -> list[int]:
    """Bytes that each step of days gives: a step gives what those before it give, too."""
    found, total = list[int](), 0
    for days in STEPS:
        total += bytes_of.get(f"d{days}", 0)
        found.append(total)
    return found


@pytest.mark.parametrize(
    "older, days, excess, is_fruitless, chosen",
    [
        (_older(d365=50, d30=60), 0, 40, False, 365),
        (_older(d365=50, d30=60), 0, 51, False, 30),
        (_older(d365=50, d30=60), 0, 500, False, 30),  # not fewer days than have anything to give
        (_older(d365=50, d30=60), 365, 40, False, 365),  # they have room to make yet
        (_older(d365=50, d30=60), 365, 40, True, 30),  # nobody shows that
        (_older(d365=50, d30=60), 30, 40, True, None),
        (_older(), 0, 40, False, None),
        (_older(d365=50), 7, 40, False, 7),
        (_older(d365=50), 3, 40, True, None),  # of a version with other steps
    ],
)
def test_the_most_days_that_make_room_are_chosen(
    older: list[int], days: int, excess: int, is_fruitless: bool, chosen: int | None
) -> None:
    assert choose_days(older, days, excess, is_fruitless=is_fruitless) == chosen


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(4))
async def test_what_its_author_cannot_bring_back_is_always_on_some_node(
    tmp_path: Path, seed: int, autojump_clock: MockClock
) -> None:
    """Three nodes have bounds and rules of their own as chance has it, meet, and start anew. The author is gone."""
    chance = Random(seed)
    with open_nodes(tmp_path, "dave", "alice", "carol", "bob") as (dave, *others):
        await share(dave, *others)
        for text in OLD:
            dave.write(dave.branch(), text)
        await _files(dave).add("main", "old", _stream(DATA))
        for node in others:
            async with online((node, dave)):
                if node is not others[0]:
                    assert await read(node) == DATA
        days = 200
        freeing = dict.fromkeys(others, 0)
        run = {node: _bound(node, chance.choice([0, 100_000]) if seed else 100_000) for node in others}
        for act in range(12):
            days += chance.randrange(200)
            for node in others:
                node.set_clock(START_MS + days * DAY_MS)
                what = chance.randrange(4) if act else 3
                if what == 0:
                    node.hub.bound.size_max = chance.choice(
                        [0, 100_000, 100_000, _size(node) - 50_000, _size(node) * 2]
                    )
                elif what == 1:
                    rule(node, chance.choice([0, 0, 30]))
                elif what == 2:  # as after a kill: nothing is told or waited for
                    size_max = node.hub.bound.size_max
                    node.replica.close()
                    node.open(node.now())
                    node.hub.bound.size_max = size_max
                    run[node] = SpaceFreeing(node.hub, node.author.user)
            pairs = list(combinations(others, 2))
            met = chance.sample(pairs, chance.randrange(1, 4) if act else 3)
            async with online(*met, seconds=DAY), trio.open_nursery() as nursery:
                for node in {id(one): one for pair in met for one in pair}.values():
                    nursery.start_soon(_look, run[node], 3, chance.choice([1.0, 60.0, 900.0]))
                if chance.random() < 0.3:
                    await opened(chance.choice(met)[0])
            held = [await _here(node) for node in others]
            assert set.union(*held) >= set(OLD)
            there = [await places(node) for node in others]
            assert ["here"] in there or ["only_here"] in there
            freeing = {
                node: freeing[node] + (len(here) < len(OLD)) for node, here in zip(others, held, strict=True)
            }
        for node in others:
            node.replica.close()
            assert check_store(node.folder, STORE_KEY).problems == []
            node.open(node.now())
    assert any(freeing.values()), "some gave something up"
