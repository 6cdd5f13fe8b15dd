"""Circuits on one session: which there are, and how many bytes each side may send. Pure.

The rules are in `protocol.session.machines.circuits`. Who may open how many to where is the relay's to say
(`node.circuits.switch`); what comes through is the nodes' at both ends (`node.circuits.client`).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from protocol.limits.network import CIRCUITS_OF_SESSION_MAX, WIDE_CIRCUIT_WINDOW_SIZE
from protocol.session.events import CircuitEnded, CircuitGranted, CircuitSent, CircuitWanted
from protocol.session.machines.circuits import CIRCUIT, TAKING, Leg, LegAction, LegEvent, Taking, TakingEvent
from protocol.session.machines.table import PeerFault
from protocol.session.messages import (
    CircuitClose,
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
)
from protocol.session.outputs import (
    CircuitClosed,
    CircuitCredited,
    CircuitOffered,
    CircuitReceived,
    CircuitsAgreed,
    Output,
    Send,
)


class CircuitEnd(StrEnum):
    """Reasons of `circuit-close1`. What is not among them is shown as it came."""

    CLOSED = "closed"
    NOT_HERE = "not_here"
    NOT_TAKEN = "not_taken"
    NOT_KNOWN = "not_known"
    PEER_FULL = "peer_full"
    SUBNET_FULL = "subnet_full"
    RELAY_FULL = "relay_full"
    DAY_USED = "day_used"
    TIMEOUT = "timeout"
    IDLE = "idle"
    GONE = "gone"


CIRCUIT_ENDS: Final = tuple(CircuitEnd)


@dataclass(slots=True)
class _Circuit:
    """State of one leg. `sendable`: bytes that this side may send; `takeable`: those that the peer may."""

    state: Leg = Leg.NONE
    sendable: int = 0
    takeable: int = 0


CircuitMessage = CircuitOpen | CircuitData | CircuitCredit | CircuitClose
CircuitEvent = CircuitWanted | CircuitGranted | CircuitSent | CircuitEnded
_LEG_EVENTS: Final[dict[type[CircuitMessage | CircuitEvent], LegEvent]] = {
    CircuitOpen: LegEvent.OFFER,
    CircuitCredit: LegEvent.CREDIT,
    CircuitData: LegEvent.DATA,
    CircuitClose: LegEvent.CLOSE,
    CircuitWanted: LegEvent.ASK,
    CircuitGranted: LegEvent.GRANT,
    CircuitSent: LegEvent.SEND,
    CircuitEnded: LegEvent.END,
}


class SessionCircuits:
    """Circuits of one session, with their credit."""

    def __init__(self, *, is_dialer: bool) -> None:
        self._is_dialer = is_dialer
        self._is_taking = False
        self._peer = Taking.UNSAID
        self._circuits: dict[int, _Circuit] = {}  # all that are not gone
        self._last_number = -1 if is_dialer else 0

    @property
    def are_agreed(self) -> bool:
        """Return True if both sides have said that they take circuits."""
        return self._is_taking and self._peer is Taking.SAID

    def new_number(self) -> int:
        """Number the next circuit that this side asks for: odd numbers are the dialer's, even ones the acceptor's."""
        self._last_number += 2
        return self._last_number

    def take(self) -> list[Output]:
        """Take circuits from now on, and tell the peer."""
        if self._is_taking:
            return []
        self._is_taking = True
        return [Send(Circuits())]

    def handle_circuits(self, _: Circuits) -> list[Output]:
        """Note that the peer takes circuits. Raises PeerFault where it has said so before."""
        self._peer = TAKING.find(self._peer, TakingEvent.MESSAGE).to
        return [CircuitsAgreed()]

    def handle(self, about: CircuitMessage | CircuitEvent) -> list[Output]:
        """Take a message or an event of one circuit. Raises PeerFault where the peer may not say it."""
        number, event = about.circuit, _LEG_EVENTS[type(about)]
        if event is LegEvent.OFFER and number not in self._circuits:
            self._check_new(number)
        circuit = self._circuits.get(number) or _Circuit()
        step = CIRCUIT.find(circuit.state, event)
        circuit.state = step.to
        if step.to is Leg.NONE:
            self._circuits.pop(number, None)
        else:
            self._circuits[number] = circuit
        return [self._do(action, number, circuit, about) for action in step.outputs]

    def _check_new(self, number: int) -> None:
        if not self.are_agreed:
            raise PeerFault("no_circuits")
        if number % 2 != (0 if self._is_dialer else 1):
            raise PeerFault("wrong_circuit")
        of_peer = sum(one % 2 == number % 2 for one in self._circuits)
        if of_peer >= CIRCUITS_OF_SESSION_MAX:
            raise PeerFault("too_many_circuits")

    def _do(
        self, action: LegAction, number: int, circuit: _Circuit, about: CircuitMessage | CircuitEvent
    ) -> Output:
        match action, about:
            case LegAction.RECEIVED, CircuitData(_, data):
                circuit.takeable -= len(data)
                if circuit.takeable < 0:
                    raise PeerFault("circuit_overrun")
                return CircuitReceived(number, data)
            case LegAction.SAY_DATA, CircuitSent(_, data):
                circuit.sendable -= len(data)
                assert circuit.sendable >= 0, "what is sent has credit"
                return Send(CircuitData(number, data))
            case LegAction.SAY_CREDIT, CircuitGranted():
                circuit.takeable += about.count
                return Send(CircuitCredit(number, about.count))
            case LegAction.CREDITED, CircuitCredit():
                circuit.sendable += about.count
                if circuit.sendable > WIDE_CIRCUIT_WINDOW_SIZE:
                    raise PeerFault("too_much_credit")
                return CircuitCredited(number, about.count)
            case LegAction.SAY_OPEN, CircuitWanted():
                return Send(CircuitOpen(number, about.address))
            case LegAction.SAY_CLOSE, CircuitEnded():
                return Send(CircuitClose(number, about.reason))
            case LegAction.SAY_CLOSE, CircuitClose():
                return Send(CircuitClose(number, CircuitEnd.CLOSED))
            case LegAction.OFFERED, CircuitOpen():
                return CircuitOffered(number, about.address)
            case LegAction.CLOSED, CircuitClose():
                return CircuitClosed(number, about.reason)
        raise AssertionError(f"{action.name} is not done about {about}")
