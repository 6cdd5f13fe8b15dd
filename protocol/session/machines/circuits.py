"""Machines of circuits: the agreement that a side takes them, and one circuit on one session.

A circuit is a stream of bytes between two nodes that a relay passes on. It is two *legs*: one on the session of each node
with the relay. Each of the four ends runs this table by itself, and none knows which bytes the others hold. A leg is
open once the side that did not ask for it has granted credit. It is gone once both sides have said `circuit-close1`, so
that what was said before the other side's word came is never taken for a circuit that does not exist.

How many bytes each side may still send is data beside the state.
"""

from enum import Enum
from typing import Final

from protocol.session.machines.table import PeerFaultCell, Table, go, refuse, stay


class Taking(Enum):
    """States of the agreement to take circuits."""

    UNSAID = "the peer may still say it"
    SAID = "the peer takes circuits on this connection"


class TakingEvent(Enum):
    """Messages of the peer that change the agreement."""

    MESSAGE = "`circuits1`"


class TakingAction(Enum):
    """Outputs of the agreement."""

    AGREE = "say it too, where this side takes circuits from this peer"


TAKING: Final[Table[Taking, TakingEvent, TakingAction]] = Table(
    title="Saying circuits1",
    states=Taking,
    events=TakingEvent,
    first=(Taking.UNSAID,),
    cells={
        (Taking.UNSAID, TakingEvent.MESSAGE): go(Taking.SAID, TakingAction.AGREE),
        (Taking.SAID, TakingEvent.MESSAGE): PeerFaultCell("second_circuits"),
    },
)


class Leg(Enum):
    """States of a circuit on one session."""

    NONE = "there is no circuit of this number"
    ASKED = "this side has asked for it, and waits for credit"
    OFFERED = "the peer has asked for it, and has got no credit yet"
    OPEN = "each side may send as many bytes as it has credit for"
    ENDING = "this side has closed it, and waits for the peer's word that it has too"


class LegEvent(Enum):
    """Events of a circuit."""

    OFFER = "the peer says `circuit-open1`"
    CREDIT = "the peer says `circuit-credit1`"
    DATA = "the peer says `circuit-data1`"
    CLOSE = "the peer says `circuit-close1`"
    ASK = "this side wants a circuit"
    GRANT = "this side can take more bytes"
    SEND = "this side has bytes to send, and credit for them"
    END = "this side ends it"


class LegAction(Enum):
    """Outputs of a circuit."""

    SAY_OPEN = "say `circuit-open1`"
    SAY_CREDIT = "say `circuit-credit1`"
    SAY_DATA = "say `circuit-data1`"
    SAY_CLOSE = "say `circuit-close1`"
    OFFERED = "pass on that the peer asks for a circuit"
    CREDITED = "pass on that more bytes may be sent"
    RECEIVED = "pass the bytes on"
    CLOSED = "pass on that the circuit has ended"


_L, _E, _D = Leg, LegEvent, LegAction
_HERE: Final = (Leg.ASKED, Leg.OFFERED, Leg.OPEN)

CIRCUIT: Final = Table(
    title="A circuit on one session",
    states=Leg,
    events=LegEvent,
    first=(Leg.NONE,),
    cells={
        (_L.NONE, _E.OFFER): go(_L.OFFERED, _D.OFFERED),
        **refuse((*_HERE, _L.ENDING), _E.OFFER, PeerFaultCell("circuit_in_use")),
        **{
            (_L.NONE, event): PeerFaultCell("unknown_circuit")
            for event in (LegEvent.CREDIT, LegEvent.DATA, LegEvent.CLOSE)
        },
        (_L.ASKED, _E.CREDIT): go(_L.OPEN, _D.CREDITED),
        **stay((_L.OFFERED, _L.OPEN), _E.CREDIT, _D.CREDITED),
        **stay((_L.ENDING,), _E.CREDIT),
        # Bytes need credit: who asked has none before the other side's, which opens the leg.
        **refuse((_L.ASKED, _L.OFFERED), _E.DATA, PeerFaultCell("circuit_not_open")),
        **stay((_L.OPEN,), _E.DATA, _D.RECEIVED),
        **stay((_L.ENDING,), _E.DATA),
        **{(state, _E.CLOSE): go(_L.NONE, _D.SAY_CLOSE, _D.CLOSED) for state in _HERE},
        (_L.ENDING, _E.CLOSE): go(_L.NONE),
        (_L.NONE, _E.ASK): go(_L.ASKED, _D.SAY_OPEN),
        **stay((_L.ASKED, _L.OPEN), _E.GRANT, _D.SAY_CREDIT),
        (_L.OFFERED, _E.GRANT): go(_L.OPEN, _D.SAY_CREDIT),
        **stay((_L.OPEN,), _E.SEND, _D.SAY_DATA),
        **{(state, _E.END): go(_L.ENDING, _D.SAY_CLOSE) for state in _HERE},
        # It ended while this side was about to say something.
        **{
            (state, event): go(state)
            for state in (_L.NONE, _L.ENDING)
            for event in (_E.GRANT, _E.SEND, _E.END)
        },
    },
    impossible={
        _E.ASK: "the number is a new one",
        _E.SEND: "without credit there is nothing to send for",
    },
    bounds={
        _D.OFFERED: (
            PeerFaultCell("no_circuits"),
            PeerFaultCell("wrong_circuit"),
            PeerFaultCell("too_many_circuits"),
        ),
        _D.CREDITED: (PeerFaultCell("too_much_credit"),),
        _D.RECEIVED: (PeerFaultCell("circuit_overrun"),),
    },
)
