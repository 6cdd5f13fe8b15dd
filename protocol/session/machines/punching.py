"""Machine by which two nodes that talk through a relay agree to dial each other at one moment.

The side that dialed the circuit asks; the other one answers. Both say where the relay sees them. Then the first says
`punch-now1` and dials half a way there and back later, when the other one hears it.
"""

from enum import Enum
from typing import Final

from protocol.session.machines.table import PeerFaultCell, Table, go, refuse


class Punch(Enum):
    """States of the agreement."""

    MAY_ASK = "this side, which dialed, may ask"
    ASKED = "it has asked, and waits for the answer"
    MAY_HEAR = "the peer, which dialed, may ask"
    HEARD = "the peer has asked, and waits for the answer"
    ANSWERED = "the peer has its answer, and says when, or asks again"


class PunchEvent(Enum):
    """Events of the agreement."""

    WANT = "this side wants a direct connection"
    ANSWER = "this side knows where it is seen, or that nobody sees it"
    PUNCH = "the peer says `punch1`"
    NOW = "the peer says `punch-now1`"


class PunchAction(Enum):
    """Outputs of the agreement."""

    SAY_PUNCH = "say `punch1`"
    FIND = "find out where this side is seen"
    SAY_NOW = "say `punch-now1` and dial half a way there and back later, where both are seen anywhere"
    DIAL = "dial at once"


_P, _E, _D = Punch, PunchEvent, PunchAction

PUNCHING: Final = Table(
    title="Dialing at one moment",
    states=Punch,
    events=PunchEvent,
    first=(Punch.MAY_ASK, Punch.MAY_HEAR),
    cells={
        (_P.MAY_ASK, _E.WANT): go(_P.ASKED, _D.SAY_PUNCH),
        (_P.ASKED, _E.WANT): go(_P.ASKED),
        (_P.ASKED, _E.PUNCH): go(_P.MAY_ASK, _D.SAY_NOW),
        (_P.MAY_ASK, _E.PUNCH): PeerFaultCell("unasked_punch"),
        (_P.MAY_HEAR, _E.PUNCH): go(_P.HEARD, _D.FIND),
        (_P.ANSWERED, _E.PUNCH): go(_P.HEARD, _D.FIND),
        (_P.HEARD, _E.PUNCH): PeerFaultCell("second_punch"),
        (_P.HEARD, _E.ANSWER): go(_P.ANSWERED, _D.SAY_PUNCH),
        (_P.ANSWERED, _E.NOW): go(_P.MAY_HEAR, _D.DIAL),
        **refuse((_P.MAY_ASK, _P.ASKED, _P.MAY_HEAR, _P.HEARD), _E.NOW, PeerFaultCell("unasked_punch")),
    },
    impossible={
        _E.WANT: "the other side asks",
        _E.ANSWER: "nobody has asked",
    },
    bounds={_D.FIND: (PeerFaultCell("too_many_punches"),)},
)
