"""Downloads absent file blocks from several peers in parallel.

Who may read a file knows the ids of its blocks, from the root down, and asks connected peers that follow the same repo.
A block is what its id says or it is not taken, so it does not matter who sends it. What came is kept in packs, so a
fetch that was cut goes on where it stopped.
"""

from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog
import trio

from node.runtime.errors import ServiceError
from node.sync.block_requests import NotFetched
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.formats.block import Block, decode_block
from protocol.ids import BlockId, TopicKey
from protocol.limits.peers import FETCHED_COUNT_MAX
from storage.repos.repos import Branch

log = structlog.get_logger()

_LACKED_MAX: Final = 2
"""Blocks that a peer which gave none may lack before it is asked for no more. Else all relays would be asked for
every block of a file that none has."""


async def fetch_blocks(hub: Hub, branch: Branch, ids: Sequence[BlockId]) -> None:
    """Get these blocks of a file of the branch, and keep them. Raises ServiceError `incomplete`, StorageError."""
    sources = _find_sources(hub, branch)
    if not sources:
        raise ServiceError(
            "incomplete",
            "the file's content comes from other computers, and no peer that follows the repo is connected now",
            "open it again when one is: `ravel peer list` shows peers",
        )
    missing = len(ids) - len(await fetch_from(hub, sources, ids))
    if missing:
        raise ServiceError(
            "incomplete",
            f"the file's content is not here whole, and none of {len(sources)} connected peers has {missing} of its blocks",
            "try again when a peer that has it is connected",
        )


async def fetch_from(
    hub: Hub, sources: Sequence[tuple[Conversation, TopicKey]], ids: Sequence[BlockId]
) -> list[Block]:
    """Fetch blocks from peers, each asked on a topic that it follows, and store them. Raises StorageError."""
    fetch = _Fetch(ids, len(sources))
    # Who had none of the first that it was asked for, most often a relay, is asked again for what the others have not got.
    for are_all_asked in (False, True):
        async with trio.open_nursery() as nursery:
            for number, (source, topic) in enumerate(sources):
                for _ in range(FETCHED_COUNT_MAX):
                    nursery.start_soon(partial(fetch.ask, number, source, topic, are_all_asked=are_all_asked))
    if fetch.found:  # what came is kept, also where something is missing
        await hub.run_blocking(_keep, hub, fetch.found)
    return fetch.found


class _Fetch:
    """Blocks to be had, handed out to peers: one that a peer has not got goes back to be asked of the others."""

    def __init__(self, ids: Sequence[BlockId], source_count: int) -> None:
        self._wanted = deque(dict.fromkeys(ids))
        self._refused: dict[BlockId, set[int]] = {}  # by block: the numbers of sources that have not got it
        self._source_count = source_count
        self._asked = 0
        self._gave: Counter[int] = Counter()  # by the number of a source: blocks that it had
        self._lacked: Counter[int] = Counter()  # and those that it had not
        self._changed = trio.Event()
        self.found: list[Block] = []

    async def ask(self, number: int, source: Conversation, topic: TopicKey, *, are_all_asked: bool) -> None:
        """Ask one peer for one block after the other, while any is left that it may have.

        Unless `are_all_asked`, a peer that lacks the first few is asked for no more if there are other peers.
        """
        while are_all_asked or self._source_count == 1 or not self._is_empty_handed(number):
            wanted = self._next(number)
            if wanted is None:
                if not self._asked:
                    return
                await self._changed.wait()  # another peer may fail on what it is being asked for
                continue
            self._asked += 1
            try:
                encoded = await source.fetch(topic, wanted)
                if encoded is not None:
                    self.found.append(decode_block(encoded))
                    self._gave[number] += 1
                    continue
                self._lacked[number] += 1
            except NotFetched:
                self._put_back(number, wanted)
                return
            except DecodeError as error:  # of just that id: so the file's author made it
                log.info("a file's block is none", error=str(error))
            finally:
                self._asked -= 1
                self._changed.set()
                self._changed = trio.Event()
            self._put_back(number, wanted)

    def _is_empty_handed(self, number: int) -> bool:
        return not self._gave[number] and self._lacked[number] >= _LACKED_MAX

    def _next(self, number: int) -> BlockId | None:
        for _ in range(len(self._wanted)):
            wanted = self._wanted.popleft()
            if number not in self._refused.get(wanted, ()):
                return wanted
            self._wanted.append(wanted)
        return None

    def _put_back(self, number: int, wanted: BlockId) -> None:
        refused = self._refused.setdefault(wanted, set())
        refused.add(number)
        if len(refused) < self._source_count:
            self._wanted.append(wanted)


def _find_sources(hub: Hub, branch: Branch) -> list[tuple[Conversation, TopicKey]]:
    """Connected peers that follow any topic of the branch's repo, with the latest such: blocks are the same on all."""
    topics = [one.topic for one in reversed(hub.replica.tables.topics_in(branch.repo_num))]
    found = ((source, next(filter(source.has_joined, topics), None)) for source in hub.sources)
    return [(source, topic) for source, topic in found if topic is not None]


def _keep(hub: Hub, blocks: Sequence[Block]) -> None:
    with hub.replica.packs.draft() as draft:
        for block in blocks:
            draft.put(block)
        draft.finish()
        with hub.replica.database.write() as connection:
            draft.keep(connection)
        draft.is_kept = True
