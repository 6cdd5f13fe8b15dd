"""Sizes by which a bound on the store is kept: of what is there, of what is old, and of what would come again."""

from pathlib import Path

import pytest
from sqlalchemy import select

from protocol.ids import ObjectId
from storage.blobs.old_sizes import HEADER_SIZE, measure_store, weigh_absent, weigh_old
from storage.blobs.spared import keep_files, spare_files
from storage.commits.absent_bodies import Erasure, OldPosts, erase_bodies, load_old_posts
from storage.commits.own_commits import load_author_num
from storage.schema.schema import files
from tests.support.nodes import Node
from tests.unit.storage.blobs.test_garbage_collection import LARGE, _add

FIRST_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def _object_of(node: Node) -> ObjectId:
    """The content of the files."""
    with node.replica.database.read() as connection:
        return ObjectId(connection.execute(select(files.c.object_id).limit(1)).scalar_one())


@pytest.mark.slow
def test_old_contents_are_weighed_by_age_and_what_is_absent_by_what_it_was(tmp_path: Path) -> None:
    node = Node(tmp_path, "alice")
    _, branch = node.create_repo()
    for day in range(3):
        node.set_clock(FIRST_MS + day * DAY_MS)
        node.write(branch, "x" * 3000)
    _add(node, branch, "large", LARGE)
    _add(node, branch, "the same", LARGE)
    befores = [FIRST_MS, FIRST_MS + DAY_MS, FIRST_MS + 2 * DAY_MS, FIRST_MS + 3 * DAY_MS]
    database, blobs = node.replica.database, node.replica.packs
    with database.read() as connection:
        none, one, two, all_of_it = weigh_old(connection, blobs, branch.num, None, befores, with_posts=True)
        assert none == 0
        assert 3000 < one < 3000 + HEADER_SIZE
        assert two == pytest.approx(2 * one, abs=200), "acks differ"
        assert all_of_it == pytest.approx(3 * one + len(LARGE), abs=200), "equal contents are there once"
        own = load_author_num(connection, node.author.user)
        assert weigh_old(connection, blobs, branch.num, own, befores, with_posts=True) == [0] * 4, "its own"
        of_files = weigh_old(connection, blobs, branch.num, None, befores, with_posts=False)
        assert of_files == pytest.approx([0, 0, 0, len(LARGE)], abs=200), "posts are elsewhere"
        whole = measure_store(database, connection)
        assert whole > len(LARGE)
    old = OldPosts(branch.num, None, befores[-1])
    body_id = content = _object_of(node)  # of bodies whichever: only their rows are looked at
    with database.write() as connection:
        rows = load_old_posts(connection, old, 0, 9)
        spare_files(connection, old, content)
        for row in rows[:2]:
            erasure = Erasure(row.num, row.topic_num, row.block_nums, body_id)
            erase_bodies(connection, branch.num, [erasure], FIRST_MS, is_spared=True)
    with database.read() as connection:
        left = weigh_old(connection, blobs, branch.num, None, befores, with_posts=True)
        assert left[:3] == [0, 0, 0]
        assert left[3] == pytest.approx(one, abs=200), "what was given up has nothing more to give"

        def weigh(since: int, before: int, *, with_files: bool = False, with_posts: bool = True) -> int:
            return weigh_absent(
                connection, blobs, branch.num, since, before, with_files=with_files, with_posts=with_posts
            )

        assert weigh(befores[2], befores[3]) == 0, "that post is here"
        assert weigh(0, befores[1]) > one
        assert weigh(0, befores[1], with_posts=False) == 0
        assert weigh(0, befores[2]) == pytest.approx(2 * weigh(0, befores[1]), abs=200)
        assert weigh(befores[2], befores[3], with_files=True) == len(LARGE), "given up, and there once"
    with database.write() as connection:
        keep_files(connection, branch.num, [content])
    with database.read() as connection:
        assert weigh(befores[2], befores[3], with_files=True) == 0, "it is here"
    node.replica.close()
