"""The circuits of one connection, as those see them who open them or pass them on.

A `CircuitPort` stands between a connection's session machine (`protocol.session.circuits`) and a `CircuitHandler`: on a
relay the one that passes circuits on (`node.circuits.switch`), elsewhere the one that opens and accepts them
(`node.circuits.client`). Nothing here waits: what cannot be said at once is in the connection's bounded queue.
"""

from node.sync.conversation import Conversation
from protocol.ids import CircuitAddress, PeerId, TopicKey
from protocol.limits.network import CIRCUIT_LARGE_SIZE
from protocol.limits.peers import BYTE_SECONDS, FRAME_SECONDS
from protocol.session.events import (
    CircuitEnded,
    CircuitGranted,
    CircuitSent,
    CircuitsTaken,
    CircuitWanted,
    NodesFound,
    RendezvousWanted,
)
from protocol.session.messages import CircuitCredit, CircuitData, Message
from protocol.session.outputs import (
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
    """Return True if a message is bounded by credit, so that it is not counted among those of a second."""
    match message:
        case CircuitData():
            return len(message.data) >= CIRCUIT_LARGE_SIZE
        case CircuitCredit():
            return message.count >= CIRCUIT_LARGE_SIZE
    return False


class CircuitHandler:
    """Switch or client of circuits. Never waits. What it does not define is of no concern to it."""

    def begun(self, port: "CircuitPort") -> None:
        """Take up a connection that has begun."""

    def agreed(self, port: "CircuitPort") -> None:
        """Take note that the peer takes circuits."""

    def offered(self, port: "CircuitPort", number: int, address: CircuitAddress) -> None:
        """Accept or refuse a circuit that the peer asks for."""

    def credited(self, port: "CircuitPort", number: int, count: int) -> None:
        """Send this many bytes more."""

    def received(self, port: "CircuitPort", number: int, data: bytes) -> None:
        """Take bytes that came."""

    def closed(self, port: "CircuitPort", number: int, reason: str) -> None:
        """Forget a circuit that the peer has ended."""

    def rendezvous_possible(self, port: "CircuitPort", topic: TopicKey) -> None:
        """Ask for other nodes of a topic at the peer, if they are wanted."""

    def rendezvous_asked(self, port: "CircuitPort", topic: TopicKey) -> None:
        """Name the peer and other nodes of a topic to each other."""

    def nodes_learned(self, port: "CircuitPort", topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
        """Take in nodes to which the peer opens circuits."""

    def lost(self, port: "CircuitPort") -> None:
        """Forget a connection that has ended, with all its circuits."""


class CircuitPort:
    """Circuits of one connection."""

    def __init__(self, conversation: Conversation, handler: CircuitHandler | None) -> None:
        """Take no circuits without a handler: the session machine takes none then."""
        self._conversation = conversation
        self._handler = handler
        self.peer = conversation.peer
        self.subnet = conversation.subnet

    @property
    def peer_is_relay(self) -> bool:
        """Return True if the peer has said that it keeps topics for others."""
        return self._conversation.peer_is_relay

    def begin(self) -> None:
        """Tell the handler that the connection has begun."""
        if self._handler is not None:
            self._handler.begun(self)

    def lose(self) -> None:
        """Tell the handler that the connection has ended."""
        if self._handler is not None:
            self._handler.lost(self)

    def perform(self, output: CircuitOutput) -> None:
        """Tell the handler of an output of the session machine."""
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
                self._conversation.account.earn(FRAME_SECONDS + len(data) * BYTE_SECONDS)
                handler.received(self, number, data)
            case CircuitClosed(number, reason):
                handler.closed(self, number, reason)
            case RendezvousPossible(topic):
                handler.rendezvous_possible(self, topic)
            case RendezvousAsked(topic):
                handler.rendezvous_asked(self, topic)
            case NodesLearned(topic, nodes):
                handler.nodes_learned(self, topic, nodes)

    def take(self) -> None:
        """Take circuits on this connection from now on."""
        self._conversation.happen(CircuitsTaken())

    def new_number(self) -> int:
        """Number a circuit that is to be asked for."""
        return self._conversation.session.circuits.new_number()

    def ask(self, number: int, address: CircuitAddress) -> None:
        """Ask for a circuit of a new number."""
        self._conversation.happen(CircuitWanted(number, address))

    def grant(self, number: int, count: int) -> None:
        """Let the peer send this many bytes more."""
        self._conversation.happen(CircuitGranted(number, count))

    def send(self, number: int, data: bytes) -> None:
        """Send at most CIRCUIT_DATA_SIZE_MAX bytes, within the credit."""
        self._conversation.happen(CircuitSent(number, data))

    def end(self, number: int, reason: str) -> None:
        """End a circuit."""
        self._conversation.happen(CircuitEnded(number, reason))

    def ask_rendezvous(self, topic: TopicKey) -> None:
        """Ask for other nodes of a topic, once."""
        self._conversation.happen(RendezvousWanted(topic))

    def name(self, topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
        """Name nodes to the peer."""
        self._conversation.happen(NodesFound(topic, nodes))
