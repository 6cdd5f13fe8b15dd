"""The machine of one reconciliation: which frames a side takes, and in which order (docs/protocol.md, 12).

Beside the state (`protocol.reconciliation.reconciler`, which carries the outputs out) stand the symbols and ranges that
were compared so far, what was asked for, and how many frames came.
"""

from enum import Enum
from typing import Final

from protocol.machines.table import Refuse, Step, Table, go


class Reconciling(Enum):
    """Which side this is, and of the asker, what is compared."""

    ANSWERING = "the answerer"
    WAITING = "the asker, to which nothing was said yet"
    BY_SYMBOLS = "the asker, symbols are compared"
    BY_RANGES = "the asker, ranges are compared"


class FrameCame(Enum):
    """A frame, by the number of its kind on the wire (`FrameKind`); or what came of one, which has no number there."""

    SYMBOLS = 0
    ASK_SYMBOLS = 1
    LACKS = 2
    BY_RANGES = 3
    ASK_RANGES = 4
    RANGES = 5
    ALL = 6
    OVER = 7
    STUCK = "symbols cannot tell"


class FrameDo(Enum):
    """What is done about it."""

    PEEL = "find out what differs; ask for more symbols, or settle"
    TELL = "say the symbols that are asked for, each once"
    NOTE = "note what the other side lacks"
    ASK_RANGES = "ask about ranges"
    ANSWER_RANGES = "answer about ranges"
    GO_ON = "compare what was answered; ask on, settle, or ask for everything"
    GIVE_ALL = "send everything"
    GIVE = "send what the other side lacks: it is over"


_S, _E = Reconciling, FrameCame
_OUT_OF_TURN: Final = Refuse("out_of_turn")
_HANDLED: Final[dict[tuple[Reconciling, FrameCame], Step[Reconciling, FrameDo]]] = {
    (_S.ANSWERING, _E.ASK_SYMBOLS): go(_S.ANSWERING, FrameDo.TELL),
    (_S.ANSWERING, _E.LACKS): go(_S.ANSWERING, FrameDo.NOTE),
    (_S.ANSWERING, _E.ASK_RANGES): go(_S.ANSWERING, FrameDo.ANSWER_RANGES),
    (_S.ANSWERING, _E.ALL): go(_S.ANSWERING, FrameDo.GIVE_ALL),
    (_S.ANSWERING, _E.OVER): go(_S.ANSWERING, FrameDo.GIVE),
    (_S.WAITING, _E.SYMBOLS): go(_S.BY_SYMBOLS, FrameDo.PEEL),
    (_S.WAITING, _E.BY_RANGES): go(_S.BY_RANGES, FrameDo.ASK_RANGES),
    (_S.BY_SYMBOLS, _E.SYMBOLS): go(_S.BY_SYMBOLS, FrameDo.PEEL),
    (_S.BY_SYMBOLS, _E.STUCK): go(_S.BY_RANGES, FrameDo.ASK_RANGES),
    (_S.BY_SYMBOLS, _E.BY_RANGES): go(_S.BY_RANGES, FrameDo.ASK_RANGES),
    # Symbols that were on their way when they turned out to be of no use.
    (_S.BY_RANGES, _E.SYMBOLS): go(_S.BY_RANGES),
    (_S.BY_RANGES, _E.RANGES): go(_S.BY_RANGES, FrameDo.GO_ON),
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
