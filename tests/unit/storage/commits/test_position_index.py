"""Positions in a timeline: found without counting it, whatever its length, its width, and what of it is void."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, bindparam, insert, select, update

from storage.check.check_derived import check_order
from storage.check.check_integrity import CheckFindings
from storage.commits.commits import load_position, load_rows, load_timeline
from storage.commits.display import DISPLAY_ORDER, load_display_window
from storage.commits.heads import load_heads
from storage.commits.position_index import OrderKey, find_position, find_start
from storage.commits.void_marks import mark_void
from storage.engine.database import Database
from storage.schema.schema import commits, heads
from tests.support.builders import World, count_accepted, give, writing_topic
from tests.support.rows import counted_steps, put_branch, put_commits, some_id


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Make a store in which few commits make many levels of counts."""
    monkeypatch.setattr("storage.commits.position_index.COMMITS_PER_SPAN_MAX", 32)
    monkeypatch.setattr("storage.commits.position_index.SPANS_PER_SPAN_MAX", 16)
    with closing(Database(tmp_path)) as database:
        yield database


def _put(database: Database, connection: Connection, keys: list[OrderKey]) -> int:
    branch_num = put_branch(connection)
    for start in range(0, len(keys), 1000):
        put_commits(database, connection, branch_num, keys[start : start + 1000])
    return branch_num


def _chain(length: int) -> list[OrderKey]:
    return [(0, rank, some_id(rank)) for rank in range(length)]


def _star(width: int) -> list[OrderKey]:
    return [(0, 1, some_id(number)) for number in range(width)]


def _steps(connection: Connection, branch_num: int, keys: list[OrderKey]) -> int:
    """Return the most steps that any of some looks takes: a position, what stands there, and ten commits from there on."""
    most = 0
    places = sorted(keys)
    for position in range(0, len(keys), len(keys) // 20):
        with counted_steps(connection) as counted:
            assert find_position(connection, branch_num, places[position]) == position
            assert find_start(connection, branch_num, position) is not None
            (row, *_) = load_timeline(connection, branch_num, position, 10)
        assert row.commit_id == places[position][2]
        most = max(most, *counted)
    return most


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.sqlite  # whose steps are counted
def test_a_look_costs_little_more_in_a_timeline_thirty_times_as_long_or_wide(database: Database) -> None:
    with database.write() as connection:
        small = _chain(1000)
        steps = _steps(connection, _put(database, connection, small), small)
        for large in (_chain(30_000), _star(30_000)):
            assert _steps(connection, _put(database, connection, large), large) < 3 * steps


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.sqlite  # whose steps are counted
def test_what_is_void_is_not_counted_and_not_stepped_through(database: Database) -> None:
    keys = _chain(20_000)
    with database.write() as connection:
        branch_num = put_branch(connection)
        nums = put_commits(database, connection, branch_num, keys)
        mark_void(database, connection, branch_num, nums[10:-10], is_void=True)
        with counted_steps(connection) as counted:
            assert find_position(connection, branch_num, keys[-10]) == 10
            start = find_start(connection, branch_num, 10)
        assert counted[0] < 20_000, "a step for each commit between is more"
        assert start is not None
        assert start[0] > keys[-100], "reading begins near the commit"
        rows = load_rows(connection, [keys[10][2], keys[-1][2]])
        assert load_position(connection, rows[keys[10][2]]) is None
        assert load_position(connection, rows[keys[-1][2]]) == 19
        assert [row.rank for row in load_timeline(connection, branch_num, 9, 2)] == [9, 19_990]
        findings = CheckFindings()
        check_order(connection, findings)
        assert findings.problems == []


@pytest.mark.slow
@pytest.mark.sqlite  # whose steps are counted
def test_taking_in_a_batch_costs_as_much_in_a_long_timeline(database: Database) -> None:
    steps = []
    with database.write() as connection:
        for length in (1000, 30_000):
            branch_num = _put(database, connection, _chain(length))
            for first in range(length, length + 320, 32):
                more = [(0, rank, some_id(rank)) for rank in range(first, first + 32)]
                with counted_steps(connection) as counted:
                    put_commits(database, connection, branch_num, more)
                steps.append((length, counted[0]))
    most = {length: max(one for of, one in steps if of == length) for length in (1000, 30_000)}
    assert most[30_000] < 2 * most[1000]


@pytest.mark.slow
@pytest.mark.sqlite  # whose steps are counted
def test_a_commit_that_very_many_ack_costs_those_who_follow_nothing(tmp_path: Path) -> None:
    # All of them are heads.
    steps = []
    for count in (10, 10_000):
        with closing(World(tmp_path / str(count))) as world:
            items = [world.write_one(str(number), [str(number - 1)] if number else []) for number in range(8)]
            items.append(world.write_one("fork", ["3"]))
            items.append(world.write_one("merge", ["7", "fork"]))
            replica, branch = world.copy()
            with replica.database.write() as connection:
                keys = _star(count)
                put_commits(replica.database, connection, branch.num, keys)
                row = {
                    "topic_num": writing_topic(replica, branch).num,
                    "branch_num": branch.num,
                    "rank": 1,
                    "is_acked": False,
                }
                connection.execute(insert(heads), [{"commit_id": key[2], **row} for key in keys])
            with counted_steps(connection) as counted:
                ingested = give(replica, items)
                with replica.database.read() as reader:
                    assert len(load_heads(reader, branch.num, 100)) == min(count, 99) + 1
            assert count_accepted(ingested) == len(items)
            steps.append(counted[0])
    assert steps[1] < 2 * steps[0]


@pytest.mark.slow
def test_positions_and_windows_are_those_of_the_order_whatever_is_void(database: Database) -> None:
    keys = [*_star(300), *((rank % 3, rank, some_id(1000 + rank)) for rank in range(2, 700))]
    with database.write() as connection:
        branch_num = _put(database, connection, keys)
        nums = put_commits(
            database, connection, branch_num, [(1, 5, some_id(number)) for number in range(2000, 2090)]
        )
        mark_void(database, connection, branch_num, nums[::2], is_void=True)
        order = [*keys, *((1, 5, some_id(number)) for number in range(2001, 2090, 2))]
        order.sort()
        times = {num: num * 7 % 50 + 2**40 for num in connection.execute(select(commits.c.num)).scalars()}
        values = [{"of": num, "time": time} for num, time in times.items()]
        statement = (
            update(commits).where(commits.c.num == bindparam("of")).values(display_time=bindparam("time"))
        )
        connection.execute(statement, values)
    with database.read() as connection:
        findings = CheckFindings()
        check_order(connection, findings)
        assert [one for one in findings.problems if one.kind != "time"] == []
        shown = [row.commit_id for row in load_timeline(connection, branch_num, 0, len(order) + 1)]
        assert shown == [key[2] for key in order]
        for position in range(0, len(order), 37):
            assert find_position(connection, branch_num, order[position]) == position
            rows = load_timeline(connection, branch_num, position, 10)
            assert [row.commit_id for row in rows] == shown[position : position + 10]
        by_time = load_display_window(connection, branch_num, 2000, after=None, before=None)
        here = connection.execute(select(*DISPLAY_ORDER).where(~commits.c.is_void)).all()
        assert by_time == [row.num for row in sorted(here)]
        ids = {
            row.num: row.commit_id for row in connection.execute(select(commits.c.num, commits.c.commit_id))
        }
        for place in (0, 500, 900):
            mark = ids[by_time[place]]
            after = load_display_window(connection, branch_num, 10, after=mark, before=None)
            before = load_display_window(connection, branch_num, 10, after=None, before=mark)
            assert after == by_time[place + 1 : place + 11]
            assert before == by_time[max(place - 10, 0) : place]
