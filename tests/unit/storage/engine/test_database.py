"""The store: migrations make the declared schema, transactions are whole, damage is found."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from blake3 import blake3
from sqlalchemy import Connection, create_engine, func, insert, inspect, select, text, update
from sqlalchemy.exc import DBAPIError

from node.runtime.errors import storage_failed
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import encrypt_block
from protocol.ids import BlockId
from storage.commits.blocks import (
    SHARED_SIZE_MIN,
    DamagedBlock,
    find_shared_blocks,
    put_commit_blocks,
    put_shared_blocks,
    read_blocks,
)
from storage.engine.database import Database, NewerSchema, StorageError, newest_revision, read_store
from storage.engine.errors import StoreLocked
from storage.engine.queries import stream_rows
from storage.engine.revisions import create, revision_of, schema_statements, upgrade
from storage.engine.sqlite import DATABASE_NAME
from storage.schema.peer_schema import peers
from storage.schema.schema import authors, blocks
from storage.schema.tables import metadata
from tests.support.older_stores import OLDER, make_older_store, older_is_known


@pytest.fixture
def older() -> Iterator[None]:
    with older_is_known():
        yield


def _described(connection: Connection) -> object:
    """Describe all tables without their columns' order and defaults: only old rows need a default."""
    look = inspect(connection)
    return {
        table: (
            sorted((it["name"], str(it["type"]), it["nullable"]) for it in look.get_columns(table)),
            look.get_pk_constraint(table)["constrained_columns"],
            sorted((it["constrained_columns"], it["referred_table"]) for it in look.get_foreign_keys(table)),
            sorted((it["name"], it["column_names"], it["unique"]) for it in look.get_indexes(table)),
            sorted((it["name"] or "", it["column_names"]) for it in look.get_unique_constraints(table)),
        )
        for table in look.get_table_names()
    }


@pytest.mark.slow
@pytest.mark.sqlite
def test_migrations_and_a_new_store_have_the_same_tables() -> None:
    found = []
    for make in (upgrade, lambda connection: create(connection, newest_revision())):
        engine = create_engine("sqlite://")
        with engine.begin() as connection:
            make(connection)
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
            found.append((_described(connection), revision_of(connection, "it")))
        engine.dispose()
    assert found[0] == found[1]
    assert found[0][1] == newest_revision(), "alembic's head is the newest"


@pytest.mark.sqlite
def test_the_tables_of_a_released_schema_stay_as_they_are() -> None:
    # Until 0.1 is released, write the new hash here; afterwards, freeze `r0001_initial` and write a migration.
    statements = "\n".join(schema_statements(create_engine("sqlite://").dialect))
    assert blake3(statements.encode()).hexdigest()[:16] == "cbcd25ab095eb2fe"


@pytest.mark.sqlite
def test_the_store_is_durable_and_private(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.read() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2, "FULL"
    assert stat.S_IMODE(database.path.stat().st_mode) == 0o600
    database.close()


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["what?mode=memory", "100%41", "a#b", "é"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    database = Database(folder)
    assert stat.S_IMODE((folder / "ravel.sqlite").stat().st_mode) == 0o600
    database.close()
    assert {path.name for path in tmp_path.iterdir()} == {name}
    assert (folder / "ravel.sqlite").stat().st_size > 0


def test_a_store_of_a_newer_ravel_is_left_alone(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'r9999'"))
    database.close()
    with pytest.raises(NewerSchema, match="r9999"):
        Database(tmp_path)


def _revision(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM peers").fetchone() == (1,)
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


@pytest.mark.slow
@pytest.mark.sqlite
@pytest.mark.usefixtures("older")
def test_an_older_store_is_copied_before_it_is_migrated(tmp_path: Path) -> None:
    make_older_store(tmp_path)
    for leftover in ("ravel-of-r0000.sqlite.part", "ravel-of-r0009.sqlite"):
        (tmp_path / leftover).write_bytes(b"of an earlier time")
    Database(tmp_path).close()
    kept = tmp_path / "ravel-of-r0000.sqlite"
    assert (_revision(kept), _revision(tmp_path / "ravel.sqlite")) == (OLDER, newest_revision())
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {kept.name, "ravel.sqlite", "ravel.sqlite-last"}
    made = kept.stat().st_mtime_ns
    Database(tmp_path).close()
    assert kept.stat().st_mtime_ns == made, "nothing is left to migrate"


@pytest.mark.sqlite
@pytest.mark.usefixtures("older")
def test_a_store_that_cannot_be_copied_is_not_migrated(tmp_path: Path) -> None:
    make_older_store(tmp_path)
    (tmp_path / "ravel-of-r0000.sqlite.part").mkdir()
    with pytest.raises(StorageError, match="left as it is"):
        Database(tmp_path)
    assert _revision(tmp_path / "ravel.sqlite") == OLDER


def test_a_moment_of_a_store_is_read_beside_its_writer_and_never_written(tmp_path: Path) -> None:
    database = Database(tmp_path)
    row = {"peer": b"p" * 32, "address": "127.0.0.1:1"}
    with read_store(tmp_path) as reader:
        with database.write() as connection:
            connection.execute(insert(peers), [row])
        assert reader.execute(select(peers)).all() == []
    with pytest.raises(StorageError, match=r"read-?only"), read_store(tmp_path) as reader:
        reader.execute(insert(peers), [row])
    database.close()


@pytest.mark.sqlite
@pytest.mark.usefixtures("older")
def test_a_store_of_another_schema_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="not there"), read_store(tmp_path):
        raise AssertionError("read")
    make_older_store(tmp_path)
    with pytest.raises(StorageError, match=OLDER), read_store(tmp_path):
        raise AssertionError("read")
    assert _revision(tmp_path / "ravel.sqlite") == OLDER


@pytest.mark.sqlite
def test_a_file_that_is_no_store_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "ravel.sqlite").write_bytes(b"this is not a database, and longer than a header" * 100)
    with pytest.raises(StorageError):
        Database(tmp_path)


def test_a_write_that_raises_is_undone_and_the_next_one_works(tmp_path: Path) -> None:
    database = Database(tmp_path)
    row = {"peer": b"p" * 32, "address": "127.0.0.1:1"}
    with pytest.raises(RuntimeError), database.write() as connection:
        connection.execute(insert(peers), [row])
        raise RuntimeError
    with database.write() as connection:
        assert connection.execute(select(peers)).all() == []
        connection.execute(insert(peers), [row])
    with database.read() as connection:
        assert len(connection.execute(select(peers)).all()) == 1
    database.close()


def test_a_read_sees_one_moment(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.read() as reader:
        assert reader.execute(select(peers)).all() == []
        with database.write() as writer:
            writer.execute(insert(peers), [{"peer": b"p" * 32, "address": "x:1"}])
        assert reader.execute(select(peers)).all() == []
    database.close()


def test_a_read_can_write_nothing_and_a_write_knows_its_connection(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with pytest.raises(StorageError, match=r"read-?only"), database.read() as connection:
        assert not database.is_writer(connection)
        connection.execute(insert(authors), [{"num": 1, "user": bytes(32)}])
    with database.write() as connection:
        assert database.is_writer(connection)
        connection.execute(insert(authors), [{"num": 1, "user": bytes(32)}])
    database.close()


@pytest.mark.parametrize("fails", [True, False])
def test_a_stream_that_a_traceback_holds_ends_with_its_transaction_and_leaves_the_next_alone(
    tmp_path: Path, fails: bool
) -> None:
    database = Database(tmp_path)
    left = []
    with suppress(RuntimeError), database.write() as connection:
        connection.execute(insert(authors), [{"num": num, "user": num.to_bytes(32)} for num in range(1, 9)])
        left.append(stream_rows(connection, select(authors.c.num), 1))
        next(left[0])
        if fails:
            raise RuntimeError
    with database.write() as connection:
        connection.execute(insert(authors), [{"num": 10, "user": bytes(32)}])
        left.clear()
        connection.execute(insert(authors), [{"num": 11, "user": bytes(31) + b"k"}])
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(authors)).scalar() == (2 if fails else 10)
    database.close()


def test_blocks_are_shared_found_and_hashed_again(tmp_path: Path) -> None:
    database = Database(tmp_path)
    first, _ = encrypt_block(b"first", ConvergenceSecret(b"c" * 32))
    shared, _ = encrypt_block(b"shared", ConvergenceSecret(b"c" * 32))
    large, _ = encrypt_block(bytes(SHARED_SIZE_MIN), ConvergenceSecret(b"c" * 32))
    with database.write() as connection:
        nums = put_commit_blocks(database, connection, [first, large, large])
        assert put_commit_blocks(database, connection, [first])[first.block_id] != nums[first.block_id]
        again = put_commit_blocks(database, connection, [large])
        assert again == put_shared_blocks(database, connection, [large, large])
        assert again == {large.block_id: nums[large.block_id]}
        nums |= put_shared_blocks(database, connection, [shared, shared])
        assert nums.keys() == {first.block_id, large.block_id, shared.block_id}
        ids = [first.block_id, shared.block_id, large.block_id, BlockId(b"x" * 32)]
        assert find_shared_blocks(connection, ids).keys() == {shared.block_id, large.block_id}, (
            "not the first"
        )
    with database.write() as connection:
        is_first = blocks.c.num == nums[first.block_id]
        connection.execute(update(blocks).where(is_first).values(encoded=b"\0"))
    with database.read() as connection:
        assert read_blocks(connection, {nums[shared.block_id]: shared.block_id})
        with pytest.raises(DamagedBlock):
            read_blocks(connection, {nums[first.block_id]: first.block_id})
        with pytest.raises(DamagedBlock):
            read_blocks(connection, {999: None})
    database.close()


@pytest.mark.sqlite
@pytest.mark.parametrize("name", [b"alembic_version", b"commits_order", b"repos", b"peers"])
def test_a_damaged_name_in_the_schema_is_a_clear_error(tmp_path: Path, name: bytes) -> None:
    # SQLite's message names it, and Python cannot decode that message.
    Database(tmp_path).close()
    path = tmp_path / "ravel.sqlite"
    content = path.read_bytes()
    for statement in (b"CREATE TABLE ", b"CREATE INDEX "):
        content = content.replace(statement + name, statement[:7] + b"\xff\xfe" + statement[9:] + name)
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"damaged|malformed"):
        Database(tmp_path)
    with pytest.raises(StorageError, match=r"damaged|malformed"), read_store(tmp_path):
        raise AssertionError("read")


@pytest.mark.sqlite
def test_connections_keep_few_pages_and_one_is_used_where_one_will_do(tmp_path: Path) -> None:
    # A flood of large rows, and of questions about them, fills what each connection keeps.
    query = text("PRAGMA cache_size")
    with closing(Database(tmp_path)) as database:
        with database.write() as writer:
            assert writer.execute(query).scalar_one() == -16 * 1024
        used = set()
        with database.read() as one, database.read() as other:
            assert [connection.execute(query).scalar_one() for connection in (one, other)] == [-4 * 1024] * 2
        for _ in range(4):
            with database.read() as connection:
                used.add(id(connection.connection.driver_connection))
        assert len(used) == 1


@pytest.mark.sqlite  # a server lets its clients wait instead
def test_a_store_that_another_program_holds_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.engine.sqlite._BUSY_TIMEOUT_SECONDS", 0.0)
    database = Database(tmp_path)
    other = sqlite3.connect(tmp_path / DATABASE_NAME, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="database is locked, by another program") as caught:
            database.probe()
        assert "end the program that holds it" in storage_failed(caught.value, "make room").advice
        cause = caught.value.__cause__  # as of a write of several, of which one failed
        assert isinstance(cause, DBAPIError)
        kept = database.to_storage_error(cause)
        assert isinstance(kept, StoreLocked)
        assert str(kept) == str(caught.value)
        other.execute("ROLLBACK")
        database.probe()
    finally:
        other.close()
        database.close()
