"""Machine of one reconciliation: which frames a side takes, and in which order (docs/specification/protocol.md, 12).

Beside the state (`protocol.session.reconciliation.reconciler`, which carries the outputs out) stand the symbols and ranges
that were compared so far, what was asked for, and how many frames came.
"""

from enum import Enum
from typing import Final

from protocol.session.machines.table import PeerFaultCell, Step, Table, go


class Reconciling(Enum):
    """States of a reconciliation: the side, and of the asker, what is compared."""

    ANSWERING = "the answerer"
    WAITING = "the asker, to which nothing was said yet"
    BY_SYMBOLS = "the asker, symbols are compared"
    BY_RANGES = "the asker, ranges are compared"


class FrameCame(Enum):
    """Event of the reconciling machine: a frame, by its kind on the wire (`FrameKind`), or the result of one."""

    SYMBOLS = 0
    ASK_SYMBOLS = 1
    LACKS = 2
    BY_RANGES = 3
    ASK_RANGES = 4
    RANGES = 5
    ALL = 6
    OVER = 7
    STUCK = "symbols cannot tell"


class FrameAction(Enum):
    """Outputs of a reconciliation."""

    PEEL = "find out what differs; ask for more symbols, or settle"
    TELL = "say the symbols that are asked for, each once"
    NOTE = "note what the other side lacks"
    ASK_RANGES = "ask about ranges"
    ANSWER_RANGES = "answer about ranges"
    GO_ON = "compare what was answered; ask on, settle, or ask for everything"
    GIVE_ALL = "send everything"
    GIVE = "send what the other side lacks: it is over"


_S, _E = Reconciling, FrameCame
_OUT_OF_TURN: Final = PeerFaultCell("out_of_turn")
_HANDLED: Final[dict[tuple[Reconciling, FrameCame], Step[Reconciling, FrameAction]]] = {
    (_S.ANSWERING, _E.ASK_SYMBOLS): go(_S.ANSWERING, FrameAction.TELL),
    (_S.ANSWERING, _E.LACKS): go(_S.ANSWERING, FrameAction.NOTE),
    (_S.ANSWERING, _E.ASK_RANGES): go(_S.ANSWERING, FrameAction.ANSWER_RANGES),
    (_S.ANSWERING, _E.ALL): go(_S.ANSWERING, FrameAction.GIVE_ALL),
    (_S.ANSWERING, _E.OVER): go(_S.ANSWERING, FrameAction.GIVE),
    (_S.WAITING, _E.SYMBOLS): go(_S.BY_SYMBOLS, FrameAction.PEEL),
    (_S.WAITING, _E.BY_RANGES): go(_S.BY_RANGES, FrameAction.ASK_RANGES),
    (_S.BY_SYMBOLS, _E.SYMBOLS): go(_S.BY_SYMBOLS, FrameAction.PEEL),
    (_S.BY_SYMBOLS, _E.STUCK): go(_S.BY_RANGES, FrameAction.ASK_RANGES),
    (_S.BY_SYMBOLS, _E.BY_RANGES): go(_S.BY_RANGES, FrameAction.ASK_RANGES),
    # Symbols that were on their way when they turned out to be of no use.
    (_S.BY_RANGES, _E.SYMBOLS): go(_S.BY_RANGES),
    (_S.BY_RANGES, _E.RANGES): go(_S.BY_RANGES, FrameAction.GO_ON),
}

RECONCILING: Final = Table(
    title="Reconciliation of a topic",
    states=Reconciling,
    events=FrameCame,
    first=(Reconciling.ANSWERING, Reconciling.WAITING),
    cells={
        **{
            (state, event): _OUT_OF_TURN
            for state in Reconciling
            for event in FrameCame
            if event is not _E.STUCK
        },
        **_HANDLED,
    },
    impossible={_E.STUCK: "no symbols are being compared"},
)
