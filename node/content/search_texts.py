"""Reads the texts of branches for the search index, one after another, each in a process of its own as `texts` does it.

A text is read again when commits of it came, went, or count otherwise. That of a fork which is here before all that it
continues is looked at in each round, and read again when that has come. A text may be the work of thousands of commits:
so it is read at most once in SEARCH_TEXT_PAUSE_SECONDS, however often it changes, and readings take a tenth of one
processor while others bring commits, else a half. Posts do not wait for it.
"""

from contextlib import suppress
from typing import Final

import msgspec
import structlog
import trio

from node.content.lineage import whole_lineage
from node.content.search_indexer import pause_after
from node.content.search_words import RULES, index_keys
from node.content.text_process import ClearText
from node.content.texts import Texts
from node.runtime.backoff import store_backoff
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.ids import CommitId
from protocol.limits.users import SEARCH_TEXT_PAUSE_SECONDS, SEARCH_TEXT_SIZE_MAX, SEARCH_TEXT_WORDS_MAX
from storage.commits.blocks import DamagedBlock
from storage.commits.search_index import IndexItem, load_posts, load_state, replace_text
from storage.commits.search_texts import DueText, keep_content, load_due
from storage.engine.errors import StorageError
from storage.engine.id_keys import PackedNums, pack_nums
from storage.repos.repos import Branch

_RETRY_SECONDS: Final = 60.0
_SILENCE_SECONDS: Final = 60.0
"""Seconds after which it looks without being told."""
_REST: Final = 9
"""Seconds of rest for each second of a reading that came to nothing."""

log = structlog.get_logger()


class TextIndexer:
    """Reads texts that are due."""

    def __init__(self, hub: Hub, texts: Texts) -> None:
        self._hub = hub
        self._texts = texts

    async def run(self) -> None:
        """Run for ever."""
        backoff = store_backoff()
        while True:
            count = self._hub.changes.count
            try:
                await self.work()
                backoff.reset()
            except StorageError as error:  # a full disk, say: it goes on when there is room
                log.error("the search index of texts could not be kept", error=str(error))
                await trio.sleep(backoff.fail())
            with trio.move_on_after(_SILENCE_SECONDS):
                await self._hub.changes.wait(count)
            await trio.sleep(SEARCH_TEXT_PAUSE_SECONDS)  # meanwhile the posts' indexer notes what has grown

    async def work(self) -> None:
        """Read each text once its time has come. Raises StorageError."""
        after = 0
        while due := await self._hub.run_blocking(self._find_due, after):
            after = due.branch_num
            accepted, began = self._hub.totals.accepted, trio.current_time()
            try:
                is_read = await self._read(due)
            except KeyError:  # memory may know less than the moment of the store that was read
                if due.branch_num in self._hub.replica.branches:
                    raise
                is_read = True  # its repo was forgotten meanwhile
            pause = pause_after(self._hub, accepted, began)
            # Others are not asked of a machine without room; and one that takes all the time it may is bad, or too large.
            await trio.sleep(pause if is_read else max(_RETRY_SECONDS, _REST * (trio.current_time() - began)))

    async def _read(self, due: DueText) -> bool:
        """Read one; False where the machine has no room or no time for it now."""
        branch = self._hub.replica.branches.get(due.branch_num)
        # Before it is read: what comes meanwhile is not in it.
        sources = await self._hub.run_blocking(self._find_sources, branch)
        if not due.due and not sources:
            return True
        last: CommitId | None = None
        clear: list[ClearText] = []
        if branch is not None:
            try:
                last, clear = await self._texts.render(branch, SEARCH_TEXT_SIZE_MAX)
            except ServiceError as error:
                if error.code == "busy":
                    return False
                # Nothing can be found in it. When what is missing comes, or more is said, it is due again.
                log.info("a text is left out of the search index", branch=branch.name, error=str(error))
            except DamagedBlock as error:  # the same, until it is repaired
                log.info("a text is left out of the search index", branch=branch.name, error=str(error))
        await self._hub.run_blocking(self._keep, due, sources, last, clear)
        return True

    # --- in threads ---

    def _find_due(self, after: int) -> DueText | None:
        with self._hub.replica.database.read() as connection:
            state = load_state(connection)
            return None if state is None or state.rules != RULES else load_due(connection, after)

    def _find_sources(self, branch: Branch | None) -> PackedNums:
        """Numbers of the branches that a text is made of; none while what the branch continues is not here whole."""
        nums: list[int] = []
        if branch is not None:
            replica = self._hub.replica
            with replica.database.read() as connection, suppress(ServiceError, DamagedBlock):
                nums = [part.num for part, _ in whole_lineage(replica, connection, branch)]
        return pack_nums(nums)

    def _keep(self, due: DueText, sources: PackedNums, last: CommitId | None, clear: list[ClearText]) -> None:
        content = msgspec.msgpack.encode(clear) if last is not None and clear else None
        keys = index_keys((said for one in clear for said in (one.title, one.text)), SEARCH_TEXT_WORDS_MAX)
        with self._hub.replica.database.write(is_patient=True) as connection:
            state = load_state(connection)
            if state is None or not keep_content(connection, due, sources, content):
                return
            item = None
            if last is not None and keys:
                place = (due.branch_num, last)
                shown = load_posts(connection, {place}).get(place)
                if shown is not None:  # else it became void, and the text is due again
                    item = IndexItem(shown.num, due.branch_num, shown.shown_at, shown.shown_at, keys)
            replace_text(connection, state.key, due.branch_num, item)


def parse_content(content: bytes) -> list[ClearText]:
    """Return the texts of a branch, as they were kept."""
    return msgspec.msgpack.decode(content, type=list[ClearText])
