"""`Conversing`: has a connection with a peer that has proved its key, however it was reached.

It ends one of two connections with one peer, hears where this node is seen, and seeks a direct way for a circuit.
"""

from collections.abc import Callable

import structlog
import trio

from node.network.admission import Admission, share_name
from node.network.dialing import HostAllowance
from node.network.line import Line
from node.network.own_addresses import OwnAddresses
from node.network.peer_registry import PeerRegistry
from node.network.peer_state import DUPLICATE, Displacements, PeerState, explain_end, listed, old_stays
from node.network.punching import Puncher
from node.runtime.subnets import subnet_of
from node.sync.addresses import AddressSource
from node.sync.circuit_port import CircuitHandler
from node.sync.connection import Connection
from node.sync.introductions import Introducer
from node.wire.transport import SecureStream
from protocol.crypto.keys import NodeSeed
from protocol.formats.text import id_text
from protocol.session.outputs import AddressSeen, ReachOutput
from protocol.session.reach import may_travel

log = structlog.get_logger()


class Conversing:
    """Connections with peers that have proved their keys."""

    def __init__(
        self,
        registry: PeerRegistry,
        seed: NodeSeed,
        introducer: Introducer,
        addresses: OwnAddresses,
        allowance: HostAllowance,
        admission: Admission,
        circuits: CircuitHandler | None,
        *,
        introduces: bool,
        punches: bool,
    ) -> None:
        self._registry = registry
        self._introducer = introducer
        self._addresses = addresses
        self._circuits = circuits
        self._introduces = introduces
        self._punches = punches
        self.displacements = Displacements()
        topics = registry.hub.replica
        self._puncher = Puncher(
            registry, seed, allowance, admission, addresses, lambda: topics.by_topic, self._converse_punched
        )

    async def converse(
        self, state: PeerState, secure: SecureStream, across: str, met: Callable[[], None] | None = None
    ) -> None:
        """Converse until either side ends it.

        `across` is where the other end is, if it is a node that is seen there. `met` is called once a stranger shows that it
        knows a topic; without it the peer is none.
        """
        registry = self._registry
        is_dialable = state.direction == "out" and state.through is None
        is_dialed = is_dialable and not state.is_web and not state.is_punched
        connection = state.connection = Connection(
            registry.hub,
            secure,
            lambda topic: registry.may_keep(state.peer, topic),
            subnet_of(state.address),
            self._introducer if self._introduces else None,
            network=share_name(state.address),
            is_known=met is None,
            met=met,
            across=across,
            seen=lambda output: self.note_reach(state, output, across),
            circuits=self._circuits if state.through is None else None,
        )
        for one in registry.peers:
            if one.peer == state.peer:
                one.missed_since = None
        state.met_at = trio.current_time()
        self.settle_duplicates(state)
        if state.direction == "out" and self._may_punch(state):
            registry.start(self._puncher.keep_asking, state)
        log.info("connected", peer=id_text(state.peer), direction=state.direction, address=state.address)
        try:
            with self._introducer.while_connected(connection, across, is_dialed=is_dialed):
                ended = await connection.run()
            state.last_error = explain_end(ended.reason, connection.goodbye)
            log.info("disconnected", peer=id_text(state.peer), reason=ended.reason)
        finally:
            state.connection = None
            state.has_shared = any(one.is_joined for one in connection.topics)
            registry.ended.set()
            registry.ended = trio.Event()
            if connection.goodbye == DUPLICATE and not registry.is_connected(state.peer):
                self.displacements.note(state.peer, registry.clock())
            kept = registry.dialed.get(state.peer)
            if kept is not None and not registry.is_connected(state.peer):
                kept.missed_since = trio.current_time()
                registry.when_missed()

    async def _converse_punched(self, circuit: PeerState, secure: SecureStream, line: Line) -> None:
        """Converse in the place of the circuit's connection."""
        state = self._registry.new_state(
            circuit.peer, line.across, circuit.direction, "connected", AddressSource.INTRODUCTION
        )
        state.is_punched, state.local_host = True, line.local_host
        with listed(self._registry.relayed, state):
            await self.converse(state, secure, line.across)

    def settle_duplicates(self, new: PeerState) -> None:
        """End one of two connections with one peer."""
        assert new.connection is not None, "it has just begun"
        for old in self._registry.peers:
            if old is new or old.peer != new.peer or old.connection is None:
                continue
            if old_stays(old, new, self._registry.own_key):
                new.connection.part(DUPLICATE)
            else:
                old.connection.part(DUPLICATE)

    def note_reach(self, state: PeerState, output: ReachOutput, across: str) -> None:
        """Note where a peer sees this node, or answer its wish for a direct way.

        The first counts only where this node has dialed; the second only on a circuit: elsewhere there is no better way.
        """
        if not isinstance(output, AddressSeen):
            if self._may_punch(state):
                self._registry.start(self._puncher.perform, state, output)
        elif state.direction == "out" and may_travel(output.address, across):
            state.seen = output.address
            self._addresses.note_claim(state.peer, output.address, across)

    def _may_punch(self, state: PeerState) -> bool:
        return self._punches and state.through is not None
