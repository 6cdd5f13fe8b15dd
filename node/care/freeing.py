"""Has old contents given up, and frees their space beside the daemon's work, in small steps.

A look first frees what earlier looks have given up: a reader that found it just before has ended by then. The files of packs
go a look later still, and not while a backup, a check or an export reads.
"""

import math
from typing import Final

import structlog
import trio
from sqlalchemy import select

from node.care import disk_bound
from node.care.disk_bound import DiskBound
from node.care.giving_up import LOOK_SECONDS, PostAges
from node.home.home import hold_content
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.sync.kept_parts import keep_looking
from protocol.ids import UserId
from storage.blobs.garbage_collection import Collection, Outdated
from storage.blobs.pack_moves import remove_packs
from storage.schema.schema import erasures, spared_files

log = structlog.get_logger()

STEP_SECONDS: Final = 0.5
"""Seconds between two steps, in which others write and read."""
REST_FACTOR: Final = 100
"""Times as long as the marks took, until they are made again: they read all rows, and something grows old at each look."""


class SpaceFreeing:
    """Looks for what to give up, and frees the space of what was given up."""

    def __init__(self, hub: Hub, user: UserId) -> None:
        self._hub = hub
        self._ages = PostAges(hub, user)
        self._bound = DiskBound(hub, user)
        self._looked_at = -1  # count of the rules under which a look for old contents was made last
        self._looks_from = -math.inf
        self._is_due = True  # a daemon that was killed may have left something
        self._rests_until = -math.inf
        self._retired: list[str] = []

    async def run(self) -> None:
        """Look until cancelled: now and then, and after each change of what is kept."""
        seconds = disk_bound.LOOK_SECONDS if self._hub.bound.size_max else LOOK_SECONDS
        await keep_looking(self._hub, self.look, seconds)

    async def look(self) -> int:
        """Free what was given up before, and give up what may go now; return the bytes that are free soon.

        Costs O(blocks) once something was given up, in a hundredth of the time at most. Raises StorageError.
        """
        await self._hub.run_blocking(self._remove_retired)
        is_due = self._is_due and trio.current_time() >= self._rests_until
        freed = await self._free() if is_due else 0
        if not self._is_due:
            self._hub.bound.pending = 0
        await self._bound.look(is_freed=not self._is_due)
        if self._is_look_due():
            self._looked_at = self._hub.proofs.rules.count
            was_due, self._is_due = self._is_due, True  # one that fails may have given some up
            given_up = await self._ages.look()
            self._bound.note_look(given_up)
            self._is_due = was_due or given_up > 0
            # What was given up makes way for more at the next look; what nobody showed is asked for again later.
            self._looks_from = trio.current_time() + (0.0 if given_up else LOOK_SECONDS)
        return freed

    def _is_look_due(self) -> bool:
        """Return True if old contents are to be looked for: less often than at the size, for that costs more."""
        is_changed = self._looked_at != self._hub.proofs.rules.count or self._bound.is_look_wanted
        return not self._hub.bound.size_max or is_changed or trio.current_time() >= self._looks_from

    async def _free(self) -> int:
        replica, run = self._hub.replica, self._hub.run_blocking
        collection = Collection(replica.database, replica.packs)
        try:
            if await run(self._is_any_given_up):
                began = trio.current_time()
                await run(collection.mark_given_up)
                ended = trio.current_time()
                self._rests_until = ended + REST_FACTOR * (ended - began)
                is_more = True
                while is_more:
                    is_more = await run(collection.step)
                    await trio.sleep(STEP_SECONDS)
            self._is_due = collection.is_held_up
        except Outdated:
            log.info("freeing the space of old contents begins anew later")
        finally:
            collection.end()
            self._retired += collection.retired
        if collection.size:
            log.info("space of old contents freed", size=collection.size)
        return collection.size

    # --- in threads ---

    def _is_any_given_up(self) -> bool:
        some = select(spared_files.c.file_num).limit(1)
        posts = select(erasures.c.commit_num).where(erasures.c.is_spared).limit(1)
        with self._hub.replica.database.read() as connection:
            return any(connection.execute(query).first() is not None for query in (some, posts))

    def _remove_retired(self) -> None:
        if not self._retired:
            return
        try:
            with hold_content(self._hub.replica.database.folder, alone=True):
                remove_packs(self._hub.replica.database.folder, self._retired)
        except ServiceError as error:  # a reader holds the content; the next look tries again
            log.info("files of old contents are removed at a later look", error=str(error))
        else:
            self._retired.clear()
