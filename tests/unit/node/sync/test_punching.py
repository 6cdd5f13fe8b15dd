"""What a puncher tells, dials and takes: the peer of a circuit may be a node that a relay has merely named."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from node.sync.addresses import AddressSource
from node.sync.admission import Admission
from node.sync.circuit_dialing import place_of
from node.sync.dialing import HostAllowance
from node.sync.line import Line
from node.sync.own_addresses import OwnAddresses
from node.sync.peer_state import PeerState
from node.sync.punching import Puncher
from protocol.ids import PeerId, TopicKey
from protocol.keys import NodeSeed
from protocol.messages import Goodbye, encode_message
from protocol.session_events import Event, PunchAnswered, PunchWanted
from protocol.session_outputs import PunchDue, PunchHeard

RELAY, PEER = PeerId(b"r" * 32), PeerId(b"p" * 32)
TOPIC = TopicKey(b"t" * 32)
SEEN = "8.8.8.8:50123"
LOCAL = "192.168.1.2:50123"


class _Connection:
    """What a puncher asks of a connection."""

    def __init__(self) -> None:
        self.topics: list[Any] = []
        self.events: list[Event] = []

    def knows(self, _: str) -> bool:
        return True

    def happen(self, event: Event) -> None:
        self.events.append(event)

    def join(self, topic: TopicKey) -> None:
        self.topics.append(SimpleNamespace(topic=topic, is_joined=True))


class _Socket:
    def getsockname(self) -> tuple[str, int]:
        host, _, port = LOCAL.rpartition(":")
        return host, int(port)


class _Network:
    """A relay's connection and one circuit through it."""

    def __init__(self, direction: str) -> None:
        self.banned: set[PeerId] = set()
        self.admission = Admission(1)
        self.conversed: list[int] = []  # places taken meanwhile
        self.connection = _Connection()
        self.relay = _state(RELAY, "203.0.113.1:7474", "out")
        self.relay.connection = cast(Any, _Connection())
        self.relay.socket = cast(Any, SimpleNamespace(socket=_Socket()))
        self.relay.seen = SEEN
        self.circuit = _state(PEER, place_of(RELAY), direction)
        self.circuit.connection = cast(Any, self.connection)

    @property
    def peers(self) -> list[PeerState]:
        return [self.relay, self.circuit]

    def is_direct(self, _: PeerId) -> bool:
        return False

    async def converse_punched(self, circuit: PeerState, secure: object, line: object) -> None:
        self.conversed.append(self.admission._known)

    def puncher(self) -> Puncher:
        return Puncher(
            self, NodeSeed(b"s" * 32), HostAllowance(), self.admission, OwnAddresses(LOCAL), lambda: {TOPIC}
        )


def _state(peer: PeerId, address: str, direction: str) -> PeerState:
    return PeerState(peer, address, direction, "connected", 0.0, AddressSource.INTRODUCTION, None)


async def test_who_has_joined_no_branch_is_told_no_address() -> None:
    net = _Network("in")
    puncher = net.puncher()
    await puncher.perform(net.circuit, PunchHeard())
    net.connection.join(TopicKey(b"?" * 32))
    await puncher.perform(net.circuit, PunchHeard())
    net.connection.join(TOPIC)
    await puncher.perform(net.circuit, PunchHeard())
    assert net.connection.events == [PunchAnswered(()), PunchAnswered(()), PunchAnswered((SEEN, LOCAL))]


async def test_who_was_dialed_is_asked_once_it_has_joined_a_branch(autojump_clock: MockClock) -> None:
    net = _Network("out")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(net.puncher().keep_asking, net.circuit)
        await trio.sleep(10)
        assert net.connection.events == [], "it may be anybody whom the relay has named"
        net.connection.join(TOPIC)
    assert net.connection.events == [PunchWanted((SEEN, LOCAL))] * 2


async def test_one_private_address_is_dialed_on_a_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    net = _Network("in")
    puncher = net.puncher()
    dialed: list[list[str]] = []

    async def dial(port: object, targets: list[str], *_: object, **__: object) -> None:
        dialed.append(targets)

    monkeypatch.setattr("node.sync.punching.dial_at_once", dial)
    same_host = "8.8.8.8:9"
    for said in ("192.168.1.7:9", "192.168.1.7:9", "192.168.1.1:80"):
        await puncher.perform(net.circuit, PunchDue((same_host, said), is_later=False))
    assert dialed == [["8.8.8.8:9", "192.168.1.7:9"]] * 2 + [["8.8.8.8:9"]]


class _Secure:
    """A punched connection on which the peer has proved its key."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    async def send_frame(self, frame: bytes) -> None:
        self.said.append(frame)

    async def aclose(self) -> None:
        self.said.append(b"closed")


async def _punch(net: _Network, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> _Secure:
    secure = _Secure()

    async def dial(*_: object, **__: object) -> object:
        meanwhile()
        return secure, Line(cast(Any, None), "8.8.4.4:9", "192.168.1.2")

    monkeypatch.setattr("node.sync.punching.dial_at_once", dial)
    await net.puncher().perform(net.circuit, PunchDue(("8.8.4.4:9",), is_later=False))
    return secure


@pytest.mark.parametrize("direction", ["in", "out"])
async def test_who_was_banned_or_left_meanwhile_has_no_session(
    monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    def fail(net: _Network) -> None:
        net.circuit.connection, net.circuit.last_error = None, "over_budget"

    cases: list[tuple[Callable[[_Network], None], str]] = [
        (lambda net: net.banned.add(PEER), "banned"),
        (lambda net: net.circuit.scope.cancel(), "stopping"),
        (fail, "stopping"),
    ]
    for change, reason in cases:
        net = _Network(direction)
        secure = await _punch(net, monkeypatch, partial(change, net))
        assert secure.said == [encode_message(Goodbye(reason)), b"closed"]
        assert net.conversed == []


async def test_a_punched_connection_takes_one_place_where_the_peer_was_the_dialer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = _Network("in")
    assert (await _punch(net, monkeypatch, lambda: None)).said == []
    assert (net.conversed, net.admission._known) == ([1], 0)
    assert net.admission.admit("8.8.4.4:1", is_known=True) is None
    secure = await _punch(net, monkeypatch, lambda: None)
    assert secure.said == [encode_message(Goodbye("too_many_connections")), b"closed"]
    assert (net.conversed, net.admission._known) == ([1], 1)


async def test_a_session_goes_on_where_the_peer_has_replaced_the_circuit_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = _Network("out")
    secure = await _punch(net, monkeypatch, lambda: setattr(net.circuit, "connection", None))
    assert (secure.said, net.conversed) == ([], [0])
