"""A damaged store put right, with its rows in either database."""

from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from node.care.fsck import check_store
from node.care.repair import repair_store
from node.ingest.replica import Replica
from storage.engine.database import read_store
from storage.schema.schema import blocks, branches, checkpoints, commits, heads, order_spans
from tests.support.builders import STORE_KEY, World, give, timeline


@pytest.mark.slow
def test_rows_are_made_again_and_blocks_come_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.tell_story()
    items = {branch.topic: world.publications(branch) for branch in world.replica.on_topics.values()}
    shown = timeline(world.replica, world.branch)
    rows = select(commits.c.num, commits.c.rank, commits.c.passed, commits.c.is_void, commits.c.author_num)
    with world.replica.database.read() as connection:
        before = connection.execute(rows.order_by(commits.c.num)).all()
        kept = sorted(connection.execute(select(heads)).all())
    with world.replica.database.write() as connection:
        connection.execute(update(commits).values(rank=0, passed=9, display_time=1))
        connection.execute(update(commits).where(commits.c.num > 12).values(is_void=~commits.c.is_void))
        connection.execute(update(branches).values(commit_count=1, void_count=5))
        connection.execute(delete(heads))
        connection.execute(delete(checkpoints))
        connection.execute(update(order_spans).values(size=0))
        connection.execute(delete(blocks).where(blocks.c.num == 9))
        connection.execute(update(blocks).where(blocks.c.num == 20).values(encoded=b"junk"))
    world.close()
    repair = repair_store(tmp_path, STORE_KEY)
    assert repair.left.kinds == {"damaged": repair.damaged.commits} == {"damaged": 2}
    assert repair.copy is not None
    replica = Replica(tmp_path, STORE_KEY)
    for topic, encoded in items.items():
        give(replica, replica.by_topic[topic], encoded)
    replica.close()
    # Of what the membership says, which could not be computed before.
    again = repair_store(tmp_path, STORE_KEY)
    assert again.left.problems == check_store(tmp_path, STORE_KEY).problems == []
    with read_store(tmp_path, STORE_KEY) as connection:
        assert connection.execute(rows.order_by(commits.c.num)).all() == before
        assert sorted(connection.execute(select(heads)).all()) == kept
    replica = Replica(tmp_path, STORE_KEY)
    assert timeline(replica, replica.by_topic[world.branch.topic]) == shown
    replica.close()
