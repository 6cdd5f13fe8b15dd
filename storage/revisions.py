"""Which schema a store has, which one this Ravel makes and reads, and the way from one to the other."""

from functools import cache
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from storage.errors import NewerSchema

_MIGRATIONS: Final = Path(__file__).parent / "migrations"


def newest_revision() -> str:
    """The schema that this Ravel makes and reads."""
    head = _scripts().get_current_head()
    assert head is not None, "there are migrations"
    return head


def revision_of(connection: Connection, name: str) -> str | None:
    """A store's schema; None for a new one. `name` is what errors call it. Raises NewerSchema."""
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _scripts().walk_revisions()}
    if current is not None and current not in known:
        raise NewerSchema(f"{name} has schema {current}, which this Ravel does not know; use a newer one")
    return current


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Migrate a store, or make one, inside the transaction that the connection is in."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> AlembicConfig:
    config = AlembicConfig()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config
