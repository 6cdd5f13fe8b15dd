"""Windows as a member's store and a relay's find them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection

from protocol.crypto.hashing import branch_mark, branch_secret
from protocol.formats.publication import decode_publication
from protocol.ids import PeerId
from storage.commits.commits import load_numbered
from storage.relay.quotas import Visitor
from storage.relay.relay import load_kept_publications, load_kept_topics, open_topics, store_publications
from storage.topics.windows import find_from, find_kept, find_newest
from tests.support.builders import World
from tests.support.relays import PLENTY

TOP = 2**53 - 1


def test_a_member_finds_the_newest_of_a_branch_and_then_what_is_below(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.tell_story()  # with void commits, which others stand on, and checkpoints
    epoch = min(world.replica.tables.epochs.values(), key=lambda one: one.num)
    assert epoch.writers_topic is not None
    topic = world.replica.by_topic[epoch.writers_topic]
    place = world.branch.num, epoch.num, topic.num
    with world.replica.database.read() as connection:
        nums, is_last = find_newest(connection, *place, TOP, 4)
        assert not is_last
        rows = load_numbered(connection, nums)
        order = [(row.passed, row.rank, row.commit_id) for row in rows]
        assert order == sorted(order, reverse=True), "the last of the timeline first"
        everything, is_last = find_newest(connection, *place, TOP, 100)
        assert is_last
        assert everything[:4] == nums
        whole = {row.commit_id for row in load_numbered(connection, everything)}
        assert {world.commits[name].commit_id for name in "abcdefgh"} <= whole
        assert find_newest(connection, *place, 0, 4) == ([], True)
        assert find_newest(connection, world.branch.num, epoch.num + 1, topic.num, TOP, 4) == ([], True)
        root = world.replica.root_branch(world.repo)
        first, is_last = find_from(connection, root.num, epoch.num, topic.num, 1, 2)
        assert not is_last
        assert [row.rank for row in load_numbered(connection, first)] == [1, 2]
    world.close()


def test_a_relay_finds_them_by_what_stands_in_clear(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.write("a, a <- b, b <- c, c <- d")
    epoch = world.replica.writing_epoch(world.repo)
    mark = branch_mark(branch_secret(epoch.key, world.branch.branch_id))
    items = [(decode_publication(item), item) for item in world.publications(world.branch)]
    database = world.replica.database
    with database.write() as connection:
        visitor = Visitor(PeerId(b"v" * 32), is_known=True)
        topic = items[0][0].topic
        open_topics(database, connection, [topic], visitor, PLENTY, 1)
        (kept,) = load_kept_topics(connection).values()
        store_publications(database, connection, kept.num, visitor, items, PLENTY, 2)

        def ranks(rank: int, count: int, *, is_upwards: bool) -> tuple[list[int], bool]:
            nums, is_last = find_kept(connection, kept.num, mark, rank, count, is_upwards=is_upwards)
            found = [
                decode_publication(raw).blocks[0].rank
                for num in nums
                for raw in load_kept_publications(connection, kept.num, [num], 1)
            ]
            return found, is_last

        assert ranks(TOP, 2, is_upwards=False) == ([4, 3], False)
        assert ranks(3, 9, is_upwards=False) == ([2, 1], True), "the first has no mark"
        assert ranks(1, 2, is_upwards=True) == ([1, 2], False)
        assert ranks(3, 2, is_upwards=True) == ([3, 4], True)
        other = branch_mark(branch_secret(epoch.key, world.replica.root_branch(world.repo).branch_id))
        assert find_kept(connection, kept.num, other, TOP, 9, is_upwards=False) == ([], True)
    world.close()


@pytest.mark.sqlite
def test_a_window_costs_the_same_in_a_longer_branch(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    steps = []
    for start in (0, 40):
        for number in range(start, 4 * start + 40):
            world.write_one(f"n{number}", [f"n{number - 1}"] if number else [])
        steps.append([_count_steps(world, *way) for way in ((find_newest, TOP), (find_from, 1))])
    for first, then in zip(*steps, strict=True):
        assert then <= 1.2 * first, "five times as many commits"
    world.close()


def _count_steps(
    world: World, find: Callable[[Connection, int, int, int, int, int], tuple[list[int], bool]], rank: int
) -> int:
    """Count the steps of the database's machine for a window of five."""
    count = 0

    def note() -> None:
        nonlocal count
        count += 1

    place = world.branch.num, world.replica.writing_epoch(world.repo).num, world.topic().num
    with world.replica.database.read() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.set_progress_handler(note, 1)
        nums, is_last = find(connection, *place, rank, 5)
        raw.set_progress_handler(None, 1)
    assert (len(nums), is_last) == (5, False)
    return count
