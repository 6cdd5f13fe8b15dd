"""Copies of a store: of a database in use as one snapshot, and of all rows between PostgreSQL and an SQLite file.

A copy appears whole or not at all. A file with rows of PostgreSQL is an SQLite store of the same schema, whatever that was;
tables and types are then as PostgreSQL has them, which is stricter.

SQLite's backup API copies all pages in one step under one read transaction: in WAL mode nobody waits for it. VACUUM INTO
would make a smaller file, and build every index anew.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, MetaData, create_engine, event, select
from sqlalchemy.pool import NullPool

from storage.engine.bulk import insert_rows
from storage.engine.errors import StorageError
from storage.engine.folders import open_new, sync_file, sync_folder
from storage.engine.revisions import create, revision_of


def copy_database(source: Path, target: Path) -> None:
    """Copy the SQLite database at `source` to `target`, which only its owner may read. Durable when it returns.

    Raises OSError, sqlite3.Error; a target that was begun may be left then.
    """
    os.close(open_new(target))
    fill_copy(source, target)
    sync_file(target)


def fill_copy(source: Path, target: Path) -> None:
    """Copy the SQLite database at `source` into the empty file `target`, which is not durable yet.

    Raises OSError, sqlite3.Error.
    """
    there = f"{source.absolute().as_uri()}?mode=rw"  # a source that is not there is not made
    with closing(sqlite3.connect(there, uri=True)) as reader, closing(sqlite3.connect(target)) as writer:
        # A copy that is cut short is thrown away, and leaves no file beside it.
        writer.execute("PRAGMA journal_mode=OFF")
        writer.execute("PRAGMA synchronous=OFF")
        reader.backup(writer)
    with target.open("r+b") as file:
        file.seek(_VERSIONS_AT)
        file.write(_WITHOUT_LOG)


_VERSIONS_AT: Final = 18
_WITHOUT_LOG: Final = b"\x01\x01"
"""Bytes of SQLite's header that say whether a log may lie beside the file."""

OLDER: Final = "of-"
"""With a revision behind it, the label of a copy that was made before a migration."""


def copy_beside(path: Path, label: str, copy: Callable[[Path], None]) -> Path:
    """Copy a store to a file beside its own, named by the label; delete earlier copies of that label.

    Of copies before migrations the latest stays. Raises OSError, and what `copy` does.
    """
    target = path.with_name(f"{path.stem}-{label}{path.suffix}")
    begun = target.with_name(target.name + ".part")
    begun.unlink(missing_ok=True)
    copy(begun)
    begun.rename(target)
    sync_folder(target.parent)
    if label.startswith(OLDER):
        for older in path.parent.glob(f"{path.stem}-{OLDER}*{path.suffix}"):
            if older != target:
                older.unlink()
    return target


def drop_open_copies(folder: Path) -> list[Path]:
    """Remove copies of stores with secrets in the clear, and what was begun of any; return their paths. Raises OSError.

    Costs O(copies).

    A schema says nothing of that: a store is sealed when it is first opened with a key, and may be migrated before.
    """
    found = [
        path
        for path in sorted(folder.glob("*-of-r[0-9][0-9][0-9][0-9].sqlite*"))
        if path.is_file() and not (path.suffix == ".sqlite" and _is_sealed(path))
    ]
    for path in found:
        path.unlink(missing_ok=True)
    return found


def _is_sealed(path: Path) -> bool:
    """Return True if a copy is of a store that was sealed, and then rewritten."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as reader:
            return bool(reader.execute("SELECT is_clean FROM store_seal").fetchone() == (1,))
    except sqlite3.Error:  # of an older schema, or none of ours
        return False


_BATCH: Final = 500
"""Rows at a time: of blocks, of which some have 256 KiB, not too many."""
_VERSION_TABLE: Final = "alembic_version"


def copy_to_file(source: Connection, path: Path, revision: str) -> None:
    """Copy a PostgreSQL store of a schema, as the transaction of `source` sees it, to a new file for its owner alone.

    Durable when it returns. Raises OSError, DBAPIError; a file that was begun may be left then.
    """
    os.close(open_new(path))
    fill_from_rows(source, path, revision)
    sync_file(path)


def fill_from_rows(source: Connection, path: Path, revision: str) -> None:
    """Copy a PostgreSQL store, as the transaction of `source` sees it, into an empty file, which is not durable yet.

    Raises OSError, DBAPIError.
    """
    with _open_file(path) as target:
        # What is cut short is thrown away, so nothing has to be kept for its undoing.
        target.exec_driver_sql("PRAGMA journal_mode=OFF")
        target.exec_driver_sql("PRAGMA synchronous=OFF")
        target.exec_driver_sql("BEGIN")
        create(target, revision)
        _copy_rows(source, target, source)
        target.exec_driver_sql("COMMIT")


def load_from_file(path: Path, target: Connection) -> None:
    """Copy a store from a file into a PostgreSQL database without one, inside the transaction of `target`.

    Raises DBAPIError, StorageError.
    """
    with _open_file(path) as source:
        source.exec_driver_sql("BEGIN")
        revision = revision_of(source, str(path))
        if revision is None:
            raise StorageError(f"{path} has no store")
        create(target, revision)
        _copy_rows(source, target, target)
    target.exec_driver_sql("ANALYZE")


@contextmanager
def _open_file(path: Path) -> Iterator[Connection]:
    engine = create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)
    event.listen(engine, "connect", _leave_transactions)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _leave_transactions(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None


def _copy_rows(source: Connection, target: Connection, typed_by: Connection) -> None:
    tables = MetaData()
    tables.reflect(typed_by, only=lambda name, _: name != _VERSION_TABLE)
    for table in tables.sorted_tables:
        columns = tuple(column.name for column in table.columns)
        rows = source.execute(select(table).execution_options(yield_per=_BATCH))
        for part in rows.partitions(_BATCH):
            insert_rows(target, table, columns, [tuple(row) for row in part])
