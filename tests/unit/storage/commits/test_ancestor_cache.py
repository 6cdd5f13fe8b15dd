"""Places of commits are remembered and read ahead, and are always those of the store."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event

from node.authoring.drafting import Draft
from protocol.content import Post
from protocol.ids import CommitId
from storage.commits import ancestor_cache
from storage.commits.ancestor_cache import AncestorCache
from storage.commits.commits import load_places
from storage.commits.heads import load_heads
from tests.support.builders import World

LENGTH = 700


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world") / "node")
    made.author.write_many(made.branch, lambda _: [Draft(Post(str(number))) for number in range(LENGTH)])
    yield made
    made.close()


@contextmanager
def _counted(connection: Connection) -> Iterator[list[str]]:
    """The statements that a connection runs meanwhile."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        found.append(statement)

    event.listen(connection, "before_cursor_execute", note)
    yield found
    event.remove(connection, "before_cursor_execute", note)


def _walk(cache: AncestorCache, connection: Connection, start: CommitId) -> list[CommitId]:
    """All commits of a chain, from its end."""
    found, ids = [], [start]
    while ids:
        found += ids
        places = cache.load(connection, ids)
        assert places == load_places(connection, ids)
        ids = [ack for place in places.values() for ack in place.acks]
    return found


def _tip(world: World, connection: Connection) -> CommitId:
    return load_heads(connection, world.branch.num, 1)[0][0]


def test_a_chain_is_read_by_few_statements_and_a_second_time_by_none(world: World) -> None:
    cache = AncestorCache()
    with world.replica.database.read() as connection:
        tip = _tip(world, connection)
        with _counted(connection) as statements:
            ids = _walk(cache, connection, tip)
        own = len(ids)  # of the comparison
        assert own > LENGTH
        assert len(statements) - own < 40
        with _counted(connection) as statements:
            for raw in ids:
                cache.load(connection, [raw])
        assert statements == []


def test_where_nothing_that_was_read_ahead_is_asked_for_little_more_is_read(world: World) -> None:
    cache = AncestorCache()
    chance = random.Random(1)
    with world.replica.database.read() as connection:
        ids = _walk(AncestorCache(), connection, _tip(world, connection))
        chosen = chance.sample(ids, 200)
        with _counted(connection) as statements:
            for raw in chosen:
                cache.load(connection, [raw])
        assert len(statements) < 2 * len(chosen)


def test_what_is_remembered_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ancestor_cache, "_WEIGHT_MAX", 100)
    cache = AncestorCache()
    with world.replica.database.read() as connection:
        for raw in _walk(cache, connection, _tip(world, connection)):
            assert cache.load(connection, [raw]) == load_places(connection, [raw])
            assert sum(1 + len(place.acks) for place in cache._places.values()) <= 100 + 2 * 512
