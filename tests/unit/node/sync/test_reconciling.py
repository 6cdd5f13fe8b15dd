"""What differs between two nodes is found at a cost of its own, whatever both hold, and nothing else is sent."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection as StoreConnection
from sqlalchemy import text
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.sync import session_queries
from node.sync.connection import Connection
from node.sync.session_queries import RangeSet, StoredSet, topic_set
from protocol.crypto.hashing import symbol_key
from protocol.formats.content import Post
from protocol.ids import ItemId
from protocol.session.events import Reconciled
from protocol.session.outputs import OpenReconciliation
from protocol.session.reconciliation.range_items import END, START
from protocol.session.reconciliation.riblt import Prefix, prefix_length
from storage.repos.deletion import forget_repo
from storage.topics.difference import REPLICA
from storage.topics.sketches import _WRITTEN_FIRST, _WRITTEN_LEAVING, Sketches
from storage.topics.topic_sets import TopicSet, iterate_ids, load_set
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal


def _write(node: Node, count: int) -> None:
    drafts = [Draft(Post(f"post {number}")) for number in range(count)]
    node.author.write_many(node.branch(), lambda _: drafts)


async def _apart(alice: Node, bob: Node, common: int, each: int) -> None:
    """Both hold a common history, and have written on without one another."""
    await share(alice, bob)
    _write(alice, common)
    async with connected(bob, alice):
        await until_equal(alice, bob)
    for node in (alice, bob):
        _write(node, each)


def _sent(connection: Connection, node: Node) -> int:
    return next(one.sent for one in connection.topics if one.topic == node.epoch().writers_topic)


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 40, 400])
async def test_two_who_wrote_apart_send_what_the_other_lacks(
    tmp_path: Path, autojump_clock: MockClock, each: int
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _apart(alice, bob, 300, each)
        async with connected(bob, alice) as (of_bob, of_alice):
            await until_equal(alice, bob)
            assert (_sent(of_bob, bob), _sent(of_alice, alice)) == (each, each)


@pytest.mark.slow
@pytest.mark.parametrize("by_ranges", [True, False])
async def test_what_symbols_missed_is_found_by_ranges(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, by_ranges: bool
) -> None:
    """As if the symbols had hidden something: the check after the reconciliation sees it."""
    kinds: list[bool] = []

    def open_blindly(*arguments: object) -> Reconciled:
        work = arguments[-1]
        if isinstance(work, OpenReconciliation):
            kinds.append(work.by_ranges)
            if not work.by_ranges and by_ranges:
                return Reconciled(work.topic, (), (), is_over=True)
        return really(*arguments)  # type: ignore[arg-type]  # whatever it is given, it passes on

    really = session_queries.reconcile
    monkeypatch.setattr("node.sync.topic_work.reconcile", open_blindly)
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _apart(alice, bob, 300, 40)
        async with connected(bob, alice):
            await until_equal(alice, bob)
            await trio.sleep(100)
    assert kinds == ([False, False, True] if by_ranges else [False])


@pytest.mark.slow
async def test_what_is_asked_for_in_many_frames_comes_causes_first_all_the_same(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are named in no order: sent frame by frame, nearly all would wait for causes that come with a later one."""
    monkeypatch.setattr("protocol.session.reconciliation.symbols.SHORT_ID_FRAME_COUNT_MAX", 8)
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _apart(alice, bob, 50, 60)
        async with connected(bob, alice) as (of_bob, of_alice):
            await until_equal(alice, bob)
            assert (_sent(of_bob, bob), _sent(of_alice, alice)) == (60, 60)
        assert (alice.hub.totals.waiting, bob.hub.totals.waiting) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("of_publications", [False, True])
def test_a_sketch_follows_the_store_and_is_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_publications: bool
) -> None:
    monkeypatch.setattr("storage.topics.sketches._WRITTEN_AFTER", 100)
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        topic = writing_topic(alice.replica, branch)
        kept = TopicSet(REPLICA, topic.num, topic.topic, of_publications, topic)
        for count in (50, 600, 20):
            _write(alice, count)
            with alice.replica.database.read() as connection:
                found = alice.replica.sketches.symbols(connection, kept)
                digest = alice.replica.sketches.digest(connection, kept)
                _, ids = load_set(connection, kept)
            anew = Prefix(symbol_key(topic.topic), prefix_length(len(ids)))
            anew.add(ids)
            assert found == anew.symbols()
            alice.replica.sketches.write()
        again = Sketches(alice.replica.database)
        with alice.replica.database.read() as connection:
            assert again.symbols(connection, kept) == found
            assert again.digest(connection, kept) == digest


def test_sketches_that_leave_memory_are_written_and_go_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for one: each look at another topic costs what has been added since, not what there is."""
    with open_nodes(tmp_path, "alice") as (alice,):
        monkeypatch.setattr("storage.topics.sketches._SMALL_COUNT", 0)
        _, branch = alice.create_repo()
        _write(alice, _WRITTEN_LEAVING)  # beside its root, and what adds the branch
        store, read = alice.replica.database, Counter[str]()

        def count(
            connection: StoreConnection, kept: TopicSet, after: int = 0, upto: int | None = None
        ) -> Iterator[tuple[int, list[ItemId]]]:
            for last, ids in iterate_ids(connection, kept, after, upto):
                read[kept.place] += len(ids)
                yield last, ids

        monkeypatch.setattr("storage.topics.sketches.iterate_ids", count)
        main, other = (
            TopicSet(REPLICA, topic.num, topic.topic)
            for topic in (
                writing_topic(alice.replica, branch),
                alice.replica.by_topic[alice.epoch().topic],
            )
        )
        kept = Sketches(store, size_max=1)
        digests = set()
        for _ in range(3):
            for one in (main, other):
                with store.read() as connection:
                    digests.add(kept.digest(connection, one))
                kept.write()
        assert len(digests) == 2
        assert read[main.place] == _WRITTEN_LEAVING + 2, "once"
        assert read[other.place] == 3, "one of few commits is not worth writing"
        _write(alice, 1)
        with store.read() as connection:
            kept.symbols(connection, main)
        assert read[main.place] == 2 * (_WRITTEN_LEAVING + 3), (
            "and again for symbols, which nobody had asked for"
        )
        with store.read() as connection:
            kept.symbols(connection, main)
        assert read[main.place] == 2 * (_WRITTEN_LEAVING + 3)
        with store.read() as connection:
            kept.digest(connection, other)
        _write(alice, _WRITTEN_LEAVING)
        with store.read() as connection:
            kept.digest(connection, main)
            kept.digest(connection, other)
        repo = alice.repo()
        with alice.replica.change() as change:
            forget_repo(change.connection, repo.num)
            alice.replica.forget_membership(repo.repo_id)
        kept.write()
        with store.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM sketches")).scalar() == 0, "it is not there"


@pytest.mark.slow
def test_a_sketch_of_a_small_topic_is_written_when_it_has_doubled(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        topic = writing_topic(alice.replica, branch)
        main = TopicSet(REPLICA, topic.num, topic.topic)
        store = alice.replica.database
        kept, written = Sketches(store), []
        for count in (_WRITTEN_FIRST - 3, 1, _WRITTEN_FIRST - 1, 1):  # beside its root, and what adds it
            _write(alice, count)
            with store.read() as connection:
                kept.digest(connection, main)
            kept.write()
            with store.read() as connection:
                written.append(connection.execute(text("SELECT count(*), max(upto) FROM sketches")).one())
        assert [row[0] for row in written] == [0, 1, 1, 1]
        assert written[1] == written[2] != written[3]


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.sqlite  # its rule is not about rows, and PostgreSQL takes 15 s for it
async def test_many_topics_that_differ_are_reconciled_a_few_at_a_time(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        names = [f"branch {number}" for number in range(20)]
        for name in names:
            repo, ingested = alice.author.founding.create_repo(name)
            alice.hub.announce(ingested)
            alice.hub.announce(alice.author.founding.create_branch(repo, name)[1])
            await bob.joiner.begin(alice.invite(repo))
        async with connected(bob, alice):
            for name in names:
                await until_equal(alice, bob, name)
        for node in (alice, bob):
            for name in names:
                node.write(node.branch(name), f"by {node.key.hex()}")
        async with connected(bob, alice) as (connection, _):
            for name in names:
                await until_equal(alice, bob, name)
            assert [one.state for one in connection.topics] == ["in sync"] * 2 * len(names)


@pytest.mark.parametrize("bound, expected", [(4, [1, 1, 2]), (2, [1, 2, 3])])
def test_a_set_for_ranges_is_read_once_until_the_topic_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: int, expected: list[int]
) -> None:
    loads: list[TopicSet] = []

    def count_loads(connection: StoreConnection, kept: TopicSet) -> object:
        loads.append(kept)
        return load_set(connection, kept)

    monkeypatch.setattr(session_queries, "load_set", count_loads)
    monkeypatch.setattr(session_queries, "RANGE_SET_KEPT_COUNT_MAX", bound)
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        _write(alice, 2)
        ranges, counted = RangeSet(), []
        kept = topic_set(writing_topic(alice.replica, alice.branch()), of_publications=False)
        for more in (0, 0, 1):
            if more:
                _write(alice, more)
            with alice.replica.database.read() as connection:
                count = StoredSet(alice.replica, connection, kept, ranges).lookup().count(START, END)
                assert count == len(load_set(connection, kept)[1])
            counted.append(len(loads))
        assert counted == expected
