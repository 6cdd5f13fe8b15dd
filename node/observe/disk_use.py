"""Disk use of the store: size by part, growth per day, and use of the relay's quota."""

from datetime import date, timedelta
from pathlib import Path
from typing import Final

from node.contract.node import StorageUse
from node.observe.watching import free_space, store_sizes
from node.sync.hub import Hub
from storage.commits.commits import load_growth

_EPOCH: Final = date(1970, 1, 1)


class StorageView:
    """Answers for who looks after the disk."""

    def __init__(self, hub: Hub, home: Path) -> None:
        self._hub = hub
        self._home = home

    async def show(self) -> StorageUse:
        """Bytes by part of the store, those that are free, commits by day, and a relay's room. Raises StorageError."""
        return await self._hub.run_blocking(self._show)

    def _show(self) -> StorageUse:
        database, relay = self._hub.replica.database, self._hub.relay
        with database.read() as connection:
            days = load_growth(connection)
            rows_size = database.size(connection)
        sizes = store_sizes(self._home, rows_size)
        kept = [] if relay is None else list(relay.topics.values())
        return {
            "database": sizes["database"],
            "log": sizes["log"],
            "older": sizes["older"],
            "packs": sizes["packs"],
            "free": free_space(self._home),
            "days": [
                {"day": str(_EPOCH + timedelta(days=day)), "commits": commit_count, "size": size}
                for day, commit_count, size in days
            ],
            "relay": None
            if relay is None
            else {
                "topics": len(kept),
                "size": sum(one.size + one.file_size for one in kept),
                "size_max": relay.quotas.total,
            },
        }
