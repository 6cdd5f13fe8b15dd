"""Tables of repos, epochs and branches are made of those before: only rows that have changed are read again.

That memory is what a first reading of the store gives is checked at the end of each test that has nodes
(`tests.support.tables`).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from node.ingest.replica import Replica
from node.ingest.tables import load_tables
from protocol.content import Post
from storage.repos import repos as repos_module
from storage.repos.deletion import forget_repo
from storage.repos.repo_changes import rename_repo
from tests.support.builders import World
from tests.support.tables import assert_tables_are_stored


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> "Counter[str]":
    """How often each kind of value was made of a row: no other rows are read."""
    counts: Counter[str] = Counter()
    for name in ("_repo", "_epoch", "_branch"):
        original = getattr(repos_module, name)

        def make(*args: Any, _name: str = name, _original: Any = original) -> Any:  # noqa: ANN401  # as the real ones
            counts[_name] += 1
            return _original(*args)

        monkeypatch.setattr(repos_module, name, make)
    return counts


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    for number in range(20):
        made.author.create_repo(f"repo {number}", "main")
    yield made
    made.close()


@contextmanager
def _statements(replica: Replica) -> Iterator[list[str]]:
    """All statements that the store's connections run meanwhile."""
    heard: list[str] = []

    def hear(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        heard.append(statement)

    engine = replica.database._engine
    event.listen(engine, "before_cursor_execute", hear)
    try:
        yield heard
    finally:
        event.remove(engine, "before_cursor_execute", hear)


def test_a_new_repo_makes_none_of_the_others_again(world: World, made: "Counter[str]") -> None:
    made.clear()
    world.author.create_repo("one more", "main")
    assert made == {"_repo": 1, "_epoch": 1, "_branch": 2}


def test_a_new_branch_makes_none_of_its_repo_again(world: World, made: "Counter[str]") -> None:
    for number in range(5):
        world.author.create_branch(world.repo, f"side {number}")
    made.clear()
    world.author.create_branch(world.repo, "one more")
    assert made == {"_branch": 1}


def test_a_commit_makes_nothing_again(world: World, made: "Counter[str]") -> None:
    tables = world.replica.tables
    world.author.write(world.branch, Post("a"))
    assert world.replica.tables is tables
    assert not made


def test_counts_are_those_of_the_store(world: World) -> None:
    replica, num = world.replica, world.branch.num
    before = replica.read_tables().branches[num].commit_count
    world.author.write(world.branch, Post("a"))
    assert replica.read_tables().branches[num].commit_count == before + 1
    assert replica.tables.branches[num].commit_count == before, "a write makes no tables"
    world.author.create_branch(world.repo, "side")
    assert replica.tables.branches[num].commit_count == before + 1, "what makes them counts"


def test_only_counts_that_have_changed_are_read(world: World) -> None:
    replica = world.replica
    others = [one for one in replica.branches.values() if not one.facts.is_root_branch]
    replica.read_tables()
    for branch in others[:3]:
        world.author.write(branch, Post("a"))
    with _statements(replica) as first:
        counted = replica.read_tables()
    assert sum("topics" in statement for statement in first) == 1
    assert first[-1].count("?") == 3
    with _statements(replica) as again:
        assert replica.read_tables() is counted
    assert not again


def test_what_is_forgotten_is_gone_and_the_rest_keeps_its_order(world: World) -> None:
    replica = world.replica
    names = [repo.name for repo in replica.repos.values()]
    first, second, *_ = [repo for repo in replica.repos.values() if repo.name.startswith("repo ")]
    with replica.change() as change:
        forget_repo(change.connection, first.num)
        rename_repo(change.connection, second.num, "other")
    assert [repo.name for repo in replica.repos.values()] == [
        "other" if name == second.name else name for name in names if name != first.name
    ]
    assert not replica.tables.branches_in(first.num)
    assert not replica.tables.epochs_in(first.num)


def test_an_undone_transaction_leaves_nothing(world: World, made: "Counter[str]") -> None:
    def fail() -> None:
        with world.replica.change() as change:
            rename_repo(change.connection, world.repo.num, "other")
            assert change.reload().repos[world.repo.num].name == "other"
            rename_repo(change.connection, world.repo.num, "another")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        fail()
    assert world.replica.repos[world.repo.num].name == "world"
    assert_tables_are_stored(world.replica)
    made.clear()
    world.author.create_branch(world.repo, "side")
    assert made == {"_branch": 1}, "what was undone is not read again"


def test_a_first_reading_gives_each_table_in_the_order_of_its_numbers(world: World) -> None:
    with world.replica.database.read() as connection:
        tables = load_tables(connection)
    for table in (tables.repos, tables.epochs, tables.branches, tables.on_topics):
        assert list(table) == sorted(table)


def test_commits_are_summed_up_as_they_stand(world: World) -> None:
    replica = world.replica
    branches = [one for one in replica.branches.values() if not one.facts.is_root_branch]

    def stored() -> int:
        with replica.database.read() as connection:
            tables = load_tables(connection)
        return sum(one.commit_count - one.void_count for one in tables.branches.values())

    assert replica.shown.count_all(replica.database) == stored()
    for branch in (branches[3], branches[5], branches[3]):
        world.author.write(branch, Post("hello"))
        assert replica.shown.count_all(replica.database) == stored()
    with _statements(replica) as said:
        replica.shown.count_all(replica.database)
    assert said == []
    world.author.create_repo("more", "main")
    world.author.write(branches[3], Post("again"))
    assert replica.shown.count_all(replica.database) == stored()
    counted = replica.shown.count_in(replica.database, [branches[3].repo_num])
    assert [one.commit_count for one in counted[branches[3].repo_num]][1] == branches[3].commit_count + 3
