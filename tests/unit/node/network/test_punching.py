"""What a puncher tells, dials and takes: the peer of a circuit may be a node that a relay has merely named."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from node.circuits.dialing import place_of
from node.network.admission import Admission
from node.network.dialing import HostAllowance
from node.network.line import Line, listening_address, open_listener, open_tcp
from node.network.own_addresses import OwnAddresses
from node.network.peer_state import PeerState
from node.network.punching import Puncher, RelayLine, dial_at_once
from node.sync.addresses import AddressSource
from node.wire.transport import SecureStream, say_goodbye
from protocol.crypto.keys import NodeSeed
from protocol.ids import PeerId, TopicKey
from protocol.limits.network import PUNCH_ROUNDS_MAX
from protocol.limits.peers import LINK_DIAL_SECONDS, LINK_DIALS_AT_ONCE_MAX
from protocol.session.events import Event, PunchAnswered, PunchWanted
from protocol.session.messages import Goodbye, encode_message
from protocol.session.outputs import PunchDue, PunchHeard
from tests.support.machine import fail_after
from tests.support.relays import until

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
        seed, own = NodeSeed(b"s" * 32), OwnAddresses(LOCAL)
        registry: Any = self
        return Puncher(
            registry, seed, HostAllowance(), self.admission, own, lambda: {TOPIC}, self.converse_punched
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
        await trio.sleep(15)
        assert net.connection.events == [PunchWanted((SEEN, LOCAL))], (
            "the first round is late, and not missed"
        )
    assert net.connection.events == [PunchWanted((SEEN, LOCAL))] * PUNCH_ROUNDS_MAX


async def test_who_joins_no_branch_is_not_waited_for_after_the_circuit(autojump_clock: MockClock) -> None:
    net = _Network("out")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(net.puncher().keep_asking, net.circuit)
        await trio.sleep(100)
        net.circuit.connection = None
    assert net.connection.events == []


async def test_one_private_address_is_dialed_on_a_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    net = _Network("in")
    puncher = net.puncher()
    dialed: list[list[str]] = []

    async def dial(port: object, targets: list[str], *_: object, **__: object) -> None:
        dialed.append(targets)

    monkeypatch.setattr("node.network.punching.dial_at_once", dial)
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

    monkeypatch.setattr("node.network.punching.dial_at_once", dial)
    await net.puncher().perform(net.circuit, PunchDue(("8.8.4.4:9",), is_later=False))
    return secure


async def test_a_victim_is_dialed_so_often_whatever_circuits_say(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """A peer, or a relay that makes up peers, says that others' addresses are its own: on new circuits, over and over."""
    dialed: list[tuple[str, int]] = []

    async def refuse(_family: object, _local: object, remote: tuple[str, int]) -> trio.socket.SocketType:
        dialed.append(remote)
        raise ConnectionRefusedError

    monkeypatch.setattr("node.network.punching.connect_from", refuse)
    net = _Network("in")
    puncher = net.puncher()
    began = trio.current_time()
    with trio.socket.socket() as bound:
        await bound.bind(("127.0.0.1", 0))
        port = RelayLine(cast(Any, SimpleNamespace(socket=bound)), SEEN)
        monkeypatch.setattr(puncher, "_find_port", lambda _: port)
        for number in range(100):
            await puncher.perform(net.circuit, PunchDue((f"8.8.4.4:{number + 1}",), is_later=False))
            await trio.sleep(1)
    assert {host for host, _ in dialed} == {"8.8.4.4"}
    seconds = trio.current_time() - began
    assert LINK_DIALS_AT_ONCE_MAX < len(dialed) <= LINK_DIALS_AT_ONCE_MAX + seconds / LINK_DIAL_SECONDS


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


class _Proved(_Secure):
    """It has a stream of its own."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        super().__init__()
        self.stream = stream

    async def aclose(self) -> None:
        await super().aclose()
        await trio.aclose_forcefully(self.stream)


@asynccontextmanager
async def _port() -> AsyncIterator[tuple[RelayLine, list[str]]]:
    """A connection with a relay, and two places where the peer listens."""
    with fail_after(20):
        async with AsyncExitStack() as stack:
            opened = [await open_listener("127.0.0.1:0") for _ in range(3)]
            for (listener,) in opened:
                await stack.enter_async_context(listener)
            places = [listening_address(one) for one in opened]
            line = await open_tcp(places.pop())
            assert line.tcp is not None
            await stack.enter_async_context(line.tcp)
            yield RelayLine(line.tcp, "127.0.0.1:1"), places


def _yes(_: str) -> bool:
    return True


async def test_a_port_that_is_not_shared_is_only_not_punched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("taken")

    async def prove(_: trio.abc.Stream) -> SecureStream:
        raise AssertionError("nothing is connected")

    monkeypatch.setattr("node.network.punching.PUNCH_RETRY_SECONDS", 0)
    async with _port() as (port, places):
        monkeypatch.setattr("node.network.line.shared_socket", fail)
        monkeypatch.setattr("node.network.punching.shared_socket", fail)
        assert await dial_at_once(port, places, _yes, prove, is_dialer=True) is None


async def test_of_two_proved_at_one_moment_the_second_is_closed() -> None:
    made: list[_Proved] = []
    both = trio.Event()

    async def prove(stream: trio.abc.Stream) -> SecureStream:
        made.append(_Proved(stream))
        mine = made[-1]
        await both.wait()
        return cast(SecureStream, mine)

    async def tell() -> None:
        await until(lambda: len(made) == 2)
        both.set()

    async with _port() as (port, places), trio.open_nursery() as nursery:
        nursery.start_soon(tell)
        found = await dial_at_once(port, places, _yes, prove, is_dialer=False)
        assert found is not None
        (other,) = [one for one in made if one is not cast(Any, found[0])]
        assert other.said == [encode_message(Goodbye("stopping")), b"closed"]
        assert cast(Any, found[0]).said == []
        await found[0].aclose()


async def test_what_was_proved_when_all_was_cancelled_is_closed() -> None:
    made: list[_Proved] = []
    with trio.CancelScope() as scope:

        async def prove(stream: trio.abc.Stream) -> SecureStream:
            made.append(_Proved(stream))
            scope.cancel()
            return cast(SecureStream, made[-1])

        async with _port() as (port, places):
            await dial_at_once(port, places[:1], _yes, prove, is_dialer=True)
    assert scope.cancelled_caught
    assert [one.said[-1] for one in made] == [b"closed"]


async def test_one_that_is_silent_does_not_have_the_turn_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.network.punching._TURN_SECONDS", 0.01)
    silent: list[trio.abc.Stream] = []

    async def prove(stream: trio.abc.Stream) -> SecureStream:
        if not silent:
            silent.append(stream)
            await trio.sleep_forever()
        return cast(SecureStream, _Proved(stream))

    async with _port() as (port, places):
        found = await dial_at_once(port, places, _yes, prove, is_dialer=True)
        assert found is not None
        with pytest.raises(trio.ClosedResourceError):
            await silent[0].send_all(b"x")
        await found[0].aclose()


async def test_a_stream_is_closed_though_its_peer_does_not_take_the_last_word(
    autojump_clock: MockClock,
) -> None:
    class Full(_Secure):
        async def send_frame(self, frame: bytes) -> None:
            await trio.sleep_forever()

    secure = Full()
    await say_goodbye(cast(Any, secure), "stopping")
    assert secure.said == [b"closed"]
