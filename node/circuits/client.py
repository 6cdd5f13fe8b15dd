"""The circuits of a node that is no relay: opens them through the relays that it trusts, and accepts those of others.

A `CircuitStream` is one circuit as a stream of trio's, on which the ordinary handshake and session run
(`node.wire.transport`): they need not know what carries them. The relay is trusted with nothing but to pass bytes on. A
stream holds CIRCUIT_WINDOW_SIZE bytes in each direction at most; some that have brought much hold WIDE_CIRCUIT_WINDOW_SIZE.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

import structlog
import trio

from node.sync.circuit_port import CircuitHandler, CircuitPort
from node.sync.introductions import YIELD_SECONDS
from node.wire.transport import TransportError
from protocol.crypto.hashing import circuit_address
from protocol.formats.text import id_text
from protocol.ids import CircuitAddress, PeerId, TopicKey
from protocol.limits.network import (
    CIRCUIT_DATA_SIZE_MAX,
    CIRCUIT_OPEN_SECONDS,
    CIRCUIT_WINDOW_SIZE,
    CIRCUITS_INCOMING_MAX,
    NODES_MET_MAX,
    WIDE_CIRCUIT_AFTER_SIZE,
    WIDE_CIRCUIT_WINDOW_SIZE,
    WIDE_CIRCUITS_OF_NODE_MAX,
)
from protocol.session.circuits import CircuitEnd

log = structlog.get_logger()

_GRANT_SIZE: Final = CIRCUIT_WINDOW_SIZE // 2
"""Bytes that were read before credit is granted for them. Of a wide window, too: a relay may have passed on a usual one."""
_ANSWER_SECONDS: Final = CIRCUIT_OPEN_SECONDS + 5.0
"""Seconds for which a relay's answer is awaited: it waits for CIRCUIT_OPEN_SECONDS itself."""


class CircuitStream(trio.abc.Stream):
    """One circuit. One task may read and one may write at a time."""

    def __init__(
        self, port: CircuitPort, number: int, forget: Callable[[], object], may_widen: Callable[[], bool]
    ) -> None:
        """`forget` is called when this side closes the stream; `may_widen` says whether it may hold more."""
        self._forget = forget
        self._may_widen = may_widen
        self._port = port
        self._number = number
        self._credit = 0  # bytes that may be sent
        self._received: deque[bytes] = deque()  # as it came: to join it would copy all
        self._used = 0  # bytes that were read, and for which no credit was granted yet
        self._total = 0  # bytes that were read
        self.window = CIRCUIT_WINDOW_SIZE
        """Bytes that the other node may have on their way to this one."""
        self._news = trio.Event()
        self.end = ""
        """Why the circuit has ended; empty while it lasts."""

    async def wait_accepted(self) -> None:
        """Return once the other node has accepted. Raises TransportError."""
        while not self._credit:
            if self.end:
                raise TransportError("circuit_refused", f"the relay opens no circuit: {self.end}")
            await self._news.wait()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all, as far as the other node grants credit."""
        # Credit bounds what is sent without a pause, and each message costs both nodes and the relay a turn.
        await trio.lowlevel.checkpoint_if_cancelled()
        view = memoryview(data)
        while view:
            if self.end:
                raise trio.BrokenResourceError(f"the circuit has ended: {self.end}")
            if not self._credit:
                await self._news.wait()
                continue
            size = min(len(view), self._credit, CIRCUIT_DATA_SIZE_MAX)
            self._credit -= size
            self._port.send(self._number, bytes(view[:size]))
            view = view[size:]

    async def wait_send_all_might_not_block(self) -> None:
        """Return once there is credit, or the circuit has ended."""
        await trio.lowlevel.checkpoint()
        while not (self._credit or self.end):
            await self._news.wait()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Bytes that came; none once the circuit has ended and all are read."""
        # Always a turn for others: the reader counts on it (FRAMES_WITHOUT_YIELD_MAX).
        await trio.lowlevel.checkpoint()
        while not self._received:
            if self.end:
                return b""
            await self._news.wait()
        some = self._take(max_bytes)
        self._used += len(some)
        self._total += len(some)
        if self._used >= _GRANT_SIZE:
            count, self._used = self._used + self._widen(), 0
            self._port.grant(self._number, count)
        return some

    def _take(self, max_bytes: int | None) -> bytes:
        """Return the first received chunk, and as many of the following as were asked for."""
        first = self._received.popleft()
        if max_bytes is not None and len(first) > max_bytes:
            self._received.appendleft(first[max_bytes:])
            return first[:max_bytes]
        parts, size = [first], len(first)
        while self._received and (max_bytes is None or size + len(self._received[0]) <= max_bytes):
            parts.append(self._received.popleft())
            size += len(parts[-1])
        return first if len(parts) == 1 else b"".join(parts)

    def _widen(self) -> int:
        """Bytes of credit that are granted beyond those that were used: once, where much has come."""
        if (
            self._total < WIDE_CIRCUIT_AFTER_SIZE
            or self.window > CIRCUIT_WINDOW_SIZE
            or not self._may_widen()
        ):
            return 0
        self.window = WIDE_CIRCUIT_WINDOW_SIZE
        return WIDE_CIRCUIT_WINDOW_SIZE - CIRCUIT_WINDOW_SIZE

    async def aclose(self) -> None:
        """End the circuit, behind what was sent on it."""
        if not self.end:
            self.note_end(CircuitEnd.CLOSED)
            self._forget()
            self._port.end(self._number, CircuitEnd.CLOSED)
        await trio.lowlevel.checkpoint()

    def note_credit(self, count: int) -> None:
        """Let so many bytes more be sent."""
        self._credit += count
        self._wake()

    def note_received(self, data: bytes) -> None:
        """Bytes came, within the credit that was granted."""
        self._received.append(data)
        self._wake()

    def note_end(self, reason: str) -> None:
        """End the stream: its circuit has ended. The first reason counts."""
        self.end = self.end or reason
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A node that a relay has named, the topic that both follow, and when it may be asked for first, in trio's time."""

    relay: PeerId
    topic: TopicKey
    since: float


class CircuitClient(CircuitHandler):
    """Opens and accepts circuits; `run` owns the tasks of those that are accepted."""

    def __init__(
        self,
        own_key: PeerId,
        may_use: Callable[[PeerId], bool],
        serve: Callable[[CircuitStream, PeerId], Awaitable[None]],
        changed: Callable[[], None],
        may_meet: Callable[[TopicKey], bool] = lambda _: False,
    ) -> None:
        """Make a client. `may_use` says which relays it uses, and `may_meet` on which topics it meets other nodes.

        `serve` takes a circuit that came through a relay. `changed` is called when a relay can be used or has named nodes.
        """
        self._own_key = own_key
        self._may_use = may_use
        self._serve = serve
        self._changed = changed
        self._relays: dict[PeerId, CircuitPort] = {}
        self._streams: dict[CircuitPort, dict[int, CircuitStream]] = {}
        self._incoming: dict[CircuitPort, set[int]] = {}
        self._may_meet = may_meet
        self.named_nodes: dict[PeerId, NamedNode] = {}
        """Nodes that relays have named."""
        self._nursery: trio.Nursery | None = None

    def relays_to(self, peer: PeerId) -> list[PeerId]:
        """Relays through which a peer may be reached: the one that has named it, else all."""
        named = self.named_nodes.get(peer)
        return self.relays if named is None else [named.relay]

    @property
    def relays(self) -> list[PeerId]:
        """Connected relays through which circuits can be opened."""
        return list(self._relays)

    async def run(self) -> None:
        """Serve circuits that are accepted, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def open(self, relay: PeerId, peer: PeerId) -> CircuitStream:
        """Open a circuit to a peer, which accepts it. Raises TransportError."""
        port = self._relays.get(relay)
        if port is None:
            raise TransportError("circuit_refused", "the relay is not connected")
        number = port.new_number()
        stream = self._new_stream(port, number)
        port.ask(number, circuit_address(relay, peer))
        port.grant(number, CIRCUIT_WINDOW_SIZE)
        try:
            with trio.fail_after(_ANSWER_SECONDS):
                await stream.wait_accepted()
        except trio.TooSlowError:
            await trio.aclose_forcefully(stream)
            raise TransportError("timeout", "the relay does not answer") from None
        except BaseException:  # a cancellation too: nothing else would end it
            await trio.aclose_forcefully(stream)
            raise
        return stream

    def begun(self, port: CircuitPort) -> None:
        """Do nothing: the relay says first that it passes circuits on."""
        self._streams[port], self._incoming[port] = {}, set()

    def agreed(self, port: CircuitPort) -> None:
        """Use a peer that passes circuits on, if this user has chosen it as a relay."""
        if port.peer_is_relay and self._may_use(port.peer):
            port.take()
            self._relays[port.peer] = port
            self._changed()

    def offered(self, port: CircuitPort, number: int, address: CircuitAddress) -> None:
        """Accept a circuit to this node. The handshake shows whose it is."""
        is_own = address == circuit_address(port.peer, self._own_key)
        if not is_own or self._nursery is None or len(self._incoming[port]) >= CIRCUITS_INCOMING_MAX:
            port.end(number, CircuitEnd.NOT_TAKEN)
            return
        stream = self._new_stream(port, number)
        self._incoming[port].add(number)
        port.grant(number, CIRCUIT_WINDOW_SIZE)
        self._nursery.start_soon(self._take, stream, port, number)

    def credited(self, port: CircuitPort, number: int, count: int) -> None:
        """More may be sent."""
        if (stream := self._streams.get(port, {}).get(number)) is not None:
            stream.note_credit(count)

    def received(self, port: CircuitPort, number: int, data: bytes) -> None:
        """Bytes came."""
        if (stream := self._streams.get(port, {}).get(number)) is not None:
            stream.note_received(data)

    def closed(self, port: CircuitPort, number: int, reason: str) -> None:
        """End the stream of a circuit that has ended."""
        if (stream := self._streams.get(port, {}).pop(number, None)) is not None:
            stream.note_end(reason)

    def rendezvous_possible(self, port: CircuitPort, topic: TopicKey) -> None:
        """Ask a relay that is used for the other nodes of an epoch's own topic."""
        if port.peer in self._relays and self._may_meet(topic):
            port.ask_rendezvous(topic)

    def nodes_learned(self, port: CircuitPort, topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
        """Take nodes that a relay names. Whether they follow the topic shows once they announce it."""
        now = trio.current_time()
        for node in nodes:
            if node != self._own_key:
                wait = 0.0 if self._own_key < node else YIELD_SECONDS
                self.named_nodes.pop(node, None)  # to stand last
                self.named_nodes[node] = NamedNode(port.peer, topic, now + wait)
        while len(self.named_nodes) > NODES_MET_MAX:  # no relay has what others named forgotten
            [(relay, _)] = Counter(one.relay for one in self.named_nodes.values()).most_common(1)
            del self.named_nodes[next(key for key, one in self.named_nodes.items() if one.relay == relay)]
        self._changed()

    def lost(self, port: CircuitPort) -> None:
        """Forget a relay whose connection has ended."""
        if self._relays.get(port.peer) is port:
            self.named_nodes = {key: one for key, one in self.named_nodes.items() if one.relay != port.peer}
        if self._relays.get(port.peer) is port:
            del self._relays[port.peer]
        for stream in self._streams.pop(port, {}).values():
            stream.note_end(CircuitEnd.GONE)
        self._incoming.pop(port, None)

    def _new_stream(self, port: CircuitPort, number: int) -> CircuitStream:
        streams = self._streams[port]
        forget, may_widen = partial(streams.pop, number, None), self._has_wide_place
        stream = streams[number] = CircuitStream(port, number, forget, may_widen)
        return stream

    def _has_wide_place(self) -> bool:
        """Return True if fewer streams are wide than may be."""
        streams = chain.from_iterable(of_port.values() for of_port in self._streams.values())
        return sum(one.window > CIRCUIT_WINDOW_SIZE for one in streams) < WIDE_CIRCUITS_OF_NODE_MAX

    async def _take(self, stream: CircuitStream, port: CircuitPort, number: int) -> None:
        try:
            await self._serve(stream, port.peer)
        except Exception:  # the border of one circuit: whatever is wrong with it, the others go on
            log.exception("circuit failed", relay=id_text(port.peer))
        finally:
            self._incoming.get(port, set()).discard(number)
            await trio.aclose_forcefully(stream)
