"""Exports: every commit once, in acceptance order, published whole, and added to."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from blake3 import blake3

from node.outbound import Author
from protocol.body import Adopt, Grant, Permission, Remove
from storage.database import StorageError
from storage.export import export_store
from storage.export_schema import COMMITS, MANIFEST_NAME, SCHEMA_VERSION
from tests.builders import NOW_MS, World, timeline


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "world")
    yield world
    world.close()


def test_an_export_holds_every_commit_and_grows(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    world.write("a, a <- b, a <- c")
    first = export_store(world.replica.database, folder, "node", 1)
    world.write("b c <- d")
    second = export_store(world.replica.database, folder, "node", 2)
    again = export_store(world.replica.database, folder, "node", 3)
    assert (first.commits, second.commits, second.added, again.added, again.parts) == (6, 7, 1, 0, 2)

    manifest = json.loads((folder / MANIFEST_NAME).read_bytes())
    rows = []
    for part in manifest["tables"]["commits"]:
        path = folder / part["path"]
        assert part["bytes"] == path.stat().st_size
        assert part["blake3"] == blake3(path.read_bytes()).hexdigest()
        table = pq.read_table(path)
        assert table.schema == COMMITS
        rows += table.to_pylist()
    assert [row["sequence"] for row in rows] == sorted(row["sequence"] for row in rows)
    mine = [row for row in rows if row["branch_id"] == world.branch.branch_id]
    ordered = sorted(mine, key=lambda row: (row["rank"], row["commit_id"]))
    assert [row["commit_id"] for row in ordered] == timeline(world.replica, world.branch)
    assert [row["position"] for row in ordered] == list(range(5))
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"format": "other", "schema_version": 1, "node": "node"}']
)
def test_a_folder_with_another_manifest_is_refused(world: World, tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(StorageError, match="manifest"):
        export_store(world.replica.database, folder, "node", 1)
    assert (folder / MANIFEST_NAME).read_bytes() == content


def test_another_nodes_export_is_not_added_to(world: World, tmp_path: Path) -> None:
    export_store(world.replica.database, tmp_path / "export", "node", 1)
    with pytest.raises(StorageError, match="another node"):
        export_store(world.replica.database, tmp_path / "export", "other", 1)


def test_an_export_that_was_cut_before_its_manifest_is_made_again(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    (folder / "commits").mkdir(parents=True)
    (folder / "commits" / "part-00000001.parquet").write_bytes(b"half")
    assert export_store(world.replica.database, folder, "node", 1).commits == 3


def test_what_is_void_is_stated_anew_by_each_export(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    bob = Author(world.replica, b"b" * 32, lambda: NOW_MS)
    root = world.replica.root_branch(world.repo)
    world.author.write(root, Grant(bob.user, Permission.WRITE, None))
    world.write_one("a", [], bob)
    export_store(world.replica.database, folder, "node", 1)
    assert _voids(folder) == []
    world.author.write(root, Remove(bob.user, None, ()))
    export_store(world.replica.database, folder, "node", 2)
    void = world.commits["a"].commit_id
    assert _voids(folder) == [void]
    world.author.write(root, Adopt(world.branch.branch_id, (void,)))
    for number in range(3, 6):
        export_store(world.replica.database, folder, "node", number)
        assert _voids(folder) == []
    assert len(list((folder / "voids").iterdir())) <= 2, "older ones are forgotten"


def test_an_export_of_the_first_schema_is_gone_on_with(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    export_store(world.replica.database, folder, "node", 1)
    manifest = json.loads((folder / MANIFEST_NAME).read_bytes())
    manifest["schema_version"] = 1
    del manifest["tables"]["voids"]
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest))
    world.write("a")
    assert export_store(world.replica.database, folder, "node", 2).added == 1
    assert json.loads((folder / MANIFEST_NAME).read_bytes())["schema_version"] == SCHEMA_VERSION


def _voids(folder: Path) -> list[bytes]:
    parts = json.loads((folder / MANIFEST_NAME).read_bytes())["tables"]["voids"]
    return [row["commit_id"] for part in parts for row in pq.read_table(folder / part["path"]).to_pylist()]
