"""Counts of checkpoints that commits have passed, when several merge the same and some are void."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from node.authoring.author import Author
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Checkpoint, Grant, Permission, ProposeCheckpoint, Remove
from storage.commits.checkpoints import load_checkpoint_ids
from storage.schema.schema import commits
from tests.support.builders import NOW_MS, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Make a repo where ann, who founded it, approves of checkpoints, and ben may write."""
    world = World(tmp_path / "world")
    world.name_quorum()
    yield world
    world.close()


def _passed(world: World) -> dict[str, int]:
    names = {written.commit_id: name for name, written in world.commits.items()}
    with world.replica.database.read() as connection:
        rows = connection.execute(select(commits.c.commit_id, commits.c.passed)).all()
    return {names[raw]: passed for raw, passed in rows if raw in names}


def test_checkpoints_that_merge_the_same_count_once(world: World) -> None:
    world.write("a, a <- b, a <- c")
    world.checkpoint_one("first", ["b"])
    assert _passed(world) == {"a": 0, "b": 0, "c": 1, "first": 0}
    world.checkpoint_one("second", ["b"])
    world.write("second <- d")
    assert _passed(world) == {"a": 0, "b": 0, "c": 1, "first": 0, "second": 0, "d": 1}


def test_a_checkpoint_in_the_root_branch_moves_nothing(world: World) -> None:
    # There it is a kind without rules (docs/specification/protocol.md section 5).
    root = world.replica.root_branch(world.repo)
    heads = (world.branch.facts.root_id,)
    proposal, _ = world.author.write(root, ProposeCheckpoint(world.branch.branch_id, heads))
    world.author.write(root, Checkpoint(proposal.commit_id))
    with world.replica.database.read() as connection:
        assert load_checkpoint_ids(connection, root.num) == []


@pytest.mark.slow
def test_they_count_while_one_of_them_does(world: World) -> None:
    ben = Author(world.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Grant(ben.user, Permission.WRITE))
    world.write("a, a <- b, a <- c")
    world.checkpoint_one("of ben", ["b"], ben)
    world.checkpoint_one("of ann", ["b"])
    before = _passed(world)
    assert before["c"] == 1
    world.author.write(root, Remove(ben.user, None, ()))
    assert _passed(world) == before, "ann's still counts"
    world.checkpoint_one("later", ["of ann", "c"])
    assert _passed(world)["c"] == 1, "it merges c"


def test_the_last_one_that_becomes_void_takes_all_back(world: World) -> None:
    ben = Author(world.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Grant(ben.user, Permission.WRITE))
    world.write("a, a <- b, a <- c")
    for name in ("one", "two"):
        world.checkpoint_one(name, ["b"], ben)
    world.author.write(root, Remove(ben.user, None, ()))
    assert set(_passed(world).values()) == {0}
