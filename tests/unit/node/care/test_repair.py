"""Repair of a store: each kind of damage is put right, or asked of peers, or named; and nothing else is touched."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text

from node.care.fsck import check_store
from node.care.repair import RepairReport, repair_store
from node.content.search_indexer import SearchIndexer
from node.home.home import lock_home
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol.crypto.keys import StoreKey
from protocol.ids import PeerId, TopicKey
from storage.commits.edits import START, load_edits
from storage.engine.database import Database, StorageError, read_store
from storage.relay.quotas import Visitor
from storage.schema.schema import commits, sketches
from storage.schema.tables import metadata
from storage.topics.difference import REPLICA
from storage.topics.topic_sets import TopicSet
from tests.support.builders import STORE_KEY, World, give, timeline
from tests.support.relays import fill_relay
from tests.support.tiers import in_tiers
from tests.unit.node.care.test_fsck import HARM, PACKS, RELAYED, SEARCH, SQL, with_file, with_index

_NOT_COMPARED = {"changes", "sequences", "damaged_commits", "damaged_blocks"}


def _repair(folder: Path, *, dry_run: bool = False) -> RepairReport:
    return repair_store(folder, STORE_KEY, dry_run=dry_run)


def _dump(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables but those that say how it came to this; blocks by their bytes."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in metadata.sorted_tables:
        if table.name in _NOT_COMPARED:
            continue
        columns = [column for column in table.c if column.name != "changes_from"]
        found[table.name] = sorted(map(tuple, connection.execute(select(*columns))), key=repr)
    return found


def _dump_of(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    with read_store(folder, STORE_KEY) as connection:
        return _dump(connection)


def _story(folder: Path) -> World:
    """Forks and merges, a void commit, and two checkpoints."""
    return World(folder, tell=World.tell_story)


def _topic_set(num: int, topic: TopicKey) -> TopicSet:
    return TopicSet(REPLICA, num, topic)


@pytest.mark.slow
def test_a_good_store_is_left_as_it_is(tmp_path: Path) -> None:
    world = _story(tmp_path)
    world.close()
    before = _dump_of(tmp_path)
    repair = _repair(tmp_path)
    assert (repair.found.kinds, repair.left.kinds, repair.changed, repair.copy) == ({}, {}, {}, None)
    assert _dump_of(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir() if "repair" in path.name) == []


DERIVED = {
    name: SQL[name][0]
    for name in (
        "rank",
        "ack_that_is_not_there",
        "head_that_is_missing",
        "head_that_is_none",
        "head_marked",
        "branch_count",
        "void_count",
        "topic_count",
        "order_shown",
        "order_size",
        "order_missing",
        "order_begins_late",
        "order_higher_level",
        "display_time",
        "passed",
        "void",
        "feed_evidence",
        "author",
        "sequence",
        "body_kind",
        "timestamp",
        "place",
        "id_key",
        "checkpoint_forgotten",
        "waiting",
    )
} | {
    "ranks_of_all": "UPDATE commits SET rank = 0",
    "passed_by_all": "UPDATE commits SET passed = 7",
    "all_void": "UPDATE commits SET is_void = true",
    "none_void": "UPDATE commits SET is_void = false",
    "heads_gone": "DELETE FROM heads",
    "checkpoint_of_nothing": "UPDATE checkpoints SET merged = :junk",
    "erasure_that_was_none": (
        "INSERT INTO erasures SELECT num, branch_num, topic_num, :junk, 5, false, false FROM commits WHERE rank = 3"
    ),
    "causes_of_nothing": "INSERT INTO pending_causes VALUES (5, 77)",
    "heads_of_nothing": "INSERT INTO heads VALUES (77, :junk, 2, 1, false)",
    "inits_on_no_topic": "DELETE FROM topic_inits",
    "places_gone": "DELETE FROM group_places",
}
_PARTS = 5
"""Of the damages: in each part are some that do not undo each other."""


@pytest.mark.slow
@pytest.mark.extended  # several at once, below, are quicker
@pytest.mark.sqlite
@pytest.mark.parametrize("damage", DERIVED)
def test_what_follows_from_commits_is_made_again(tmp_path: Path, damage: str) -> None:
    _harm_and_repair(tmp_path, [damage])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_several_damages_at_once_are_made_good(tmp_path: Path, part: int) -> None:
    _harm_and_repair(tmp_path, list(DERIVED)[part::_PARTS])


def _harm_and_repair(tmp_path: Path, damages: list[str]) -> None:
    world = _story(tmp_path)
    before = _dump_of(tmp_path)
    with world.replica.database.write() as connection:
        for damage in damages:
            assert connection.execute(text(DERIVED[damage]), HARM).rowcount > 0, "the damage is done"
    world.close()
    harmed = _dump_of(tmp_path)
    assert harmed != before
    foreseen = _repair(tmp_path, dry_run=True)
    assert _dump_of(tmp_path) == harmed, "a dry run changes nothing"
    repair = _repair(tmp_path)
    assert repair.found.kinds, "it was found"
    assert (repair.left.problems, foreseen.left.problems) == ([], [])
    assert repair.changed == foreseen.changed != {}
    assert _dump_of(tmp_path) == before
    assert check_store(tmp_path, STORE_KEY).problems == []
    assert repair.copy == tmp_path / "ravel-before-repair.sqlite"
    with closing(sqlite3.connect(repair.copy)) as copy:
        assert copy.execute("SELECT count(*) FROM commits").fetchone()[0] == len(before["commits"])


DAMAGED = {
    "block_bytes": "UPDATE blocks SET encoded = :junk WHERE num = 9",
    "block_missing": "DELETE FROM blocks WHERE num = 9",
    "blocks_gone": "DELETE FROM blocks WHERE num > 3",
    "block_of_another": SQL["block_of_another"][0],
    "commit_key": SQL["commit_key"][0],
    "epoch_of_another": (
        "UPDATE commits SET epoch_num = (SELECT max(num) FROM epochs) WHERE branch_num = 2 AND rank = 1"
    ),
    "block_key": "UPDATE blocks SET id_key = 5 WHERE num = 9",
    "block_nums_cut": "UPDATE commits SET block_nums = substr(block_nums, 1, 11) WHERE branch_num = 2 AND rank = 2",
    "block_nums_wild": "UPDATE commits SET block_nums = :junk WHERE branch_num = 2 AND rank = 2",
    "body_forgotten": "UPDATE commits SET block_nums = substr(block_nums, 1, 8) WHERE branch_num = 2 AND rank = 2",
}


@pytest.mark.slow
@pytest.mark.sqlite
@pytest.mark.parametrize("damage", in_tiers(DAMAGED, quick=4))
def test_what_only_peers_have_is_asked_of_them(tmp_path: Path, damage: str) -> None:
    """And comes back with any publication of it, no matter who brings it."""
    world = _story(tmp_path)
    items = [item for branch in world.replica.branches.values() for item in world.publications(branch)]
    before, digest = _dump_of(tmp_path), timeline(world.replica, world.branch)
    with world.replica.database.write() as connection:
        assert connection.execute(text(DAMAGED[damage]), HARM).rowcount > 0, "the damage is done"
    world.close()
    repair = _repair(tmp_path)
    assert repair.found.kinds
    assert repair.left.kinds == {"damaged": repair.damaged.commits}
    assert check_store(tmp_path, STORE_KEY).kinds == repair.left.kinds
    again = _repair(tmp_path)
    assert (again.changed, again.left.kinds, again.copy) == ({}, repair.left.kinds, None)
    replica = Replica(tmp_path, STORE_KEY)
    assert replica.has_damaged
    assert timeline(replica, replica.branches[world.branch.num]) == digest, "places are known"
    give(replica, items)
    replica.close()
    assert check_store(tmp_path, STORE_KEY).problems == []
    after = _dump_of(tmp_path)
    for name in before.keys() - {"blocks", "commits"}:
        assert after[name] == before[name], name


UNREPAIRABLE = {
    "topic_missing": ("UPDATE commits SET topic_num = 99 WHERE rank = 2", "reference"),
    "repo_secret": ("UPDATE epochs SET key = :junk", "repo"),
    "commit_gone": ("DELETE FROM commits WHERE branch_num = 2 AND rank = 2", "ack"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", UNREPAIRABLE)
def test_what_cannot_be_put_right_is_named(tmp_path: Path, damage: str) -> None:
    world = _story(tmp_path)
    statement, kind = UNREPAIRABLE[damage]
    with world.replica.database.write() as connection:
        assert connection.execute(text(statement), HARM).rowcount > 0, "the damage is done"
    world.close()
    repair = _repair(tmp_path)
    assert kind in repair.left.kinds
    assert kind in _repair(tmp_path).left.kinds


@pytest.mark.slow
@pytest.mark.parametrize("damage", PACKS)
def test_packs_are_repaired_as_far_as_they_are_here(tmp_path: Path, damage: str) -> None:
    with_file(tmp_path).replica.close()
    (pack,) = (tmp_path / "packs").iterdir()
    PACKS[damage][0](pack)
    repair = _repair(tmp_path)
    assert repair.damaged.commits == 0
    assert repair.damaged.blocks == repair.left.kinds["damaged"] == repair.changed["blocks"] > 0
    assert pack.exists() == (damage != "gone")
    assert check_store(tmp_path, STORE_KEY).kinds == repair.left.kinds


FILES = {
    "name": "UPDATE files SET name = 'other'",
    "gone": "DELETE FROM files",
    "removed": "INSERT INTO file_removals VALUES (1, 2)",
    "one_more": "INSERT INTO files SELECT 77, branch_num, commit_num, object_id, object_key, name, size FROM files",
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", FILES)
def test_files_are_kept_as_commits_say(tmp_path: Path, damage: str) -> None:
    node = with_file(tmp_path)
    before = _dump_of(tmp_path)
    with node.replica.database.write() as connection:
        connection.execute(text(FILES[damage]))
    node.replica.close()
    assert _repair(tmp_path).left.problems == []
    assert _dump_of(tmp_path) == before


_NOTHING_LEFT = {
    *("publication", "topic", "no_account", "quota"),
    *("block", "inner_block", "no_block", "no_link", "no_root", "no_file"),
}
"""Of others' content nothing here tells what it was: it comes again from those that have it."""


@pytest.mark.slow
@pytest.mark.parametrize("damage", RELAYED)
def test_what_is_kept_for_others_is_put_right_or_goes(tmp_path: Path, damage: str) -> None:
    world = World(tmp_path / "writer")
    world.write("a, a <- b")
    folder = tmp_path / "relay"
    folder.mkdir()
    database = Database(folder, STORE_KEY)
    fill_relay(database, world, Visitor(PeerId(b"p" * 32)))
    world.close()
    before = _dump_of(folder)
    with database.write() as connection:
        assert connection.execute(text(RELAYED[damage][0]), HARM).rowcount > 0, "the damage is done"
    database.close()
    repair = _repair(folder)
    assert repair.found.kinds
    assert repair.left.problems == []
    if damage not in _NOTHING_LEFT:
        assert _dump_of(folder) == before


@pytest.mark.slow
def test_sketches_that_are_wrong_are_made_anew(tmp_path: Path) -> None:
    world = _story(tmp_path)
    kept = _topic_set(world.topic().num, world.topic().topic)
    values = {"topic": kept.topic, "place": kept.place, "upto": 5, "digest": b"", "prefix": b"junk"}
    with world.replica.database.write() as connection:
        connection.execute(insert(sketches).values(values))
    world.close()
    repair = _repair(tmp_path)
    assert (repair.found.kinds, repair.left.kinds) == ({"sketch": 1}, {})


@pytest.mark.slow
def test_followers_read_a_repaired_timeline_anew(tmp_path: Path) -> None:
    world = _story(tmp_path)
    branch_num = world.branch.num
    with world.replica.database.read() as connection:
        cursor = load_edits(connection, branch_num, START, 1000).next
        assert not load_edits(connection, branch_num, cursor, 1000).is_reset
    with world.replica.database.write() as connection:
        connection.execute(text("UPDATE commits SET is_void = true WHERE branch_num = 2 AND rank = 2"))
    world.close()
    _repair(tmp_path)
    with read_store(tmp_path, STORE_KEY) as connection:
        window = load_edits(connection, branch_num, cursor, 1000)
        assert window.is_reset
        assert {edit.commit_id for edit in window.edits} == set(load_ids(connection, branch_num))


def load_ids(connection: Connection, branch_num: int) -> list[bytes]:
    """The timeline."""
    query = select(commits.c.commit_id).where(commits.c.branch_num == branch_num, ~commits.c.is_void)
    return list(connection.execute(query).scalars())


@pytest.mark.slow
def test_a_running_node_is_not_repaired(tmp_path: Path) -> None:
    _story(tmp_path).close()
    with lock_home(tmp_path), pytest.raises(ServiceError) as caught:
        _repair(tmp_path)
    assert caught.value.code == "already_running"


@pytest.mark.slow
def test_a_store_of_another_key_is_left_alone(tmp_path: Path) -> None:
    _story(tmp_path).close()
    with pytest.raises(StorageError):
        repair_store(tmp_path, StoreKey(b"another".ljust(32, b"-")))


@pytest.mark.parametrize("damage", SEARCH)
def test_a_damaged_search_index_is_made_anew(tmp_path: Path, damage: str) -> None:
    node = with_index(tmp_path)
    with node.replica.database.write() as connection:
        junk = {"junk": b"j" * 4} if ":junk" in SEARCH[damage] else {}
        connection.execute(text(SEARCH[damage]), junk)
    node.replica.close()
    repaired = _repair(tmp_path)
    assert (repaired.changed, repaired.left.kinds) == ({"search": 1}, {})
    node.open()
    indexer = SearchIndexer(node.hub, is_enabled=True)
    while indexer.work():
        pass
    node.replica.close()
    found = check_store(tmp_path, STORE_KEY)
    assert (found.problems, found.checked["search_parts"]) == ([], 1)
