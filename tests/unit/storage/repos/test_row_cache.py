"""Values of repos, epochs and branches are made again only where their rows have changed."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from node.ingest.replica import Replica, load_tables
from protocol.content import Post
from storage.repos import repos as repos_module
from tests.support.builders import World


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> "Counter[str]":
    """How often each kind of value was made of a row."""
    counts: Counter[str] = Counter()
    for name in ("_repo", "_epoch", "_branch"):
        original = getattr(repos_module, name)

        def make(*args: Any, _name: str = name, _original: Any = original) -> Any:  # noqa: ANN401  # as the real ones
            counts[_name] += 1
            return _original(*args)

        monkeypatch.setattr(repos_module, name, make)
    return counts


def test_a_new_repo_makes_none_of_the_others_again(tmp_path: Path, made: "Counter[str]") -> None:
    world = World(tmp_path)
    for number in range(20):
        world.author.create_repo(f"repo {number}", "main")
    made.clear()
    world.author.create_repo("one more", "main")
    assert made["_repo"] <= 4
    assert made["_epoch"] <= 2
    assert made["_branch"] <= 8, "two branches, whose counts change while they are made"
    _assert_right(world.replica)
    world.close()


def test_counts_are_those_of_the_store(tmp_path: Path, made: "Counter[str]") -> None:
    world = World(tmp_path)
    world.author.create_branch(world.repo, "side")
    before = world.replica.read_tables().branches[world.branch.num].commit_count
    made.clear()
    world.author.write(world.branch, Post("a"))
    assert world.replica.read_tables().branches[world.branch.num].commit_count == before + 1
    assert made == {"_branch": 1}
    world.close()


def test_an_undone_transaction_leaves_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)

    def fail() -> None:
        with world.replica.change() as change:
            change.connection.exec_driver_sql("UPDATE repos SET name = 'other'")
            assert {repo.name for repo in change.reload().repos.values()} == {"other"}
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        fail()
    assert {repo.name for repo in world.replica.read_tables().repos.values()} == {"world"}
    _assert_right(world.replica)
    world.close()


def _assert_right(replica: Replica) -> None:
    """What is remembered is what a first reading gives."""
    with replica.database.read() as connection:
        assert replica.load_tables(connection) == load_tables(connection)
