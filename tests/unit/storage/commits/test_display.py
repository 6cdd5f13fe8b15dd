"""The order by time: what each node shows for itself, causes first whatever their authors assert."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from node.authoring.author import Author
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Grant, Permission
from storage.commits.commits import load_numbered
from storage.commits.display import load_display_window, load_latest_time
from storage.commits.void_marks import load_judged, mark_void
from storage.repos.repos import Branch
from tests.support.batches import accept_whole
from tests.support.builders import NOW_MS, World, count_accepted, writing_topic
from tests.support.exports import export_node

_HOUR_MS = 3_600_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Make a repo where anyone may write, by a clock that says anything; the branch's root is of hour 0."""
    with closing(World(tmp_path / "world")) as world:
        world.name_quorum()
        yield world


def _write(world: World, name: str, hour: int, acks: list[str]) -> None:
    """Write a post that asserts an hour, by somebody who has written nothing else."""
    author = Author(world.replica, UserSeed(name.ljust(32).encode()), lambda: NOW_MS + hour * _HOUR_MS)
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Grant(author.user, Permission.WRITE))
    world.write_one(name, acks, author)


def _take(world: World, name: str, there: tuple[Replica, Branch], hour: int) -> None:
    replica, branch = there
    topic = writing_topic(replica, branch)
    batch = open_batch(topic, [world.commits[name].encoded])
    ingested = accept_whole(replica, topic, batch, NOW_MS + hour * _HOUR_MS)
    assert count_accepted(ingested) == 1


def _shown(
    world: World,
    there: tuple[Replica, Branch],
    limit: int = 100,
    *,
    after: str = "",
    before: str = "",
    since: int | None = None,
) -> str:
    replica, branch = there
    names = {written.commit_id: name for name, written in world.commits.items()}
    ids = {name: raw for raw, name in names.items()}
    with replica.database.read() as connection:
        sides = {"after": ids.get(after), "before": ids.get(before)}
        nums = load_display_window(connection, branch.num, limit, **sides, since=since)
        return " ".join(names.get(row.commit_id, "root") for row in load_numbered(connection, nums))


def test_the_earlier_of_the_asserted_time_and_that_of_arrival_decides(world: World) -> None:
    for name, hour in {"a": 1, "b": 2, "future": 9, "c": 6, "past": -7}.items():
        _write(world, name, hour, [])
    there = world.copy()
    for name, hour in {"future": 5, "b": 5, "a": 5, "past": 5, "c": 7}.items():
        _take(world, name, there, hour)
    assert _shown(world, there) == "root past a b future c", "none before the root, which it acks"


def test_causes_stay_before_effects_whatever_is_asserted(world: World) -> None:
    _write(world, "a", 3, [])
    _write(world, "b", 1, ["a"])
    _write(world, "c", 2, [])
    _write(world, "d", 4, [])
    _write(world, "e", 1, ["b", "d"])
    there = world.copy()
    for name in "dcabe":
        _take(world, name, there, 5)
    assert _shown(world, there) == "root c a b d e"


def test_an_export_states_where_commits_are_shown_whatever_their_clocks_say(
    world: World, tmp_path: Path
) -> None:
    hours = {"a": 3, "backdated": 1, "follows": 2, "ahead": 9}
    acks: list[str] = []
    for name, hour in hours.items():
        _write(world, name, hour, acks)
        acks = [name]
    there = world.copy()
    for name in hours:
        _take(world, name, there, 5)
    export_node(there[0].database, tmp_path / "export", "node", 1)
    rows = pq.read_table(tmp_path / "export" / "commits", columns=["commit_id", "shown_at"]).to_pylist()
    found = {row["commit_id"]: (row["shown_at"] - NOW_MS) / _HOUR_MS for row in rows}
    assert [found[world.commits[name].commit_id] for name in hours] == [3, 3, 3, 5]


def test_what_is_backdated_is_not_shown_among_what_was_signed(world: World) -> None:
    _write(world, "a", 2, [])
    world.checkpoint_one("point", ["a"])
    _write(world, "slipped", 1, [])
    here = (world.replica, world.branch)
    assert _shown(world, here) == "root a point slipped"
    assert _shown(world, here, since=NOW_MS + 2 * _HOUR_MS) == "a point slipped"
    _write(world, "late", 3, [])
    assert _shown(world, here, since=NOW_MS + 3 * _HOUR_MS) == "late"


def test_windows_go_in_both_directions_and_pass_over_what_is_void(world: World) -> None:
    for hour, name in enumerate("abcdef"):
        _write(world, name, hour, [])
    here = (world.replica, world.branch)
    with world.replica.database.write() as connection:
        judged = load_judged(connection, world.branch.num, [world.commits["c"].commit_id])
        nums = [one.num for one in judged]
        mark_void(world.replica.database, connection, world.branch.num, nums, is_void=True)
    assert _shown(world, here, 2) == "e f"
    assert _shown(world, here, 2, before="e") == "b d"
    assert _shown(world, here, 2, after="b") == "d e"
    assert _shown(world, here, 2, after="c") == "d e"
    assert _shown(world, here, 2, before="c") == "a b"
    assert _shown(world, here, 2, after="f") == ""
    assert _shown(world, here, 2, since=NOW_MS + 2 * _HOUR_MS) == "d e"
    assert _shown(world, here, 2, since=0) == "root a"
    assert _shown(world, here, 2, since=NOW_MS + 6 * _HOUR_MS) == ""
    with world.replica.database.read() as connection:
        root = world.replica.root_branch(world.repo)
        assert load_latest_time(connection, world.branch.num) == NOW_MS + 5 * _HOUR_MS
        elsewhere = world.commits["a"].commit_id
        assert load_display_window(connection, root.num, 2, after=elsewhere, before=None) == []


def test_the_latest_time_is_of_what_counts_and_there_is_none_without_a_commit(world: World) -> None:
    for hour, name in enumerate("ab"):
        _write(world, name, hour + 1, [])
    with world.replica.database.write() as connection:
        judged = load_judged(connection, world.branch.num, [world.commits["b"].commit_id])
        mark_void(
            world.replica.database, connection, world.branch.num, [one.num for one in judged], is_void=True
        )
        assert load_latest_time(connection, world.branch.num) == NOW_MS + _HOUR_MS
        assert load_latest_time(connection, world.branch.num + 1000) is None
