"""Stores as an older Ravel would have left them. No release made one yet, so a revision before the first is made up.

`python -m tests.support.older_stores make|open FOLDER [URL]` makes one that is durable, or opens it as this Ravel does, in
a process of its own.
"""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, create_engine, func, select, text

from storage.check import schema_check
from storage.engine import revisions
from storage.engine.database import Database
from storage.engine.folders import make_folder, sync_folder
from storage.schema.peer_schema import peers

PEER_COUNT: Final = 100_000
"""Rows of a store whose upgrade takes long enough to be killed."""
SMALL_COUNT: Final = 2_000
"""The same of one whose every write is played again."""
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
        add_peers(connection, peer_count)
    engine.dispose()


def add_peers(connection: Connection, count: int = PEER_COUNT) -> None:
    """Put peers into a store of the made-up schema."""
    insert = text("INSERT INTO peers (peer, address) VALUES (:peer, 'x:1')")
    connection.execute(insert, [{"peer": number.to_bytes(32, "big")} for number in range(count)])


def upgrade_and_count(folder: Path, url: str = "") -> int:
    """Open a store as this Ravel does, which upgrades it, and count its peers."""
    with older_is_known(), closing(Database(folder, url=url)) as database, database.read() as connection:
        return connection.execute(select(func.count()).select_from(peers)).scalar_one()


def main(act: str, folder: Path, url: str = "") -> None:
    """Make a store, or open it."""
    if act == "open":
        upgrade_and_count(folder, url)
        return
    make_folder(folder)
    with older_is_known():
        make_older_store(folder, SMALL_COUNT)
    sync_folder(folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
