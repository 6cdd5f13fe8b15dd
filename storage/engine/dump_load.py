"""Copies all rows between PostgreSQL and a SQLite file, in either direction: for backups and migrations.

The file is an SQLite store of the same schema, whatever that was.

Tables and types are as PostgreSQL has them: they are stricter.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, MetaData, create_engine, event, select
from sqlalchemy.pool import NullPool

from storage.engine.bulk import insert_rows
from storage.engine.errors import StorageError
from storage.engine.folders import open_new, sync_file
from storage.engine.revisions import create, revision_of

_BATCH: Final = 500
"""Rows at a time: of blocks, of which some have 256 KiB, not too many."""
_VERSION_TABLE: Final = "alembic_version"


def copy_to_file(source: Connection, path: Path, revision: str) -> None:
    """Copy a PostgreSQL store of a schema, as the transaction of `source` sees it, to a new file for its owner alone.

    Durable when it returns. Raises OSError, DBAPIError; a file that was begun may be left then.
    """
    os.close(open_new(path))
    with _open_file(path) as target:
        # What is cut short is thrown away, so nothing has to be kept for its undoing.
        target.exec_driver_sql("PRAGMA journal_mode=OFF")
        target.exec_driver_sql("PRAGMA synchronous=OFF")
        target.exec_driver_sql("BEGIN")
        create(target, revision)
        _copy_rows(source, target, source)
        target.exec_driver_sql("COMMIT")
    sync_file(path)


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
