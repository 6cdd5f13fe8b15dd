"""Shared metadata and column types that work on both SQLite and PostgreSQL.

The tables: `schema`, `relay_schema`, `peer_schema`.
"""

from typing import Final

from sqlalchemy import BigInteger, Integer, LargeBinary, MetaData
from sqlalchemy.engine import Dialect

NUM = BigInteger().with_variant(Integer, "sqlite")  # SQLite's rowid alias must be INTEGER


class Bytes(LargeBinary):
    """Bytes as the drivers take them: SQLAlchemy's own type wraps each value, which costs more than to bind it."""

    cache_ok = True

    def bind_processor(self, _dialect: Dialect) -> None:
        """Return None: no value is converted."""
        return


metadata: Final = MetaData()
