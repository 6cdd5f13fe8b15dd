"""Import in batches: parents become acks, a rerun adds nothing, and what cannot be imported changes nothing."""

import pytest
from sqlalchemy import select

from node.contract.files import ImportItem
from node.importers.imports import import_items, list_imported
from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.limits.users import IMPORT_BATCH_COUNT_MAX
from storage.commits.commits import load_timeline
from storage.schema.schema import commits
from tests.support.builders import World, timeline


def _items(*described: str) -> list[ImportItem]:
    return [
        ImportItem(name, tuple(parents.split()), "someone", 1_600_000_000, f"text of {name}")
        for name, _, parents in (item.partition(":") for item in described)
    ]


def _import(world: World, *described: str, source: str = "git") -> tuple[int, int, int]:
    summary = import_items(world.author, world.branch, source, _items(*described), IngestResult())
    return summary.imported, summary.already, summary.heads


def test_parents_become_acks_across_batches_roots_and_octopus_merges(world: World) -> None:
    assert _import(world, "a:", "b:a", "c:a", "other-root:") == (4, 0, 3)
    assert _import(world, "m:b c other-root", "n:m a") == (2, 0, 1)
    with world.replica.database.read() as connection:
        rows = load_timeline(connection, world.branch.num, 0, 100)
    assert [len(row.acks) for row in rows] == [0, 1, 1, 1, 1, 3, 2], (
        "m acks what acks n's parent a, and not a"
    )
    assert [row.rank for row in rows] == [0, 1, 1, 2, 2, 3, 4]


def test_commits_state_the_times_of_their_items_and_1970_where_there_is_no_timestamp(world: World) -> None:
    items = [
        ImportItem("old", (), "someone", -5, ""),
        ImportItem("new", ("old",), "someone", 1_500_000_000, ""),
    ]
    import_items(world.author, world.branch, "git", items, IngestResult())
    with world.replica.database.read() as connection:
        times = connection.execute(select(commits.c.timestamp).order_by(commits.c.num)).scalars().all()
    assert times[-2:] == [0, 1_500_000_000_000]


def test_a_second_run_adds_nothing_and_another_source_is_apart(world: World) -> None:
    _import(world, "a:", "b:a")
    before = timeline(world.replica, world.branch)
    assert _import(world, "a:", "b:a")[:2] == (0, 2)
    assert timeline(world.replica, world.branch) == before
    assert _import(world, "a:", "c:a")[:2] == (1, 1)
    assert _import(world, "a:", source="jsonl")[:2] == (1, 0)


def test_an_item_twice_in_a_batch_is_imported_once(world: World) -> None:
    assert _import(world, "a:", "a:", "b:a a")[:2] == (2, 1)


@pytest.mark.parametrize("described", [("b:a",), ("b:a", "a:"), ("a:a",), ("a:", "b:missing")])
def test_an_unknown_parent_refuses_the_batch_whole(world: World, described: tuple[str, ...]) -> None:
    before = timeline(world.replica, world.branch)
    with pytest.raises(ServiceError) as caught:
        _import(world, *described)
    assert caught.value.code == "unknown_parent"
    assert timeline(world.replica, world.branch) == before
    assert _import(world, "a:")[:2] == (1, 0)


def test_what_was_imported_is_listed_by_source_in_its_order_window_by_window(world: World) -> None:
    _import(world, "b:", "a:b", "c:a")
    _import(world, "x:", source="other")
    first = list_imported(world.author, world.branch, "git", 0, 2)
    assert first["items"] == ["b", "a"]
    after = first["next"]
    assert isinstance(after, int)
    assert list_imported(world.author, world.branch, "git", after, 2) == {"items": ["c"], "next": None}
    assert list_imported(world.author, world.branch, "nobody's", 0, 2) == {"items": [], "next": None}


def test_bounds_one_over(world: World) -> None:
    with pytest.raises(ServiceError, match="in a batch"):
        _import(world, *(f"{number}:" for number in range(IMPORT_BATCH_COUNT_MAX + 1)))
    roots = [f"r{number}:" for number in range(ACK_COUNT_MAX + 1)]
    _import(world, *roots)
    with pytest.raises(ServiceError, match="parents"):
        _import(world, "wide:" + " ".join(f"r{number}" for number in range(ACK_COUNT_MAX + 1)))
    assert _import(world, "wide:" + " ".join(f"r{number}" for number in range(ACK_COUNT_MAX)))[:2] == (1, 0)
