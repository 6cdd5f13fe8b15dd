"""PostgreSQL backend: rows in a database; pack files stay in the node's folder.

A write is READ COMMITTED: there is one writer, which holds an advisory lock on the schema from its first moment to the end
of its connection, so nothing can come in between. A read is REPEATABLE READ, which is one snapshot. Where a connection
breaks while a write ends, the server is asked what became of it (`was_committed`) before anything else is written.
"""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, create_engine, event, make_url
from sqlalchemy.engine import Engine
from sqlalchemy.exc import ArgumentError, DBAPIError

from storage.engine.backends import Backend
from storage.engine.copies import copy_beside, copy_to_file
from storage.engine.errors import StorageError
from storage.engine.sqlite import DATABASE_NAME
from storage.engine.store_identity import has_packs, read_store_id, write_store_id
from storage.engine.urls import check_url, hide_secrets
from storage.schema.tables import metadata

if TYPE_CHECKING:
    import psycopg

_VERSION_MIN: Final = 13
"""The first that says what became of a transaction, by `pg_xact_status` of a 64-bit number."""
_CLAIM_SECONDS: Final = 2
"""Seconds that a server may take to see that a killed writer of ours is gone."""
_PAGE: Final = 1000
"""Rows that are changed at a time."""
_LOCK_CLASS: Final = 0x5261766C  # "Ravl"; the other half of the advisory lock's key is the schema
_TAKEN_STATE: Final = "55P03"  # lock_not_available
_CONNECT_ARGS: Final = {
    "application_name": "ravel",
    "connect_timeout": 10,
    # A server that has vanished is noticed within a minute, and not after the two hours of TCP's own defaults.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_SESSION: Final = (
    "SET jit = off",  # queries are short: to compile one takes longer than to run it
    "SET tcp_keepalives_idle = 30",  # so that the server, too, sees soon that a writer has vanished
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
_MARK: Final = "store of Ravel "
_RISKS: Final = {
    "fsync": "the server does not wait for its disk (fsync = off): a power cut damages the store",
    "full_page_writes": "full_page_writes = off: a power cut damages the store",
}


class PostgresqlBackend(Backend):
    """Backend whose rows are in the PostgreSQL database of a URL."""

    begin_write = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, folder: Path, url: str) -> None:
        """Make the backend without connecting. Raises StorageError if the URL cannot be parsed."""
        try:
            check_url(url)
            self._url = make_url(url).set(drivername="postgresql+psycopg")
        except (ValueError, ArgumentError) as error:
            # SQLAlchemy's message may hold the URL, and with it a password.
            reason = error if isinstance(error, ValueError) else "is not a URL"
            raise StorageError(f"[storage] url {reason}") from None
        self._folder = folder
        self.name = hide_secrets(url)

    def make_engine(self, connections_max: int) -> Engine:
        """Make an engine with at most this many connections, none of them open yet."""
        try:
            engine = create_engine(
                self._url,
                isolation_level="AUTOCOMMIT",  # BEGIN and COMMIT are ours, not the driver's
                paramstyle="format",  # parameters by place, as `bulk` gives them
                pool_size=connections_max,
                max_overflow=0,
                connect_args={
                    name: value for name, value in _CONNECT_ARGS.items() if name not in self._url.query
                },
            )
        except ImportError:
            raise StorageError(
                f"{self.name}: PostgreSQL needs a driver that is not here; "
                "install the extra `postgres` (docs/communities/start.md)"
            ) from None
        event.listen(engine, "connect", _prepare)
        for table in metadata.tables.values():
            for index in table.indexes:
                # Stated for SQLite alone: to name PostgreSQL there loads its dialect into each daemon.
                index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
        return engine

    make_reader = make_engine

    def claim(self, writer: Connection) -> None:
        """Take the lock of the single writer; wait two seconds for a writer that was just killed."""
        version, encoding, schema, durable = writer.exec_driver_sql(
            "SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding'),"
            " current_schema(), current_setting('synchronous_commit') <> 'off'"
        ).one()
        if version < _VERSION_MIN:
            raise StorageError(
                f"{self.name}: PostgreSQL {version} is too old; {_VERSION_MIN} is the first that does"
            )
        if encoding != "UTF8":
            raise StorageError(
                f"{self.name}: its encoding is {encoding}; make a database with ENCODING 'UTF8'"
            )
        if schema is None:
            raise StorageError(f"{self.name}: no schema of its search_path is there")
        if not durable:
            writer.exec_driver_sql("SET synchronous_commit = on")
        writer.exec_driver_sql(f"SET lock_timeout = '{_CLAIM_SECONDS}s'")
        try:
            writer.exec_driver_sql(
                f"SELECT pg_advisory_lock({_LOCK_CLASS}, hashtext(current_schema()::text))"
            )
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _TAKEN_STATE:
                raise
            raise StorageError(
                f"{self.name}: another Ravel uses it; stop that one, or give this one another database"
            ) from None
        writer.exec_driver_sql("SET lock_timeout = 0")

    def bind(self, writer: Connection, *, is_new: bool) -> None:
        """Raise StorageError unless database and folder name the same store; mark a new one."""
        if not is_new:
            self.check_bound(writer)
            return
        if (self._folder / DATABASE_NAME).exists() or has_packs(self._folder):
            raise StorageError(
                f"{self._folder} has a store already, and {self.name} is empty: [storage] url names another database"
                " than this store's (`ravel backup` and `ravel restore` move a store)"
            )
        self.adopt(writer)

    def adopt(self, writer: Connection) -> None:
        """Bind the rows to this folder, inside a write transaction."""
        store_id = secrets.token_hex(16)
        write_store_id(self._folder, store_id)
        writer.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS '{_MARK}{store_id}'")

    def check_bound(self, connection: Connection) -> None:
        """Raise StorageError unless database and folder name the same store."""
        found = connection.exec_driver_sql(
            "SELECT obj_description(to_regclass('alembic_version'), 'pg_class')"
        ).scalar()
        if found != f"{_MARK}{read_store_id(self._folder)}":
            raise StorageError(
                f"{self.name} has the store of another folder than {self._folder}: [storage] url names another"
                " database than this store's"
            )

    def copy_aside(self, engine: Engine, label: str, revision: str) -> Path:
        """Copy the rows to an SQLite file of the folder, which a Ravel of that schema reads. Costs O(rows)."""

        def copy(begun: Path) -> None:
            with engine.connect() as connection:
                connection.exec_driver_sql(self.begin_read)
                copy_to_file(connection, begun, revision)
                connection.rollback()

        return copy_beside(self._folder / DATABASE_NAME, label, copy)

    def prepare_commit(self, writer: Connection) -> str:
        """Return the transaction's id. Raises StorageError if a statement failed: COMMIT would then roll back silently."""
        driver: psycopg.Connection = writer.connection.driver_connection  # type: ignore[assignment]  # SQLAlchemy: any
        if driver.info.transaction_status.name != "INTRANS":
            raise StorageError("a statement of this write failed")
        found = writer.exec_driver_sql("SELECT pg_current_xact_id_if_assigned()::text").scalar()
        return found or ""

    def was_committed(self, connection: Connection, transaction_id: str) -> bool:
        """Return True if the server kept a transaction. The lock is held again, so that transaction is over."""
        found = connection.exec_driver_sql("SELECT pg_xact_status(%s::xid8)", (transaction_id,)).scalar()
        return bool(found == "committed")

    def probe(self, connection: Connection) -> None:
        """Take a transaction id, which the server writes down."""
        connection.exec_driver_sql("SELECT pg_current_xact_id()")

    def size(self, connection: Connection) -> int | None:
        """Return the bytes of all tables of the schema, with their indexes."""
        return int(
            connection.exec_driver_sql(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
                " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
            ).scalar_one()
        )

    def rewrite(
        self,
        connection: Connection,
        table: str,
        column: str,
        keys: tuple[str, ...],
        change: Callable[..., bytes],
    ) -> int:
        """Change every value of a column, a page of rows at a time; return how many. Costs O(rows).

        The primary key is one of numbers, or of several.
        """
        nums = [one.name for one in metadata.tables[table].primary_key.columns]
        named, marks = ", ".join(nums), ", ".join(["%s"] * len(nums))
        query = (
            f"SELECT {named}, {', '.join((column, *keys))} FROM {table}"  # noqa: S608  # names of the schema
            f" WHERE ({named}) > ({marks}) AND {column} IS NOT NULL ORDER BY {named} LIMIT {_PAGE}"
        )
        statement = f"UPDATE {table} SET {column} = %s WHERE ({named}) = ({marks})"  # noqa: S608  # names of the schema
        size, count, last = len(nums), 0, (-1,) * len(nums)
        while rows := connection.exec_driver_sql(query, last).all():
            connection.exec_driver_sql(statement, [(change(*row[size:]), *row[:size]) for row in rows])
            count, last = count + len(rows), tuple(rows[-1][:size])
        return count

    def sweep(self, writer: Connection, tables: Sequence[str]) -> bool:
        """Write the tables anew. Raises DBAPIError if somebody reads one for more than two seconds. Costs O(rows)."""
        writer.exec_driver_sql(f"SET lock_timeout = '{_CLAIM_SECONDS}s'")
        try:
            writer.exec_driver_sql(f"VACUUM FULL {', '.join(tables)}")
        finally:
            writer.exec_driver_sql("SET lock_timeout = 0")
        return True

    def explain(self, error: DBAPIError) -> str:
        """Return the first sentence: what the server says below it may hold values of rows, and some are secret."""
        diagnosis = getattr(error.orig, "diag", None)
        primary = getattr(diagnosis, "message_primary", None)
        return str(primary or str(error.orig).partition("\n")[0])


def find_risks(connection: Connection) -> list[str]:
    """Return what settings of a PostgreSQL server put acknowledged commits at risk; nothing for SQLite."""
    if connection.dialect.name != "postgresql":
        return []
    off = "SELECT name FROM pg_settings WHERE setting = 'off' AND name = ANY(%s) ORDER BY name"
    return [_RISKS[name] for name in connection.exec_driver_sql(off, (list(_RISKS),)).scalars()]


def _prepare(connection: "psycopg.Connection", _record: object) -> None:
    from storage.engine.postgresql_text import TextDumper, TextLoader

    connection.adapters.register_dumper(str, TextDumper)
    for name in ("text", "varchar"):
        connection.adapters.register_loader(name, TextLoader)
    for statement in _SESSION:
        connection.execute(statement)
