"""Stores as an older Ravel would have left them. No release made one yet, so a revision before the first is made up."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine, text

from storage.check import schema_check
from storage.engine import revisions

OLDER: Final = "r0000"
"""The schema that is made up; `example_migrations` lead from it to this Ravel's."""
_EXAMPLE: Final = Path(__file__).parent / "example_migrations"


@contextmanager
def older_is_known() -> Iterator[None]:
    """Have this process know the made-up schema, and how to migrate from it."""
    before = revisions._MIGRATIONS
    try:
        _use(_EXAMPLE)
        yield
    finally:
        _use(before)


def _use(migrations: Path) -> None:
    vars(revisions)["_MIGRATIONS"] = migrations
    revisions._revisions.cache_clear()
    schema_check.migrated_schema.cache_clear()


def make_older_store(folder: Path, peer_count: int = 1) -> None:
    """A store of the made-up schema, with some peers in it. Needs `older_is_known`."""
    engine = create_engine(f"sqlite:///{folder / 'ravel.sqlite'}")
    with engine.begin() as connection:
        revisions.upgrade(connection, OLDER)
        insert = text("INSERT INTO peers (peer, address) VALUES (:peer, 'x:1')")
        connection.execute(insert, [{"peer": number.to_bytes(32, "big")} for number in range(peer_count)])
    engine.dispose()
