"""Dials a peer that talks with this node through a relay, at the moment when it dials, too (TCP simultaneous open).

Both dial from the port by which they are connected to the relay: their routers have let it out, and the relay has said
where it is seen. Each listens there as well, for a router that lets the first packet in. What comes of it is a session of
its own, which takes the circuit's place as any direct one does: topics are compared anew, so nothing is lost.

`protocol.session.punching` has the rules, and which addresses are dialed. The network has the connections.
"""

import secrets
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import structlog
import trio

from node.network.admission import Admission
from node.network.dialing import HostAllowance
from node.network.line import Line, connect_from, shared_socket
from node.network.own_addresses import OwnAddresses
from node.network.peer_registry import PeerRegistry
from node.network.peer_state import PeerState
from node.runtime.backoff import Backoff
from node.sync.connection import Connection
from node.wire.transport import SecureStream, TransportError, accept, dial, say_goodbye
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.formats.text import id_text
from protocol.ids import PeerId, TopicKey
from protocol.limits.network import (
    PUNCH_LOOK_SECONDS,
    PUNCH_LOOK_SECONDS_MAX,
    PUNCH_PAUSES_SECONDS,
    PUNCH_RETRY_SECONDS,
    PUNCH_SECONDS,
    PUNCH_TAKEN_MAX,
    PUNCH_TRIES_MAX,
)
from protocol.session.events import PunchAnswered, PunchWanted
from protocol.session.features import PUNCHING
from protocol.session.outputs import PunchDue, PunchHeard, PunchOutput
from protocol.session.punching import choose_targets, half_way
from protocol.session.reach import Reach, host_of, reach_of

log = structlog.get_logger()

Prove = Callable[[trio.abc.Stream], Awaitable[SecureStream]]
_BACKLOG: Final = PUNCH_TAKEN_MAX
_TURN_SECONDS: Final = PUNCH_SECONDS / 2
"""Seconds of one handshake, which the others wait for: another host may be at an address inside, and be silent."""


@dataclass(frozen=True, slots=True)
class RelayLine:
    """The port by which this node is connected to a relay, and where the relay sees it."""

    stream: trio.SocketStream
    seen: str

    @property
    def local(self) -> tuple[str, int]:
        """The host and port here. Raises OSError of a connection that has ended."""
        host, port = self.stream.socket.getsockname()[:2]
        return str(host), int(port)


Converse = Callable[[PeerState, SecureStream, Line], Awaitable[None]]
"""Converses in the place of a circuit's connection."""


class Puncher:
    """Finds direct connections for circuits. Its tasks belong to the network's nursery."""

    def __init__(
        self,
        registry: PeerRegistry,
        seed: NodeSeed,
        allowance: HostAllowance,
        admission: Admission,
        own_addresses: OwnAddresses,
        topics: Callable[[], Container[TopicKey]],
        converse: Converse,
    ) -> None:
        """`allowance` bounds what is dialed because others say so, `admission` what is taken.

        `own_addresses` know which networks are near, `topics` are those that this node opens.
        """
        self._registry = registry
        self._seed = seed
        self._allowance = allowance
        self._admission = admission
        self._own = own_addresses
        self._topics = topics
        self._converse_punched = converse
        self._asked_at: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()  # gone with the circuit
        self._inside: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()  # the private address dialed
        self._trying: set[PeerId] = set()

    async def keep_asking(self, circuit: PeerState) -> None:
        """Ask the peer of a circuit that this node has dialed, some times, while the circuit lasts and is all there is."""
        connection = circuit.connection
        for pause in PUNCH_PAUSES_SECONDS:
            await trio.sleep(pause)
            addresses = await self._wait_for_addresses(circuit)
            if connection is None or circuit.connection is not connection:
                return
            self._asked_at[connection] = trio.current_time()
            connection.happen(PunchWanted(addresses))

    async def _wait_for_addresses(self, circuit: PeerState) -> tuple[str, ...]:
        """Wait until a topic is joined, and return this side's addresses. Empty: the circuit has ended.

        A newcomer joins no topic before its membership has come, which takes a slow machine some seconds. A round that is
        missed for that would not be made up for until the next one.
        """
        connection, backoff = circuit.connection, Backoff(PUNCH_LOOK_SECONDS, PUNCH_LOOK_SECONDS_MAX)
        while connection is not None and circuit.connection is connection:
            addresses = self._own_addresses(circuit)
            if addresses and connection.knows(PUNCHING):
                return addresses
            await trio.sleep(backoff.fail())
        return ()

    async def perform(self, circuit: PeerState, output: PunchOutput) -> None:
        """Carry out an output of the circuit's session."""
        match output:
            case PunchHeard():
                if circuit.connection is not None:
                    circuit.connection.happen(PunchAnswered(self._own_addresses(circuit)))
            case PunchDue(addresses, is_later):
                now = trio.current_time()
                asked_at = now if circuit.connection is None else self._asked_at.pop(circuit.connection, now)
                await trio.sleep(half_way(asked_at, now) if is_later else 0)
                if circuit.peer not in self._trying:
                    self._trying.add(circuit.peer)
                    try:
                        await self._punch(circuit, addresses)
                    finally:
                        self._trying.discard(circuit.peer)

    def _own_addresses(self, circuit: PeerState) -> tuple[str, ...]:
        """Return the addresses at which the relay sees this node and at which it listens; none for a peer without a
        common topic.

        A key proves no membership: the peer of a circuit may be a node that a relay has merely named.
        """
        port = self._find_port(circuit)
        if port is None or circuit.connection is None:
            return ()
        topics = self._topics()
        if not any(one.is_joined and one.topic in topics for one in circuit.connection.topics):
            return ()
        with suppress(OSError):
            return tuple(dict.fromkeys((port.seen, _shown(*port.local))))
        return ()

    def _find_port(self, circuit: PeerState) -> RelayLine | None:
        for one in self._registry.peers:
            if (
                one.peer == circuit.through
                and one.connection is not None
                and one.socket is not None
                and one.seen
            ):
                return RelayLine(one.socket, one.seen)
        return None

    async def _punch(self, circuit: PeerState, addresses: tuple[str, ...]) -> None:
        port = self._find_port(circuit)
        if port is None or circuit.connection is None or self._registry.is_direct(circuit.peer):
            return
        is_dialer = circuit.direction == "out"

        def may_dial(address: str) -> bool:
            return self._allowance.try_dial(address, trio.current_time())

        async def prove(stream: trio.abc.Stream) -> SecureStream:
            ephemeral = AgreementSecret(secrets.token_bytes(32))
            if is_dialer:
                return await dial(stream, self._seed, circuit.peer, ephemeral)
            secure = await accept(stream, self._seed, ephemeral)
            if secure.peer_key != circuit.peer:
                await trio.aclose_forcefully(stream)
                raise TransportError("wrong_peer_key", "another node has dialed")
            return secure

        try:
            local = _shown(*port.local)
            targets = choose_targets(addresses, port.seen, local, self._own.is_near, self._own.is_own)
            targets = self._without_second_inside(circuit.connection, targets)
            found = await dial_at_once(port, targets, may_dial, prove, is_dialer=is_dialer)
        except OSError as error:  # the relay's connection has ended, or this system shares no ports
            log.info("not punched", peer=id_text(circuit.peer), reason=str(error))
            return
        log.info("punched" if found else "not punched", peer=id_text(circuit.peer), targets=targets)
        if found is not None:
            secure, line = found
            self._allowance.give_back(line.across, trio.current_time())
            await self._converse(circuit, secure, line)

    async def _converse(self, circuit: PeerState, secure: SecureStream, line: Line) -> None:
        """Run the session if the peer is still connected; as its acceptor only with a free place."""
        refusal = None
        is_taken = circuit.direction == "in"
        if circuit.peer in self._registry.banned:
            refusal = "banned"
        elif _is_given_up(circuit):
            refusal = "stopping"
        elif is_taken:
            refusal = self._admission.admit(line.across, is_known=True)
        if refusal is not None:
            log.info("punched connection refused", peer=id_text(circuit.peer), reason=refusal)
            await say_goodbye(secure, refusal)
            return
        try:
            await self._converse_punched(circuit, secure, line)
        finally:
            if is_taken:
                self._admission.leave(line.across, is_known=True)

    def _without_second_inside(self, circuit: Connection, targets: list[str]) -> list[str]:
        """Targets without a private one, where an earlier round on this circuit dialed another.

        Else each round makes this node try one more port of its network for the peer.
        """
        chosen = []
        for target in targets:
            host = host_of(target)
            is_private = host is not None and reach_of(host) is Reach.PRIVATE
            if not is_private or self._inside.setdefault(circuit, target) == target:
                chosen.append(target)
        return chosen


async def dial_at_once(
    port: RelayLine, targets: list[str], may_dial: Callable[[str], bool], prove: Prove, *, is_dialer: bool
) -> tuple[SecureStream, Line] | None:
    """Dial targets (host:port, numbers) from a port that is in use, and listen there, until the peer has proved its key.

    Raises OSError. `may_dial` is asked before each dial. `prove` closes what it was given when it fails.
    """
    if not targets:
        return None
    local, family = port.local, port.stream.socket.family
    remotes = {target: _split(target) for target in targets}
    hosts = {host for host, _ in remotes.values()}
    found: list[tuple[SecureStream, Line]] = []
    turn = (
        trio.Lock()
    )  # of several connections the dialer shakes hands on one alone, so that both take the same

    async def dial_all() -> None:
        async with trio.open_nursery() as nursery:

            async def offer(sock: trio.socket.SocketType, across: str) -> None:
                stream = trio.SocketStream(sock)
                try:
                    if is_dialer:
                        async with turn:
                            with trio.fail_after(_TURN_SECONDS):
                                secure = await prove(stream)
                    else:
                        secure = await prove(stream)
                except TransportError as error:
                    log.debug("not punched", reason=error.reason)
                    return
                except trio.TooSlowError:
                    await trio.aclose_forcefully(stream)
                    return
                except (
                    BaseException
                ):  # cancelled, while another connection has its turn, too: nothing else closes it
                    await trio.aclose_forcefully(stream)
                    raise
                found.append((secure, Line(stream, across, local[0])))
                nursery.cancel_scope.cancel()

            async def dial(target: str) -> None:
                for _ in range(PUNCH_TRIES_MAX):
                    if not may_dial(target):
                        return
                    try:
                        sock = await connect_from(family, local, remotes[target])
                    except OSError:
                        await trio.sleep(PUNCH_RETRY_SECONDS)
                        continue
                    await offer(sock, target)
                    return

            async def listen() -> None:
                with suppress(OSError), shared_socket(family, local) as listening:  # dialing may be enough
                    listening.listen(_BACKLOG)
                    taken = 0
                    while taken < PUNCH_TAKEN_MAX:
                        sock, (host, number, *_) = await listening.accept()
                        if host not in hosts:
                            sock.close()
                            continue
                        taken += 1
                        nursery.start_soon(offer, sock, _shown(host, number))

            nursery.start_soon(listen)
            for target in targets:
                nursery.start_soon(dial, target)

    is_taken = False
    try:
        with trio.move_on_after(PUNCH_SECONDS):
            await dial_all()
        is_taken = True
    finally:  # two may be proved at one moment; a cancelled caller takes none
        for secure, _ in found[1:] if is_taken else found:
            await say_goodbye(secure, "stopping")
    return found[0] if found else None


def _is_given_up(circuit: PeerState) -> bool:
    """Return True if this node has left a circuit, or it failed.

    A peer that has ended it in order may have the punched session already, which replaces it: the first to have it does so.
    """
    return circuit.scope.cancel_called or (circuit.connection is None and circuit.last_error is not None)


def _shown(host: str, number: int) -> str:
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"


def _split(address: str) -> tuple[str, int]:
    host, _, number = address.rpartition(":")
    return host.strip("[]"), int(number)
