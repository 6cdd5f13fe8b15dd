"""Machine of one topic's comparison: summaries in rounds, plans, and reconciliations on either side.

Beside the state (`protocol.session.topic_progress`) stand the round's number, both summaries, one summary of the next round
that came early, frames that wait, and how often nothing came. `protocol.session.comparison` carries the outputs out.
"""

from enum import Enum
from itertools import chain
from typing import Final

from protocol.session.machines.table import PeerFaultCell, Step, Table, go, refuse, stay


class Comparing(Enum):
    """States of the comparison of a topic."""

    UNJOINED = "one side alone has announced the topic"
    SUMMARISING = "this round's own summary is being made"
    HEARD = "the same, and the peer's is there"
    SAID = "the own summary is said, the peer's is awaited"
    PLANNING = "both are there: what to send is looked up"
    PLANNING_ASKED = "the same, and the peer has begun a reconciliation"
    BEHIND = "the peer's summary is larger: it sends, or begins a reconciliation"
    AHEAD = "the own summary is larger: another round is begun when nothing is on its way"
    COMPARED = "nothing is left to do in this round"
    QUEUED = "waits for its turn to begin a reconciliation"
    OPENING = "the first frame is being made"
    ANSWERING = "as the answerer, works on a frame"
    ANSWERED = "as the answerer, waits for a frame"
    ASKING = "as the asker, works on a frame"
    ASKED = "as the asker, waits for a frame"


RESTING: Final = (Comparing.BEHIND, Comparing.AHEAD, Comparing.COMPARED)
"""States between two rounds: all that was to be found out has been."""
SETTLED: Final = (*RESTING, Comparing.UNJOINED)
"""States in which nothing of the topic is to be found out."""
ANSWERER: Final = (Comparing.OPENING, Comparing.ANSWERING, Comparing.ANSWERED)
"""States that take one of the places for reconciliations of this side's."""
ASKER: Final = (Comparing.PLANNING_ASKED, Comparing.ASKING, Comparing.ASKED)
"""States that take one of the places for reconciliations of the peer's."""
CHECKED: Final = (Comparing.AHEAD, Comparing.ANSWERED, Comparing.ASKED)
"""States in which something follows from the time."""


class Compared(Enum):
    """Events of a comparison. Plans and steps are told apart by the sets and queues beside the state."""

    JOIN = "the second side announces the topic, or announces it again"
    LOADED = "the own summary is made"
    SUMMARY = "`sum3`"
    PLAN_EQUAL = "the plan is there; both summaries are equal"
    PLAN_SMALLER = "the plan is there; the own summary is smaller"
    PLAN_SENDS = (
        "the plan is there; the own summary is larger, and the first plan sends what the peer may lack alone"
    )
    PLAN_OPENS = "the plan is there; the own summary is larger, and what the peer lacks is not known"
    TURN = "one of the places for reconciliations is free"
    FRAME = "`reconcile1`"
    STEP = "the frame was worked on, and no other waits"
    STEP_MORE = "the frame was worked on, and another waits"
    OVER = "the frame was the last word, and no other waits"
    OVER_MORE = "the frame was the last word, and another waits"
    CHECK = "30 seconds have passed"
    QUIET = "the same, nothing of the topic is on its way, and a round is due"


class CompareAction(Enum):
    """Outputs of a comparison."""

    LOAD_SUMMARY = "make the own summary"
    SAY_SUMMARY = "say `sum3`"
    TAKE_SUMMARY = "take the peer's summary as this round's"
    KEEP_SUMMARY = "keep the peer's summary of the next round"
    READ_KEPT = "take the summary that was kept, if any, as a `sum3` that comes now"
    NEXT_ROUND = "count the round"
    LOAD_PLAN = "look up what to send"
    QUEUE_PLAN = "queue the first plan and what was accepted meanwhile"
    AWAIT_TURN = "wait for a place for reconciliations"
    GIVE_TURN = "give free places to those that wait"
    OPEN = "begin the reconciliation"
    ADMIT = "take one of the peer's places for reconciliations"
    KEEP_FRAME = "put the frame behind those that wait"
    HANDLE_FRAME = "work on the first frame that waits"
    SAY_FRAMES = "say `reconcile1` as often as the step has frames, queue commits that it found"
    DROP_FRAMES = "forget frames that wait: they are of no use any more"
    COUNT_CHECK = "count that no frame came"


_S, _E = Comparing, Compared
_Cells = dict[tuple[Comparing, Compared], Step[Comparing, CompareAction] | PeerFaultCell]

_CELLS: Final[_Cells] = {
    (_S.UNJOINED, _E.JOIN): go(_S.SUMMARISING, CompareAction.LOAD_SUMMARY),
    # A round: both summaries, in either order.
    (_S.SUMMARISING, _E.LOADED): go(_S.SAID, CompareAction.SAY_SUMMARY),
    (_S.SUMMARISING, _E.SUMMARY): go(_S.HEARD, CompareAction.TAKE_SUMMARY),
    (_S.HEARD, _E.LOADED): go(_S.PLANNING, CompareAction.SAY_SUMMARY, CompareAction.LOAD_PLAN),
    (_S.SAID, _E.SUMMARY): go(_S.PLANNING, CompareAction.TAKE_SUMMARY, CompareAction.LOAD_PLAN),
    # The peer may begin the next one.
    (_S.BEHIND, _E.SUMMARY): go(_S.HEARD, CompareAction.TAKE_SUMMARY, CompareAction.LOAD_SUMMARY),
    (_S.AHEAD, _E.SUMMARY): go(_S.HEARD, CompareAction.TAKE_SUMMARY, CompareAction.LOAD_SUMMARY),
    (_S.COMPARED, _E.SUMMARY): go(_S.HEARD, CompareAction.TAKE_SUMMARY, CompareAction.LOAD_SUMMARY),
    (_S.AHEAD, _E.QUIET): go(_S.SUMMARISING, CompareAction.NEXT_ROUND, CompareAction.LOAD_SUMMARY),
    # The same where some of the peer's commits were left out. Who is behind waits: a first frame may be on its way.
    (_S.COMPARED, _E.QUIET): go(_S.SUMMARISING, CompareAction.NEXT_ROUND, CompareAction.LOAD_SUMMARY),
    # What follows from both summaries.
    (_S.PLANNING, _E.PLAN_EQUAL): go(_S.COMPARED, CompareAction.QUEUE_PLAN, CompareAction.READ_KEPT),
    (_S.PLANNING, _E.PLAN_SMALLER): go(_S.BEHIND, CompareAction.QUEUE_PLAN, CompareAction.READ_KEPT),
    (_S.PLANNING, _E.PLAN_SENDS): go(_S.AHEAD, CompareAction.QUEUE_PLAN, CompareAction.READ_KEPT),
    (_S.PLANNING, _E.PLAN_OPENS): go(
        _S.QUEUED, CompareAction.QUEUE_PLAN, CompareAction.AWAIT_TURN, CompareAction.GIVE_TURN
    ),
    (_S.PLANNING_ASKED, _E.PLAN_SMALLER): go(_S.ASKING, CompareAction.QUEUE_PLAN, CompareAction.HANDLE_FRAME),
    # A reconciliation that this side begins.
    (_S.QUEUED, _E.TURN): go(_S.OPENING, CompareAction.OPEN),
    (_S.OPENING, _E.STEP): go(_S.ANSWERED, CompareAction.SAY_FRAMES),
    (_S.OPENING, _E.OVER): go(
        _S.AHEAD, CompareAction.SAY_FRAMES, CompareAction.GIVE_TURN, CompareAction.READ_KEPT
    ),
    (_S.ANSWERED, _E.FRAME): go(_S.ANSWERING, CompareAction.KEEP_FRAME, CompareAction.HANDLE_FRAME),
    (_S.ANSWERING, _E.FRAME): go(_S.ANSWERING, CompareAction.KEEP_FRAME),
    (_S.ANSWERING, _E.STEP): go(_S.ANSWERED, CompareAction.SAY_FRAMES),
    (_S.ANSWERING, _E.STEP_MORE): go(_S.ANSWERING, CompareAction.SAY_FRAMES, CompareAction.HANDLE_FRAME),
    (_S.ANSWERING, _E.OVER): go(
        _S.AHEAD, CompareAction.SAY_FRAMES, CompareAction.GIVE_TURN, CompareAction.READ_KEPT
    ),
    (_S.ANSWERING, _E.OVER_MORE): PeerFaultCell("unasked_reconciliation"),  # it follows the asker's last word
    # One that the peer begins: its first frame may come before the plan is there.
    (_S.PLANNING, _E.FRAME): go(_S.PLANNING_ASKED, CompareAction.ADMIT, CompareAction.KEEP_FRAME),
    (_S.PLANNING_ASKED, _E.FRAME): go(_S.PLANNING_ASKED, CompareAction.KEEP_FRAME),
    (_S.BEHIND, _E.FRAME): go(
        _S.ASKING, CompareAction.ADMIT, CompareAction.KEEP_FRAME, CompareAction.HANDLE_FRAME
    ),
    (_S.ASKED, _E.FRAME): go(_S.ASKING, CompareAction.KEEP_FRAME, CompareAction.HANDLE_FRAME),
    (_S.ASKING, _E.FRAME): go(_S.ASKING, CompareAction.KEEP_FRAME),
    (_S.ASKING, _E.STEP): go(_S.ASKED, CompareAction.SAY_FRAMES),
    (_S.ASKING, _E.STEP_MORE): go(_S.ASKING, CompareAction.SAY_FRAMES, CompareAction.HANDLE_FRAME),
    (_S.ASKING, _E.OVER): go(_S.COMPARED, CompareAction.SAY_FRAMES, CompareAction.READ_KEPT),
    # Nothing that was asked for is still on its way: more is a lie, and is not looked at.
    (_S.ASKING, _E.OVER_MORE): go(
        _S.COMPARED, CompareAction.DROP_FRAMES, CompareAction.SAY_FRAMES, CompareAction.READ_KEPT
    ),
    **stay((_S.AHEAD, _S.COMPARED), _E.CHECK),
    # Who leaves a reconciliation open is left.
    (_S.ANSWERED, _E.CHECK): go(_S.ANSWERED, CompareAction.COUNT_CHECK),
    (_S.ASKED, _E.CHECK): go(_S.ASKED, CompareAction.COUNT_CHECK),
}

_STRAY: Final = PeerFaultCell("unasked_reconciliation")
_AT_WORK: Final = (_S.HEARD, _S.PLANNING, _S.PLANNING_ASKED, _S.QUEUED, *ANSWERER, _S.ASKING, _S.ASKED)

COMPARING: Final = Table(
    title="Comparison of a topic",
    states=Comparing,
    events=Compared,
    first=(Comparing.UNJOINED,),
    cells={
        **_CELLS,
        **stay([state for state in Comparing if state is not _S.UNJOINED], _E.JOIN),
        **stay(_AT_WORK, _E.SUMMARY, CompareAction.KEEP_SUMMARY),
        # Before both summaries, from the side that was to wait, or after the asker's last word.
        **refuse(
            (_S.SUMMARISING, _S.HEARD, _S.SAID, _S.AHEAD, _S.COMPARED, _S.QUEUED, _S.OPENING),
            _E.FRAME,
            _STRAY,
        ),
        # The frame that waits came from the side that was to wait.
        **dict(
            chain.from_iterable(
                refuse((_S.PLANNING_ASKED,), plan, _STRAY).items()
                for plan in (_E.PLAN_EQUAL, _E.PLAN_SENDS, _E.PLAN_OPENS)
            )
        ),
        (_S.UNJOINED, _E.SUMMARY): PeerFaultCell("unknown_topic"),
        (_S.UNJOINED, _E.FRAME): PeerFaultCell("unknown_topic"),
    },
    impossible={
        _E.LOADED: "no summary is being made",
        _E.PLAN_EQUAL: "nothing is being looked up",
        _E.PLAN_SMALLER: "nothing is being looked up",
        _E.PLAN_SENDS: "nothing is being looked up",
        _E.PLAN_OPENS: "nothing is being looked up",
        _E.TURN: "the topic does not wait for a place",
        _E.STEP: "no frame is being worked on",
        _E.STEP_MORE: "no frame is being worked on, or none may wait",
        _E.OVER: "no frame is being worked on",
        _E.OVER_MORE: "no frame is being worked on, or none may wait",
        _E.CHECK: "nothing follows from the time",
        _E.QUIET: "no round is begun by this side",
    },
    bounds={
        CompareAction.TAKE_SUMMARY: (PeerFaultCell("unasked_summary"), PeerFaultCell("too_many_rounds")),
        CompareAction.KEEP_SUMMARY: (PeerFaultCell("unasked_summary"), PeerFaultCell("too_many_rounds")),
        CompareAction.ADMIT: (PeerFaultCell("too_many_reconciliations"),),
        CompareAction.KEEP_FRAME: (PeerFaultCell("too_many_frames"),),
        CompareAction.COUNT_CHECK: (PeerFaultCell("reconciliation_stalled"),),
    },
)
