"""Sessions between nodes and a relay without streams: what one side says about circuits, the other hears at once."""

from collections import deque
from collections.abc import Awaitable, Callable

from node.circuits.client import CircuitClient, CircuitStream
from node.circuits.quotas import CircuitQuotas
from node.circuits.switch import CircuitSwitch
from node.runtime.scheduling import Ledger, WorkAccount
from node.sync.circuit_port import CircuitHandler, CircuitOutput, CircuitPort
from node.sync.conversation import Conversation
from protocol.crypto.hashing import circuit_address
from protocol.crypto.keys import NodeSeed
from protocol.crypto.signing import public_key
from protocol.ids import CircuitAddress, PeerId, SessionId, TopicKey
from protocol.limits.formats import MIB
from protocol.session.circuits import SessionCircuits
from protocol.session.events import Event, MessageReceived
from protocol.session.messages import Message
from protocol.session.outputs import Close, Send
from protocol.session.session import Session
from storage.relay.quotas import Visitor

Serve = Callable[[CircuitStream, PeerId], Awaitable[None]]
PLENTY = CircuitQuotas(total=100, peer=50, rate=100 * MIB, day=1000 * MIB)
"""More than any test uses."""


class Wire:
    """What is on its way between all sessions of a test, in order."""

    def __init__(self) -> None:
        self.queue: deque[tuple[Side, Message]] = deque()
        self._is_delivering = False

    def deliver(self) -> None:
        """Deliver until nothing is on its way. What is said meanwhile comes after what was said before."""
        if self._is_delivering:
            return
        self._is_delivering = True
        while self.queue:
            side, message = self.queue.popleft()
            if not (side.closed or side.is_deaf):
                side.hear(message)
        self._is_delivering = False


class Side(Conversation):
    """One end of a session: as much of a connection as circuits need."""

    def __init__(
        self, wire: Wire, peer: PeerId, handler: CircuitHandler, *, is_dialer: bool, subnet: str = ""
    ) -> None:
        self._wire = wire
        self.peer = peer
        self.subnet = subnet
        self.account: WorkAccount = Ledger(lambda: 0.0).of_peer(peer)
        self._is_dialer = is_dialer
        self.closed = ""
        """Why the session has ended."""
        self.said: list[Message] = []
        self.holds = False
        """Whether what is said waits, as behind a slow line; `say_held` says it."""
        self.is_deaf = False
        """Whether what the other side says is not heard: what this one says by `say` is not its session's."""
        self.change: Callable[[Message], list[Message]] = lambda message: [message]
        """What becomes of a message on its way."""
        self._held: list[Message] = []
        self.session = Session(SessionId(b"s" * 32), is_dialer=is_dialer)
        self._other: Side | None = None
        self.port = CircuitPort(self, handler)

    @property
    def peer_is_relay(self) -> bool:
        """Return True if the other end is the relay: nodes dial it."""
        return self._is_dialer

    def join(self, other: "Side") -> None:
        """Be the two ends of one session."""
        self._other, other._other = other, self
        for side in (self, other):
            side.port.begin()
        self._wire.deliver()

    @property
    def circuits(self) -> SessionCircuits:
        """The circuits of the session."""
        return self.session.circuits

    def happen(self, event: Event) -> None:
        """Tell the session machine."""
        self._handle(event)
        self._wire.deliver()

    def say(self, message: Message) -> None:
        """Say a message that no honest node would."""
        self._pass_on(message)
        self._wire.deliver()

    def say_held(self) -> None:
        """Say what has waited, and hold nothing from now on."""
        self.holds = False
        held, self._held = self._held, []
        for message in held:
            self._pass_on(message)
        self._wire.deliver()

    def cut(self) -> None:
        """End the session on both sides."""
        for side in (self, self._other):
            assert side is not None, "it is joined"
            side.closed = side.closed or "closed"
            side.port.lose()

    def _handle(self, event: Event) -> None:
        for output in self.session.handle(event):
            match output:
                case Send(message):
                    self.said.append(message)
                    self._pass_on(message)
                case Close(reason):
                    self.closed = reason
                    self.cut()
                case _ if isinstance(output, CircuitOutput):
                    self.port.perform(output)

    def _pass_on(self, message: Message) -> None:
        if self.closed:
            return
        if self.holds:
            self._held.append(message)
            return
        assert self._other is not None, "it is joined"
        self._wire.queue.extend((self._other, changed) for changed in self.change(message))

    def hear(self, message: Message) -> None:
        """The other side has said this."""
        self._handle(MessageReceived(message))


async def _serve_nothing(_stream: CircuitStream, _relay: PeerId) -> None:
    """A node to which nobody opens a circuit."""


class Star:
    """A relay, and nodes that are connected to it alone."""

    def __init__(self, quotas: CircuitQuotas = PLENTY, known: frozenset[PeerId] = frozenset()) -> None:
        """Peers that are not `known` are strangers."""
        self.now = 0.0
        self._wire = Wire()
        self.relay_key = public_key(NodeSeed(b"relay".ljust(32, b"-")))

        def visitor(peer: PeerId, subnet: str) -> Visitor:
            return Visitor(peer, "" if peer in known else subnet, peer in known)

        self.switch = CircuitSwitch(self.relay_key, quotas, visitor, lambda: self.now)
        self.sides: dict[str, tuple[Side, Side]] = {}
        """By the node's name: the node's end of the session, and the relay's."""
        self.clients: dict[str, CircuitClient] = {}

    def add(self, name: str, handler: CircuitHandler, subnet: str = "") -> tuple[Side, Side]:
        """Connect a node with the relay."""
        node = Side(self._wire, self.relay_key, handler, is_dialer=True)
        relay = Side(self._wire, key_of(name), self.switch, is_dialer=False, subnet=subnet or name)
        node.join(relay)
        self.sides[name] = node, relay
        return node, relay

    def add_client(self, name: str, serve: Serve = _serve_nothing) -> CircuitClient:
        """Connect a node that opens circuits, and serves those that come."""
        client = CircuitClient(key_of(name), lambda _: True, serve, lambda: None)
        self.clients[name] = client
        self.add(name, client)
        return client

    def address(self, name: str) -> CircuitAddress:
        """How a node is called at the relay."""
        return circuit_address(self.relay_key, key_of(name))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and the switch look at its clock."""
        self.now += seconds
        self.switch.tick()


def seed_of(name: str) -> NodeSeed:
    """A node's seed: its name."""
    return NodeSeed(name.encode().ljust(32, b"-"))


def key_of(name: str) -> PeerId:
    """A node's key."""
    return public_key(seed_of(name))


class Recorder(CircuitHandler):
    """Takes circuits, and notes what it is told."""

    def __init__(self, *, accepts: int = 0) -> None:
        """`accepts`: the credit that it grants for each circuit that comes; none: it does not answer."""
        self.accepts = accepts
        self.offered_numbers: list[int] = []
        self.credit: dict[int, int] = {}
        self.data: dict[int, bytes] = {}
        self.ends: dict[int, str] = {}
        self.port: CircuitPort | None = None
        self.named: dict[TopicKey, list[PeerId]] = {}

    def begun(self, port: CircuitPort) -> None:
        self.port = port

    def agreed(self, port: CircuitPort) -> None:
        port.take()

    def offered(self, port: CircuitPort, number: int, address: CircuitAddress) -> None:
        self.offered_numbers.append(number)
        if self.accepts:
            port.grant(number, self.accepts)

    def credited(self, port: CircuitPort, number: int, count: int) -> None:
        self.credit[number] = self.credit.get(number, 0) + count

    def received(self, port: CircuitPort, number: int, data: bytes) -> None:
        self.data[number] = self.data.get(number, b"") + data

    def closed(self, port: CircuitPort, number: int, reason: str) -> None:
        self.ends[number] = reason

    def rendezvous_possible(self, port: CircuitPort, topic: TopicKey) -> None:
        port.ask_rendezvous(topic)

    def nodes_learned(self, port: CircuitPort, topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
        self.named.setdefault(topic, []).extend(nodes)

    def lost(self, port: CircuitPort) -> None:
        self.port = None
