"""The search index as rows: what is entered is found, what is taken out is gone, and parts stay within their bound."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select, update

from protocol.crypto.keys import HashKey
from storage.commits import search_index as index_module
from storage.commits.search_index import (
    IndexItem,
    begin_index,
    clear_index,
    find_in_parts,
    find_parts,
    load_next,
    load_parts,
    load_queued,
    load_state,
    prepare_items,
    queue_for_index,
    remove_from_queue,
    remove_items,
    write_items,
)
from storage.engine.database import Database
from storage.engine.id_keys import PackedNums
from storage.repos.deletion import forget_repo
from storage.schema.schema import commits
from storage.schema.search_schema import search_parts, search_queue, search_words
from tests.support.rows import put_branch, put_commits, some_id

_KEY = HashKey(b"k" * 32)
_ALWAYS = {"since": 0, "until": 2**62}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path)) as database:
        yield database


def _enter(connection: Connection, branch_num: int, **said: list[int]) -> None:
    """Enter commits by the words that they say, in the order of their numbers; each is shown at its number."""
    by_num: dict[int, list[str]] = {}
    for word, nums in said.items():
        for num in nums:
            by_num.setdefault(num, []).append(word)
    items = [IndexItem(num, branch_num, num, num, by_num[num]) for num in sorted(by_num)]
    write_items(connection, prepare_items(connection, _KEY, items))


def _remove(connection: Connection, branch_num: int, nums: list[int]) -> int:
    """Take commits out; from how many parts."""
    parts = find_parts(connection, branch_num, nums)
    for part in parts:
        remove_items(connection, part, nums)
    return len(parts)


def _find(connection: Connection, branch_num: int, *words: str) -> list[int]:
    parts = load_parts(connection, [branch_num], **_ALWAYS)
    return sorted(num for found in find_in_parts(connection, _KEY, parts, words) for num in found)


def _count(connection: Connection) -> tuple[int, int]:
    return (
        connection.execute(select(func.count()).select_from(search_parts)).scalar_one(),
        connection.execute(select(func.count()).select_from(search_words)).scalar_one(),
    )


def test_words_are_found_together_and_in_their_branch(database: Database) -> None:
    with database.write() as connection:
        first, second = put_branch(connection), put_branch(connection)
        _enter(connection, first, a=[1, 2, 3], b=[2, 3, 4])
        _enter(connection, second, a=[5])
        _enter(connection, first, a=[6], b=[6], c=[6])  # more of the same part
        assert _find(connection, first, "a", "b") == [2, 3, 6]
        assert _find(connection, first, "a") == [1, 2, 3, 6]
        assert _find(connection, second, "a") == [5]
        assert _find(connection, first, "a", "z") == []
        assert _count(connection) == (2, 4)


def test_a_part_is_full_at_its_bound(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SEARCH_PART_COUNT_MAX", 4)
    with database.write() as connection:
        branch = put_branch(connection)
        _enter(connection, branch, a=[1, 2, 3, 4, 5], b=[1])
        _enter(connection, branch, a=[6])
        _enter(connection, branch, a=[2**32 + 1])  # of which a place says the lower half
        parts = load_parts(connection, [branch], **_ALWAYS)
        assert [(part.first, part.last, part.size) for part in parts] == [
            (2**32 + 1, 2**32 + 1, 1),
            (4, 6, 3),
            (1, 3, 4),
        ]
        assert _find(connection, branch, "a") == [1, 2, 3, 4, 5, 6, 2**32 + 1]
        assert [part.first for part in load_parts(connection, [branch], since=4, until=6)] == [4]


def test_equal_words_of_two_parts_have_different_hashes(database: Database) -> None:
    with database.write() as connection:
        first, second = put_branch(connection), put_branch(connection)
        _enter(connection, first, a=[1])
        _enter(connection, second, a=[2])
        assert connection.execute(select(func.count(search_words.c.word.distinct()))).scalar_one() == 2


def test_what_is_taken_out_leaves_no_row(database: Database) -> None:
    with database.write() as connection:
        branch = put_branch(connection)
        _enter(connection, branch, a=[1, 2], b=[2], c=[3])
        assert _remove(connection, branch, [2]) == 1
        assert _find(connection, branch, "a") == [1]
        assert _count(connection) == (1, 2)
        _remove(connection, branch, [1, 3])
        assert _count(connection) == (0, 0)


def test_what_is_taken_out_is_of_these_parts(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SEARCH_PART_COUNT_MAX", 1)
    with database.write() as connection:
        branch = put_branch(connection)
        _enter(connection, branch, a=[1, 2, 3, 4])
        assert _remove(connection, branch, [1, 3]) == 2
        assert _find(connection, branch, "a") == [2, 4]


def test_a_forgotten_repo_leaves_no_row(database: Database) -> None:
    with database.write() as connection:
        first, second = put_branch(connection), put_branch(connection)
        _enter(connection, first, a=[1])
        _enter(connection, second, a=[2])
        changes = prepare_items(connection, _KEY, [IndexItem(3, first, 3, 3, ["b"])])
        forget_repo(connection, first)  # put_branch gives a repo the branch's number
        write_items(connection, changes)  # which were prepared before
        assert _count(connection) == (1, 1)


def test_the_queue_has_what_came_and_went(database: Database) -> None:
    with database.write() as connection:
        queue_for_index(connection, [1])  # without an index nothing is noted
        assert connection.execute(select(func.count()).select_from(search_queue)).scalar_one() == 0
        begin_index(connection, _KEY, 1)
        first, second = put_branch(connection), put_branch(connection)
        nums = [
            *put_commits(database, connection, first, [(0, 0, some_id(1)), (0, 1, some_id(2))]),
            *put_commits(database, connection, second, [(0, 0, some_id(3))]),
        ]
        connection.execute(update(commits).values(body_kind="post"))
        queue_for_index(connection, [*nums, *nums[:1], 999])
        queued, rows = load_queued(connection, nums[-1], 10)
        assert (queued, [row.num for row in rows]) == (nums[:2], nums[:2])
        remove_from_queue(connection, dict.fromkeys(queued))  # then nothing was to be indexed
        assert load_queued(connection, nums[-1], 10)[0] == nums[:2]
        remove_from_queue(connection, {row.num: row.block_nums for row in rows})
        assert load_queued(connection, nums[0], 10) == ([], [])  # what the index has not come to waits
        assert load_queued(connection, 999, 10)[0] == [nums[2], 999]
        remove_from_queue(connection, {999: PackedNums(b"as it was before it was forgotten")})
        assert load_queued(connection, 999, 10)[0] == [nums[2], 999]
        remove_from_queue(connection, {999: None})
        assert load_queued(connection, 999, 10)[0] == [nums[2]]
        found = load_next(connection, 0, 10)
        assert ([row.num for row in found.rows], found.queued, found.is_all) == (nums, [nums[2]], True)
        found = load_next(connection, 0, 2)
        assert ([row.num for row in found.rows], found.upto, found.is_all) == (nums[:2], nums[1], False)


def test_an_index_is_removed_bit_by_bit(database: Database) -> None:
    with database.write() as connection:
        begin_index(connection, _KEY, 7)
        branches = [put_branch(connection) for _ in range(3)]
        for branch in branches:
            _enter(connection, branch, a=[branch])
        connection.execute(insert(search_queue).values(commit_num=1))
        state = load_state(connection)
        assert state is not None
        assert (state.key, state.upto, state.rules) == (_KEY, 0, 7)
        assert repr(_KEY) not in repr(state)
        rounds = 0
        while clear_index(connection):
            rounds += 1
        assert rounds == 3
        assert _count(connection) == (0, 0)
        assert load_state(connection) is None
