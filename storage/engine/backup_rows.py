"""Saves the rows of any backend into one SQLite file for a backup, and loads them back.

The file is an SQLite store, so a backup of one kind of database can be restored to the other: that is how a store moves.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from storage.engine.copies import fill_copy, fill_from_rows, load_from_file
from storage.engine.database import FAILURES, explain, read_store
from storage.engine.errors import NoStore, StorageError
from storage.engine.folders import open_or_create
from storage.engine.last_write import read_last_write
from storage.engine.losses import check_has_rows, check_unused_log
from storage.engine.postgresql import PostgresqlBackend
from storage.engine.revisions import newest_revision, revision_of
from storage.engine.sqlite import DATABASE_NAME, SqliteBackend
from storage.engine.store_identity import check_unbound


def save_database(folder: Path, url: str, path: Path) -> None:
    """Copy the rows of a folder's store, one moment of them, to an SQLite file, which is absent or empty.

    The store may be in use. The copy is not durable. Costs O(rows). Raises OSError, sqlite3.Error, StorageError.
    """
    if not url:
        check_unbound(folder)
        if not SqliteBackend(folder).exists():
            raise NoStore(f"{folder} has no store yet: `ravel run` makes one")
        check_unused_log(folder, folder / DATABASE_NAME)
        os.close(open_or_create(path, os.O_RDWR))
        fill_copy(folder / DATABASE_NAME, path)
        with closing(sqlite3.connect(path)) as connection:
            check_has_rows(connection, folder / DATABASE_NAME, read_last_write(folder))
        return
    with read_store(folder, url=url) as connection:
        os.close(open_or_create(path, os.O_RDWR))
        fill_from_rows(connection, path, newest_revision())


def load_database(folder: Path, url: str) -> None:
    """Move the rows of a folder's store from its file into a PostgreSQL database without a store, all or none.

    Costs O(rows).

    Raises OSError, StorageError.
    """
    backend = PostgresqlBackend(folder, url)
    path = folder / DATABASE_NAME
    engine = backend.make_engine(1)
    try:
        with engine.connect() as writer:
            backend.claim(writer)
            writer.rollback()
            writer.exec_driver_sql(backend.begin_write)
            if revision_of(writer, backend.name) is not None:
                raise StorageError(f"{backend.name} has a store already; name a database that is empty")
            load_from_file(path, writer)
            backend.adopt(writer)
            writer.exec_driver_sql("COMMIT")
    except FAILURES as error:
        raise StorageError(f"{backend.name}: {explain(backend, error)}") from error
    finally:
        engine.dispose()
    path.unlink()
