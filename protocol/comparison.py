"""Finds out which topics differ between two peers in a session: summary rounds, send plans, reconciliation. Pure.

Both sides say a summary (round 0). Whose set is part of the other's holds less; so

- who knows all heads of the other sends what these do not imply (where that is nothing, they imply what is not there);
- who holds more, and does not know them all, knows that both lack something, and answers in a reconciliation
  (`protocol.reconciliation.reconciler`), which it opens; the other waits, for commits or for the first frame.

Where the digests differed, the topic stays in doubt: once nothing more is on its way, who held more begins another round.
From then on heads are not believed (a relay may hold what lacks its causes), and the third time ranges are compared.

Many topics may differ. At most RECONCILIATIONS_MAX are reconciled at a time; the asker says when one has ended.

What follows what stands in a table, `protocol.machines.comparing`. Here is how each of its outputs is done.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

from protocol.ids import SHORT_ID_SIZE, BlindTopic, ShortId
from protocol.limits.peers import (
    RECONCILIATION_QUEUED_MAX,
    RECONCILIATION_QUIET_CHECKS_MAX,
    RECONCILIATIONS_MAX,
)
from protocol.machines.comparing import ANSWERER, ASKER, CHECKED, COMPARING, SETTLED, Compared, Comparing, Do
from protocol.machines.table import PeerFault
from protocol.messages import Reconcile, Summary
from protocol.session_events import PlanLoaded, Reconciled, SummaryLoaded
from protocol.session_outputs import HandleFrame, LoadPlan, LoadSummary, OpenReconciliation, Output, Send
from protocol.topic_progress import TopicProgress
from protocol.transfer import Transfer

_RANGES_FROM_ROUND: Final = 2
"""The round in which ranges are compared, and the last one that this side begins."""

_Happened = Summary | Reconcile | SummaryLoaded | PlanLoaded | Reconciled | None


class Comparison:
    """The part of a session that compares topics. After a PeerFault it is not to be used any more."""

    def __init__(self, topics: Mapping[BlindTopic, TopicProgress], transfer: Transfer) -> None:
        """`topics` are those of the session, by blinded topic; what is found to be lacking goes to `transfer`."""
        self._topics = topics
        self._transfer = transfer
        self._to_open: deque[tuple[BlindTopic, TopicProgress]] = deque()
        self._answering = 0
        self._asking = 0
        self.settling_count = 0
        """Joined topics in which something is still to be found out."""

    def joined(self, blind: BlindTopic) -> list[Output]:
        """The topic was announced by the second side, or again."""
        return self._run(blind, Compared.JOIN)

    def summary_loaded(self, blind: BlindTopic, event: SummaryLoaded) -> list[Output]:
        """This node's summary of the topic's round."""
        return self._run(blind, Compared.LOADED, event)

    def summarised(self, message: Summary) -> list[Output]:
        """The peer's summary of this round, or of the next one, which it may begin."""
        return self._run(message.topic, Compared.SUMMARY, message)

    def planned(self, blind: BlindTopic, event: PlanLoaded) -> list[Output]:
        """What to send to who holds the heads of the peer's summary."""
        progress = self._topics[blind]
        own, peer = progress.rounds.own, progress.rounds.peer
        assert own is not None, "a plan follows both summaries"
        assert peer is not None, "a plan follows both summaries"
        ours, theirs = (own.count, own.digest), (peer.count, peer.digest)
        if ours == theirs:
            happened = Compared.PLAN_EQUAL
        elif ours < theirs:
            happened = Compared.PLAN_SMALLER
        elif progress.outbox.upto is None and event.is_exact and len(event.nums):
            happened = Compared.PLAN_SENDS
        else:
            happened = Compared.PLAN_OPENS
        return self._run(blind, happened, event)

    def handle_frame(self, message: Reconcile) -> list[Output]:
        """A frame of a reconciliation: the first one that the peer sends as its answerer begins it."""
        return self._run(message.topic, Compared.FRAME, message)

    def reconciled(self, blind: BlindTopic, event: Reconciled) -> list[Output]:
        """What came of opening a reconciliation, or of its first frame that waited."""
        if event.fault:
            raise PeerFault(event.fault)
        frames = self._topics[blind].rounds.frames
        if frames:
            del frames[0]
        if event.is_over:
            return self._run(blind, Compared.OVER_MORE if frames else Compared.OVER, event)
        return self._run(blind, Compared.STEP_MORE if frames else Compared.STEP, event)

    def check(self) -> list[Output]:
        """Begin another round of what is in doubt, where nothing more is on its way. Part from who leaves one open."""
        outputs: list[Output] = []
        for blind, progress in self._topics.items():
            if progress.comparing in CHECKED:  # of thousands of topics a few
                outputs += self._run(blind, _check(progress))
        return outputs

    def _run(self, blind: BlindTopic, event: Compared, happened: _Happened = None) -> list[Output]:
        progress = self._topics[blind]
        before = progress.comparing
        step = COMPARING.find(before, event)
        progress.comparing = step.to
        self._answering += (step.to in ANSWERER) - (before in ANSWERER)
        self._asking += (step.to in ASKER) - (before in ASKER)
        self.settling_count += (step.to not in SETTLED) - (before not in SETTLED)
        outputs: list[Output] = []
        for what in step.outputs:
            outputs += self._do(what, blind, progress, happened)
        return outputs

    def _do(self, what: Do, blind: BlindTopic, progress: TopicProgress, happened: _Happened) -> list[Output]:
        """`happened` is what the event brought: which kind follows from the table."""
        rounds = progress.rounds
        match what, happened:
            case Do.LOAD_SUMMARY, _:
                rounds.own = None
                return [LoadSummary(progress.topic)]
            case Do.SAY_SUMMARY, SummaryLoaded():
                rounds.own, rounds.came = happened, progress.came
                heads = tuple(ShortId(head[:SHORT_ID_SIZE]) for head in happened.heads)
                return [Send(Summary(blind, rounds.number, heads, happened.count, happened.digest))]
            case Do.TAKE_SUMMARY, Summary():
                _check_order(progress, happened)
                rounds.peer, rounds.number = happened, happened.round
            case Do.KEEP_SUMMARY, Summary():
                _check_order(progress, happened)
                rounds.kept = happened
            case Do.READ_KEPT, _:
                kept, rounds.kept = rounds.kept, None
                return self.summarised(kept) if kept is not None else []
            case Do.NEXT_ROUND, _:
                rounds.number += 1
            case Do.LOAD_PLAN, _:
                assert rounds.peer is not None, "a plan follows both summaries"
                return [LoadPlan(progress.topic, rounds.peer.heads)]
            case Do.QUEUE_PLAN, PlanLoaded():
                assert rounds.own is not None, "a plan follows both summaries"
                # What came after the summary is in no plan that is not exact.
                upto = happened.upto if happened.is_exact else rounds.own.upto
                self._transfer.planned(progress, (happened.nums, happened.unread), upto)
            case Do.AWAIT_TURN, _:
                self._to_open.append((blind, progress))
            case Do.GIVE_TURN, _:
                return self._give_turns()
            case Do.OPEN, _:
                return [OpenReconciliation(progress.topic, rounds.number >= _RANGES_FROM_ROUND)]
            case Do.ADMIT, _:
                if self._asking > RECONCILIATIONS_MAX:
                    raise PeerFault("too_many_reconciliations")
            case Do.KEEP_FRAME, Reconcile():
                if len(rounds.frames) == RECONCILIATION_QUEUED_MAX:
                    raise PeerFault("too_many_frames")
                rounds.quiet_checks = 0
                rounds.frames.append(HandleFrame(progress.topic, happened.kind, happened.frame))
            case Do.HANDLE_FRAME, _:
                return [rounds.frames[0]]
            case Do.SAY_FRAMES, Reconciled():
                rounds.quiet_checks = 0  # it is the peer's turn from now on
                self._transfer.queue(progress, happened.nums)
                return [Send(Reconcile(blind, kind, frame)) for kind, frame in happened.frames]
            case Do.DROP_FRAMES, _:
                rounds.frames.clear()
            case Do.COUNT_CHECK, _:
                rounds.quiet_checks += 1
                if rounds.quiet_checks > RECONCILIATION_QUIET_CHECKS_MAX:
                    raise PeerFault("reconciliation_stalled")
            case _:
                raise AssertionError(f"{what.name} is not done about {happened}")
        return []

    def _give_turns(self) -> list[Output]:
        outputs: list[Output] = []
        while self._to_open and self._answering < RECONCILIATIONS_MAX:
            blind, _ = self._to_open.popleft()
            outputs += self._run(blind, Compared.TURN)
        return outputs


def _check(progress: TopicProgress) -> Compared:
    is_left = progress.rounds.number < _RANGES_FROM_ROUND
    is_ahead = progress.comparing is Comparing.AHEAD
    return Compared.QUIET if is_ahead and is_left and progress.is_quiet else Compared.CHECK


def _check_order(progress: TopicProgress, message: Summary) -> None:
    """Rounds neither repeat nor skip, and one is kept at most."""
    last = progress.rounds.peer
    if message.round != (0 if last is None else last.round + 1) or progress.rounds.kept is not None:
        raise PeerFault("unasked_summary")
