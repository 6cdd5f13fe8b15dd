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
    FETCH_AHEAD_SIZE_MAX,
    FETCH_RATE_MIN,
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
    """Answer that is late: FETCH_TIMEOUT_SECONDS after the peer last sent anything of use, or FETCH_SECONDS_MAX beyond the
    time that a slow line takes for what stood before it."""


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
        self._is_paused = False
        self._resumed = 0.0  # when reading went on
        self._came = 0  # bytes of use that the peer has sent

    def pause(self) -> None:
        """Note that nothing is read of the peer now: it pays for its work, or nothing has room here."""
        self._is_paused = True

    def resume(self) -> None:
        """Note that reading goes on: the peer's time to send anything begins anew."""
        self._is_paused = False
        self._resumed = trio.current_time()

    async def wait_for_earlier(self, wanted: BlockId) -> None:
        """Wait until the peer has answered what it was asked for a block before, or has left."""
        while (answer := self._answers.get(wanted)) is not None:
            await answer.is_there.wait()

    def note_progress(self, size: int) -> None:
        """Note that the peer sent so many bytes of use."""
        self.progressed = trio.current_time()
        self._came += size

    async def ask(self, wanted: BlockId, say: Callable[[], bool], ahead: Callable[[], int]) -> bytes | None:
        """Return the block, or None where the peer has not got it. `say` asks for it, or returns False where it cannot.

        `ahead` counts the bytes that are sent before the question, and is called once that is asked. Raises NotFetched when
        it cannot be asked for or the peer leaves, RequestTimeout.
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
        await self._wait(answer, ahead())
        if answer.is_lost:
            raise NotFetched
        return answer.block

    async def _wait(self, answer: _Answer, ahead: int) -> None:
        """Wait for an answer. What has come meanwhile, or is sent before the question, gives it time at FETCH_RATE_MIN."""
        since = quiet_since = trio.current_time()
        came = self._came
        while not answer.is_there.is_set():
            size = min(ahead + self._came - came, FETCH_AHEAD_SIZE_MAX)
            last = since + FETCH_SECONDS_MAX + size / FETCH_RATE_MIN
            now = trio.current_time()
            quiet_since = now if self._is_paused else max(quiet_since, self.progressed, self._resumed)
            deadline = min(quiet_since + FETCH_TIMEOUT_SECONDS, last)
            if now >= deadline:
                raise RequestTimeout
            with trio.move_on_at(deadline):
                await answer.is_there.wait()

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
