"""Schema versions: which one a store has, which ones this Ravel reads, and how to migrate.

A new store is made from the declared tables and marked with the newest revision. Migrations are for stores of an older
Ravel alone: running all of them takes ten times as long. Tests hold that both ways give the same tables.
"""

from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import Column, Connection, Dialect, MetaData, String, Table, insert, inspect, select
from sqlalchemy.schema import CreateIndex, CreateTable

from storage.engine.errors import NewerSchema
from storage.schema.tables import metadata

_MIGRATIONS: Final = Path(__file__).parents[1] / "migrations"
_VERSIONS: Final = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), primary_key=True),
)
"""Alembic's own table, of one row: it names the revision."""


@cache
def newest_revision() -> str:
    """Return the schema revision that this Ravel makes and reads."""
    return max(_revisions())


def revision_of(connection: Connection, name: str) -> str | None:
    """Return a store's schema revision, or None for a new one. `name` is for errors. Raises NewerSchema."""
    if not inspect(connection).has_table(_VERSIONS.name):
        return None
    current = connection.execute(select(_VERSIONS.c.version_num)).scalar()
    if current is not None and current not in _revisions():
        raise NewerSchema(
            f"{name} has schema {current}, which this Ravel does not know: another version made it"
        )
    return current


def is_revision(name: str) -> bool:
    """Return True if this Ravel knows a schema revision of that name."""
    return name in _revisions()


def create(connection: Connection, revision: str) -> None:
    """Make the tables of a revision in an empty database, in the connection's transaction.

    Raises DBAPIError where one of the tables is there already.
    """
    if revision != newest_revision():
        upgrade(connection, revision)
        return
    for statement in schema_statements(connection.dialect):
        connection.exec_driver_sql(statement)
    connection.execute(CreateTable(_VERSIONS))
    connection.execute(insert(_VERSIONS).values(version_num=newest_revision()))


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Migrate a store, inside the transaction that the connection is in."""
    # Imported here: a daemon whose store has the newest schema needs no Alembic, which takes 40 ms to import.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@cache
def _revisions() -> frozenset[str]:
    """Return the names of all revisions: files of migrations are named by theirs, and later ones sort behind."""
    return frozenset(path.stem.partition("_")[0] for path in (_MIGRATIONS / "versions").glob("r*.py"))


def schema_statements(dialect: Dialect) -> list[str]:
    """Compile the statements that make every declared table and index in a database of a dialect."""
    if dialect.name not in _statements_of:
        tables = metadata.sorted_tables
        indexes = [index for table in tables for index in sorted(table.indexes, key=lambda it: str(it.name))]
        for index in indexes:
            # Stated in the schema, it would load SQLAlchemy's PostgreSQL, 3 MB of each daemon.
            index.dialect_options[dialect.name]["where"] = index.dialect_options["sqlite"]["where"]
        elements: list[CreateTable | CreateIndex] = [CreateTable(table) for table in tables]
        elements += [CreateIndex(index) for index in indexes]
        _statements_of[dialect.name] = [str(element.compile(dialect=dialect)) for element in elements]
    return _statements_of[dialect.name]


_statements_of: Final[dict[str, list[str]]] = {}
"""Compiled statements by name of the dialect. Compiling takes 10 ms, half of the time in which a store is made."""
