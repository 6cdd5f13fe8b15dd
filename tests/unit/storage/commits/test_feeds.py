"""Feeds as stored: summaries, forks within what is asked for, and the way back that commits state."""

from pathlib import Path

import pytest

from node.authoring.author import Author
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import encode_body
from protocol.formats.content import Post
from protocol.formats.publication import decode_publication
from storage.commits import feeds
from storage.commits.feeds import FeedPath, load_feed_forks, load_feeds
from tests.support.builders import NOW_MS, World, give
from tests.support.forging import forge, target_in
from tests.support.ids import as_commit_id


def _forked(folder: Path, twin_count: int) -> World:
    """Make a branch whose author wrote two commits, and further ones at the same two places, on other nodes."""
    world = World(folder)
    world.write("a, a <- b")
    items: list[bytes] = []
    for number in range(twin_count):
        replica, branch = world.copy()
        author = Author(replica, UserSeed(b"w" * 32), lambda: NOW_MS)
        items += [author.write(branch, Post(f"{name} {number}"))[0].encoded for name in ("a", "b")]
    give(world.replica, items)
    return world


@pytest.mark.slow
def test_forks_are_counted_and_shown_up_to_a_limit(tmp_path: Path) -> None:
    world = _forked(tmp_path / "world", 2)
    with world.replica.database.read() as connection:
        found = load_feeds(connection, world.branch.num)
        assert [(feed.author, feed.commits, feed.last, feed.forks) for feed in found] == [
            (world.author.user, 7, 3, 2)
        ]
        forks = load_feed_forks(connection, world.branch.num, place_limit=1, commit_limit=2)
        assert [(fork.sequence, len(fork.commit_ids), fork.count) for fork in forks] == [(2, 2, 3)]
        forks = load_feed_forks(connection, world.branch.num, place_limit=9, commit_limit=9)
        assert [(fork.sequence, len(fork.commit_ids)) for fork in forks] == [(2, 3), (3, 3)]
    world.close()


def test_the_way_back_goes_as_far_as_links_lead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_LINKS_AT_ONCE", 2)
    world = World(tmp_path / "world")
    world.write("a, a <- b, b <- c, c <- d")  # at the places 2 to 5, behind the branch's root
    ids = {name: commit.commit_id for name, commit in world.commits.items()}
    root_id, user = world.branch.facts.root_id, world.author.user
    target, secret = target_in(world, world.branch), key_pair(UserSeed(b"w" * 32))[1]
    forks = [
        forge(
            world, target, encode_body(Post("f")), (root_id,), secret, feed_sequence=5, feed_previous=previous
        )
        for previous in (ids["b"], ids["c"])
    ]
    give(world.replica, forks)
    leads_nowhere, twin = (decode_publication(one).commit_id for one in forks)
    with world.replica.database.read() as connection:
        way = FeedPath(connection, world.branch.num, user, 5, ids["d"])
        assert way.is_here
        assert way.passes(ids["c"], 4)
        assert not way.passes(twin, 5)
        assert not way.passes(ids["b"], 4)
        assert way.below(5) == [ids["c"], ids["b"], ids["a"], root_id]
        assert way.below(3) == [ids["a"], root_id]
        assert FeedPath(connection, world.branch.num, user, 5, twin).below(5) == way.below(5)
        assert FeedPath(connection, world.branch.num, user, 5, leads_nowhere).below(5) == []
        for sequence, commit_id in (
            (4, ids["d"]),
            (6, ids["d"]),
            (5, ids["c"]),
            (5, as_commit_id(b"x" * 32)),
        ):
            assert not FeedPath(connection, world.branch.num, user, sequence, commit_id).is_here
        other = key_pair(UserSeed(b"o" * 32))[0]
        assert not FeedPath(connection, world.branch.num, other, 5, ids["d"]).is_here
    world.close()
