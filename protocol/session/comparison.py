"""Comparison of the topics of a session by summaries in rounds, plans and reconciliation. Pure.

Both sides say a summary (round 0). Whose set is part of the other's holds less; so

- who knows all heads of the other sends what these do not imply (where that is nothing, they imply what is not there);
- who holds more, and does not know them all, knows that both lack something, and answers in a reconciliation
  (`protocol.session.reconciliation.reconciler`), which it opens; the other waits, for commits or for the first frame.

Where the digests differed, the topic stays in doubt: once nothing more is on its way, who held more begins another round.
So does who has left commits of the peer's out, for which it knew no epoch or had no room, and is not behind: it may take
them later.
From then on heads are not believed (a relay may hold what lacks its causes), and from the third time on ranges are compared.
What differs then may differ for good, so later rounds are few: of a topic after an hour, then two, up to sixteen, and of all
topics one at a keep-alive.

Many topics may differ. At most RECONCILIATIONS_MAX are reconciled at a time; the asker says when one has ended.

What follows what stands in a table, `protocol.session.machines.comparing`. Here is how each of its outputs is done.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from protocol.ids import SHORT_ID_SIZE, ItemId, ShortId, TopicKey
from protocol.limits.peers import (
    LATER_ROUND_CHECKS,
    LATER_ROUND_DOUBLINGS_MAX,
    LATER_ROUNDS_AT_ONCE_MAX,
    LATER_ROUNDS_PER_CHECK,
    RECONCILIATION_CHECKS_MAX,
    RECONCILIATION_QUEUED_MAX,
    RECONCILIATION_QUIET_CHECKS_MAX,
    RECONCILIATIONS_MAX,
)
from protocol.session.allowance import Allowance
from protocol.session.events import PlanLoaded, Reconciled, SummaryLoaded
from protocol.session.machines.comparing import (
    ANSWERER,
    ASKER,
    CHECKED,
    COMPARING,
    SETTLED,
    CompareAction,
    Compared,
    Comparing,
)
from protocol.session.machines.table import PeerFault
from protocol.session.messages import Reconcile, Summary
from protocol.session.outputs import HandleFrame, LoadPlan, LoadSummary, OpenReconciliation, Output, Send
from protocol.session.topic_progress import Rounds, TopicProgress
from protocol.session.transfer import Transfer

_RANGES_FROM_ROUND: Final = 2
"""The round from which on ranges are compared, and the last one that is begun at once."""

_Brought = Summary | Reconcile | SummaryLoaded | PlanLoaded | Reconciled | None


class Comparison:
    """Comparisons of one session's topics. Not to be used after a PeerFault."""

    def __init__(self, transfer: Transfer, settled: Callable[[Sequence[TopicKey]], None]) -> None:
        """Queue what is found to be lacking in `transfer`; call `settled` once with each topic that has settled."""
        self._transfer = transfer
        self._settled = settled
        self._to_open: deque[TopicProgress] = deque()
        self._answering = 0
        self._asking = 0
        self._takeable = Allowance(LATER_ROUNDS_AT_ONCE_MAX, LATER_ROUNDS_PER_CHECK)
        self._is_quiet = True  # the peer has sent nothing of use since the check before the last
        self.settling_count = 0
        """Joined topics in which something is still to be found out."""

    def joined(self, progress: TopicProgress) -> list[Output]:
        """Begin: the topic was announced by the second side, or again."""
        return self._run(progress, Compared.JOIN)

    def summary_loaded(self, progress: TopicProgress, event: SummaryLoaded) -> list[Output]:
        """Say this node's summary of the topic's round."""
        return self._run(progress, Compared.LOADED, event)

    def summarised(self, progress: TopicProgress, message: Summary) -> list[Output]:
        """Take the peer's summary of this round, or of the next one, which it may begin."""
        return self._run(progress, Compared.SUMMARY, message)

    def planned(self, progress: TopicProgress, event: PlanLoaded) -> list[Output]:
        """Queue what the heads of the peer's summary do not imply, and decide whether sets are reconciled."""
        own, peer = progress.rounds.own, progress.rounds.peer
        assert own is not None, "a plan follows both summaries"
        assert peer is not None, "a plan follows both summaries"
        ours, theirs = (own.count, own.digest), (peer.count, peer.digest)
        if ours == theirs:
            compared = Compared.PLAN_EQUAL
        elif ours < theirs:
            compared = Compared.PLAN_SMALLER
        elif progress.outbox.upto is None and event.is_exact and len(event.nums):
            compared = Compared.PLAN_SENDS
        else:
            compared = Compared.PLAN_OPENS
        return [*self._run(progress, compared, event), *self._transfer.pump()]

    def handle_frame(self, progress: TopicProgress, message: Reconcile) -> list[Output]:
        """Take a frame of a reconciliation. The answerer's first frame begins it."""
        return self._run(progress, Compared.FRAME, message)

    def reconciled(self, progress: TopicProgress, event: Reconciled) -> list[Output]:
        """Go on after opening a reconciliation, or after its first frame that waited."""
        if event.fault:
            raise PeerFault(event.fault)
        frames = progress.rounds.frames
        if frames:
            del frames[0]
        if event.is_over:
            compared = Compared.OVER_MORE if frames else Compared.OVER
        else:
            compared = Compared.STEP_MORE if frames else Compared.STEP
        return [*self._run(progress, compared, event), *self._transfer.pump()]

    def check(self, topics: Iterable[TopicProgress], *, is_quiet: bool) -> list[Output]:
        """Begin another round for a topic in doubt, if nothing more is on its way. End with a peer that leaves a round
        open.

        A frame may wait behind much else on a slow line: while the peer is not quiet it has RECONCILIATION_CHECKS_MAX
        checks. After the first rounds one topic at a time has another, the one that waits longest first: on a slow line
        many rounds would come together.
        """
        self._takeable.check()
        self._is_quiet = is_quiet
        checked: list[TopicProgress] = []  # of thousands of topics a few
        is_free = True
        for progress in topics:
            if progress.comparing in CHECKED or _may_lack(progress):
                checked.append(progress)
            is_free &= progress.comparing in SETTLED or progress.rounds.number <= _RANGES_FROM_ROUND
        later: list[TopicProgress] = []
        for progress in checked:
            progress.rounds.checks += 1
            if _is_in_doubt(progress) and progress.rounds.checks >= _later_checks(progress.rounds.number):
                later.append(progress)
        due = max(later, key=lambda one: one.rounds.checks, default=None)
        outputs: list[Output] = []
        for progress in checked:
            is_due = (is_free and progress is due) or _is_due_at_once(progress)
            outputs += self._run(progress, Compared.QUIET if is_due else Compared.CHECK)
        return outputs

    def begin_later_round(self, progress: TopicProgress) -> list[Output]:
        """Schedule a later round of a topic, if any of the peer's commits were left out."""
        if progress.has_left_out:
            progress.rounds.checks = LATER_ROUND_CHECKS << LATER_ROUND_DOUBLINGS_MAX
        return []

    def begin_rounds(self, topics: Iterable[TopicProgress]) -> list[Output]:
        """Begin the first rounds of topics in doubt, if nothing more is on its way."""
        due = [one for one in topics if _is_due_at_once(one)]
        return [output for progress in due for output in self._run(progress, Compared.QUIET)]

    def _run(self, progress: TopicProgress, event: Compared, brought: _Brought = None) -> list[Output]:
        before = progress.comparing
        step = COMPARING.find(before, event)
        progress.comparing = step.to
        self._answering += (step.to in ANSWERER) - (before in ANSWERER)
        self._asking += (step.to in ASKER) - (before in ASKER)
        self.settling_count += (step.to not in SETTLED) - (before not in SETTLED)
        outputs: list[Output] = []
        for action in step.outputs:
            outputs += self._do(action, progress, brought)
        return outputs

    def _do(self, action: CompareAction, progress: TopicProgress, brought: _Brought) -> list[Output]:
        """Carry out an output. The table says of which kind is what the event `brought`."""
        rounds = progress.rounds
        match action, brought:
            case CompareAction.LOAD_SUMMARY, _:
                rounds.own = None
                return [LoadSummary(progress.topic)]
            case CompareAction.SAY_SUMMARY, SummaryLoaded():
                rounds.own, rounds.came = brought, progress.came
                # Of equal summaries nothing follows by heads. A topic has one for each branch, and most are equal.
                heads = () if _are_equal(rounds) else _shorten(brought.heads)
                return [Send(Summary(progress.blind, rounds.number, heads, brought.count, brought.digest))]
            case CompareAction.TAKE_SUMMARY, Summary():
                self._check_order(progress, brought)
                rounds.peer, rounds.number, rounds.checks = brought, brought.round, 0
                progress.has_left_out = False
            case CompareAction.KEEP_SUMMARY, Summary():
                self._check_order(progress, brought)
                rounds.kept = brought
            case CompareAction.READ_KEPT, _:
                kept, rounds.kept = rounds.kept, None
                if kept is None:
                    return []
                rounds.number = kept.round  # the peer's has taken what it begins when it came
                return self.summarised(progress, kept)
            case CompareAction.NEXT_ROUND, _:
                rounds.number += 1
            case CompareAction.LOAD_PLAN, _:
                assert rounds.own is not None, "a plan follows both summaries"
                assert rounds.peer is not None, "a plan follows both summaries"
                self._settle(progress)
                # The last to say an equal summary leaves its heads out.
                heads = _shorten(rounds.own.heads) if _are_equal(rounds) else rounds.peer.heads
                # Only the plan needs them, and a relay has hundreds of topics for each peer.
                rounds.own, rounds.peer = (
                    replace(rounds.own, heads=()),
                    structs.replace(rounds.peer, heads=()),
                )
                return [LoadPlan(progress.topic, heads)]
            case CompareAction.QUEUE_PLAN, PlanLoaded():
                assert rounds.own is not None, "a plan follows both summaries"
                # What came after the summary is in no plan that is not exact.
                upto = brought.upto if brought.is_exact else rounds.own.upto
                self._transfer.planned(progress, (brought.nums, brought.unread), upto)
            case CompareAction.AWAIT_TURN, _:
                self._to_open.append(progress)
            case CompareAction.GIVE_TURN, _:
                return self._give_turns()
            case CompareAction.OPEN, _:
                return [OpenReconciliation(progress.topic, rounds.number >= _RANGES_FROM_ROUND)]
            case CompareAction.ADMIT, _:
                if self._asking > RECONCILIATIONS_MAX:
                    raise PeerFault("too_many_reconciliations")
            case CompareAction.KEEP_FRAME, Reconcile():
                if len(rounds.frames) == RECONCILIATION_QUEUED_MAX:
                    raise PeerFault("too_many_frames")
                rounds.quiet_checks = rounds.open_checks = 0
                rounds.frames.append(HandleFrame(progress.topic, brought.kind, brought.frame))
            case CompareAction.HANDLE_FRAME, _:
                return [rounds.frames[0]]
            case CompareAction.SAY_FRAMES, Reconciled():
                rounds.quiet_checks = rounds.open_checks = 0  # it is the peer's turn from now on
                self._transfer.queue(progress, brought.nums)
                return [Send(Reconcile(progress.blind, kind, frame)) for kind, frame in brought.frames]
            case CompareAction.DROP_FRAMES, _:
                rounds.frames.clear()
            case CompareAction.COUNT_CHECK, _:
                rounds.quiet_checks = rounds.quiet_checks + 1 if self._is_quiet else 0
                rounds.open_checks += 1
                is_over = rounds.open_checks > RECONCILIATION_CHECKS_MAX
                if is_over or rounds.quiet_checks > RECONCILIATION_QUIET_CHECKS_MAX:
                    raise PeerFault("reconciliation_stalled")
            case _:
                raise AssertionError(f"{action.name} is not done about {brought}")
        return []

    def _settle(self, progress: TopicProgress) -> None:
        """Note a topic that takes no room any more. Both sides find so by the same two summaries."""
        is_last = progress.rounds.number >= _RANGES_FROM_ROUND
        if not progress.has_settled and (is_last or _are_equal(progress.rounds)):
            progress.has_settled = True
            self._settled((progress.topic,))

    def _check_order(self, progress: TopicProgress, message: Summary) -> None:
        """Rounds neither repeat nor skip, one is kept at most, and the peer begins few later ones."""
        rounds = progress.rounds
        if message.round != (0 if rounds.peer is None else rounds.peer.round + 1) or rounds.kept is not None:
            raise PeerFault("unasked_summary")
        if message.round > max(rounds.number, _RANGES_FROM_ROUND) and not self._takeable.take():
            raise PeerFault("too_many_rounds")

    def _give_turns(self) -> list[Output]:
        outputs: list[Output] = []
        while self._to_open and self._answering < RECONCILIATIONS_MAX:
            outputs += self._run(self._to_open.popleft(), Compared.TURN)
        return outputs


def _are_equal(rounds: Rounds) -> bool:
    """Return True if both summaries of the round are there and say the same."""
    own, peer = rounds.own, rounds.peer
    if own is None or peer is None or peer.round != rounds.number:
        return False
    return (own.count, own.digest) == (peer.count, peer.digest)


def _shorten(heads: Iterable[ItemId]) -> tuple[ShortId, ...]:
    return tuple(ShortId(head[:SHORT_ID_SIZE]) for head in heads)


def _later_checks(number: int) -> int:
    """Return the keep-alives after which another round follows this one."""
    return LATER_ROUND_CHECKS << min(max(number - _RANGES_FROM_ROUND, 0), LATER_ROUND_DOUBLINGS_MAX)


def _is_in_doubt(progress: TopicProgress) -> bool:
    return (progress.comparing is Comparing.AHEAD or _may_lack(progress)) and progress.is_quiet


def _may_lack(progress: TopicProgress) -> bool:
    return progress.has_left_out and progress.comparing is Comparing.COMPARED


def _is_due_at_once(progress: TopicProgress) -> bool:
    return progress.rounds.number < _RANGES_FROM_ROUND and _is_in_doubt(progress)
