"""Feeds as stored: summaries, and forks within what is asked for."""

from pathlib import Path

import pytest

from node.authoring.author import Author
from protocol.content import Post
from protocol.keys import UserSeed
from storage.commits.feeds import load_feed_forks, load_feeds
from tests.support.builders import NOW_MS, World, give


def _forked(folder: Path, twin_count: int) -> World:
    """A branch whose author wrote two commits, and further ones at the same two places, on other nodes."""
    world = World(folder)
    world.write("a, a <- b")
    items: list[bytes] = []
    for number in range(twin_count):
        replica, branch = world.copy()
        author = Author(replica, UserSeed(b"w" * 32), lambda: NOW_MS)
        items += [author.write(branch, Post(f"{name} {number}"))[0].encoded for name in ("a", "b")]
    give(world.replica, world.branch, items)
    return world


@pytest.mark.slow
def test_forks_are_counted_and_shown_up_to_a_limit(tmp_path: Path) -> None:
    world = _forked(tmp_path / "world", 2)
    with world.replica.database.read() as connection:
        feeds = load_feeds(connection, world.branch.num)
        assert [(feed.author, feed.commits, feed.last, feed.forks) for feed in feeds] == [
            (world.author.user, 7, 3, 2)
        ]
        forks = load_feed_forks(connection, world.branch.num, place_limit=1, commit_limit=2)
        assert [(fork.sequence, len(fork.commit_ids), fork.count) for fork in forks] == [(2, 2, 3)]
        forks = load_feed_forks(connection, world.branch.num, place_limit=9, commit_limit=9)
        assert [(fork.sequence, len(fork.commit_ids)) for fork in forks] == [(2, 3), (3, 3)]
    world.close()
