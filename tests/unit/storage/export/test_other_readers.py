"""Readers of an export: pandas, pyarrow and DuckDB read parts as they are, and by the views beside them."""

import base64
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from node.exports.export_worker import _open_source_authors
from node.ingest.publication_parsing import open_batch
from protocol.crypto.keys import HashKey
from protocol.formats.content import Imported
from ravel.exports.schema import SORTED, TABLES, TIME_END
from storage.engine.database import Database
from storage.export.destinations import LocalFolder
from storage.export.export import ExportPlan, export_store
from storage.export.views import VIEWS_NAME
from tests.support.batches import accept_whole
from tests.support.builders import NOW_MS, World, writing_topic
from tests.support.exports import export_node

pytestmark = pytest.mark.sqlite  # files of an export: its rows come by the same queries as in test_export


def text_of(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").lower()


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    """Make four exports of a store, which replaced and merged parts."""
    folder = tmp_path / "export"
    for at, name in enumerate("abcd", 1):
        world.write(name)
        export_node(world.replica.database, folder, "node", at, parts_max=2, blocks=True)
    return folder


@pytest.mark.slow
def test_all_readers_find_every_row_once(world: World, folder: Path) -> None:
    expected = {bytes(world.commits[name].commit_id) for name in "abcd"} | {
        bytes(raw) for raw in (world.repo.init_id, world.branch.facts.root_id)
    }
    pattern = f"{folder}/commits/*.parquet"
    (rows,) = duckdb.execute(f"SELECT list(commit_id) FROM read_parquet('{pattern}')").fetchall()  # noqa: S608  # a folder and numbers of the test
    found = {
        "duckdb": rows[0],
        "pandas": pd.concat(map(pd.read_parquet, (folder / "commits").iterdir()))["commit_id"].tolist(),
        "pandas, of the folder": pd.read_parquet(folder / "commits")["commit_id"].tolist(),
        "pyarrow": ds.dataset(folder / "commits").to_table()["commit_id"].to_pylist(),
    }
    for name, ids in found.items():
        assert len(ids) == len(set(ids)) == 7, name
        assert set(ids) > expected, name


@pytest.mark.slow
def test_every_part_of_every_table_is_read_by_pandas(folder: Path) -> None:
    names = set()
    for path in folder.glob("[a-z]*/*.parquet"):
        frame = pd.read_parquet(path)
        assert frame.columns.tolist() == TABLES[path.parent.name].names
        assert len(frame) == pq.read_metadata(path).num_rows
        names.add(path.parent.name)
    assert names == {"commits", "names", "topics", "blocks"}


def test_fields_say_what_they_hold_and_parts_how_they_are_sorted(folder: Path) -> None:
    for path in folder.glob("[a-z]*/*.parquet"):
        schema, table = pq.read_schema(path), path.parent.name
        assert schema.metadata[b"description"] == TABLES[table].metadata[b"description"]
        assert all((field.metadata or {}).get(b"description") for field in schema)
        group = pq.read_metadata(path).row_group(0)
        sorted_by = [schema.names[column.column_index] for column in group.sorting_columns]
        assert sorted_by == list(SORTED.get(table, ()))
    field = pq.read_schema(next((folder / "commits").iterdir())).field("size")
    assert field.metadata == {
        b"description": b"ciphertext of the commit's blocks and its body's",
        b"unit": b"bytes",
    }


def test_every_column_says_what_it_holds() -> None:
    for schema in TABLES.values():
        assert schema.metadata
        for field in schema:
            assert field.metadata is not None
            assert field.metadata[b"description"].strip()
            assert field.nullable or not pa.types.is_timestamp(field.type)


@pytest.mark.slow
def test_views_of_duckdb_give_ids_as_text(
    world: World, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(folder, tmp_path / "export [of*] old?")
    script = (folder / VIEWS_NAME).read_text(encoding="utf-8")
    monkeypatch.chdir("/")
    with duckdb.connect() as elsewhere:
        elsewhere.execute("SET VARIABLE export = ?", [str(folder)])
        elsewhere.execute(script)
        check_views(elsewhere, world)
    monkeypatch.chdir(folder)
    with duckdb.connect() as here:
        here.execute(script)
        check_views(here, world)


def check_views(connection: duckdb.DuckDBPyConnection, world: World) -> None:
    for table, schema in TABLES.items():
        for name in (table, f"{table}_text"):
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            assert [row[0] for row in described] == schema.names
    pairs = connection.execute(
        "SELECT c.commit_id, t.commit_id, c.acks, t.acks, t.branch_id, t.rank FROM commits c "
        "JOIN commits_text t USING (sequence) ORDER BY sequence"
    ).fetchall()
    assert len(pairs) == 7
    for raw, text, acks, texts, branch, _ in pairs:
        assert (text, texts) == (text_of(raw), [text_of(ack) for ack in acks])
        assert len(branch) == 52
    assert connection.execute("SELECT count(*) FROM voids_text").fetchone() == (0,)
    assert text_of(world.branch.branch_id) in {pair[4] for pair in pairs}
    comment = "SELECT comment FROM duckdb_columns() WHERE table_name = 'commits' AND column_name = 'size'"
    assert connection.execute(comment).fetchone() == (
        "ciphertext of the commit's blocks and its body's (bytes)",
    )


def test_ids_of_all_bytes_are_written_as_ravel_does(folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"SET VARIABLE export = '{folder}'")
        connection.execute((folder / VIEWS_NAME).read_text(encoding="utf-8"))
        for raw in (bytes(32), b"\xff" * 32, bytes(range(32)), *(os.urandom(32) for _ in range(50))):
            assert connection.execute("SELECT ravel_id(?::BLOB)", [raw]).fetchone() == (text_of(raw),)
        assert connection.execute("SELECT ravel_id(NULL)").fetchone() == (None,)


def test_times_are_timestamps_too_and_absurd_ones_none(world: World, tmp_path: Path) -> None:
    world.write("a")
    with world.replica.database.write() as connection:
        rows = connection.exec_driver_sql("SELECT num FROM commits ORDER BY num").scalars().all()
        times = [-1, 2**63 - 1, TIME_END - 1, 1_700_000_000_123]
        for num, time in zip(rows, times, strict=True):
            connection.exec_driver_sql(f"UPDATE commits SET timestamp = {time} WHERE num = {num}")  # noqa: S608  # a folder and numbers of the test
    folder = tmp_path / "export"
    export_node(world.replica.database, folder, "node", 1)
    found = duckdb.execute(
        f"SELECT time, epoch_ms(time_utc), epoch_ms(received_utc), arrived_utc FROM '{folder}/commits/*.parquet'"  # noqa: S608  # a folder and numbers of the test
    ).fetchall()
    assert found == [
        (-1, None, NOW_MS, None),
        (2**63 - 1, None, NOW_MS, None),
        (TIME_END - 1, TIME_END - 1, NOW_MS, None),
        (1_700_000_000_123, 1_700_000_000_123, NOW_MS, None),
    ]
    (path,) = (folder / "commits").iterdir()
    assert str(pd.read_parquet(path)["time_utc"][3]) == "2023-11-14 22:13:20.123000+00:00"


def test_what_waited_states_when_it_came(world: World, tmp_path: Path) -> None:
    items = world.write("a, a <- b")
    replica, branch = world.copy()
    topic = writing_topic(replica, branch)
    for at, item in enumerate(reversed(items), 5):
        accept_whole(replica, topic, open_batch(topic, [item]), NOW_MS + at)
    rows = rows_of(replica.database, tmp_path / "export")
    found = {row["commit_id"]: (row["arrived_at"], row["received_at"]) for row in rows}
    ids = [world.commits[name].commit_id for name in "ab"]
    assert [found[raw] for raw in ids] == [(None, NOW_MS + 6), (NOW_MS + 5, NOW_MS + 6)]


def rows_of(database: Database, folder: Path, **plan: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # fields of ExportPlan
    plan.setdefault("source_authors", _open_source_authors)
    export_store(database.read, LocalFolder(folder), ExportPlan("node", 1, **plan))
    (path,) = (folder / "commits").iterdir()
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_authors_of_imported_histories_can_be_told_apart(world: World, tmp_path: Path) -> None:
    carol = "Carol <carol@example.org>"
    for at, name in enumerate((carol, "Dave", carol, "")):
        world.author.write(world.branch, Imported(f"id{at}", name, 1000, "a text"))
    world.write("a")
    found = {}
    for number, key in enumerate((None, HashKey(b"k" * 32), HashKey(b"x" * 32))):
        folder = tmp_path / str(number)
        rows = rows_of(world.replica.database, folder, pseudonym_key=key)
        authors = [row["source_author"] for row in rows if row["body_kind"] == "imported"]
        assert all(row["source_author"] is None for row in rows if row["body_kind"] != "imported")
        assert authors[0] == authors[2] != authors[1]
        assert authors[3] is None, "nobody is named"
        found[key] = authors[0]
        assert carol.encode() not in b"".join(path.read_bytes() for path in folder.rglob("*.parquet"))
    assert len({*found.values()}) == 3, "it depends on the key of pseudonyms"
    assert len({row["author"] for row in rows}) == 1


def test_an_erased_import_names_nobody(world: World, tmp_path: Path) -> None:
    world.author.write(world.branch, Imported("id", "Carol", 1000, "a text"))
    with world.replica.database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE commits SET block_nums = substr(block_nums, 1, 8) WHERE body_kind = 'imported'"
        )
    rows = rows_of(world.replica.database, tmp_path / "export")
    assert [row["source_author"] for row in rows if row["body_kind"] == "imported"] == [None]
