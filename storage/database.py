"""The database: one writer, many readers, transactions from one place, migrations at start.

SQLite runs in WAL with `synchronous=FULL`: a commit that was acknowledged survives a power cut (NORMAL loses them).
`write()` admits one thread at a time and begins with BEGIN IMMEDIATE, so that a transaction never fails half-way for a
lock; whatever leaves it by an exception is rolled back whole. A store of an older schema is copied before it is migrated.
Secrets in it are sealed with the store's key (`secrecy`), which whoever opens it brings.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Table, create_engine, delete, event, func, insert, select
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from storage.copying import copy_before_migration
from storage.schema import numbers
from storage.secrecy import BadSecret, as_option
from storage.store_seal import OtherStoreKey, find_secrecy, seal_store

DATABASE_NAME: Final = "ravel.sqlite"
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_BUSY_TIMEOUT_SECONDS: Final = 30.0
_CONNECTIONS_MAX: Final = 20
"""The writer, and two for each worker thread: an author reads while tables are read again."""
_WAL_PAGES: Final = 8192
"""Pages between checkpoints (32 MiB): random index pages are then written once, not once per transaction."""


class StorageError(Exception):
    """The store could not be read or written: disk full, file damaged, or not a store of ours."""


class NewerSchema(StorageError):
    """The store was written by a newer Ravel; it was left as it is."""


class OlderSchema(StorageError):
    """The store was written by an older Ravel, and is migrated when a daemon starts."""


class Database:
    """The node's store. Thread-safe; close it when done."""

    def __init__(self, folder: Path, store_key: bytes | None = None) -> None:
        """Open or create the store in `folder`, migrate it, and seal its secrets where there is a key.

        Without one, a store that has been sealed is for what takes no secrets alone. Raises StorageError.
        """
        self.path = folder / DATABASE_NAME
        self.fault = ""
        """Why the last write failed; empty while writes succeed."""
        self._lock = threading.Lock()
        self._next: dict[str, int] = {}
        try:
            if not self.path.exists():
                self.path.touch(mode=0o600)
        except OSError as error:
            raise StorageError(f"{self.path}: {error}") from error
        self._engine = create_engine(
            # Not as text, in which a ? or % of the path would mean something else.
            URL.create("sqlite", database=str(self.path)),
            poolclass=QueuePool,
            pool_size=_CONNECTIONS_MAX,
            max_overflow=0,
            connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        _prepare_connections(self._engine)
        try:
            self._migrate()
            secrecy = seal_store(self._engine, store_key)
            self._engine = self._engine.execution_options(**as_option(secrecy))
            self._writer = self._engine.connect()
        except (DBAPIError, sqlite3.Error) as error:
            self._engine.dispose()
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise StorageError(f"{self.path}: {cause}") from error
        except OtherStoreKey:
            self._engine.dispose()
            raise _other_key(self.path) from None
        except StorageError:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._writer.close()
        self._engine.dispose()

    @contextmanager
    def write(self, turn: AbstractContextManager[object] | None = None) -> Iterator[Connection]:
        """The one write transaction: committed and durable when the block ends, undone when it raises.

        `turn` (a lock, say) is held while the block runs, and neither while waiting for other writers nor for the disk.
        """
        with self._lock:
            try:
                self._writer.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    with turn or nullcontext():
                        yield self._writer
                except BaseException:
                    self._undo()
                    raise
                self._writer.exec_driver_sql("COMMIT")
                self._writer.rollback()  # ends SQLAlchemy's own bookkeeping; the database has committed
                self.fault = ""
            except DBAPIError as error:
                self._writer.rollback()
                self.fault = str(error.orig)
                raise StorageError(self.fault) from error
            except BadSecret as error:
                raise StorageError(str(error)) from error

    def _undo(self) -> None:
        # On a full disk SQLite has undone the transaction itself, and to say so again would hide why.
        if self._writer.connection.driver_connection.in_transaction:  # type: ignore[union-attr]  # sqlite3's
            self._writer.exec_driver_sql("ROLLBACK")
        self._writer.rollback()
        self._next.clear()

    def probe(self) -> None:
        """Write something that changes nothing, to see whether writes succeed. Raises StorageError."""
        with self.write() as connection:
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            connection.exec_driver_sql(f"PRAGMA user_version={int(version)}")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction: one unchanging snapshot of the store."""
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("BEGIN")
                try:
                    yield connection
                finally:
                    connection.exec_driver_sql("ROLLBACK")
        except DBAPIError as error:
            raise StorageError(str(error.orig)) from error
        except BadSecret as error:
            raise StorageError(str(error)) from error

    def next_nums(self, connection: Connection, table: Any, count: int) -> range:  # noqa: ANN401  # a Table
        """`count` fresh row numbers of `table`; to be called inside `write()`."""
        start = self._next.get(table.name)
        if start is None:
            last = int(connection.execute(select(func.coalesce(func.max(table.c.num), 0))).scalar_one())
            kept = connection.execute(select(numbers.c.last).where(numbers.c.name == table.name)).scalar()
            start = max(last, kept or 0) + 1
        self._next[table.name] = start + count
        return range(start, start + count)

    def _migrate(self) -> None:
        config = _alembic()
        with self._engine.connect() as connection:
            current = _revision_of(connection, self.path)
            connection.rollback()
        if current is not None and current != newest_revision():
            self._keep_older(current)
        with self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.exec_driver_sql("COMMIT")
            connection.rollback()

    def _keep_older(self, revision: str) -> None:
        """Keep a copy of what is about to be migrated: the way back to the Ravel that last ran here."""
        try:
            copy_before_migration(self._engine, self.path, revision)
        except OSError as error:
            raise StorageError(
                f"{self.path} has schema {revision}, and could not be copied before it is migrated ({error}); "
                "it was left as it is"
            ) from error


@contextmanager
def read_store(folder: Path, store_key: bytes | None = None) -> Iterator[Connection]:
    """One moment of the store in a folder, beside its daemon or without one; nothing is made, migrated or written.

    Without the key no secret of a sealed store can be read. Raises StorageError where there is none, or of another schema.
    """
    path = folder / DATABASE_NAME
    if not path.exists():
        raise StorageError(f"{path} is not there")
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    )
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only=ON")
            connection.rollback()
            connection.exec_driver_sql("BEGIN")
            try:
                revision = _revision_of(connection, path)
                if revision != newest_revision():
                    raise OlderSchema(
                        f"{path} has schema {revision}, and this Ravel reads {newest_revision()}; "
                        "`ravel run` migrates it"
                    )
                try:
                    secrecy = find_secrecy(connection, store_key)
                except OtherStoreKey:
                    raise _other_key(path) from None
                yield connection.execution_options(**as_option(secrecy))
            finally:
                connection.exec_driver_sql("ROLLBACK")
    except DBAPIError as error:
        raise StorageError(f"{path}: {error.orig}") from error
    except BadSecret as error:
        raise StorageError(f"{path}: {error}") from error
    finally:
        engine.dispose()


def _other_key(path: Path) -> StorageError:
    return StorageError(
        f"{path} was sealed with other keys than those of its folder: the two belong together"
    )


def newest_revision() -> str:
    """The schema that this Ravel makes and reads."""
    head = _scripts().get_current_head()
    assert head is not None, "there are migrations"
    return head


def _revision_of(connection: Connection, path: Path) -> str | None:
    """A store's schema; None for a new one. Raises NewerSchema."""
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _scripts().walk_revisions()}
    if current is not None and current not in known:
        raise NewerSchema(f"{path} has schema {current}, which this Ravel does not know; use a newer one")
    return current


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_alembic())


def _alembic() -> AlembicConfig:
    config = AlembicConfig()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config


def keep_last_number(connection: Connection, table: Table) -> None:
    """Before rows of a table are forgotten: remember the last number, which is then not given again."""
    last = connection.execute(select(func.coalesce(func.max(table.c.num), 0))).scalar_one()
    remember_last_number(connection, table, last)


def remember_last_number(connection: Connection, table: Table, last: int) -> None:
    """Give no number up to `last` to a row of the table any more: it was given, to one that is gone or another's."""
    connection.execute(delete(numbers).where(numbers.c.name == table.name, numbers.c.last < last))
    if connection.execute(select(numbers.c.last).where(numbers.c.name == table.name)).first() is None:
        connection.execute(insert(numbers).values(name=table.name, last=last))


def _prepare_connections(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # BEGIN and COMMIT are ours, not the driver's
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            f"wal_autocheckpoint={_WAL_PAGES}",
            "foreign_keys=ON",
            "cache_size=-32768",
        ):
            connection.execute(f"PRAGMA {pragma}")
