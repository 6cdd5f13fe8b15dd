"""Tables of Delta Lake over an export's parts: what other readers find at each version, wherever an export was cut off."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import ravel
from ravel.exports.schema import KEPT_NAME, TABLES
from storage.engine.database import StorageError
from storage.export.delta_log import CHECKPOINT_VERSIONS
from storage.export.views import VIEWS_NAME
from tests.support.builders import World
from tests.support.delta_logs import read_delta
from tests.support.export_places import STEPS_MAX, Cut, Place, export, listed_in, open_place
from tests.support.read_exports import read_export

pytestmark = pytest.mark.sqlite  # rows come by the same queries as in other tests

HOUR = 3600
KEEP = 24 * HOUR


def read_all(place: Place, version: int | None = None) -> dict[str, Any]:
    """Read parts of all tables, as a reader of Delta alone finds them; all versions are of one manifest."""
    names = place.names()
    found = {table: read_delta(table, names, place.content, version) for table in TABLES}
    tables = {name: table for name, table in found.items() if table is not None}
    assert tables.keys() == TABLES.keys()
    assert len({(table.version, table.manifest) for table in tables.values()}) == 1
    return {
        name: {path.removeprefix(f"{KEPT_NAME}/") for path in table.sizes} for name, table in tables.items()
    }


def listed(manifest: dict[str, Any]) -> dict[str, set[str]]:
    return {table: listed_in(manifest, table) for table in TABLES}


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=repr)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    with open_place("links", tmp_path / "export", monkeypatch) as place:
        return place


@pytest.mark.slow
def test_a_library_of_delta_finds_the_rows_of_each_export_at_its_version(world: World, folder: Place) -> None:
    exported: list[dict[str, pa.Table]] = []
    for number in range(CHECKPOINT_VERSIONS + 3):
        world.write(f"commit {number}")
        export(world, folder, (number + 1) * HOUR, delta=True, blocks=number > 1)
        opened = ravel.open_export(folder.folder, with_blocks=True)
        exported.append({table: opened.table(table).arrow().drop(["node"]) for table in opened.tables})
    for version in (0, 2, CHECKPOINT_VERSIONS, CHECKPOINT_VERSIONS + 2):
        for name, expected in exported[version].items():
            table = DeltaTable(folder.folder / KEPT_NAME / name, version=version)
            read = table.to_pyarrow_table()
            assert read.column_names == expected.column_names
            assert rows_of(read) == rows_of(expected), (name, version)
    last = DeltaTable(folder.folder / KEPT_NAME / "commits")
    assert last.version() == CHECKPOINT_VERSIONS + 2
    assert last.metadata().name == "commits"
    assert read_export(folder.folder).rows == CHECKPOINT_VERSIONS + 3 + 3


@pytest.mark.slow
def test_a_reader_of_delta_passes_over_parts_that_hold_nothing_wanted(world: World, folder: Place) -> None:
    for number in range(3):
        world.write(f"commit {number}")
        export(world, folder, (number + 1) * HOUR, delta=True, parts_max=9)
    table = DeltaTable(folder.folder / KEPT_NAME / "commits")
    commits = table.to_pyarrow_dataset()
    rows = commits.to_table()
    numbers = cast("list[int]", rows["sequence"].to_pylist())
    times = cast("list[datetime]", rows["time_utc"].to_pylist())
    first, last = min(numbers), max(numbers)

    def read(condition: pc.Expression) -> tuple[int, int]:
        return len([*commits.get_fragments(condition)]), commits.to_table(filter=condition).num_rows

    sequence, at = pc.field("sequence"), pc.field("time_utc")
    assert read(sequence > first - 1)[0] == 3
    assert read(sequence == last) == (1, 1)
    assert read(sequence > last) == (0, 0)
    assert read(at > max(times) + timedelta(seconds=1)) == (0, 0)
    assert read(at >= min(times)) == (3, rows.num_rows)
    for add in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        part = pq.read_table(folder.folder / KEPT_NAME / "commits" / add["path"])
        for name in ("sequence", "received_at", "time_utc", "arrived_utc"):
            assert add[f"null_count.{name}"] == part[name].null_count
        of_part = cast("list[int]", part["sequence"].to_pylist())
        assert (add["min.sequence"], add["max.sequence"]) == (min(of_part), max(of_part))
    lines = folder.content(f"{KEPT_NAME}/commits/_delta_log/{0:020}.json").splitlines()
    stats = [json.loads(json.loads(line)["add"]["stats"]) for line in lines if b'"add"' in line]
    assert stats
    assert not any({"commit_id", "branch_name", "acks"} & one["minValues"].keys() for one in stats)


@pytest.mark.slow
@pytest.mark.extended
def test_polars_finds_the_rows_of_each_version_and_joins_tables_of_one(world: World, folder: Place) -> None:
    import polars as pl  # takes longer than all tests of this file that are quick

    expected: list[list[Any]] = []
    for number in range(CHECKPOINT_VERSIONS + 2):
        world.write(f"commit {number}")
        export(world, folder, (number + 1) * HOUR, delta=True)
        expected.append(ravel.open_export(folder.folder).table("commits").arrow()["commit_id"].to_pylist())
    root = folder.folder / KEPT_NAME
    for version in (0, CHECKPOINT_VERSIONS - 1, CHECKPOINT_VERSIONS, CHECKPOINT_VERSIONS + 1):
        read = pl.scan_delta(root / "commits", version=version).sort("sequence").collect()
        assert read["commit_id"].to_list() == sorted(expected[version], key=expected[-1].index)
    joined = pl.scan_delta(root / "commits").join(pl.scan_delta(root / "topics"), on="topic").collect()
    assert joined.height == len(expected[-1])
    assert pl.scan_delta(root / "voids").collect().is_empty()


@pytest.mark.extended
def test_versions_and_their_parts_go_once_they_were_kept_long_enough(world: World, folder: Place) -> None:
    for number in range(5 * CHECKPOINT_VERSIONS):
        if number % 3 == 0:
            world.write(f"commit {number}")
        export(world, folder, (number + 1) * HOUR, delta=True, keep_seconds=KEEP)
        for back in range(0, min(number + 1, KEEP // HOUR), 7):
            read_all(folder, number - back)
    names = [name for name in folder.names() if name.startswith(f"{KEPT_NAME}/commits/_delta_log/")]
    assert not any("0" * 18 + "09.json" in name for name in names), "it is older than what is kept"
    # What was kept for a day, and up to a checkpoint before it.
    assert len(names) <= KEEP // HOUR + 2 * CHECKPOINT_VERSIONS + 8
    assert (
        DeltaTable(folder.folder / KEPT_NAME / "commits").to_pyarrow_table().num_rows
        == read_export(folder.folder).rows
    )


def test_a_log_has_what_the_manifest_lists_after_every_export(world: World, place: Place) -> None:
    export(world, place, 1)
    assert read_delta("commits", place.names(), place.content) is None
    former = [listed(place.manifest())]  # of which the log begins
    for at, name in enumerate("abc", 2):
        world.write(name)
        export(world, place, at, delta=True)
        former.append(listed(place.manifest()))
        assert read_all(place) == former[-1]
    assert former[0]["commits"] - former[-1]["commits"], "some were replaced"
    for version, parts in enumerate(former):
        assert read_all(place, version) == parts
    assert place.rows_by_manifest() == 6
    if place.kind == "links":
        assert place.shown("commits") == former[-1]["commits"]
        assert VIEWS_NAME in place.names()
    else:
        assert VIEWS_NAME not in place.names(), "its patterns would find nothing"
        assert not place.shown("commits"), (
            "no part can be in two places, and a pattern finds nothing rather than too little"
        )
    export(world, place, 5)
    assert not any("_delta_log" in name for name in place.names()), "without the format there is no log"
    assert place.shown("commits") == listed_in(place.manifest(), "commits")
    assert VIEWS_NAME in place.names()


@pytest.mark.extended
def test_a_reader_of_the_log_has_one_export_or_the_next_after_any_cut(world: World, place: Place) -> None:
    cuts = 0
    is_cut = True
    for number in range(STEPS_MAX):
        if not is_cut:
            break
        at = 10 * (number + 1)
        world.write(f"before{number}")
        export(world, place, at, parts_max=3, delta=True)
        before = listed(place.manifest())
        assert read_all(place) == before
        world.write(f"after{number}")
        place.left = number
        try:
            # What was replaced by the one before is not kept any longer.
            export(world, place, at + 1, parts_max=3, delta=True, keep_seconds=1)
            is_cut = False
        except Cut:
            cuts += 1
        place.left = STEPS_MAX
        names, after = place.names(), listed(place.manifest())
        for table in TABLES:
            found = read_delta(table, names, place.content)
            assert found is not None
            parts = {path.removeprefix(f"{KEPT_NAME}/") for path in found.sizes}
            assert parts in (before[table], after[table])
        export(world, place, at + 2, delta=True)
        assert read_all(place) == listed(place.manifest())
    assert cuts > 10


def test_a_log_that_another_program_wrote_is_gone_on_with(world: World, folder: Place) -> None:
    for at, name in enumerate("abc", 1):
        world.write(name)
        export(world, folder, at, parts_max=10, delta=True)
    table = DeltaTable(folder.folder / KEPT_NAME / "commits")
    table.optimize.compact()
    assert len(table.file_uris()) == 1
    export(world, folder, 4, parts_max=10, delta=True)
    table.update_incremental()
    assert table.version() == 5, "undone, then exported"
    assert table.to_pyarrow_table().num_rows == read_export(folder.folder).rows == 6


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"add": {}}', b'{"add": 7}\n', b"\xff"])
def test_a_damaged_log_is_named_with_the_next_step(world: World, folder: Place, content: bytes) -> None:
    export(world, folder, 1, delta=True)
    log = f"{KEPT_NAME}/commits/_delta_log"
    folder.write(f"{log}/{0:020}.json", content)
    with pytest.raises(StorageError, match=f"{log} is not a log .* delete every folder"):
        export(world, folder, 2, delta=True)
    (folder.folder / log / f"{0:020}.json").unlink()
    export(world, folder, 2, delta=True)
    found = read_delta("commits", folder.names(), folder.content)
    assert found is not None
    assert found.version == 1, "of the export that is there, and of the new one"
