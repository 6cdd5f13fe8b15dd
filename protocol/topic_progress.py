"""Sync state of one topic in a session: what was compared, what is queued, and what is in flight."""

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from protocol.ids import BlockId, CommitId, TopicKey
from protocol.limits.peers import BATCHES_OF_TOPIC_MAX
from protocol.messages import Summary
from protocol.session_events import HandleFrame, SummaryLoaded


@dataclass(slots=True)
class TopicProgress:
    """How one topic stands on this session; read by status."""

    topic: TopicKey
    is_root: bool
    is_entrusted: bool  # to the peer, if it is a relay
    is_joined: bool  # the peer has announced it too
    summary_sent: bool = False
    round: int = 0  # of summaries
    own: SummaryLoaded | None = None
    peer: Summary | None = None
    is_planning: bool = False  # by these two
    later: Summary | None = None  # of the next round, which the peer began meanwhile
    is_doubtful: bool = False  # digests differed, and have not been compared since
    reconciling: str = ""  # or: waiting, answering, asking
    # Of a reconciliation; the first is being worked on.
    frames: "deque[HandleFrame]" = field(default_factory=deque)
    quiet_checks: int = 0  # without a frame of it from the peer
    upto: int | None = None  # set once the plan is loaded
    early: "array[int]" = field(
        default_factory=lambda: array("q")
    )  # accepted while the plan was being loaded
    queue: "deque[array[int]]" = field(default_factory=deque)
    loading: bool = False
    sent_sizes: "deque[int]" = field(default_factory=deque)  # commits of each batch without a receipt
    unreceipted: int = 0
    # What the peer asked for; the first is being looked up.
    wants: "deque[tuple[CommitId, ...]]" = field(default_factory=deque)
    asked: set[CommitId] = field(default_factory=set)  # commits that the peer was asked for
    fetched: "deque[BlockId]" = field(default_factory=deque)  # blocks that the peer was asked for
    # That the peer asked for; the first ones are being read.
    served: "deque[BlockId]" = field(default_factory=deque)
    refused: str = ""  # why the peer takes no more
    sent: int = 0
    confirmed: int = 0  # of those, whose receipt has come: what the peer takes of them is durable there
    received: int = 0
    dropped: int = 0  # publications of the peer's that were at fault
    bodiless: int = (
        0  # of these, commits that came without the bodies they are judged by, for the peer has erased them
    )

    @property
    def in_flight(self) -> int:
        """How many batches are without a receipt."""
        return len(self.sent_sizes)

    @property
    def is_ready(self) -> bool:
        """Whether its next batch may be loaded, as far as the topic itself goes."""
        return bool(self.queue) and not self.loading and self.in_flight < BATCHES_OF_TOPIC_MAX

    @property
    def to_send(self) -> int:
        """How many commits wait to be sent."""
        return sum(map(len, self.queue))

    @property
    def behind(self) -> int:
        """How many commits the peer has said to hold beyond those that are here and those that were no use, at least."""
        if self.own is None or self.peer is None:
            return 0
        return max(0, self.peer.count - self.own.count - self.received - self.dropped)

    @property
    def state(self) -> str:
        """One of the states that status shows."""
        if self.refused:
            return f"refused: {self.refused}"
        if not self.is_joined:
            return "not joined"
        if self.queue or self.in_flight or self.loading:
            return "sending"
        if self.unreceipted:
            return "receiving"
        is_compared = self.upto is not None and self.own is not None and self.peer is not None
        if not is_compared or self.is_planning or self.reconciling:
            return "comparing"
        return "in sync"

    def enqueue(self, nums: Sequence[int]) -> None:
        """Queue numbers to be sent: a batch is either of commits that this node has read, or (negative) of others."""
        if self.refused:
            return
        for part in ([num for num in nums if num < 0], [num for num in nums if num >= 0]):
            if not part:
                continue
            if self.queue and (self.queue[-1][-1] < 0) == (part[-1] < 0):
                self.queue[-1].extend(part)  # eight bytes each, however long a peer takes none
            else:
                self.queue.append(array("q", part))
