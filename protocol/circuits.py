"""Circuits on one session: which there are, and how many bytes each side may send. Pure.

The rules are in `protocol.machines.circuits`. Who may open how many to where is the relay's to say
(`node.network.circuit_switch`); what comes through is the nodes' at both ends (`node.network.circuit_client`).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from protocol.limits.peers import (
    CIRCUIT_DATA_SIZE_MAX,
    CIRCUIT_WINDOW_SIZE,
    CIRCUITS_OF_SESSION_MAX,
    WIDE_CIRCUIT_DATA_SIZE_MAX,
    WIDE_CIRCUIT_WINDOW_SIZE,
)
from protocol.machines.circuits import CIRCUIT, TAKING, Leg, LegDo, LegEvent, Taking, TakingWord
from protocol.machines.table import PeerFault
from protocol.messages import (
    CircuitClose,
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
)
from protocol.session_events import CircuitAsked, CircuitEnded, CircuitGranted, CircuitSent
from protocol.session_outputs import (
    CircuitClosed,
    CircuitCredited,
    CircuitOffered,
    CircuitReceived,
    CircuitsAgreed,
    Output,
    Send,
)


class CircuitEnd(StrEnum):
    """Why a circuit ended: the reasons of `circuit-close1`. What is not among them is shown as it came."""

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
    """One leg. `sendable`: bytes that this side may send; `takeable`: those that the peer may."""

    state: Leg = Leg.NONE
    sendable: int = 0
    takeable: int = 0


CircuitMessage = Circuits | CircuitOpen | CircuitData | CircuitCredit | CircuitClose
CircuitEvent = CircuitAsked | CircuitGranted | CircuitSent | CircuitEnded


class SessionCircuits:
    """The part of a session machine that is about circuits."""

    def __init__(self, *, is_dialer: bool) -> None:
        self._is_dialer = is_dialer
        self._is_taking = False
        self._peer = Taking.UNSAID
        self._circuits: dict[int, _Circuit] = {}  # all that are not gone
        self._last_number = -1 if is_dialer else 0
        self.is_wide = False
        """Whether both sides know wide circuits."""

    @property
    def are_agreed(self) -> bool:
        """Whether both sides have said that they take circuits."""
        return self._is_taking and self._peer is Taking.SAID

    @property
    def window_size(self) -> int:
        """Bytes for which one side of a circuit may have credit."""
        return WIDE_CIRCUIT_WINDOW_SIZE if self.is_wide else CIRCUIT_WINDOW_SIZE

    @property
    def data_size_max(self) -> int:
        """Bytes that one message of a circuit may bring."""
        return WIDE_CIRCUIT_DATA_SIZE_MAX if self.is_wide else CIRCUIT_DATA_SIZE_MAX

    def new_number(self) -> int:
        """The number of the next circuit that this side asks for: odd ones are the dialer's, even ones the acceptor's."""
        self._last_number += 2
        return self._last_number

    def take(self) -> list[Output]:
        """This side takes circuits from now on."""
        if self._is_taking:
            return []
        self._is_taking = True
        return [Send(Circuits())]

    def receive(self, message: CircuitMessage) -> list[Output]:
        """What the peer says. Raises PeerFault where it may not."""
        match message:
            case Circuits():
                self._peer = TAKING.find(self._peer, TakingWord.WORD).to
                return [CircuitsAgreed()]
            case CircuitOpen(number):
                if number not in self._circuits:
                    self._check_new(number)
                return self._step(number, LegEvent.OFFER, message)
            case CircuitCredit(number):
                return self._step(number, LegEvent.CREDIT, message)
            case CircuitData(number):
                return self._step(number, LegEvent.DATA, message)
            case CircuitClose(number):
                return self._step(number, LegEvent.CLOSE, message)

    def happen(self, event: CircuitEvent) -> list[Output]:
        """What this side does."""
        match event:
            case CircuitAsked(number):
                return self._step(number, LegEvent.ASK, event)
            case CircuitGranted(number):
                return self._step(number, LegEvent.GRANT, event)
            case CircuitSent(number):
                return self._step(number, LegEvent.SEND, event)
            case CircuitEnded(number):
                return self._step(number, LegEvent.END, event)

    def _check_new(self, number: int) -> None:
        if not self.are_agreed:
            raise PeerFault("no_circuits")
        if number % 2 != (0 if self._is_dialer else 1):
            raise PeerFault("wrong_circuit")
        of_peer = sum(one % 2 == number % 2 for one in self._circuits)
        if of_peer >= CIRCUITS_OF_SESSION_MAX:
            raise PeerFault("too_many_circuits")

    def _step(self, number: int, event: LegEvent, about: CircuitMessage | CircuitEvent) -> list[Output]:
        circuit = self._circuits.get(number) or _Circuit()
        step = CIRCUIT.find(circuit.state, event)
        circuit.state = step.to
        if step.to is Leg.NONE:
            self._circuits.pop(number, None)
        else:
            self._circuits[number] = circuit
        return [self._do(what, number, circuit, about) for what in step.outputs]

    def _do(
        self, what: LegDo, number: int, circuit: _Circuit, about: CircuitMessage | CircuitEvent
    ) -> Output:
        match what, about:
            case LegDo.RECEIVED, CircuitData(_, data):
                circuit.takeable -= len(data)
                if circuit.takeable < 0 or len(data) > self.data_size_max:
                    raise PeerFault("circuit_overrun")
                return CircuitReceived(number, data)
            case LegDo.SAY_DATA, CircuitSent(_, data):
                circuit.sendable -= len(data)
                assert circuit.sendable >= 0, "what is sent has credit"
                return Send(CircuitData(number, data))
            case LegDo.SAY_CREDIT, CircuitGranted():
                circuit.takeable += about.count
                return Send(CircuitCredit(number, about.count))
            case LegDo.CREDITED, CircuitCredit():
                circuit.sendable += about.count
                if circuit.sendable > self.window_size:
                    raise PeerFault("too_much_credit")
                return CircuitCredited(number, about.count)
            case LegDo.SAY_OPEN, CircuitAsked():
                return Send(CircuitOpen(number, about.address))
            case LegDo.SAY_CLOSE, CircuitEnded():
                return Send(CircuitClose(number, about.reason))
            case LegDo.SAY_CLOSE, CircuitClose():
                return Send(CircuitClose(number, CircuitEnd.CLOSED))
            case LegDo.OFFERED, CircuitOpen():
                return CircuitOffered(number, about.address)
            case LegDo.CLOSED, CircuitClose():
                return CircuitClosed(number, about.reason)
        raise AssertionError(f"{what.name} is not done about {about}")
