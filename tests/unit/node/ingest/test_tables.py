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
from sqlalchemy import event, update

from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.ingest.tables import load_tables
from node.sync.session_queries import topic_set
from protocol.formats.content import Post
from protocol.ids import Digest, TopicKey
from storage.repos import epochs as epochs_module
from storage.repos import repos as repos_module
from storage.repos.deletion import forget_repo
from storage.repos.epochs import add_epoch, state_writers_topic
from storage.repos.repos import rename_repo
from storage.repos.row_changes import row_changes
from storage.schema.schema import epochs
from storage.topics.difference import TopicSummary, summarise
from storage.topics.sketches import Sketches
from tests.support.builders import World
from tests.support.tables import assert_tables_are_stored


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> "Counter[str]":
    """Count how often each kind of value is made of a row: no other rows are read."""
    counts: Counter[str] = Counter()
    for module, name in (
        (repos_module, "_repo"),
        (epochs_module, "Epoch"),
        (epochs_module, "Topic"),
        (repos_module, "_branch"),
    ):
        original = getattr(module, name)

        def make(*args: Any, _name: str = name, _original: Any = original, **named: Any) -> Any:  # noqa: ANN401  # as the real ones
            counts[_name] += 1
            return _original(*args, **named)

        monkeypatch.setattr(module, name, make)
    return counts


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    for number in range(20):
        made.author.founding.create_repo(f"repo {number}", "main")
    yield made
    made.close()


@contextmanager
def _statements(replica: Replica) -> Iterator[list[str]]:
    """Collect all statements that the store's connections run meanwhile."""
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
    world.author.founding.create_repo("one more", "main")
    # Its own are read twice: when it is there, and when its init has told the writers' topic; the branch too, when it is
    # there and when the names say that it is main.
    assert made == {"_repo": 2, "Epoch": 2, "Topic": 1 + 2, "_branch": 1 + 2}


def test_a_new_epoch_makes_none_of_its_repos_others_again(world: World, made: "Counter[str]") -> None:
    # A newcomer learns of hundreds, one after the other: to read all anew with each took most of a first sync.
    for number in range(5):
        world.author.founding.create_branch(world.repo, f"side {number}")
    for _ in range(5):
        world.author.start_epoch(world.replica.repos[world.repo.num], IngestResult())
    made.clear()
    world.author.start_epoch(world.replica.repos[world.repo.num], IngestResult())
    # Read when its key is there, when its init has told the writers' topic, and the repo when members write in it.
    assert made == {"_repo": 3, "Epoch": 2, "Topic": 1 + 2}


def test_a_writers_secret_that_comes_later_makes_its_epoch_and_topics_again(
    world: World, made: "Counter[str]"
) -> None:
    replica = world.replica
    for _ in range(3):
        world.author.start_epoch(replica.repos[world.repo.num], IngestResult())
    epoch = replica.tables.epochs_in(world.repo.num)[1]
    with replica.change() as change:
        change.connection.execute(update(epochs).where(epochs.c.num == epoch.num).values(writers_secret=None))
        row_changes(change.connection).note_epoch(world.repo.num, epoch.num)
    assert replica.tables.epochs[epoch.num].writers_secret is None
    assert replica.by_topic[epoch.topic].epochs[0].writers_secret is None
    made.clear()
    with replica.change() as change:
        add_epoch(replica.database, change.connection, epoch)
    assert replica.tables.epochs[epoch.num] == epoch
    assert made == {"_repo": 1, "Epoch": 1, "Topic": 2}
    assert_tables_are_stored(replica)


def test_a_new_branch_makes_none_of_its_repo_again(world: World, made: "Counter[str]") -> None:
    for number in range(5):
        world.author.founding.create_branch(world.repo, f"side {number}")
    made.clear()
    world.author.founding.create_branch(world.repo, "one more")
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
    world.author.founding.create_branch(world.repo, "side")
    assert replica.tables.branches[num].commit_count == before + 1, "what makes them counts"


def test_only_counts_that_have_changed_are_read(world: World) -> None:
    replica = world.replica
    others = [one for one in replica.branches.values() if not one.facts.is_root_branch]
    replica.read_tables()
    for branch in others[:3]:
        world.author.write(branch, Post("a"))
    with _statements(replica) as first:
        counted = replica.read_tables()
    assert sum("commit_count" in statement for statement in first) == 1
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
    world.author.founding.create_branch(world.repo, "side")
    assert made == {"_branch": 1}, "what was undone is not read again"


def test_a_first_reading_gives_each_table_in_the_order_of_its_numbers(world: World) -> None:
    with world.replica.database.read() as connection:
        tables = load_tables(connection)
    for table in (tables.repos, tables.epochs, tables.branches, tables.topics):
        assert list(table) == sorted(table)


def test_commits_are_summed_up_as_they_stand(world: World) -> None:
    replica = world.replica
    branches = [one for one in replica.branches.values() if not one.facts.is_root_branch]

    def stored() -> int:
        with replica.database.read() as connection:
            tables = load_tables(connection)
        return sum(one.commit_count - one.void_count for one in tables.branches.values())

    assert replica.read_tables().commit_count == stored()
    for branch in (branches[3], branches[5], branches[3]):
        world.author.write(branch, Post("hello"))
        assert replica.read_tables().commit_count == stored()
    with _statements(replica) as said:
        assert replica.read_tables().commit_count
    assert said == []
    world.author.founding.create_repo("more", "main")
    world.author.write(branches[3], Post("again"))
    assert replica.read_tables().commit_count == stored()
    counted = replica.shown.count_in(replica.database, [branches[3].repo_num])
    assert [one.commit_count for one in counted[branches[3].repo_num]][1] == branches[3].commit_count + 3


def digest_of(replica: Replica, topic: TopicKey, sketches: Sketches) -> Digest:
    """Return what a topic is compared by."""
    with replica.database.read() as connection:
        return sketches.digest(connection, topic_set(replica.by_topic[topic], of_publications=False))


def test_a_topic_of_two_repos_goes_with_the_last_of_them(world: World) -> None:
    # An init may state the topic of another repo as its writers' topic.
    replica = world.replica
    first, second = [repo for repo in replica.repos.values() if repo.name in ("repo 1", "repo 2")]
    shared = replica.writing_epoch(first).topic
    with replica.change() as change:
        state_writers_topic(replica.database, change.connection, replica.writing_epoch(second), shared)
    assert_tables_are_stored(replica)
    assert replica.by_topic[shared].repo_nums == {first.num, second.num}
    with replica.change() as change:
        rename_repo(change.connection, first.num, "other")
    assert_tables_are_stored(replica)
    before = digest_of(replica, shared, replica.sketches)
    with replica.change() as change:
        forget_repo(change.connection, first.num)
    assert_tables_are_stored(replica)
    topic = replica.by_topic[shared]
    digest = digest_of(replica, shared, replica.sketches)
    assert digest == digest_of(replica, shared, Sketches(replica.database)) != before
    assert (topic.epochs, [one.repo_num for one in topic.writers_of]) == ((), [second.num])
    with replica.database.read() as connection:
        assert summarise(connection, topic.num) == TopicSummary((), 0, 0), "nothing stands on it any more"
    with replica.change() as change:
        forget_repo(change.connection, second.num)
    assert_tables_are_stored(replica)
    assert shared not in replica.by_topic
