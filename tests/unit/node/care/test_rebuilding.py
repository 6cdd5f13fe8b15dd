"""Damage of the database's own pages: what can be read is kept, what indexes tell is used, peers have the rest."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from node.care.fsck import check_store
from node.care.repair import RepairReport, repair_store
from node.ingest.replica import Replica
from storage.check.rebuild_file import find_damage
from storage.engine.losses import read_loss
from tests.support.builders import STORE_KEY, World, give, timeline
from tests.support.damaged_pages import harm_page

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]


def _on_page(name: str, which: int) -> Callable[[Path], None]:
    return partial(harm_page, name=name, which=which)


def _at(place: int, content: bytes) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(content)

    return harm


def _replaced(before: bytes, after: bytes) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        content = path.read_bytes()
        assert before in content
        path.write_bytes(content.replace(before, after, 1))

    return harm


def _repair(folder: Path) -> RepairReport:
    return repair_store(folder, STORE_KEY)


HEALED: dict[str, Callable[[Path], None]] = {
    "an index": _on_page("commits_order", 0),
    "heads": _on_page("heads", 0),
    "authors": _on_page("authors", 0),
    "topics": _on_page("topics", 0),
    "seal": _on_page("store_seal", 0),
    "version": _on_page("alembic_version", 0),
    "magic": _at(0, b"X"),
    "page size": _at(16, b"\x80\x00"),
    "text encoding": _at(59, b"\x02"),
    "free pages": _at(32, b"\x00\x00\x00\x05\x00\x00\x00\x09"),
    "a name in the schema": _replaced(b"tablecommitscommits", b"tablecommi\xffscommits"),
    "a statement in the schema": _replaced(b"CREATE TABLE heads", b"CREATE TABL\xff heads"),
    "an altered UNIQUE": _replaced(b"UNIQUE (repo_num, branch_id)", b"UNIQUE (repo_num, root_id  )"),
}

_QUICK = ("an index", "magic", "a statement in the schema")
"""One of each way in which it is put right; the others are of the second tier."""


@pytest.mark.parametrize(
    "damage",
    [pytest.param(name, marks=[] if name in _QUICK else pytest.mark.extended) for name in HEALED],
)
def test_what_follows_from_other_pages_is_put_right_here(tmp_path: Path, damage: str) -> None:
    world = World(tmp_path, tell=World.tell_story)
    digest = timeline(world.replica, world.branch)
    world.close()
    path = tmp_path / "ravel.sqlite"
    HEALED[damage](path)
    harmed = path.read_bytes()
    assert find_damage(tmp_path).kinds
    repair = _repair(tmp_path)
    assert {"database", "schema"} & repair.found.kinds.keys()
    assert set(repair.left.kinds) <= {"log"}
    assert repair.copy is not None
    assert (repair.copy / "ravel.sqlite").read_bytes() == harmed
    assert not (tmp_path / "rebuilt.part").exists()
    assert not find_damage(tmp_path).kinds
    replica = Replica(tmp_path, STORE_KEY)
    assert timeline(replica, replica.branches[world.branch.num]) == digest
    replica.close()


@pytest.mark.parametrize(
    "table, which",
    [
        ("commits", 0),
        *(
            pytest.param(table, which, marks=pytest.mark.extended)
            for table, which in (
                ("commits", 1),
                ("commits", -1),
                ("blocks", 0),
                ("blocks", 1),
                ("blocks", -1),
            )
        ),
    ],
)
def test_what_stood_on_a_damaged_page_is_asked_of_peers(tmp_path: Path, table: str, which: int) -> None:
    world = World(tmp_path, tell=World.tell_story)
    items = [item for branch in world.replica.branches.values() for item in world.publications(branch)]
    digest = timeline(world.replica, world.branch)
    world.close()
    _on_page(table, which)(tmp_path / "ravel.sqlite")
    repair = _repair(tmp_path)
    assert set(repair.left.kinds) <= {"log", "damaged"}
    assert repair.damaged.commits > 0
    assert (read_loss(tmp_path) is not None) == (table == "commits"), "own ones may be gone"
    replica = Replica(tmp_path, STORE_KEY)
    assert timeline(replica, replica.branches[world.branch.num]) == digest, "places are known"
    give(replica, items)
    for repo_id in replica.own_feeds.uncertain:
        replica.own_feeds.settle(repo_id)
    replica.close()
    assert check_store(tmp_path, STORE_KEY).problems == []


def test_a_repo_whose_secrets_are_gone_goes_with_all_of_it_and_can_be_joined_again(tmp_path: Path) -> None:
    world = World(tmp_path, tell=World.tell_story)
    world.close()
    _on_page("repos", 0)(tmp_path / "ravel.sqlite")
    repair = _repair(tmp_path)
    assert repair.left.kinds.keys() <= {"log"}
    assert repair.changed["dropped"] > 0
    replica = Replica(tmp_path, STORE_KEY)
    assert replica.repos == {}
    replica.close()


def test_a_dry_run_rebuilds_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.close()
    path = tmp_path / "ravel.sqlite"
    _at(0, b"X")(path)
    harmed = path.read_bytes()
    assert repair_store(tmp_path, STORE_KEY, dry_run=True).changed == {"database": 1}
    assert path.read_bytes() == harmed
    assert not (tmp_path / "quarantine").exists()
