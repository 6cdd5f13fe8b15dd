"""Costs of looking for void commits: nothing in the store for authors from whom nobody took anything."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.content import Post
from protocol.ids import CommitId
from storage.commits.void_marks import Judged, load_judged
from tests.support.builders import NOW_MS, World

_BOB = UserSeed(b"b" * 32)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[CommitId]:
    """Ids of commits that are read from the store, to look whether they are void."""
    found: list[CommitId] = []

    def note(connection: Connection, branch_num: int, ids: Sequence[CommitId]) -> list[Judged]:
        found.extend(ids)
        return load_judged(connection, branch_num, ids)

    monkeypatch.setattr("node.ingest.void_recheck.load_judged", note)
    return found


@pytest.mark.parametrize("removals", [1, 8])
def test_posts_of_whom_nobody_took_anything_from_are_not_looked_at(
    tmp_path: Path, looked_at: list[CommitId], removals: int
) -> None:
    world = World(tmp_path)
    root = world.replica.root_branch(world.repo)
    users = [key_pair(UserSeed(number.to_bytes(32)))[0] for number in range(removals)]
    world.author.write_many(root, [Draft(Grant(user, Permission.WRITE)) for user in users])
    for user in users:
        world.author.write(root, Remove(user, None, ()))
    looked_at.clear()
    for number in range(2):
        world.author.write(world.branch, Post(f"post {number}"))
    assert looked_at == []
    world.close()


def test_posts_of_whom_another_took_something_from_are_looked_at(
    tmp_path: Path, looked_at: list[CommitId]
) -> None:
    """Bob was excluded and has come back: what he wrote unseen by the exclusion may be void."""
    world = World(tmp_path)
    root = world.replica.root_branch(world.repo)
    bob = Author(world.replica, _BOB, lambda: NOW_MS)
    world.author.write(root, Grant(bob.user, Permission.WRITE))
    world.author.write(root, Remove(bob.user, None, ()))
    world.author.write(root, Grant(bob.user, Permission.WRITE))
    looked_at.clear()
    written, _ = bob.write(world.branch, Post("here again"))
    assert looked_at == [written.commit_id]
    world.close()
