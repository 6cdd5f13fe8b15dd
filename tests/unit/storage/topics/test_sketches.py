"""Sketches that are written, and when, without a look at each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from node.authoring.drafting import Draft
from node.authoring.write_queue import WriteRequest
from node.sync.session_queries import topic_set
from protocol.formats.content import Post
from protocol.ids import ItemId
from protocol.session.reconciliation.riblt import Prefix, prefix_length
from storage.repos.epochs import Topic
from storage.schema.schema import commits
from storage.schema.schema import sketches as table
from storage.topics import sketches as module
from storage.topics.sketches import Sketches
from tests.support.builders import World

pytestmark = pytest.mark.sqlite  # kept in memory; their rows are read and written as others are


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(module, "_WRITTEN_FIRST", 5)
    monkeypatch.setattr(module, "_WRITTEN_LEAVING", 2)
    monkeypatch.setattr(module, "_SMALL_COUNT", 1)
    world = World(tmp_path)
    yield world
    world.close()


def _write(world: World, count: int) -> None:
    drafts = [Draft(Post(f"{number}")) for number in range(count)]
    world.author.queue.write_group([WriteRequest(world.branch, drafts)])


def _own(world: World) -> Topic:
    """Return the epoch's own topic, which has the repo's init alone: all else is by a writer."""
    return world.replica.by_topic[world.replica.writing_epoch(world.repo).topic]


def _digest(world: World, kept: Sketches, *, of_own: bool = False) -> bytes:
    topic = _own(world) if of_own else world.topic()
    with world.replica.database.read() as connection:
        return kept.digest(connection, topic_set(topic, of_publications=False))


def _symbols(world: World, kept: Sketches) -> tuple[int, ...]:
    with world.replica.database.read() as connection:
        return kept.symbols(connection, topic_set(world.topic(), of_publications=False))


def _count_written(world: World) -> int:
    with world.replica.database.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_a_sketch_is_due_once_it_has_grown_and_until_it_is_written(world: World) -> None:
    kept = Sketches(world.replica.database)
    _digest(world, kept)
    assert not kept.has_due()
    kept.write()
    assert _count_written(world) == 0
    _write(world, 5)
    digest = _digest(world, kept)
    assert kept.has_due()
    kept.write()
    assert not kept.has_due()
    assert _count_written(world) == 1
    assert _digest(world, Sketches(world.replica.database)) == digest


def test_symbols_are_made_when_they_are_asked_for_and_written_with_their_own_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[int] = []
    add = Prefix.add

    def count(prefix: Prefix, ids: list[ItemId]) -> None:
        added.append(len(ids))
        add(prefix, ids)

    monkeypatch.setattr(Prefix, "add", count)
    kept = Sketches(world.replica.database)
    _write(world, 9)
    digest = _digest(world, kept)
    kept.write()
    assert added == []
    again = Sketches(world.replica.database)
    assert _digest(world, again) == digest
    symbols = _symbols(world, again)
    assert added == [11], "what is in the digest, once: with what adds the branch, and its root"
    assert again.has_due(), "though the digest has not grown"
    again.write()
    _write(world, 3)
    last = Sketches(world.replica.database)
    assert _symbols(world, last) != symbols
    assert added == [11, 3]
    assert _symbols(world, last) == _symbols(world, Sketches(world.replica.database))


def test_more_symbols_of_a_grown_set_are_made_in_one_pass(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []
    add = Prefix.add

    def note(prefix: Prefix, ids: list[ItemId]) -> None:
        lengths.append(len(prefix))
        add(prefix, ids)

    monkeypatch.setattr(Prefix, "add", note)
    kept = Sketches(world.replica.database)
    _write(world, 3)
    assert len(_symbols(world, kept)) == prefix_length(5)
    _write(world, 600)
    assert len(_symbols(world, kept)) == prefix_length(605) > prefix_length(5)
    assert lengths == [prefix_length(5), prefix_length(605)]


def test_what_leaves_memory_is_written_if_it_has_grown_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SMALL_COUNT", 0)
    kept = Sketches(world.replica.database, size_max=1)
    _write(world, 2)
    _digest(world, kept)
    assert not kept.has_due()
    _digest(world, kept, of_own=True)  # the other one leaves
    assert kept.has_due()
    kept.write()
    assert not kept.has_due()
    assert _count_written(world) == 1


def test_a_topic_that_is_forgotten_is_not_due(world: World) -> None:
    kept = Sketches(world.replica.database)
    _write(world, 9)
    _digest(world, kept)
    assert kept.has_due()
    kept.forget(world.topic().topic)
    assert not kept.has_due()
    kept.write()
    assert _count_written(world) == 0


def test_of_a_topic_of_few_commits_the_digest_alone_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Sketches(world.replica.database)
    monkeypatch.setattr(module, "_SMALL_COUNT", 0)
    expected = []
    for count in (0, 2, 1):
        _write(world, count) if count else None
        expected.append(_digest(world, whole))
    _digest(world, whole, of_own=True)
    monkeypatch.setattr(module, "_SMALL_COUNT", 5)
    kept = Sketches(world.replica.database)
    assert _digest(world, kept) == expected[-1], "what adds the branch, its root, and three posts"
    assert not kept._kept
    with monkeypatch.context() as patch:
        patch.delattr(module, "first_ids")
        assert _digest(world, kept) == expected[-1], "nothing has come since, and nothing is read"
    _write(world, 1)
    assert _digest(world, kept) == _digest(world, whole)
    assert kept._kept, "six are no longer few"
    assert not kept._small


def test_digests_of_few_commits_have_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SMALL_COUNT", 5)
    monkeypatch.setattr(module, "_SMALL_SIZE", 10)
    kept = Sketches(world.replica.database, size_max=10)
    _digest(world, kept)
    _digest(world, kept, of_own=True)
    assert len(kept._small) == 1


def test_symbols_that_an_older_snapshot_asked_for_are_brought_up_to_date_later(world: World) -> None:
    database = world.replica.database
    kept, of = Sketches(database), topic_set(world.topic(), of_publications=False)
    _write(world, 40)
    _symbols(world, kept)
    with database.read() as older:
        older.execute(select(func.count()).select_from(commits)).scalar_one()  # its snapshot begins
        _write(world, 5)
        _digest(world, kept)
        kept.symbols(older, of)
    assert _symbols(world, kept) == _symbols(world, Sketches(database))
