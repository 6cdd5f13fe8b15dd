"""Stores as older Ravels left them."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from storage.engine import database


def make_older_store(folder: Path, revision: str, peer_count: int = 1) -> None:
    """A store of that revision, at most r0009, with some peers in it."""
    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parents[1] / "migrations"))
    engine = create_engine(f"sqlite:///{folder / 'ravel.sqlite'}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        insert = text("INSERT INTO peers (peer, address, is_dialed) VALUES (:peer, 'x:1', true)")
        connection.execute(insert, [{"peer": number.to_bytes(32, "big")} for number in range(peer_count)])
    engine.dispose()
