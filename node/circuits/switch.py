"""A relay's circuits: opens them between connected nodes, and passes bytes and credit from one to the other.

The relay sees node keys, sizes and times. What passes is the nodes' own session, whose keys it does not have
(`node.wire.transport`): what it changes, drops or repeats ends that session, and nothing else.

It holds no bytes of a circuit but those in the queue of the connection that they leave by: the other side grants the credit
for them, and the relay passes on CIRCUIT_WINDOW_SIZE of it for each direction. A direction that has passed much
gets WIDE_CIRCUIT_WINDOW_SIZE, as long as these together stay below a bound. To slow a peer down the relay keeps credit back.
A node that does not read stalls its own circuits alone.

Pure but for its memory; `run` is a clock for `tick`.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
import trio

from node.circuits.quotas import (
    CircuitAccount,
    CircuitAccounts,
    CircuitQuotas,
    NamingQuotas,
    RecentBytes,
    refusal,
)
from node.sync.circuit_port import CircuitHandler, CircuitPort
from protocol.crypto.hashing import circuit_address
from protocol.formats.text import id_text
from protocol.ids import CircuitAddress, PeerId, TopicKey
from protocol.limits.network import (
    CIRCUIT_IDLE_SECONDS,
    CIRCUIT_OPEN_SECONDS,
    CIRCUIT_WINDOW_SIZE,
    CIRCUITS_INCOMING_MAX,
    NODES_OF_SUBNET_TOLD_MAX,
    NODES_OF_TOPIC_TOLD_MAX,
    WIDE_CIRCUIT_AFTER_SIZE,
    WIDE_CIRCUIT_WINDOW_SIZE,
    WIDE_CIRCUITS_OF_NODE_MAX,
    WIDE_CIRCUITS_OF_RELAY_SIZE,
)
from protocol.session.circuits import CIRCUIT_ENDS, CircuitEnd
from storage.relay.quotas import Visitor

log = structlog.get_logger()

_TICK_SECONDS: Final = 1.0
"""Seconds between two looks for circuits that are idle, or were not accepted."""
_PACE_SECONDS: Final = 0.02
"""Seconds between two looks whether slowed peers may send again: each looks at all of them."""


@dataclass(slots=True, eq=False)
class _End:
    """One end of a circuit: the connection, and the circuit's number on it. In bytes: credit of the other end that is kept
    back; how much of that is beyond the window; what this end has of it; the window; what it has sent."""

    port: CircuitPort
    number: int
    kept_back: int = 0
    excess: int = 0
    credit: int = 0
    window: int = CIRCUIT_WINDOW_SIZE
    sent: int = 0


@dataclass(slots=True, eq=False)
class _Circuit:
    asking: _End
    asked: _End
    kind: str  # of the peer that asked (`storage.relay.quotas.VISITOR_KINDS`)
    accounts: tuple[CircuitAccount, ...]
    opened_at: float
    used_at: float
    is_accepted: bool = False

    def across(self, port: CircuitPort, number: int) -> _End:
        """Return the other end."""
        return self.asked if self.at(port, number) is self.asking else self.asking

    def at(self, port: CircuitPort, number: int) -> _End:
        """Return this end."""
        is_asking = port is self.asking.port and number == self.asking.number
        return self.asking if is_asking else self.asked


@dataclass(slots=True)
class CircuitTotals:
    """Counts since the start, for metrics."""

    opened: int = 0
    passed: Counter[str] = field(default_factory=Counter)  # bytes, by the kind of peer that asked
    ended: Counter[str] = field(default_factory=Counter)  # by reason, refused ones too

    @property
    def bytes_passed(self) -> int:
        """Bytes of all circuits, in both directions."""
        return self.passed.total()


def _ignore(_kind: str, _reason: str) -> None:
    """Ignore a refusal."""


class CircuitSwitch(CircuitHandler):
    """Switch of circuits at a relay. It follows no members' topics and asks no peer for nodes."""

    def __init__(
        self,
        own_key: PeerId,
        quotas: CircuitQuotas,
        visitor: Callable[[PeerId, str], Visitor],
        clock: Callable[[], float] = trio.current_time,
        refused: Callable[[str, str], None] = _ignore,
    ) -> None:
        """`visitor` tells whether a peer from a subnet is known. `refused` is called with the peer's kind, and the
        reason for a refused or ended circuit."""
        self._own_key = own_key
        self._visitor = visitor
        self._clock = clock
        self._refused = refused
        self._recent = RecentBytes(clock())
        self._accounts = CircuitAccounts(quotas)
        self._ports: dict[CircuitAddress, CircuitPort] = {}  # of nodes that take circuits
        self._circuits: dict[CircuitPort, dict[int, _Circuit]] = {}  # each by both its ends
        self._asked: Counter[CircuitPort] = Counter()  # circuits that others have open to a node
        self._looked_at = clock()
        # Nodes that meet, the latest last, each with the subnet that it comes from if it is a stranger.
        self._meetings: dict[TopicKey, dict[CircuitPort, str]] = {}
        self._namings = NamingQuotas()
        self._topics: dict[CircuitPort, set[TopicKey]] = {}  # on which a node meets others
        self._slowed: dict[
            _End, _Circuit
        ] = {}  # ends for which credit is kept back, in the order of its coming
        self._wide: Counter[CircuitPort] = (
            Counter()
        )  # ends of a connection that have more than the usual credit
        self._is_woken = trio.Event()
        self.totals = CircuitTotals()
        self.count = 0
        """Circuits that are open or being opened."""
        self.open_by: Counter[str] = Counter()
        """The same by the kind of peer that asked."""

    @property
    def count_max(self) -> int:
        """Circuits that may be open at a time."""
        return self._accounts.quotas.total

    @property
    def bytes_per_second(self) -> float:
        """Bytes that passed in the last minute, each second."""
        return self._recent.per_second(self._clock())

    def usage_of(self, peers: Sequence[PeerId]) -> tuple[int, int]:
        """Circuits that these peers have asked for and have open, and bytes of their days."""
        now = self._clock()
        used = [self._accounts.find(peer) for peer in peers]
        found = [one for one in used if one is not None]
        return sum(one.circuits for one in found), sum(one.bytes_of_day(now) for one in found)

    @property
    def node_count(self) -> int:
        """Connected nodes that take circuits."""
        return len(self._ports)

    async def run(self) -> None:
        """Keep time, until cancelled."""
        while True:
            with trio.move_on_after(self.tick()):
                await self._is_woken.wait()
            self._is_woken = trio.Event()

    def tick(self) -> float:
        """Pass on the credit that may pass now, and end circuits whose time is up; seconds until the next look."""
        now = self._clock()
        if now - self._looked_at >= _TICK_SECONDS:
            self._looked_at = now
            self._end_old(now)
        waits = [_TICK_SECONDS if self.count else math.inf]
        for end, circuit in list(self._slowed.items()):
            wait = _wait_seconds(circuit, now)
            if wait > 0:
                waits.append(wait)
                continue
            del self._slowed[end]
            self._pass_credit(end, circuit, now)
        return max(_PACE_SECONDS, min(waits))

    def begun(self, port: CircuitPort) -> None:
        """Say that circuits are to be had here."""
        port.take()

    def agreed(self, port: CircuitPort) -> None:
        """Note a node that takes circuits through this relay. Its latest connection is where it is found."""
        self._ports[circuit_address(self._own_key, port.peer)] = port

    def offered(self, port: CircuitPort, number: int, address: CircuitAddress) -> None:
        """Open a circuit to another node, or refuse it."""
        now = self._clock()
        visitor = self._visitor(port.peer, port.subnet)
        accounts = self._accounts.of(visitor, now)
        reason = refusal(accounts, self._accounts.quotas, visitor, self.count, now)
        other = self._ports.get(address)
        if reason is None and (other is None or other.peer == port.peer):
            reason = CircuitEnd.NOT_HERE
        if reason is None and other is not None and self._asked[other] >= CIRCUITS_INCOMING_MAX:
            reason = CircuitEnd.NOT_TAKEN
        if reason is not None:
            self._count(reason)
            if reason is not CircuitEnd.NOT_HERE:
                self._refused(visitor.kind, reason)
            port.end(number, reason)
            return
        assert other is not None, "it is here"
        ends = (_End(port, number), _End(other, other.new_number()))
        circuit = _Circuit(*ends, visitor.kind, accounts, now, now)
        for end in ends:
            self._circuits.setdefault(end.port, {})[end.number] = circuit
        for account in accounts:
            account.circuits += 1
        self._asked[other] += 1
        self.count += 1
        self.open_by[circuit.kind] += 1
        other.ask(circuit.asked.number, address)
        self.totals.opened += 1
        if self.count == 1:  # the clock stands while there is no circuit
            self._is_woken.set()
        log.info("circuit", peer=id_text(port.peer), to=id_text(other.peer))

    def credited(self, port: CircuitPort, number: int, count: int) -> None:
        """Pass credit on, now or when the peer that has asked may send again."""
        circuit = self._find(port, number)
        if circuit is None:
            return
        end = circuit.across(port, number)
        circuit.is_accepted |= end is circuit.asking
        end.kept_back += count
        # The other end has not got so much yet. Passed on, all of it could wait here, if that end does not read.
        end.excess = max(end.excess, end.kept_back + end.credit - end.window)
        if end not in self._slowed:
            self._pass_credit(end, circuit, self._clock())

    def received(self, port: CircuitPort, number: int, data: bytes) -> None:
        """Bytes came: pass them on."""
        circuit = self._find(port, number)
        if circuit is None:
            return
        now = circuit.used_at = self._clock()
        for account in circuit.accounts:
            account.use(len(data), now)
        self.totals.passed[circuit.kind] += len(data)
        self._recent.add(len(data), now)
        here, end = circuit.at(port, number), circuit.across(port, number)
        here.credit -= len(data)
        here.sent += len(data)
        end.port.send(end.number, data)
        if any(account.is_day_used(now) for account in circuit.accounts):
            self._refused(circuit.kind, CircuitEnd.DAY_USED)
            self._end(circuit, CircuitEnd.DAY_USED)

    def closed(self, port: CircuitPort, number: int, reason: str) -> None:
        """Close the other end of a circuit, for the same reason."""
        circuit = self._find(port, number)
        if circuit is not None:
            self._end(circuit, reason, but=port)

    def rendezvous_asked(self, port: CircuitPort, topic: TopicKey) -> None:
        """Name a node to the others of a topic, and them to it.

        Strangers of one subnet are bounded: keys cost nothing, and each node is named only so many others.
        """
        subnet = self._visitor(port.peer, port.subnet).subnet
        ports = self._meetings.setdefault(topic, {})
        others = _choose_others(ports, port.peer)
        ports[port] = subnet
        self._topics.setdefault(port, set()).add(topic)
        port.name(topic, tuple({one.peer: None for one in others}))
        if subnet and not self._namings.take(topic, subnet, self._clock()):
            return
        for other in others:
            other.name(topic, (port.peer,))

    def lost(self, port: CircuitPort) -> None:
        """Close the other ends of circuits of a connection that has ended."""
        for topic in self._topics.pop(port, ()):
            del self._meetings[topic][port]
            if not self._meetings[topic]:
                del self._meetings[topic]
        address = circuit_address(self._own_key, port.peer)
        if self._ports.get(address) is port:
            del self._ports[address]
        for circuit in list(self._circuits.get(port, {}).values()):
            self._end(circuit, CircuitEnd.GONE, but=port)

    def _pass_credit(self, end: _End, circuit: _Circuit, now: float) -> None:
        """Let an end send as much as its peer may now, the other end takes, and the relay holds."""
        if _wait_seconds(circuit, now) > 0:
            self._slowed[end] = circuit
            if len(self._slowed) == 1:  # the clock looks for others by itself
                self._is_woken.set()
            return
        if end.excess:
            self._widen(end)
        count = end.kept_back - end.excess
        if count:
            end.kept_back = end.excess
            end.credit += count
            end.port.grant(end.number, count)

    def _widen(self, end: _End) -> None:
        """Let an end have more credit from now on, if it has sent much, and the relay may hold so much."""
        if end.sent < WIDE_CIRCUIT_AFTER_SIZE or end.window > CIRCUIT_WINDOW_SIZE:
            return
        size = (self._wide.total() + 1) * (WIDE_CIRCUIT_WINDOW_SIZE - CIRCUIT_WINDOW_SIZE)
        if size <= WIDE_CIRCUITS_OF_RELAY_SIZE and self._wide[end.port] < WIDE_CIRCUITS_OF_NODE_MAX:
            self._wide[end.port] += 1
            end.window, end.excess = WIDE_CIRCUIT_WINDOW_SIZE, 0

    def _find(self, port: CircuitPort, number: int) -> _Circuit | None:
        """Return this end's account; None where the other end has closed and this one does not know yet."""
        return self._circuits.get(port, {}).get(number)

    def _end_old(self, now: float) -> None:
        for port in list(self._circuits):
            for circuit in list(self._circuits.get(port, {}).values()):
                if not circuit.is_accepted and now - circuit.opened_at >= CIRCUIT_OPEN_SECONDS:
                    self._end(circuit, CircuitEnd.TIMEOUT)
                elif now - circuit.used_at >= CIRCUIT_IDLE_SECONDS:
                    self._end(circuit, CircuitEnd.IDLE)

    def _end(self, circuit: _Circuit, reason: str, but: CircuitPort | None = None) -> None:
        """Forget a circuit, and tell its ends, all `but` the one that knows."""
        for end in (circuit.asking, circuit.asked):
            of_port = self._circuits[end.port]
            del of_port[end.number]
            if not of_port:
                del self._circuits[end.port]
            self._slowed.pop(end, None)
            if end.window > CIRCUIT_WINDOW_SIZE:
                self._wide[end.port] -= 1
                if not self._wide[end.port]:
                    del self._wide[end.port]
        self._asked[circuit.asked.port] -= 1
        if not self._asked[circuit.asked.port]:
            del self._asked[circuit.asked.port]
        self.count -= 1
        self.open_by[circuit.kind] -= 1
        for account in circuit.accounts:
            account.circuits -= 1
        self._count(reason)
        for end in (circuit.asking, circuit.asked):
            if end.port is not but:
                end.port.end(end.number, reason)

    def _count(self, reason: str) -> None:
        """Count an end; a peer may say anything, and makes no names for metrics."""
        self.totals.ended[reason if reason in CIRCUIT_ENDS else "other"] += 1


def _choose_others(ports: dict[CircuitPort, str], peer: PeerId) -> list[CircuitPort]:
    """Choose the nodes to name: the latest, and of strangers of one subnet a share."""
    found: list[CircuitPort] = []
    of_subnets: Counter[str] = Counter()
    for port, subnet in reversed(ports.items()):
        if len(found) == NODES_OF_TOPIC_TOLD_MAX:
            break
        if port.peer == peer or (subnet and of_subnets[subnet] == NODES_OF_SUBNET_TOLD_MAX):
            continue
        of_subnets[subnet] += 1
        found.append(port)
    return found[::-1]


def _wait_seconds(circuit: _Circuit, now: float) -> float:
    return max(account.wait_seconds(now) for account in circuit.accounts)
