"""Remembers whom to ask for no blocks: peers that sent a wrong one, and relays for blocks that they had not got.

In memory alone, and bounded; what is forgotten is asked again, which costs a question.
"""

from collections import OrderedDict
from collections.abc import Callable

import structlog

from node.sync.scheduling import WorkAccount
from protocol.ids import BlockId, PeerId
from protocol.limits.peers import BLOCK_LOST_SECONDS, BLOCKS_LOST_MAX, LIAR_SECONDS, LIARS_MAX, LIE_SECONDS
from protocol.text import id_text

log = structlog.get_logger()


class UselessSources:
    """What is not worth a question now. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._liars: OrderedDict[PeerId, float] = OrderedDict()  # until when, the latest last
        self._lost: OrderedDict[tuple[PeerId, BlockId], float] = OrderedDict()

    def note_lie(self, peer: PeerId, account: WorkAccount) -> None:
        """A peer sent a block that is not of the id that it was asked for."""
        log.warning("a peer sent a wrong block", peer=id_text(peer))
        account.charge(LIE_SECONDS)
        self._liars[peer] = self._clock() + LIAR_SECONDS
        self._liars.move_to_end(peer)
        if len(self._liars) > LIARS_MAX:
            self._liars.popitem(last=False)

    def note_lost(self, relay: PeerId, block: BlockId) -> None:
        """A relay has not got a block."""
        self._lost[relay, block] = self._clock() + BLOCK_LOST_SECONDS
        self._lost.move_to_end((relay, block))
        if len(self._lost) > BLOCKS_LOST_MAX:
            self._lost.popitem(last=False)

    def is_useless(self, peer: PeerId, block: BlockId) -> bool:
        """Whether to ask this peer for this block is of no use now."""
        now = self._clock()
        return self._liars.get(peer, 0.0) > now or self._lost.get((peer, block), 0.0) > now
