"""Exports of the node's store, for Spark: one at a time. `storage.export` writes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from node.hub import Hub

JsonObject = dict[str, Any]


class Exports:
    """Exports into one folder, in the name of one node."""

    def __init__(self, hub: Hub, folder: Path, node: str, clock: Callable[[], float]) -> None:
        self._hub = hub
        self._folder = folder
        self._node = node
        self._clock = clock
        self._lock = trio.Lock()

    async def write(self) -> JsonObject:
        """Write what is new since the last export as Parquet. Raises StorageError."""
        async with self._lock:
            return await self._hub.run_blocking(self._write)

    def _write(self) -> JsonObject:
        # Imported when first needed: pyarrow is a third of a daemon's memory.
        from storage.export import export_store

        database, created_at = self._hub.replica.database, int(self._clock())
        summary = export_store(database, self._folder, self._node, created_at)
        return {
            "path": str(summary.path),
            "commits": summary.commits,
            "added": summary.added,
            "parts": summary.parts,
            "watermark": summary.watermark,
        }
