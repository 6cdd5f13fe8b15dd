"""Reads what posts say of others where an older version stored them, which did not look: in the background, bit by bit.

What is read is marked in the row, so a stopped daemon goes on where it was. Until it is done, edits among these posts are
shown as posts.
"""

from typing import Final

import structlog
import trio

from node.ingest.replica import load_blocks_of, open_stored
from node.runtime.backoff import store_backoff
from node.sync.hub import Hub
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import TimelineRow
from storage.commits.post_index import keep_relations, load_unread
from storage.engine.errors import StorageError
from verifier.posts import PostRelation, find_relation

_READ_AT_ONCE: Final = 200
"""Posts that are opened at once: some 20 ms of work in a thread, and 2 ms in which others cannot write."""
_PAUSE_SECONDS: Final = 0.1
"""Seconds between two such slices: a million posts take ten minutes, and a fifth of the processor."""

log = structlog.get_logger()


class RelationReader:
    """Reads the headers of stored posts."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def run(self) -> None:
        """Read until all are read."""
        is_done, backoff = False, store_backoff()
        while not is_done:
            try:
                is_done = not await self._hub.run_blocking(self.read_some)
                backoff.succeed()
            except StorageError as error:  # a full disk, say: it goes on when there is room
                log.error("what stored posts say of others could not be read", error=str(error))
                await trio.sleep(backoff.fail())
            await trio.sleep(_PAUSE_SECONDS)

    def read_some(self) -> bool:
        """Read some; whether there were any. Raises StorageError."""
        database = self._hub.replica.database
        with database.read() as connection:
            rows = load_unread(connection, _READ_AT_ONCE)
            stated: dict[int, PostRelation | None] = {}
            for row in rows:
                try:
                    blocks = load_blocks_of(connection, [row])[row.num]
                except DamagedBlock:  # it is read when it comes back
                    stated[row.num] = None
                else:
                    stated[row.num] = self._find(row, blocks)
        if rows:
            with database.write(is_patient=True) as connection:
                keep_relations(connection, stated)
        return bool(rows)

    def _find(self, row: TimelineRow, blocks: list[bytes]) -> PostRelation | None:
        branch = self._hub.replica.branches.get(row.branch_num)
        if branch is None:
            return None
        try:
            commit, _ = open_stored(self._hub.replica, row, blocks)
        except DamagedBlock:
            return None
        return find_relation(commit, is_root_branch=branch.facts.is_root_branch)
