"""A store's rows in an SQLite file of its folder: the default.

SQLite runs in WAL with `synchronous=FULL`: a commit that was acknowledged survives a power cut (NORMAL loses them). A
write begins with BEGIN IMMEDIATE, so that it never fails half-way for a lock.
"""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from storage.binding import check_unbound
from storage.copying import copy_database, take_place

DATABASE_NAME: Final = "ravel.sqlite"
_BUSY_TIMEOUT_SECONDS: Final = 30.0
_WAL_PAGES: Final = 8192
"""Pages between checkpoints (32 MiB): random index pages are then written once, not once per transaction."""


class SqliteBackend:
    """The file, and how it is opened (`Backend`)."""

    begin_write = "BEGIN IMMEDIATE"
    begin_read = "BEGIN"

    def __init__(self, folder: Path) -> None:
        """Nothing is touched yet."""
        self._path = folder / DATABASE_NAME
        self.name = str(self._path)

    def exists(self) -> bool:
        """Whether the file is there."""
        return self._path.exists()

    def make_engine(self, connections_max: int) -> Engine:
        """Make the file, for its owner alone, and connections to it."""
        check_unbound(self._path.parent)
        if not self._path.exists():
            self._path.touch(mode=0o600)
        engine = create_engine(
            # Not as text, in which a ? or % of the path would mean something else.
            URL.create("sqlite", database=str(self._path)),
            poolclass=QueuePool,
            pool_size=connections_max,
            max_overflow=0,
            connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare)
        return engine

    def make_reader(self, connections_max: int) -> Engine:
        """Connections that never write, nor make anything."""
        engine = create_engine(
            URL.create("sqlite", database=str(self._path)),
            pool_size=connections_max,
            connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare_reader)
        return engine

    def claim(self, writer: Connection) -> None:
        """SQLite's own lock keeps writers apart, and the folder's lock daemons."""

    def bind(self, writer: Connection, *, is_new: bool) -> None:
        """The file is the folder's."""

    def check_bound(self, connection: Connection) -> None:
        """The file is the folder's, unless that belongs to another database."""
        check_unbound(self._path.parent)

    def copy_before_migration(self, engine: Engine, revision: str) -> Path:
        """Copy the file to one beside it, named by the older schema; those of earlier times go."""
        return take_place(self._path, revision, lambda begun: copy_database(self._path, begun))

    def prepare_commit(self, writer: Connection) -> str:
        """SQLite undoes what fails or says so at the end."""
        return ""

    def was_committed(self, connection: Connection, known_by: str) -> bool:
        """Never asked: an end that fails is an end that was heard."""
        raise AssertionError("a write into a file has no unheard end")

    def probe(self, connection: Connection) -> None:
        """Write the file's version anew."""
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        connection.exec_driver_sql(f"PRAGMA user_version={int(version)}")

    def size(self, connection: Connection) -> int | None:
        """It is a file of the folder."""
        return None

    def rewrite(
        self,
        connection: Connection,
        table: str,
        column: str,
        keys: tuple[str, ...],
        change: Callable[..., bytes],
    ) -> int:
        """Inside SQLite: a million rows are not brought here one by one."""
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.create_function("ravel_change", -1, change)
        statement = (
            f"UPDATE {table} SET {column} = ravel_change({column}, {', '.join(keys)})"  # noqa: S608  # names of ours
            f" WHERE {column} IS NOT NULL"
        )
        return connection.exec_driver_sql(statement).rowcount

    def sweep(self, writer: Connection, _tables: Sequence[str]) -> None:
        """Write the whole file anew, and empty its log."""
        writer.exec_driver_sql("VACUUM")
        writer.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def explain(self, error: DBAPIError) -> str:
        """SQLite's messages hold no values."""
        return str(error.orig)


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # BEGIN and COMMIT are ours, not the driver's
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"wal_autocheckpoint={_WAL_PAGES}",
        "foreign_keys=ON",
        "cache_size=-32768",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _prepare_reader(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")
