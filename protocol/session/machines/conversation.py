"""Machines of messages that a side says before it announces topics, or not at all; and how a topic stands.

What a side knows (`features1`), what is compared (`relay2`) and which peers are told about others (`introductions1`) must
be agreed before anything else is. The table of all messages is `protocol.session.session.MESSAGES`.
"""

from enum import Enum
from typing import Final

from protocol.session.machines.table import PeerFaultCell, Table, go, stay


class HandshakeMessage(Enum):
    """State of a message that is said before topics, or not at all."""

    UNSAID = "it may still be said"
    SAID = "it was said"
    MISSED = "the peer has announced topics without it"


class HandshakeEvent(Enum):
    """Messages of the peer that change the state."""

    MESSAGE = "the message"
    ANNOUNCEMENT = "`announce2` with a topic at least"


class HandshakeAction(Enum):
    """Outputs of the machine."""

    AGREE = "act on it from now on"


def _handshake(
    title: str, again: PeerFaultCell, late: PeerFaultCell
) -> Table[HandshakeMessage, HandshakeEvent, HandshakeAction]:
    state, event = HandshakeMessage, HandshakeEvent
    return Table(
        title=title,
        states=HandshakeMessage,
        events=HandshakeEvent,
        first=(state.UNSAID,),
        cells={
            (state.UNSAID, event.MESSAGE): go(state.SAID, HandshakeAction.AGREE),
            (state.SAID, event.MESSAGE): again,
            (state.MISSED, event.MESSAGE): late,
            (state.UNSAID, event.ANNOUNCEMENT): go(state.MISSED),
            **stay((state.SAID, state.MISSED), event.ANNOUNCEMENT),
        },
    )


FEATURES: Final = _handshake(
    "Saying features1", PeerFaultCell("second_features"), PeerFaultCell("late_features")
)
RELAY: Final = _handshake("Saying relay2", PeerFaultCell("second_relay"), PeerFaultCell("late_relay"))
INTRODUCTIONS: Final = _handshake(
    "Saying introductions1", PeerFaultCell("second_introductions"), PeerFaultCell("late_introductions")
)


class TopicStanding(Enum):
    """Standing of a topic that a message names."""

    FOREIGN = "it is not followed here"
    FOLLOWED = "the peer has not announced it"
    ENTRUSTED = "the peer has not announced it, and was asked to keep it, should it be a relay"
    JOINED = "both have announced it"
