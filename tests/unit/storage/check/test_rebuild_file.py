"""A rebuilt file: epochs, topics and places are told by other pages, or by commits; without a key, the repo goes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.care.repair import repair_store
from node.ingest.replica import Replica
from protocol.formats.body import BranchLink
from protocol.formats.content import Files
from storage.engine.database import read_store
from storage.engine.losses import read_loss
from storage.schema.schema import (
    awaited_adders,
    commits,
    group_places,
    late_removals,
    topic_inits,
    topics,
)
from tests.support.builders import STORE_KEY, World, give, timeline
from tests.support.damaged_pages import harm_page
from tests.support.ids import as_commit_id, as_object_id

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]

Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path, tell=World.tell_story)) as world:
        world.author.start_epoch(world.repo)
        world.author.write(world.replica.root_branch(world.repo), BranchLink(world.branch.branch_id))
        world.write("j <- k, k <- l")
        absent = tuple(as_commit_id(bytes([number]) * 32) for number in range(2))
        removal = Draft(Files(()), deps=absent, removed_files=(as_object_id(b"f" * 32),))
        world.author.write(world.branch, removal)
        yield world


def _rows(folder: Path) -> Rows:
    columns = (
        commits.c.num,
        commits.c.commit_id,
        commits.c.topic_num,
        commits.c.epoch_num,
        group_places.c.ids,
    )
    places = select(*columns).outerjoin(group_places, group_places.c.num == commits.c.place_num)
    tables = (topics, topic_inits, awaited_adders, late_removals)
    queries = {"commits": places, **{table.name: select(table) for table in tables}}
    with read_store(folder, STORE_KEY) as connection:
        return {name: sorted(map(tuple, connection.execute(query))) for name, query in queries.items()}


@pytest.mark.parametrize(
    "page",
    [
        "topics",
        "group_places",
        *(
            pytest.param(name, marks=pytest.mark.extended)
            for name in ("topic_inits", "heads", "topics_branch", "commits_branch")
        ),
    ],
)
def test_what_other_pages_or_commits_tell_is_as_it_was(world: World, page: str) -> None:
    folder, shown = world.replica.database.folder, timeline(world.replica, world.branch)
    world.close()
    before = _rows(folder)
    harm_page(folder / "ravel.sqlite", page, 0)
    repair = repair_store(folder, STORE_KEY)
    assert repair.found.kinds["database"]
    assert set(repair.left.kinds) <= {"log"}
    assert _rows(folder) == before
    replica = Replica(folder, STORE_KEY)
    assert timeline(replica, world.branch) == shown
    replica.close()


@pytest.mark.parametrize("which", [0, pytest.param(-1, marks=pytest.mark.extended)])
@pytest.mark.parametrize("other", ["", pytest.param("group_places", marks=pytest.mark.extended)])
def test_commits_come_back_to_their_places_topics_and_epochs(world: World, which: int, other: str) -> None:
    folder, shown = world.replica.database.folder, timeline(world.replica, world.branch)
    items = [item for branch in world.replica.branches.values() for item in world.publications(branch)]
    world.close()
    before = _rows(folder)
    for name, number in (("commits", which), (other, 0)):
        if name:
            harm_page(folder / "ravel.sqlite", name, number)
    repair = repair_store(folder, STORE_KEY)
    assert set(repair.left.kinds) <= {"log", "damaged"}
    assert repair.damaged.commits > 0
    replica = Replica(folder, STORE_KEY)
    assert timeline(replica, world.branch) == shown
    give(replica, items)
    replica.close()
    repair_store(folder, STORE_KEY)
    assert _rows(folder) == before
    assert set(check_store(folder, STORE_KEY).kinds) <= {"log"}


def test_a_repo_of_which_an_epochs_key_is_gone_goes_and_leaves_no_topic(world: World) -> None:
    folder = world.replica.database.folder
    world.close()
    harm_page(folder / "ravel.sqlite", "epochs", 0)
    repair = repair_store(folder, STORE_KEY)
    assert set(repair.left.kinds) <= {"log"}
    assert not any(_rows(folder).values())
    assert read_loss(folder) is not None, "the feeds that the user has there are not known any more"
    replica = Replica(folder, STORE_KEY)
    assert replica.repos == {}
    replica.close()
