"""Requests for blocks: a bounded window for one peer, one request per block for all waiters, and whom not to ask."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
import trio

from node.runtime.scheduling import WorkAccount
from protocol.formats.text import id_text
from protocol.ids import BlockId, PeerId
from protocol.limits.peers import (
    BLOCK_LOST_SECONDS,
    BLOCKS_LOST_MAX,
    FETCH_SECONDS_MAX,
    FETCH_TIMEOUT_SECONDS,
    FETCHED_COUNT_MAX,
    LIAR_SECONDS,
    LIARS_MAX,
    LIE_SECONDS,
)

log = structlog.get_logger()


class NotFetched(Exception):
    """Answer of a peer that did not come: it has left, or does not answer."""


class RequestTimeout(Exception):
    """Answer that is late: FETCH_TIMEOUT_SECONDS after the peer last sent anything of use, or FETCH_SECONDS_MAX."""


@dataclass(slots=True)
class _Answer:
    block: bytes | None = None
    is_lost: bool = False
    is_there: trio.Event = field(default_factory=trio.Event)


class BlockRequests:
    """Blocks that a peer was asked for and has not answered yet."""

    def __init__(self) -> None:
        self._answers: dict[BlockId, _Answer] = {}  # by block
        self._room = trio.Semaphore(FETCHED_COUNT_MAX)
        self.progressed = 0.0
        """When the peer last sent something of use, as trio counts."""

    async def ask(self, wanted: BlockId, say: Callable[[], bool]) -> bytes | None:
        """Return the block, or None where the peer has not got it. `say` asks for it, or returns False where it cannot.

        Raises NotFetched when it cannot be asked for or the peer leaves, RequestTimeout.
        """
        answer = self._answers.get(wanted)
        if answer is None:
            await self._room.acquire()
            answer = self._answers.get(wanted)
            if answer is None:
                answer = self._answers[wanted] = _Answer()
                if not say():
                    del self._answers[wanted]
                    self._room.release()
                    raise NotFetched
            else:  # the place is given back when the peer has answered, no matter who waits for it then
                self._room.release()
        await self._wait(answer)
        if answer.is_lost:
            raise NotFetched
        return answer.block

    async def _wait(self, answer: _Answer) -> None:
        since = trio.current_time()
        last = since + FETCH_SECONDS_MAX
        while not answer.is_there.is_set():
            deadline = min(max(since, self.progressed) + FETCH_TIMEOUT_SECONDS, last)
            with trio.move_on_at(deadline) as waiting:
                await answer.is_there.wait()
            is_late = deadline == last or self.progressed <= deadline - FETCH_TIMEOUT_SECONDS
            if waiting.cancelled_caught and is_late:
                raise RequestTimeout

    def settle(self, wanted: BlockId, block: bytes | None) -> None:
        """Give the answer of the peer for a block to all who wait for it."""
        answer = self._answers.pop(wanted)
        answer.block = block
        answer.is_there.set()
        self._room.release()

    def lose(self) -> None:
        """Wake all who wait: the peer has left."""
        for answer in self._answers.values():
            answer.is_lost = True
            answer.is_there.set()
            self._room.release()
        self._answers.clear()


class UselessSources:
    """Peers that sent a wrong block, and blocks that relays had not got: not worth a question now.

    In memory alone, and bounded; what is forgotten is asked again, which costs a question. `clock` counts seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._liars: OrderedDict[PeerId, float] = OrderedDict()  # until when, the latest last
        self._lost: OrderedDict[tuple[PeerId, BlockId], float] = OrderedDict()

    def note_lie(self, peer: PeerId, account: WorkAccount) -> None:
        """Note that a peer sent a block of another id than it was asked for."""
        log.warning("a peer sent a wrong block", peer=id_text(peer))
        account.charge(LIE_SECONDS)
        self._liars[peer] = self._clock() + LIAR_SECONDS
        self._liars.move_to_end(peer)
        if len(self._liars) > LIARS_MAX:
            self._liars.popitem(last=False)

    def note_lost(self, relay: PeerId, block: BlockId) -> None:
        """Note that a relay has not got a block."""
        self._lost[relay, block] = self._clock() + BLOCK_LOST_SECONDS
        self._lost.move_to_end((relay, block))
        if len(self._lost) > BLOCKS_LOST_MAX:
            self._lost.popitem(last=False)

    def is_useless(self, peer: PeerId, block: BlockId) -> bool:
        """Return True if it is of no use to ask this peer for this block now."""
        now = self._clock()
        return self._liars.get(peer, 0.0) > now or self._lost.get((peer, block), 0.0) > now
