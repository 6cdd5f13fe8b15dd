"""Compares a SQLite store's schema, statement by statement, with the schema that this version creates.

There are two: of stores that were made from the declared tables, and of those that migrations made (`revisions`).
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from sqlalchemy import Connection, create_engine

from storage.engine.revisions import create, newest_revision, upgrade

_QUERY: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"

_CONSTRAINTS: Final = ("CONSTRAINT ", "PRIMARY ", "UNIQUE ", "FOREIGN ", "CHECK ")


class SchemaObject(NamedTuple):
    """Table or index, as SQLite keeps it; without a statement if a table's statement says it."""

    kind: str
    name: str
    table: str
    statement: str | None


def find_altered(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield tables and indexes of an SQLite store that are not as they are made, and what is wrong with each."""
    left = {entry.name: entry for entry in fresh_schema()}
    for entry in read_entries(connection):
        expected = left.pop(entry.name, None)
        if expected is None:
            yield entry.name, f"is a {entry.kind} that no Ravel makes"
        elif entry != expected and entry not in migrated_schema():
            yield entry.name, f"is another {entry.kind} than the one that is made: {entry.statement}"
    for name, entry in left.items():
        yield name, f"the {entry.kind} is not there"


def read_entries(connection: Connection) -> Iterator[SchemaObject]:
    """Yield the tables and indexes of an SQLite database."""
    for kind, name, table, statement in connection.exec_driver_sql(_QUERY).all():
        yield SchemaObject(kind, name, table, statement and normalise(str(statement)))


def normalise(statement: str) -> str:
    """Remove line breaks, and sort constraints: migrations that copy a table keep them in any order."""
    head, _, rest = " ".join(statement.split()).partition(" (")
    clauses, depth = [""], 0
    for char in rest:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            clauses.append("")
        else:
            clauses[-1] += char
    last = clauses[-1].rfind(")")  # the list's own
    clauses[-1], tail = clauses[-1][:last], clauses[-1][last:]
    clauses = [clause.strip() for clause in clauses]
    columns = [clause for clause in clauses if not clause.startswith(_CONSTRAINTS)]
    constraints = sorted(clause for clause in clauses if clause.startswith(_CONSTRAINTS))
    return f"{head} ({', '.join([*columns, *constraints])}{tail}"


@cache
def fresh_schema() -> frozenset[SchemaObject]:
    """Return what a new store consists of."""
    return _make(migrated=False)


@cache
def migrated_schema() -> frozenset[SchemaObject]:
    """Return what a migrated store consists of. Takes as long as all migrations do."""
    return _make(migrated=True)


def _make(*, migrated: bool) -> frozenset[SchemaObject]:
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            if migrated:
                upgrade(connection)
            else:
                create(connection, newest_revision())
            return frozenset(read_entries(connection))
    finally:
        engine.dispose()
