"""Keeps the search index: reads the words of posts and names of files in the background, bit by bit.

Of texts it only notes which have grown: `search_texts` reads these.

It goes through commits in the order in which they were accepted, so an old store and a new commit are the same work. How
far it is stands in the store: a stopped daemon goes on where it was. While commits are written or come it takes a tenth of
one processor, else a half.
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
import trio
from sqlalchemy import Connection

from node.content.search_words import RULES, index_keys
from node.runtime.backoff import store_backoff
from node.sync.hub import Hub
from node.timelines.commit_fields import find_recent, load_whole_blocks, stored_fields
from protocol.crypto.keys import HashKey
from protocol.limits.users import (
    SEARCH_BATCH_COUNT_MAX,
    SEARCH_BATCH_SPAN_MAX,
    SEARCH_OPENED_AT_ONCE,
    SEARCH_SLICE_SECONDS,
)
from storage.commits.commits import TimelineRow
from storage.commits.search_index import (
    RULES_UNREADABLE,
    IndexItem,
    IndexState,
    begin_index,
    clear_index,
    find_index_fault,
    find_parts,
    keep_upto,
    load_next,
    load_queued,
    load_state,
    load_times,
    prepare_items,
    remove_from_queue,
    remove_items,
    write_items,
)
from storage.commits.search_texts import mark_texts_due
from storage.engine.errors import StorageError
from storage.engine.id_keys import PackedNums

_SHARE_BUSY: Final = 9
"""Seconds of rest for each second of work, while commits come."""
_SHARE_IDLE: Final = 1
_PAUSE_SECONDS: Final = 0.01
"""At least."""
_GATHER_SECONDS: Final = 0.5
"""Seconds from a commit to its index entry, so that later commits are entered together with it. An entry for each
write of one client after another took a third of the daemon's processor time, and an fsync each."""
_SILENCE_SECONDS: Final = 60.0
"""Seconds after which it looks without being told: a body that was fetched is not told."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Batch:
    """Commits that were read and are not entered yet: of much to read, a quarter of a part is written at once."""

    items: list[IndexItem] = field(default_factory=list)
    size: int = 0
    upto: int = 0
    queued: dict[int, PackedNums | None] = field(
        default_factory=dict
    )  # each with its blocks: see `remove_from_queue`
    text_branches: set[int] = field(default_factory=set)  # their texts have grown

    def is_full(self, state: IndexState) -> bool:
        """Return True if the batch is to be entered now."""
        return self.size >= SEARCH_BATCH_COUNT_MAX or self.upto - state.upto > SEARCH_BATCH_SPAN_MAX


class SearchIndexer:
    """Enters what is new, and takes out what is gone. Without `is_enabled` it removes the index."""

    def __init__(self, hub: Hub, *, is_enabled: bool) -> None:
        self._hub = hub
        self._is_enabled = is_enabled
        self._batch = _Batch()
        self._is_checked = False

    async def run(self) -> None:
        """Keep the index up to date for ever. If no index is wanted, end once it is deleted."""
        backoff = store_backoff()
        while True:
            count, accepted = self._hub.changes.count, self._hub.totals.accepted
            began = trio.current_time()
            try:
                is_more = await self._hub.run_blocking(self.work)
            except StorageError as error:  # a full disk, say: it goes on when there is room
                log.error("the search index could not be kept", error=str(error))
                await trio.sleep(backoff.fail())
                continue
            backoff.reset()
            if is_more:
                await trio.sleep(pause_after(self._hub, accepted, began))
            elif not self._is_enabled:
                return
            else:
                with trio.move_on_after(_SILENCE_SECONDS):
                    await self._hub.changes.wait(count)
                await trio.sleep(_GATHER_SECONDS)

    def work(self) -> bool:
        """One slice; whether there is more to do. Raises StorageError."""
        database = self._hub.replica.database
        with database.read() as connection:
            state = load_state(connection)
            fault = "" if self._is_checked else find_index_fault(connection)
        self._is_checked = True
        if state is not None and (fault or state.rules == RULES_UNREADABLE):
            log.error("the search index is damaged, and is made anew", fault=fault or "its key is damaged")
        if not self._is_enabled or fault or (state is not None and state.rules != RULES):
            self._batch = _Batch()
            with database.write(is_patient=True) as connection:
                return clear_index(connection) or self._is_enabled
        if state is None:
            self._batch = _Batch()
            with database.write(is_patient=True) as connection:
                if not clear_index(connection):  # parts are left of one whose removal has not ended
                    begin_index(connection, HashKey(os.urandom(32)), RULES)
            return True
        if self._batch.upto <= state.upto and self._look_again(state):
            return True
        return self._go_on(state)

    def _go_on(self, state: IndexState) -> bool:
        """Read the next commits; enter them when they are many, or the last."""
        replica, batch = self._hub.replica, self._batch
        slice_ = _Slice()
        with replica.database.read() as connection:
            while True:
                found = load_next(connection, max(batch.upto, state.upto), SEARCH_OPENED_AT_ONCE)
                items, rest, damaged = self._read(connection, found.rows, slice_)
                batch.items += items
                batch.size += sum(len(item.keys) for item in items)
                batch.upto = rest[0].num - 1 if rest else found.upto
                # Damaged ones are left in the queue: there it is seen whether they came back meanwhile.
                queued = [num for num in found.queued if num <= batch.upto and num not in damaged]
                batch.queued |= _as_read(queued, found.rows)
                batch.text_branches |= found.text_branches
                is_last = found.is_all and not rest
                if is_last or batch.is_full(state) or slice_.is_over:
                    break
        if not batch.is_full(state) and not is_last:
            return True
        if batch.upto > state.upto:
            with replica.database.read() as connection:
                changes = prepare_items(connection, state.key, batch.items)
            with replica.database.write(is_patient=True) as connection:
                write_items(connection, changes)
                remove_from_queue(connection, batch.queued)
                mark_texts_due(connection, batch.text_branches)
                keep_upto(connection, batch.upto)
        self._batch = _Batch()
        return not is_last

    def _look_again(self, state: IndexState) -> bool:
        """Enter anew what bodies have come or gone of."""
        database = self._hub.replica.database
        with database.read() as connection:
            nums, rows = load_queued(connection, state.upto, SEARCH_OPENED_AT_ONCE)
            items, rest, damaged = self._read(connection, rows, _Slice())
            later = {row.num for row in rest}
            done = [num for num in nums if num not in later]
            parts = find_parts(connection, rows[0].branch_num, done) if rows else []
        if not nums:
            return False
        for part in parts:
            with database.write(is_patient=True) as connection:
                remove_items(connection, part, done)
        with database.read() as connection:
            changes = prepare_items(connection, state.key, items)
        with database.write(is_patient=True) as connection:
            write_items(connection, changes)
            # What is put back may have the numbers of blocks that it had, so these do not tell.
            mended = load_whole_blocks(connection, [row for row in rows if row.num in damaged])
            remove_from_queue(connection, _as_read([num for num in done if num not in mended], rows))
        return True

    def _read(
        self, connection: Connection, rows: list[TimelineRow], slice_: "_Slice"
    ) -> tuple[list[IndexItem], list[TimelineRow], set[int]]:
        """Read index entries for one slice; return them, the commits left for lack of time, and the damaged commits.

        One is read at least. A commit without words is no item: of many, each would stay in memory until a batch is
        full. What this node has just written is in memory, so that its blocks are not read.
        """
        known = find_recent(self._hub.replica, rows)
        unknown = [row for row in rows if row.num not in known]
        blocks, times = load_whole_blocks(connection, unknown), load_times(connection, rows)
        damaged = {row.num for row in unknown if row.num not in blocks}
        items: list[IndexItem] = []
        for place, row in enumerate(rows):
            if place and slice_.is_over:
                return items, rows[place:], damaged
            own = known.get(row.num)
            keys = index_keys(self._texts_of(row, blocks.get(row.num)) if own is None else [own[1].text])
            if keys:
                items.append(IndexItem(row.num, row.branch_num, *times[row.num], keys))
        return items, [], damaged

    def _texts_of(self, row: TimelineRow, encoded: list[bytes] | None) -> list[str]:
        """Return the words of a commit itself: its text, and the names of its files; what others say of it stays apart."""
        if row.branch_num not in self._hub.replica.branches:  # it was forgotten meanwhile
            return []
        fields = stored_fields(self._hub.replica, row, encoded)
        return [fields["text"] or "", *fields.get("files", ())]


def pause_after(hub: Hub, accepted: int, began: float) -> float:
    """Seconds of rest after work that began then, when so many commits had been accepted.

    A long batch is on its way for many slices before one of its commits is accepted.
    """
    is_busy = hub.is_storing or hub.totals.accepted > accepted
    share = _SHARE_BUSY if is_busy else _SHARE_IDLE
    return max(_PAUSE_SECONDS, share * (trio.current_time() - began))


def _as_read(nums: Iterable[int], rows: Sequence[TimelineRow]) -> dict[int, PackedNums | None]:
    """Map each number to its commit's blocks, or to None where the commit was not read."""
    blocks = {row.num: row.block_nums for row in rows}
    return {num: blocks.get(num) for num in nums}


class _Slice:
    """The time that a slice has of the processor."""

    def __init__(self) -> None:
        self._began = time.thread_time()
        self._look_at = time.perf_counter() + SEARCH_SLICE_SECONDS

    @property
    def is_over(self) -> bool:
        """Return True if it is used up. A thread uses no more of the processor than time passes, and asking is cheap."""
        now = time.perf_counter()
        if now <= self._look_at:
            return False
        left = SEARCH_SLICE_SECONDS - (time.thread_time() - self._began)
        self._look_at = now + left
        return left < 0
