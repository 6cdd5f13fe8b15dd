"""Finds out which topics differ between two peers in a session: summary rounds, send plans, reconciliation. Pure.

Both sides say a summary (round 0). Whose set is part of the other's holds less; so

- who knows all heads of the other sends what these do not imply (where that is nothing, they imply what is not there);
- who holds more, and does not know them all, knows that both lack something, and answers in a reconciliation
  (`protocol.reconciliation.reconciler`), which it opens; the other waits, for commits or for the first frame.

Where the digests differed, the topic stays in doubt: once nothing more is on its way, who held more begins another round.
From then on heads are not believed (a relay may hold what lacks its causes), and the third time ranges are compared.

Many topics may differ. At most RECONCILIATIONS_MAX are reconciled at a time; the asker says when one has ended.
"""

from collections import deque
from collections.abc import Mapping

from protocol.ids import SHORT_ID_SIZE, BlindTopic, ShortId
from protocol.limits.peers import (
    RECONCILIATION_QUEUED_MAX,
    RECONCILIATION_QUIET_CHECKS_MAX,
    RECONCILIATIONS_MAX,
    SUMMARY_ROUND_MAX,
)
from protocol.messages import Reconcile, Summary
from protocol.session_events import (
    Close,
    HandleFrame,
    LoadPlan,
    LoadSummary,
    OpenReconciliation,
    Output,
    PlanLoaded,
    Reconciled,
    Send,
    SummaryLoaded,
)
from protocol.topic_progress import TopicProgress

_RANGES_FROM_ROUND = 2


class Comparison:
    """The part of a session that compares topics. After a `Close` it is not to be used any more."""

    def __init__(self, topics: Mapping[BlindTopic, TopicProgress]) -> None:
        """`topics` are those of the session, by blinded topic."""
        self._topics = topics
        self._to_open: deque[TopicProgress] = deque()
        self._answering = 0
        self._asking = 0

    def summary_loaded(self, blind: BlindTopic, event: SummaryLoaded) -> list[Output]:
        """This node's summary of the topic's round."""
        progress = self._topics[blind]
        progress.own = event
        heads = tuple(ShortId(head[:SHORT_ID_SIZE]) for head in event.heads)
        said = Summary(blind, progress.round, heads, event.count, event.digest)
        return [Send(said), *self._plan(progress)]

    def summarised(self, progress: TopicProgress, message: Summary) -> list[Output]:
        """The peer's summary of this round, or of the next one, which it may begin."""
        last = progress.peer
        if message.round != (0 if last is None else last.round + 1) or progress.later is not None:
            return [Close("unasked_summary")]
        if progress.is_planning or progress.reconciling:
            progress.later = message
            return []
        progress.peer = message
        if message.round > progress.round:
            progress.round = message.round
            progress.own = None
            return [LoadSummary(progress.topic)]
        return self._plan(progress)

    def planned(self, progress: TopicProgress, event: PlanLoaded) -> list[Output]:
        """What to send to who holds the heads of the peer's summary. Queues it, or what came meanwhile."""
        own, peer = progress.own, progress.peer
        assert own is not None, "a plan follows both summaries"
        assert peer is not None, "a plan follows both summaries"
        progress.is_planning = False
        is_first = progress.upto is None
        if is_first:
            # What came after the summary is in no plan that is not exact.
            progress.upto = event.upto if event.is_exact else own.upto
            early = [num for num in progress.early if num > progress.upto or num < 0]
            del progress.early[:]
            for nums in (event.nums, event.unread, early):
                progress.enqueue(nums)
        if progress.reconciling:  # the peer was faster, and has opened it
            return [progress.frames[0]]
        answers = (own.count, own.digest) > (peer.count, peer.digest)
        if not answers:
            return self._go_on(progress)
        progress.is_doubtful = progress.round < _RANGES_FROM_ROUND
        if is_first and event.is_exact and len(event.nums):
            return self._go_on(progress)  # it may lack these alone
        progress.reconciling = "waiting"
        self._to_open.append(progress)
        return self._open()

    def handle_frame(self, progress: TopicProgress, message: Reconcile) -> list[Output]:
        """A frame of a reconciliation: the first one that the peer sends as its answerer begins it."""
        if progress.reconciling in ("", "waiting"):
            if progress.own is None or progress.peer is None or progress.reconciling:
                return [Close("unasked_reconciliation")]
            if self._asking == RECONCILIATIONS_MAX:
                return [Close("too_many_reconciliations")]
            self._asking += 1
            progress.reconciling = "asking"
        if len(progress.frames) == RECONCILIATION_QUEUED_MAX:
            return [Close("too_many_frames")]
        progress.quiet_checks = 0
        taken = HandleFrame(progress.topic, message.kind, message.frame)
        progress.frames.append(taken)
        return [taken] if len(progress.frames) == 1 and not progress.is_planning else []

    def reconciled(self, blind: BlindTopic, event: Reconciled) -> list[Output]:
        """What came of opening a reconciliation, or of its first frame that waited."""
        progress = self._topics[blind]
        if event.fault:
            return [Close(event.fault)]
        if progress.frames:
            progress.frames.popleft()
        progress.quiet_checks = 0  # it is the peer's turn from now on
        progress.enqueue(event.nums)
        outputs: list[Output] = [Send(Reconcile(blind, kind, frame)) for kind, frame in event.frames]
        if not event.is_over:
            return outputs + ([progress.frames[0]] if progress.frames else [])
        if progress.frames and progress.reconciling == "answering":
            return [Close("unasked_reconciliation")]  # what follows the asker's last word
        # Nothing that was asked for is still on its way; more is a lie, and what follows it is not looked at.
        progress.frames.clear()
        if progress.reconciling == "answering":
            self._answering -= 1
        else:
            self._asking -= 1
        progress.reconciling = ""
        return [*outputs, *self._open(), *self._go_on(progress)]

    def check(self) -> list[Output]:
        """Begin another round of what is in doubt, where nothing more is on its way. Part from who leaves one open."""
        outputs: list[Output] = []
        for progress in self._topics.values():
            if progress.reconciling in ("answering", "asking") and not progress.frames:
                progress.quiet_checks += 1
                if progress.quiet_checks > RECONCILIATION_QUIET_CHECKS_MAX:
                    return [Close("reconciliation_stalled")]
            if progress.is_doubtful and progress.state == "in sync" and progress.round < SUMMARY_ROUND_MAX:
                progress.is_doubtful = False
                progress.round += 1
                progress.own = None
                outputs.append(LoadSummary(progress.topic))
        return outputs

    def _plan(self, progress: TopicProgress) -> list[Output]:
        """Once both summaries of a round are there."""
        if progress.own is None or progress.peer is None or progress.peer.round != progress.round:
            return []
        progress.is_planning = True
        return [LoadPlan(progress.topic, progress.peer.heads)]

    def _open(self) -> list[Output]:
        outputs: list[Output] = []
        while self._to_open and self._answering < RECONCILIATIONS_MAX:
            progress = self._to_open.popleft()
            progress.reconciling = "answering"
            self._answering += 1
            outputs.append(OpenReconciliation(progress.topic, progress.round >= _RANGES_FROM_ROUND))
        return outputs

    def _go_on(self, progress: TopicProgress) -> list[Output]:
        """With the next round, if the peer has begun it meanwhile."""
        later, progress.later = progress.later, None
        return self.summarised(progress, later) if later is not None else []
