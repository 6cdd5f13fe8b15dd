"""Sends publications of a session's topics, and answers what the peer asks for. Pure.

A batch stays in flight until its receipt, and at most BATCHES_IN_FLIGHT_MAX are, so a slow peer holds back reads from the
store instead of filling memory. Epochs' own topics come first: an init that stands there gives the keys of others. Then
topics with one batch or less take turns, and of those with more one follows the other: what later epochs' commits follow
stands on the topics of older ones, and would they come first they would wait. So of one group, a repo's, the next begins
when all of the one before is sent, though the window had room. Where there are both, every other batch is of each.
Questions of the peer's are looked up one after the other.

What follows what stands in tables, `protocol.session.machines.transfer`. Here is how each of their outputs is done.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import count

from protocol.crypto.hashing import block_id
from protocol.ids import BlockId, PeerId, TopicKey
from protocol.limits.peers import BATCH_COUNT_MAX, BATCHES_IN_FLIGHT_MAX, FETCHED_COUNT_MAX
from protocol.session.events import BatchIngested, BatchLoaded, BlocksLoaded, WantedFound
from protocol.session.machines.table import PeerFault
from protocol.session.machines.transfer import SENDING, SendingAction, Sent
from protocol.session.messages import (
    Blocks,
    Fetch,
    FoundBodies,
    Publications,
    Receipt,
    Refused,
    Want,
    WantBodies,
)
from protocol.session.outputs import (
    FindBodies,
    FindWanted,
    HandOver,
    IngestBatch,
    LoadBatch,
    LoadBlocks,
    Output,
    Send,
)
from protocol.session.topic_progress import TopicProgress
from protocol.session.wanting import Wanting

_Place = tuple[int, int, int, TopicProgress]
"""Last turn, order of the topic, when it was offered (no two are compared by more), and the topic."""


class Transfer:
    """Commits and blocks in flight on one session. Not to be used after a PeerFault."""

    def __init__(self, wanting: Wanting) -> None:
        self._wanting = wanting
        # Counted and not added up when asked for: a node may join thousands of topics with one peer.
        self._turn = count()
        self._turns: dict[TopicKey, int] = {}  # when each topic had its last turn
        # Topics whose next batch may be read, once each (some may not any more): epochs' own, then in turn those with a
        # batch or less and those with more, which keep their order.
        self._ready_own: list[_Place] = []
        self._ready_small: list[_Place] = []
        self._ready_large: list[_Place] = []
        self._is_large_next = False
        # By group: the topic with more than a batch that is being sent, and those that wait for its end.
        self._current: dict[int | PeerId, TopicProgress] = {}
        self._held: dict[int | PeerId, list[_Place]] = {}
        self._offered: set[TopicKey] = set()
        self._busy = 0  # batches that are being read or have no receipt
        self._unreceipted = 0
        self._serving = 0  # blocks that the peer asks for

    # --- publications to the peer ---

    def queue(self, progress: TopicProgress, nums: Sequence[int]) -> None:
        """Queue commits to be sent on a topic, as far as the peer takes more."""
        for action in self._send(progress, Sent.MORE):
            assert action is SendingAction.QUEUE, "the table says no otherwise"
            progress.outbox.enqueue(nums)
            self._offer(progress)

    def planned(self, progress: TopicProgress, plan: Iterable[Sequence[int]], upto: int) -> None:
        """Queue the first plan. Later plans name only what is queued anyway."""
        outbox = progress.outbox
        if outbox.upto is not None:
            return
        outbox.upto = upto
        early = [num for num in outbox.early if num > upto or num < 0]
        del outbox.early[:]
        for nums in (*plan, early):
            self.queue(progress, nums)

    def accepted(self, progress: TopicProgress, nums: Sequence[int]) -> list[Output]:
        """Queue commits that were accepted on a joined topic and that the peer has not sent."""
        upto = progress.outbox.upto
        if upto is None:
            progress.outbox.early.extend(nums)
            return []
        self.queue(progress, [num for num in nums if num > upto or num < 0])
        return self.pump()

    def loaded(self, progress: TopicProgress, event: BatchLoaded) -> list[Output]:
        """Send a batch that was read."""
        outbox = progress.outbox
        outputs: list[Output] = []
        self._busy -= 1
        for action in self._send(progress, Sent.BATCH if event.items else Sent.NOTHING):
            if action is SendingAction.SAY:
                self._busy += 1
                outbox.sent += len(event.items)
                outbox.sizes.append(len(event.items))
                outputs.append(Send(Publications(progress.blind, event.items)))
            outbox.pass_over(max(len(event.items), 1))  # what is no longer there is passed over
        self._offer(progress)
        self._let_go(progress)
        return [*outputs, *self.pump()]

    def receipted(self, progress: TopicProgress, message: Receipt) -> list[Output]:
        """Count a batch that the peer has taken."""
        for action in self._send(progress, Sent.RECEIPT):
            assert action is SendingAction.CONFIRM, "the table says no otherwise"
            if not progress.outbox.sizes:
                raise PeerFault("unasked_receipt")
            progress.outbox.confirmed += progress.outbox.sizes.pop(0)
            self._busy -= 1
        self._offer(progress)
        return self.pump()

    def refused(self, progress: TopicProgress, message: Refused) -> list[Output]:
        """Stop sending on a topic: the peer takes no more."""
        for action in self._send(progress, Sent.REFUSAL):
            assert action is SendingAction.FORGET, "the table says no otherwise"
            progress.outbox.refusal = message.reason
            progress.outbox.clear()
        self._let_go(progress)
        return self.pump()

    def pump(self) -> list[Output]:
        """Ask for batches while the window has room.

        No topic takes all of it: what another one gets meanwhile goes out at once. Thousands may wait for their turn: only
        those that get it are looked at.
        """
        outputs: list[Output] = []
        while self._busy < BATCHES_IN_FLIGHT_MAX and (progress := self._pop_ready()) is not None:
            self._offered.discard(progress.topic)
            if not progress.is_ready:
                continue  # the peer has refused it meanwhile
            self._busy += 1
            for action in self._send(progress, Sent.TURN):
                assert action is SendingAction.LOAD, "the table says no otherwise"
                nums = progress.outbox.queue[0][:BATCH_COUNT_MAX]
                outputs.append(LoadBatch(progress.topic, tuple(nums)))
            self._turns[progress.topic] = next(self._turn)
        return outputs

    def _offer(self, progress: TopicProgress) -> None:
        """Let a topic wait for its turn, if its next batch may be read."""
        if progress.is_ready and progress.topic not in self._offered:
            self._offered.add(progress.topic)
            turn, at = self._turns.get(progress.topic, 0), next(self._turn)
            if progress.is_own:
                heapq.heappush(self._ready_own, (turn, progress.order, at, progress))
            elif progress.to_send <= BATCH_COUNT_MAX:
                heapq.heappush(self._ready_small, (turn, progress.order, at, progress))
            else:
                heapq.heappush(self._ready_large, (0, progress.order, at, progress))

    def _pop_ready(self) -> TopicProgress | None:
        """Take out the topic whose turn it is."""
        if self._ready_own:
            return heapq.heappop(self._ready_own)[-1]
        self._hold()
        has_both = self._ready_small and self._ready_large
        ready = (
            self._ready_large if self._is_large_next and has_both else self._ready_small or self._ready_large
        )
        self._is_large_next = ready is self._ready_small
        return heapq.heappop(ready)[-1] if ready else None

    def _hold(self) -> None:
        """Set aside large topics at the front of the queue while an older topic of their group is being sent."""
        while self._ready_large:
            place = self._ready_large[0]
            progress = place[-1]
            if progress.group is None or not progress.is_ready:
                return
            current = self._current.setdefault(progress.group, progress)
            if current.order >= progress.order:
                self._current[progress.group] = progress  # an older one that was compared later
                return
            self._held.setdefault(progress.group, []).append(heapq.heappop(self._ready_large))

    def _let_go(self, progress: TopicProgress) -> None:
        """Let the next of a group be sent, if this one was and has no more."""
        group = progress.group
        if group is not None and self._current.get(group) is progress and not progress.outbox.queue:
            del self._current[group]
            for place in self._held.pop(group, ()):
                heapq.heappush(self._ready_large, place)

    @staticmethod
    def _send(progress: TopicProgress, event: Sent) -> tuple[SendingAction, ...]:
        step = SENDING.find(progress.sending, event)
        progress.sending = step.to
        return step.outputs

    # --- publications from the peer ---

    def received(self, progress: TopicProgress, message: Publications) -> list[Output]:
        """Take a batch in."""
        progress.unreceipted += 1
        self._unreceipted += 1
        if self._unreceipted > BATCHES_IN_FLIGHT_MAX:
            raise PeerFault("too_many_batches")
        return [IngestBatch(progress.topic, message.items, progress.is_own)]

    def ingested(self, progress: TopicProgress, event: BatchIngested) -> list[Output]:
        """Say that a batch is stored."""
        progress.unreceipted -= 1
        self._unreceipted -= 1
        progress.received += event.accepted
        progress.dropped += event.dropped
        progress.known += event.known
        progress.bodiless += event.bodiless
        progress.has_left_out |= event.has_left_out
        refusal: list[Output] = [Send(Refused(progress.blind, event.refused))] if event.refused else []
        return [Send(Receipt(progress.blind)), *self._wanting.ask(progress, event.wanted), *refusal]

    # --- what the peer asks for ---

    def wanted(self, progress: TopicProgress, message: Want | WantBodies) -> list[Output]:
        """Take a question for commits or bodies."""
        self._wanting.take(message)
        return self._find(progress) if progress.wants.ask((message,)) else []

    def wanted_found(self, progress: TopicProgress, event: WantedFound) -> list[Output]:
        """Queue the commits that were found for the first question."""
        question = progress.wants.waiting[0]
        self._wanting.answer(question)
        self.queue(progress, progress.outbox.want(event.nums))
        of_bodies = isinstance(question, WantBodies)
        if of_bodies and not progress.keeps.is_all:
            for num in event.nums:
                progress.outbox.whole.add(num)
        said: list[Output] = [Send(FoundBodies(progress.blind, len(event.nums)))] if of_bodies else []
        more = self._find(progress) if progress.wants.answer(1) else []
        return [*said, *more, *self.pump()]

    def fetched(self, progress: TopicProgress, message: Fetch) -> list[Output]:
        """Take a question for blocks."""
        is_first = progress.served.ask(message.ids)
        self._serving += len(message.ids)
        if self._serving > FETCHED_COUNT_MAX:
            raise PeerFault("too_many_fetches")
        return self._read(progress) if is_first else []

    def blocks_loaded(self, progress: TopicProgress, event: BlocksLoaded) -> list[Output]:
        """Send blocks that were read for the peer."""
        self._serving -= len(event.items)
        more = self._read(progress) if progress.served.answer(len(event.items)) else []
        return [Send(Blocks(progress.blind, event.items)), *more]

    @staticmethod
    def _find(progress: TopicProgress) -> list[Output]:
        first = progress.wants.waiting[0]
        if isinstance(first, WantBodies):
            return [FindBodies(progress.topic, first.ids)]
        return [FindWanted(progress.topic, first.ids)]

    @staticmethod
    def _read(progress: TopicProgress) -> list[Output]:
        return [LoadBlocks(progress.topic, tuple(progress.served.waiting))]

    # --- blocks from the peer ---

    def fetch(self, progress: TopicProgress, ids: tuple[BlockId, ...]) -> list[Output]:
        """Ask the peer for blocks."""
        progress.fetched.extend(ids)
        return [Send(Fetch(progress.blind, ids))]

    def blocks_came(self, progress: TopicProgress, message: Blocks) -> list[Output]:
        """Take the first of the blocks that were asked for, in the order of asking."""
        if len(message.items) > len(progress.fetched):
            raise PeerFault("unasked_blocks")
        count = len(message.items)
        came = tuple(zip(progress.fetched[:count], (item or None for item in message.items), strict=True))
        del progress.fetched[:count]
        if any(item is not None and block_id(item) != wanted for wanted, item in came):
            raise PeerFault("wrong_block")
        return [HandOver(progress.topic, came)]
