"""Bodies that commits came without are asked of anyone who is connected, and who has none of them only delays that."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from sqlalchemy import Connection, insert
from trio.testing import MockClock

from node.authoring.author import Author
from node.care.fsck import check_store
from node.sync import body_fetching
from node.sync.body_fetching import BodyFetcher, _Peer
from node.timelines.views import timeline_items
from protocol.formats.content import Post
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId, ItemId, TopicKey
from protocol.limits.peers import (
    BODIES_LOOK_SECONDS,
    BODIES_PASS_MAX_SECONDS,
    BODIES_PASS_SECONDS,
    FETCH_TIMEOUT_SECONDS,
    IDLE_TIMEOUT_SECONDS,
    WANT_COUNT_MAX,
)
from storage.commits.absent_bodies import find_topics_missing_bodies, load_commits_missing_bodies
from storage.commits.commits import load_timeline
from storage.repos.epochs import Epoch
from storage.schema.schema import damaged_commits
from tests.support.builders import STORE_KEY, give, publications_of, writing_topic
from tests.support.forging import bare_of
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.sources import Source


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


class _Source(Source):
    """A connected peer that follows all topics, and notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[ItemId, ...]] = []

    def want(self, topic: TopicKey, ids: tuple[CommitId, ...]) -> None:
        self.asked.append(ids)


class _Elsewhere(Source):
    """A connected peer that follows other topics."""

    def has_joined(self, _topic: TopicKey) -> bool:
        return False


class _Follower(_Source):
    """One that follows one topic."""

    def __init__(self, topic: TopicKey) -> None:
        super().__init__()
        self._topic = topic

    def has_joined(self, topic: TopicKey) -> bool:
        return topic == self._topic


class _Answerer(_Source):
    """One of this version that has none of the bodies, and says so; or says nothing."""

    answers_bodies = True

    def __init__(self, says: int | None = 0) -> None:
        super().__init__()
        self._says = says

    def want_bodies(self, _topic: TopicKey, ids: tuple[ItemId, ...]) -> bool:
        self.asked.append(ids)
        return True

    def bodies_found(self, _topic: TopicKey) -> int | None:
        return self._says


def _publications(node: Node) -> list[bytes]:
    """Of all posts."""
    return publications_of(node.replica, node.branch())[1:]


def _texts(node: Node) -> list[object]:
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, node.branch().num, 1, 1000)
        return [item["text"] for item in timeline_items(connection, node.replica, rows, 1)]


def _is_awaiting(node: Node) -> bool:
    with node.replica.database.read() as connection:
        return bool(find_topics_missing_bodies(connection))


@asynccontextmanager
async def _fetching(node: Node) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(BodyFetcher(node.hub).run)
        yield
        nursery.cancel_scope.cancel()


async def _all_there(node: Node) -> None:
    while _is_awaiting(node):
        await node.hub.changes.wait(node.hub.changes.count)


async def _strip(alice: Node, carol: Node, count: int) -> list[bytes]:
    """Alice's posts, of which carol has the commits and no bodies."""
    await share(alice, carol)
    for number in range(count):
        alice.write(alice.branch(), f"post {number}")
    items = _publications(alice)
    give(carol.replica, [bare_of(item) for item in items])
    assert carol.digest(carol.branch()) == alice.digest(alice.branch())
    return items


async def test_writes_do_not_make_it_look_and_a_commit_without_its_body_does(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    items = await _strip(alice, carol, 0)
    looks: list[dict[int, int]] = []

    def look(connection: Connection) -> dict[int, int]:
        looks.append(find_topics_missing_bodies(connection))
        return looks[-1]

    monkeypatch.setattr(body_fetching, "find_topics_missing_bodies", look)
    async with _fetching(carol):
        await trio.sleep(1)
        for number in range(3):
            carol.hub.announce(carol.write(carol.branch(), f"own {number}"))
            await trio.sleep(BODIES_LOOK_SECONDS * 2)
        assert looks == [{}]
        alice.write(alice.branch(), "stripped")
        [item] = _publications(alice)[len(items) :]
        carol.hub.announce(give(carol.replica, [bare_of(item)]))
        await trio.sleep(BODIES_LOOK_SECONDS / 2)
        assert [list(one) for one in looks] == [[], [writing_topic(carol.replica, carol.branch()).num]]


@pytest.mark.slow
async def test_bodies_that_somebody_stripped_come_from_who_has_them(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    await _strip(alice, carol, 5)
    assert _texts(carol) == [None] * 5
    async with _fetching(carol), connected(carol, alice):
        with fail_after(10):
            await _all_there(carol)
    assert _texts(carol) == [f"post {number}" for number in range(5)]
    carol.replica.close()
    assert check_store(tmp_path / "carol", STORE_KEY).problems == []
    carol.open()


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.sqlite  # its rule is not about rows, and PostgreSQL takes 15 s for it
async def test_who_withholds_bodies_delays_them_and_is_asked_once_while_it_is_connected(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    items = await _strip(alice, carol, WANT_COUNT_MAX + 1)
    silent, another = _Source(), _Source()
    carol.hub.sources.append(silent)
    latest = tuple(decode_publication(item).commit_id for item in reversed(items))[:WANT_COUNT_MAX]
    async with _fetching(carol):
        await trio.sleep(FETCH_TIMEOUT_SECONDS / 2)
        carol.hub.sources.append(another)
        await trio.sleep(FETCH_TIMEOUT_SECONDS / 2 - 1)
        assert another.asked == [], "one is asked at a time"
        await trio.sleep(10 * FETCH_TIMEOUT_SECONDS)
        assert silent.asked == another.asked == [latest], "for the latest, as many as one message takes"
        async with connected(carol, alice):
            with fail_after(10):
                await _all_there(carol)
        assert silent.asked == [latest]
    assert None not in _texts(carol)


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.sqlite  # its rule is not about rows, and PostgreSQL takes 15 s for it
async def test_who_gives_some_is_asked_for_the_others_and_who_leaves_is_not_waited_for(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    items = await _strip(alice, carol, WANT_COUNT_MAX + 1)
    generous, leaving = _Source(), _Source()
    carol.hub.sources.append(generous)
    async with _fetching(carol):
        await trio.sleep(10)
        carol.hub.announce(give(carol.replica, items[-1:]))
        await trio.sleep(FETCH_TIMEOUT_SECONDS / 2)
        assert len(generous.asked) == 1
        await trio.sleep(FETCH_TIMEOUT_SECONDS)
        assert [len(ids) for ids in generous.asked] == [WANT_COUNT_MAX, 1]
        await trio.sleep(2 * FETCH_TIMEOUT_SECONDS)
        carol.hub.sources.append(leaving)
        carol.hub.absences.ring()  # as when it joins the topic
        await trio.sleep(10)
        carol.hub.sources[:] = [_Source()]
        await trio.sleep(10)
        (last,) = carol.hub.sources
        assert isinstance(last, _Source)
        assert (len(leaving.asked), len(last.asked)) == (1, 1)


@pytest.mark.slow
async def test_who_had_all_before_is_asked_for_what_comes_bare_later(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    await _strip(alice, carol, 2)
    async with _fetching(carol), connected(carol, alice):
        with fail_after(10):
            await _all_there(carol)
        await trio.sleep(10)
        silent = _Source()
        carol.hub.sources.append(silent)
        _, ingested = alice.author.write(alice.branch(), Post("not told to carol"))
        assert len(ingested.accepted) == 1
        item = _publications(alice)[-1]
        carol.hub.announce(give(carol.replica, [bare_of(item)]))
        assert _is_awaiting(carol)
        with fail_after(2 * FETCH_TIMEOUT_SECONDS):
            await _all_there(carol)
    assert _texts(carol)[-1] == "not told to carol"


@pytest.mark.slow
async def test_members_who_erased_send_the_bare_ones_again_and_nothing_changes(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    await share(alice, bob, carol)
    for text in ("one", "two"):
        alice.write(alice.branch(), text)
    items = _publications(alice)
    give(carol.replica, [bare_of(item) for item in items])
    give(bob.replica, [bare_of(item) for item in items])
    async with _fetching(carol), _fetching(bob), connected(carol, bob):
        await until_equal(carol, bob)
        await trio.sleep(10 * FETCH_TIMEOUT_SECONDS)
        assert _texts(carol) == _texts(bob) == [None, None]
    async with _fetching(carol), connected(carol, alice):
        with fail_after(10):
            await _all_there(carol)
    async with _fetching(bob), connected(bob, carol):
        with fail_after(10):
            await _all_there(bob)
    assert _texts(bob) == ["one", "two"]


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.sqlite  # its rule is not about rows, and PostgreSQL takes 15 s for it
async def test_who_says_that_it_has_none_is_asked_for_all_and_again_after_a_while(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    await _strip(alice, carol, 2 * WANT_COUNT_MAX + 1)
    first, second, silent = _Answerer(), _Answerer(), _Answerer(None)
    carol.hub.sources += [first, second]
    everything = [WANT_COUNT_MAX, WANT_COUNT_MAX, 1]
    async with _fetching(carol):
        await trio.sleep(10 * BODIES_LOOK_SECONDS)
        assert [[len(ids) for ids in one.asked] for one in (first, second)] == [everything] * 2
        assert len({raw for ids in first.asked for raw in ids}) == 2 * WANT_COUNT_MAX + 1
        carol.hub.sources.append(silent)
        carol.hub.absences.ring()
        await trio.sleep(BODIES_PASS_SECONDS / 2)
        assert (len(first.asked), len(silent.asked)) == (3, 1), "who says nothing has a rest"
        await trio.sleep(BODIES_PASS_SECONDS / 2 + 60)
        assert len(first.asked) == len(second.asked) == 6
        await trio.sleep(BODIES_PASS_SECONDS)
        assert len(first.asked) == 6, "each time after twice as long"
        await trio.sleep(BODIES_PASS_SECONDS + 60)
        assert len(first.asked) == 9
        assert len(silent.asked) in (2, 3), "each time after twice as long"


class _Busy(_Answerer):
    """Answerer that takes no question at first: as many were asked as a connection takes without a pause."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    def want_bodies(self, topic: TopicKey, ids: tuple[ItemId, ...]) -> bool:
        self.refusals -= 1
        return self.refusals < 0 and super().want_bodies(topic, ids)


@pytest.mark.slow
async def test_who_takes_no_more_questions_now_is_asked_when_it_does(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    await _strip(alice, carol, 2)
    busy = _Busy(2)
    carol.hub.sources.append(busy)
    async with _fetching(carol):
        await trio.sleep(2 * IDLE_TIMEOUT_SECONDS / 3 - 1)
        assert (busy.refusals, busy.asked) == (0, [])
        await trio.sleep(BODIES_LOOK_SECONDS + 1)
    assert [len(ids) for ids in busy.asked] == [2]


def test_who_has_none_is_asked_ever_more_rarely_and_once_a_day_at_least() -> None:
    peer, now, waits = _Peer(cast(Any, _Answerer())), 0.0, []
    for _ in range(40):
        peer.end_pass(now)
        waits.append(peer.again_at - now)
        now = peer.again_at
        assert not peer.is_done(newest=1, now=now)
    assert waits[0] <= BODIES_PASS_SECONDS < waits[2]
    assert max(waits) <= BODIES_PASS_MAX_SECONDS
    assert min(waits[10:]) > BODIES_PASS_MAX_SECONDS / 2


@pytest.mark.slow
async def test_a_peer_that_comes_later_is_asked_when_it_joins_the_topic(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    await _strip(alice, carol, 2)
    async with _fetching(carol):
        await trio.sleep(3 * BODIES_PASS_SECONDS)
        began = trio.current_time()
        async with connected(carol, alice):
            with fail_after(10):
                await _all_there(carol)
        assert trio.current_time() - began < BODIES_LOOK_SECONDS
    assert not carol.hub.lacking_bodies


async def test_topics_that_no_connected_peer_has_joined_give_others_turns(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers of a relay make thousands of them, and one look at all stalled it for seconds."""
    carol = nodes[2]
    lacking = {body_fetching._OfRelay(num, TopicKey(num.to_bytes(32, "big"))): 1 for num in range(50)}
    fetcher = BodyFetcher(carol.hub)
    monkeypatch.setattr(fetcher, "_find_lacking", lambda: lacking)
    carol.hub.sources += [_Elsewhere() for _ in range(20)]
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        await fetcher._look()
        nursery.cancel_scope.cancel()
    assert turns >= len(lacking) - 5
    assert [peer for asking in fetcher._asking.values() for peer in asking.peers] == []


@pytest.mark.slow
async def test_a_relay_is_not_asked_for_what_is_damaged_and_lacks_its_body(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """What its publication was is not known here. A question without an id is a defect, for which a peer leaves."""
    alice, _, carol = nodes
    await _strip(alice, carol, 3)
    topic = writing_topic(carol.replica, carol.branch())
    with carol.replica.database.write() as connection:
        nums = [num for num, _ in load_commits_missing_bodies(connection, topic.num, 1 << 62, 0, 3)]
        damaged = {"commit_num": nums[1], "topic_num": topic.num}
        connection.execute(insert(damaged_commits).values(damaged))
    monkeypatch.setattr(body_fetching, "WANT_COUNT_MAX", 1)
    relay = _Answerer()
    relay.compares_publications = True
    carol.hub.sources.append(relay)
    async with _fetching(carol):
        await trio.sleep(10 * BODIES_LOOK_SECONDS)
    assert [len(ids) for ids in relay.asked] == [1, 1]


async def test_bodies_are_asked_for_by_the_topics_of_their_commits(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """A post of who lacks the writers' secret is on the epoch's own topic, which another peer may follow."""
    alice, _, carol = nodes
    await share(alice, carol)
    alice.write(alice.branch(), "on the writers' topic")
    with monkeypatch.context() as lacking:
        lacking.setattr(Epoch, "writers_seed", None)
        another = Author(alice.replica, alice.user_seed, lambda: 1_800_000_000_000)
        another.write(alice.branch(), Post("on the own topic"))
    items = _publications(alice)
    give(carol.replica, [bare_of(item) for item in items])
    said = [decode_publication(item) for item in items]
    followers = [_Follower(one.topic) for one in said]
    assert len({one.topic for one in said}) == 2
    carol.hub.sources += followers
    async with _fetching(carol):
        await trio.sleep(BODIES_LOOK_SECONDS * 2)
    assert [one.asked for one in followers] == [[(one.commit_id,)] for one in said]
