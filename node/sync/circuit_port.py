"""The circuits of one connection, as those see them who open them or pass them on.

A `CircuitPort` stands between a connection's session machine (`protocol.circuits`) and a `CircuitHandler`: on a relay the
one that passes circuits on (`node.network.circuit_switch`), elsewhere the one that opens and accepts them
(`node.network.circuit_client`). Nothing here waits: what cannot be said at once is in the connection's bounded queue.
"""

from typing import Protocol

from node.sync.scheduling import WorkAccount
from protocol.circuits import SessionCircuits
from protocol.ids import CircuitAddress, PeerId, TopicKey
from protocol.limits.peers import BYTE_SECONDS, CIRCUIT_LARGE_SIZE, FRAME_SECONDS
from protocol.messages import CircuitCredit, CircuitData, Message
from protocol.session_events import (
    CircuitAsked,
    CircuitEnded,
    CircuitGranted,
    CircuitSent,
    CircuitsTaken,
    Event,
    NodesFound,
    RendezvousWanted,
)
from protocol.session_outputs import (
    CircuitClosed,
    CircuitCredited,
    CircuitOffered,
    CircuitReceived,
    CircuitsAgreed,
    NodesLearned,
    RendezvousAsked,
    RendezvousPossible,
)

CircuitOutput = (
    CircuitsAgreed
    | CircuitOffered
    | CircuitCredited
    | CircuitReceived
    | CircuitClosed
    | RendezvousPossible
    | RendezvousAsked
    | NodesLearned
)


def is_of_large_circuit(message: Message | None) -> bool:
    """Whether a message is bounded by credit, so that it is not counted among those of a second."""
    match message:
        case CircuitData():
            return len(message.data) >= CIRCUIT_LARGE_SIZE
        case CircuitCredit():
            return message.count >= CIRCUIT_LARGE_SIZE
    return False


class CircuitOwner(Protocol):
    """A connection, as far as its circuits go."""

    peer: PeerId
    subnet: str
    account: WorkAccount

    @property
    def peer_is_relay(self) -> bool:
        """Whether the peer has said that it keeps topics for others."""
        ...

    @property
    def circuits(self) -> SessionCircuits:
        """The circuits of its session."""
        ...

    def happen(self, event: Event) -> None:
        """Tell the session machine of this, and do what it says. Never waits."""
        ...


class CircuitHandler(Protocol):
    """What is told of circuits. Never waits."""

    def begun(self, port: "CircuitPort") -> None:
        """A connection has begun."""
        ...

    def agreed(self, port: "CircuitPort") -> None:
        """The peer takes circuits."""
        ...

    def offered(self, port: "CircuitPort", number: int, address: CircuitAddress) -> None:
        """The peer asks for a circuit."""
        ...

    def credited(self, port: "CircuitPort", number: int, count: int) -> None:
        """So many bytes more may be sent."""
        ...

    def received(self, port: "CircuitPort", number: int, data: bytes) -> None:
        """Bytes came."""
        ...

    def closed(self, port: "CircuitPort", number: int, reason: str) -> None:
        """The peer has ended a circuit."""
        ...

    def may_meet(self, port: "CircuitPort", topic: TopicKey) -> None:
        """Other nodes of a topic can be met at the peer."""
        ...

    def met(self, port: "CircuitPort", topic: TopicKey) -> None:
        """The peer meets others on a topic."""
        ...

    def learned(self, port: "CircuitPort", topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
        """The peer names nodes to which it opens circuits."""
        ...

    def lost(self, port: "CircuitPort") -> None:
        """The connection has ended, and all its circuits with it."""
        ...


class CircuitPort:
    """Circuits of one connection."""

    def __init__(self, owner: CircuitOwner, handler: CircuitHandler | None) -> None:
        """Without a handler the connection has no circuits: the session machine takes none."""
        self._owner = owner
        self._handler = handler
        self.peer = owner.peer
        self.subnet = owner.subnet

    @property
    def peer_is_relay(self) -> bool:
        """Whether the peer has said that it keeps topics for others."""
        return self._owner.peer_is_relay

    @property
    def is_wide(self) -> bool:
        """Whether circuits may be wide here."""
        return self._owner.circuits.is_wide

    @property
    def data_size_max(self) -> int:
        """Bytes that are sent in one message."""
        return self._owner.circuits.data_size_max

    def begin(self) -> None:
        """The connection has begun."""
        if self._handler is not None:
            self._handler.begun(self)

    def lose(self) -> None:
        """The connection has ended."""
        if self._handler is not None:
            self._handler.lost(self)

    def perform(self, output: CircuitOutput) -> None:
        """What the session machine says."""
        handler = self._handler
        if handler is None:
            assert isinstance(output, CircuitsAgreed), "no circuit is taken"
            return
        match output:
            case CircuitsAgreed():
                handler.agreed(self)
            case CircuitOffered(number, address):
                handler.offered(self, number, address)
            case CircuitCredited(number, count):
                handler.credited(self, number, count)
            case CircuitReceived(number, data):
                # Bytes within the credit that was granted are of use: a relay's rate bounds them, not the work's budget.
                self._owner.account.earn(FRAME_SECONDS + len(data) * BYTE_SECONDS)
                handler.received(self, number, data)
            case CircuitClosed(number, reason):
                handler.closed(self, number, reason)
            case RendezvousPossible(topic):
                handler.may_meet(self, topic)
            case RendezvousAsked(topic):
                handler.met(self, topic)
            case NodesLearned(topic, nodes):
                handler.learned(self, topic, nodes)

    def take(self) -> None:
        """Take circuits on this connection from now on."""
        self._owner.happen(CircuitsTaken())

    def new_number(self) -> int:
        """The number of a circuit that is to be asked for."""
        return self._owner.circuits.new_number()

    def ask(self, number: int, address: CircuitAddress) -> None:
        """Ask for a circuit of a new number."""
        self._owner.happen(CircuitAsked(number, address))

    def grant(self, number: int, count: int) -> None:
        """Let the peer send so many bytes more."""
        self._owner.happen(CircuitGranted(number, count))

    def send(self, number: int, data: bytes) -> None:
        """Send bytes for which there is credit, in messages that the peer takes: they may have come in larger ones."""
        size = self.data_size_max
        for start in range(0, len(data), size):
            self._owner.happen(CircuitSent(number, data[start : start + size]))

    def end(self, number: int, reason: str) -> None:
        """End a circuit."""
        self._owner.happen(CircuitEnded(number, reason))

    def meet(self, topic: TopicKey) -> None:
        """Meet others on a topic, once."""
        self._owner.happen(RendezvousWanted(topic))

    def name(self, topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
        """Name these to the peer."""
        self._owner.happen(NodesFound(topic, nodes))
