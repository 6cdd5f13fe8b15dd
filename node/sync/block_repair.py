"""Requests damaged commits and file blocks from peers until all are restored.

Only a repair begins to await anything, and it needs the daemon stopped; so this task ends when all is back. What comes goes
the way of everything: a commit's publication is parsed (`node.ingest.backfill`), a block is what its id
says.
"""

from typing import Final

import structlog
import trio

from node.runtime.backoff import Backoff
from node.sync.conversation import Conversation
from node.sync.fetching import fetch_from
from node.sync.hub import Hub
from protocol.formats.block import Block
from protocol.ids import BlockId, CommitId, TopicKey
from protocol.limits.peers import (
    DAMAGED_ASKED_COUNT_MAX,
    DAMAGED_PAUSE_MAX_SECONDS,
    DAMAGED_PAUSE_SECONDS,
    FETCH_WINDOW_COUNT_MAX,
)
from storage.commits.damaged import (
    DamagedCommit,
    DamagedCount,
    clear_damaged_blocks,
    count_damaged,
    load_damaged_blocks,
    load_damaged_commits,
)
from storage.engine.database import StorageError

log = structlog.get_logger()

_BEFORE_ALL: Final = BlockId(b"")


class BlockRepairer:
    """Asks the connected peers in turn, some of what is damaged at a time."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._said: DamagedCount | None = None
        self._round = 0  # through all that is damaged
        self._part = 0
        self._after_commit = 0
        self._after_block = _BEFORE_ALL

    async def run(self) -> None:
        """Ask until nothing is damaged. Rounds that bring nothing back become rare; peers that come are asked at once."""
        hub = self._hub
        if not hub.replica.has_damaged:
            return
        backoff = Backoff(DAMAGED_PAUSE_SECONDS, DAMAGED_PAUSE_MAX_SECONDS)
        left, number = self._said, self._round
        while True:
            pause, sources = DAMAGED_PAUSE_SECONDS, set(hub.sources)
            try:
                if not await self._ask():
                    break
                has_failed = False
            except StorageError as error:  # a full disk, say: nothing is lost by asking again
                log.error("storage failed", error=str(error))
                has_failed = True
            if self._said != left:
                backoff.reset()
            if has_failed or self._round != number:
                pause = backoff.fail()
                left, number = self._said, self._round
            await self._rest(pause, sources)
        hub.replica.has_damaged = False
        log.info("all that was damaged is back")

    async def _rest(self, seconds: float, asked: set[Conversation]) -> None:
        """Wait so long, or until there is a peer that was not asked."""
        until = trio.current_time() + seconds
        while asked.issuperset(self._hub.sources):  # nothing tells of a peer that comes
            left = until - trio.current_time()
            if left <= 0:
                return
            await trio.sleep(min(left, DAMAGED_PAUSE_SECONDS))

    async def _ask(self) -> bool:
        """Ask for some of what is damaged; whether anything is. Raises StorageError."""
        left = await self._hub.run_blocking(self._count)
        if left == DamagedCount(0, 0):
            return False
        if left != self._said:
            log.info("damaged, and asked of peers", commits=left.commits, blocks=left.blocks)
            self._said = left
        self._ask_for_commits(await self._hub.run_blocking(self._next_commits))
        await self._fetch_blocks()
        return True

    def _ask_for_commits(self, damaged: list[DamagedCommit]) -> None:
        by_topic: dict[int, list[CommitId]] = {}
        for one in damaged:
            by_topic.setdefault(one.topic_num, []).append(one.commit_id)
        for topic_num, ids in by_topic.items():
            topic = self._hub.replica.topics.get(topic_num)
            if topic is None:
                continue
            for source in self._hub.sources:
                source.wake(topic.topic)
            sources = [one for one in self._hub.sources if one.has_joined(topic.topic)]
            if sources:
                # Another one each time, so that those are asked in the end who have it.
                sources[(self._round + self._part) % len(sources)].want(topic.topic, tuple(ids))

    async def _fetch_blocks(self) -> None:
        topics = list(self._hub.replica.by_topic)
        joined = ((one, next(filter(one.has_joined, topics), None)) for one in self._hub.sources)
        sources: list[tuple[Conversation, TopicKey]] = [
            (one, topic) for one, topic in joined if topic is not None
        ]
        while sources and (ids := await self._hub.run_blocking(self._next_blocks)):
            found = await fetch_from(self._hub, sources, ids)
            await self._hub.run_blocking(self._settle, found)

    # --- in threads ---

    def _count(self) -> DamagedCount:
        with self._hub.replica.database.read() as connection:
            return count_damaged(connection)

    def _next_commits(self) -> list[DamagedCommit]:
        with self._hub.replica.database.read() as connection:
            found = load_damaged_commits(connection, self._after_commit, DAMAGED_ASKED_COUNT_MAX)
        is_last = len(found) < DAMAGED_ASKED_COUNT_MAX
        self._after_commit = 0 if is_last else found[-1].num
        self._part, self._round = (0, self._round + 1) if is_last else (self._part + 1, self._round)
        return found

    def _next_blocks(self) -> list[BlockId]:
        with self._hub.replica.database.read() as connection:
            found = load_damaged_blocks(connection, self._after_block, FETCH_WINDOW_COUNT_MAX)
        self._after_block = found[-1] if found else _BEFORE_ALL
        return found

    def _settle(self, found: list[Block]) -> None:
        with self._hub.replica.database.write() as connection:
            clear_damaged_blocks(connection, [block.block_id for block in found])
