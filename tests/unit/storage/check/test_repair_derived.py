"""A damaged store put right, with its rows in either database."""

from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from node.care.fsck import check_store
from node.care.repair import repair_store
from node.ingest.replica import Replica
from storage.engine.database import read_store
from storage.schema.schema import (
    blocks,
    branches,
    checkpoints,
    commits,
    group_places,
    heads,
    order_spans,
    topic_inits,
    topics,
)
from tests.support.builders import STORE_KEY, World, give, timeline


@pytest.mark.slow
def test_rows_are_made_again_and_blocks_come_back(tmp_path: Path) -> None:
    world = World(tmp_path, tell=World.tell_story)
    world.author.start_epoch(world.repo)
    world.write("j <- k")
    items = [item for branch in world.replica.branches.values() for item in world.publications(branch)]
    shown = timeline(world.replica, world.branch)
    columns = ("num", "rank", "passed", "is_void", "author_num", "topic_num", "epoch_num")
    rows = select(*(commits.c[name] for name in columns), group_places.c.ids)
    rows = rows.outerjoin(group_places, group_places.c.num == commits.c.place_num)
    with world.replica.database.read() as connection:
        before = connection.execute(rows.order_by(commits.c.num)).all()
        kept = [sorted(connection.execute(select(table)).all()) for table in (heads, topics, topic_inits)]
    with world.replica.database.write() as connection:
        connection.execute(update(commits).values(rank=0, passed=9, display_time=1))
        connection.execute(update(commits).where(commits.c.num > 12).values(is_void=~commits.c.is_void))
        connection.execute(update(branches).values(commit_count=1, void_count=5))
        connection.execute(update(topics).values(commit_count=1))
        connection.execute(delete(heads))
        connection.execute(delete(topic_inits))
        connection.execute(delete(group_places).where(group_places.c.num == 2))
        connection.execute(update(commits).where(commits.c.place_num == 3).values(place_num=1))
        connection.execute(delete(checkpoints))
        connection.execute(update(order_spans).values(size=0))
        connection.execute(delete(blocks).where(blocks.c.num == 9))
        connection.execute(update(blocks).where(blocks.c.num == 20).values(encoded=b"junk"))
    world.close()
    repair = repair_store(tmp_path, STORE_KEY)
    assert repair.left.kinds == {"damaged": repair.damaged.commits} == {"damaged": 2}
    assert repair.copy is not None
    replica = Replica(tmp_path, STORE_KEY)
    give(replica, items)
    replica.close()
    # Of what the membership says, which could not be computed before.
    again = repair_store(tmp_path, STORE_KEY)
    assert again.left.problems == check_store(tmp_path, STORE_KEY).problems == []
    with read_store(tmp_path, STORE_KEY) as connection:
        assert connection.execute(rows.order_by(commits.c.num)).all() == before
        for table, found in zip((heads, topics, topic_inits), kept, strict=True):
            assert sorted(connection.execute(select(table)).all()) == found, table.name
    replica = Replica(tmp_path, STORE_KEY)
    assert timeline(replica, world.branch) == shown
    replica.close()
