"""Edits of a timeline: their order, what is kept of them, and what followers too far behind get."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.commits import edits as edits_module
from storage.commits.edits import START, Cursor, EditPosition, StoredEdits, find_edit_positions, load_edits
from storage.commits.void_marks import load_judged, mark_void
from tests.support.builders import World, timeline
from tests.support.replicas import ListCopy, follow


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def _read(world: World, since: Cursor, limit: int = 100) -> StoredEdits:
    with world.replica.database.read() as connection:
        return load_edits(connection, world.branch.num, since, limit)


def _turn(world: World, name: str, *, is_void: bool) -> None:
    database = world.replica.database
    with database.write() as connection:
        (judged,) = load_judged(connection, world.branch.num, [world.commits[name].commit_id])
        mark_void(database, connection, world.branch.num, [judged.num], is_void=is_void)


def _named(world: World, window: StoredEdits) -> list[tuple[str, str]]:
    names = {written.commit_id: name for name, written in world.commits.items()}
    return [(edit.kind, names.get(edit.commit_id, "root")) for edit in window.edits]


def test_who_begins_gets_all_in_the_order_of_acceptance(world: World) -> None:
    world.write("a, a <- b, a <- c")
    window = _read(world, START)
    assert window.is_reset
    assert not window.has_more
    assert _named(world, window) == [("insert", name) for name in ("root", "a", "b", "c")]
    assert _read(world, window.next) == StoredEdits((), window.next, is_reset=False, has_more=False)
    world.write("c <- d")
    assert _named(world, _read(world, window.next)) == [("insert", "d")]


def test_a_checkpoint_moves_effects_before_causes_and_back_after_them(world: World) -> None:
    world.name_quorum()
    world.write("a, a <- b, b <- c, x")
    here = _read(world, START).next
    world.checkpoint_one("point", ["x"])
    window = _read(world, here)
    assert _named(world, window) == [("insert", "point"), ("move", "c"), ("move", "b"), ("move", "a")]
    assert {edit.passed for edit in window.edits[1:]} == {1}
    _turn(world, "point", is_void=True)
    back = _read(world, window.next)
    assert _named(world, back) == [("remove", "point"), ("move", "a"), ("move", "b"), ("move", "c")]


def test_a_commit_that_comes_back_is_inserted_where_it_stands_now(world: World) -> None:
    world.name_quorum()
    world.write("a, x")
    here = _read(world, START).next
    _turn(world, "a", is_void=True)
    world.checkpoint_one("point", ["x"])
    _turn(world, "a", is_void=False)
    edits = _read(world, here)
    assert _named(world, edits) == [("remove", "a"), ("insert", "point"), ("insert", "a")]
    assert edits.edits[2].passed == 1, "its place changed while it was away"


def test_a_snapshot_is_of_one_moment_whatever_happens_between_its_windows(world: World) -> None:
    world.write("a, b, c, d")
    copy, window = ListCopy(), _read(world, START, 2)
    follow([copy], window, {})
    assert len(copy.ids()) == 2
    _turn(world, "d", is_void=True)
    _turn(world, "a", is_void=True)
    world.write("e")
    while window.has_more:
        window = _read(world, window.next, 2)
        assert not window.is_reset
        follow([copy], window, {})
    assert copy.ids() == timeline(world.replica, world.branch)


def test_only_the_newest_changes_are_kept_and_who_stopped_before_them_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits_module, "CHANGES_KEPT_MAX", 4)
    world.write("a, b")
    start = _read(world, START).next
    for is_void in (True, False, True, False):
        _turn(world, "a", is_void=is_void)
    assert len(_read(world, start).edits) == 4, "as many are kept"
    _turn(world, "b", is_void=True)
    behind = _read(world, start)
    assert behind.is_reset
    assert _named(world, behind) == [("insert", "root"), ("insert", "a")]
    assert not _read(world, Cursor(start.change + 1)).is_reset, "who has read the one that is gone"
    assert _read(world, Cursor(behind.next.change + 1)).is_reset, "of another store"


def test_positions_are_told_of_as_many_edits_as_the_bound_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _read(world, START).next
    world.write("a, a <- b, b <- c, c <- d")
    monkeypatch.setattr(edits_module, "EDIT_POSITIONS_MAX", 4)
    with world.replica.database.read() as connection:
        found = find_edit_positions(connection, world.branch.num, _read(world, here, 2))
        assert found == [EditPosition(None, 1), EditPosition(None, 2)]
    monkeypatch.setattr(edits_module, "EDIT_POSITIONS_MAX", 3)
    with world.replica.database.read() as connection:
        for limit in (2, 100):
            assert find_edit_positions(connection, world.branch.num, _read(world, here, limit)) is None
        further = _read(world, _read(world, here, 1).next)
        assert find_edit_positions(connection, world.branch.num, further) is not None
