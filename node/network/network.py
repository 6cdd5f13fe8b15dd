"""`Network`: listens for peers, keeps the ones that are to be dialed, and owns every task about connections.

A peer is its key; its address is only where it was last found. Kept peers are dialed by `node.network.peer_dialing`,
addresses that were learned by `node.network.peer_discovery`. A peer that no dial reaches is met through a relay
(`node.circuits.dialing`). Each connection is had in `node.network.conversing`.
"""

import secrets
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio

from node.circuits.client import CircuitClient
from node.circuits.dialing import CircuitDialer, place_of
from node.circuits.switch import CircuitSwitch
from node.network.admission import Admission, HalfOpen
from node.network.conversing import Conversing
from node.network.dialing import HostAllowance
from node.network.line import one_connection
from node.network.own_addresses import OwnAddresses
from node.network.peer_dialing import PeerDialer
from node.network.peer_discovery import PeerFinder
from node.network.peer_registry import PeerRegistry
from node.network.peer_state import listed
from node.runtime.subnets import address_of
from node.sync.addresses import AddressSource
from node.sync.hub import Hub
from node.sync.introductions import Introducer
from node.wire.transport import SecureStream, TransportError, accept, say_goodbye
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.signing import public_key
from protocol.formats.links import PeerAddress
from protocol.formats.text import id_text
from protocol.ids import PeerId, TopicKey
from protocol.limits.network import CONNECTIONS_MAX, REACHED_PEERS_MAX, RELAY_CONNECTIONS_MAX
from protocol.limits.peers import IDLE_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from node.network.websocket import WebListener, WebSocketStream

log = structlog.get_logger()

_CLOCK_LOOK_SECONDS: Final = 5.0
"""Seconds between two looks whether this machine has slept."""


class Network(PeerRegistry):
    """All connections of a node. `run` owns every task."""

    def __init__(
        self,
        hub: Hub,
        node_seed: NodeSeed,
        clock: Callable[[], float],
        *,
        own_address: str = "",
        introduces: bool = False,
        addresses: OwnAddresses | None = None,
        takes_circuits: bool = False,
        punches: bool = False,
        switch: CircuitSwitch | None = None,
    ) -> None:
        """`own_address` is where peers may be told to dial this node, if it `introduces` itself and others.

        `addresses` are where it can be dialed, and tell it of a change of the network. `takes_circuits`: it opens and
        accepts circuits through its relays; `punches`: and seeks direct ways meanwhile. A relay has a `switch` instead.
        """
        own = PeerAddress(own_address, public_key(node_seed))
        super().__init__(hub, own.peer, clock)
        self._seed = node_seed
        found = self._own_addresses = addresses if addresses is not None else OwnAddresses(own_address)
        self.introducer = Introducer(hub, self.book, own, lambda: found.forwarded, lambda: found.public)
        self._introduces = introduces
        found.when_changed(self._move)
        self.switch = switch
        """Passes circuits on, where this node is a relay that does."""
        client = CircuitClient(
            own.peer,
            self._may_use,
            lambda stream, relay: self._serve_stream(stream, place_of(relay)),
            lambda: self._circuit_dialer.look_again(),
            self._may_rendezvous,
        )
        self._client = client if takes_circuits and switch is None else None
        allowance = HostAllowance()
        self._admission = Admission(CONNECTIONS_MAX if hub.relay is None else RELAY_CONNECTIONS_MAX)
        self._conversing = Conversing(
            self,
            node_seed,
            self.introducer,
            found,
            allowance,
            self._admission,
            self.switch or self._client,
            introduces=introduces,
            punches=punches and introduces,
        )
        self.displacements = self._conversing.displacements
        self._dialer = PeerDialer(self, self._conversing, node_seed, found, allowance)
        self._circuit_dialer = CircuitDialer(
            client, self.find_missed, self.lacks_followers, self._dialer.dial_through
        )
        self.when_missed = self._circuit_dialer.look_again
        self._half_open = HalfOpen()
        self._met: dict[PeerId, None] = {}  # peers that have shown that they know a topic, the latest last

    async def run(
        self,
        listeners: list[trio.SocketListener],
        web: "WebListener | None" = None,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the listeners, those by WebSocket too, and dial kept peers, until cancelled."""
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            nursery.start_soon(watch_clock, self.clock, self._wake)
            peer_finder = PeerFinder(self, self._dialer.dial_learned, self.introducer)
            nursery.start_soon(peer_finder.run)
            if self.switch is not None:
                nursery.start_soon(self.switch.run)
            elif self._client is not None:
                nursery.start_soon(self._client.run)
                nursery.start_soon(self._circuit_dialer.run)
            if web is not None:
                serve = partial(self._serve_web, web)
                nursery.start_soon(
                    partial(trio.serve_listeners, serve, web.listeners, handler_nursery=nursery)
                )
            task_status.started()
            await trio.serve_listeners(self._serve, listeners, handler_nursery=nursery)

    def keep(
        self,
        peer: PeerId,
        address: str,
        source: AddressSource = AddressSource.CONFIGURED,
        others: Sequence[str] = (),
    ) -> None:
        """Dial this peer here, too, from now on, whenever there is no connection with it; unless it is banned."""
        if peer in self.banned:
            log.info("not dialed", peer=id_text(peer), reason="banned")
            return
        old = self.dialed.get(peer)
        state = self.new_state(peer, address, "out", "waiting", source)
        state.others = tuple(others)
        if old is not None:
            old.add_addresses(address, others, source)
            if old.connection is not None:
                return  # where it is connected may be the only address that this network lets through
            old.scope.cancel()
            state.address, state.others = old.address, old.others
            state.source, state.from_links = old.source, old.from_links
        self.dialed[peer] = state
        assert self.nursery is not None, "run() comes first"
        self.nursery.start_soon(self._dialer.keep_dialing, state)

    def forget(self, peer: PeerId) -> None:
        """Stop dialing this peer, end its connections, and entrust it with nothing."""
        self.relays.discard(peer)
        self.linked.pop(peer, None)
        self.book.forget(peer)
        self.reached.pop(peer, None)
        self.proven.pop(peer, None)
        old = self.dialed.pop(peer, None)
        if old is not None:
            old.scope.cancel()
        for state in [*self.sought, *self.relayed, *self.inbound]:
            if state.peer == peer:
                state.scope.cancel()

    # --- peers that connect to this node ---

    async def _serve(self, stream: trio.SocketStream) -> None:
        await self._serve_stream(stream, address_of(stream))

    async def _serve_web(self, web: "WebListener", stream: trio.SocketStream) -> None:
        with one_connection():
            with self._half_open.place(address_of(stream)) as scope:
                opened, address = await web.accept(stream)
            if scope.cancelled_caught:
                raise TransportError("timeout", "no request in time")
            await self._serve_stream(opened, address, opened)

    async def _serve_stream(
        self, stream: trio.abc.Stream, address: str, web: "WebSocketStream | None" = None
    ) -> None:
        """`address` is where the peer is: of a stream by WebSocket (`web`), as far as its proxy says."""
        with one_connection():
            with self._half_open.place(address) as scope:
                await self._half_open.wait_turn(address)
                secure = await accept(stream, self._seed, AgreementSecret(secrets.token_bytes(32)))
            if scope.cancelled_caught:
                raise TransportError("timeout", "no handshake in time")
            await self._serve_proven(secure, address, web)

    async def _serve_proven(
        self, secure: SecureStream, address: str, web: "WebSocketStream | None" = None
    ) -> None:
        if web is None:
            self._own_addresses.note_entry(address)
        is_known = self._is_known(secure.peer_key)
        refusal = (
            "banned" if secure.peer_key in self.banned else self._admission.admit(address, is_known=is_known)
        )
        if refusal is not None:
            log.warning("connection refused", peer=id_text(secure.peer_key), reason=refusal)
            await say_goodbye(secure, refusal)
            return

        def met() -> None:
            nonlocal is_known
            self._admission.become_known(address)
            is_known = True
            self._met[secure.peer_key] = None
            if len(self._met) > REACHED_PEERS_MAX:
                del self._met[next(iter(self._met))]

        state = self.new_state(secure.peer_key, address, "in", "connected", AddressSource.INCOMING)
        if web is not None:
            state.is_web = True
            web.charge_to(state)
        across = address if web is None else ""
        try:
            with listed(self.inbound, state):
                await self._conversing.converse(state, secure, across, met if not is_known else None)
        finally:
            self._admission.leave(address, is_known=is_known)

    def _is_known(self, peer: PeerId) -> bool:
        """Return True if a peer is configured, learned of, or has shown to know a topic: no stranger takes its place."""
        return peer in self.known_keys or peer in self.reached or peer in self._met

    # --- circuits ---

    def _may_use(self, relay: PeerId) -> bool:
        """Return True if a relay is trusted to pass circuits on: this user, or a link to a repo, has named it."""
        return relay in self.relays or relay in self.linked

    def _may_rendezvous(self, topic: TopicKey) -> bool:
        """Return True if nodes that follow a topic are met: it is the present one of a repo's members."""
        return self._introduces and self.introducer.repo_of(topic) is not None

    # --- changes of this machine ---

    def _wake(self) -> None:
        """Begin anew: peers have ended connections that were silent for so long, and all of them may answer now."""
        for state in self.peers:
            if state.connection is not None:
                state.connection.part("slept")
        self._hurry()

    def _move(self, gone: Collection[str]) -> None:
        """Leave connections from addresses of this machine that are gone, and dial anew."""
        for state in self.peers:
            if state.connection is not None and state.local_host in gone:
                state.connection.part("moved")
        self._hurry()

    def _hurry(self) -> None:
        self.book.hurry(trio.current_time())
        self._circuit_dialer.hurry()
        self._dialer.hurry()


async def watch_clock(clock: Callable[[], float], woken: Callable[[], None]) -> None:
    """Call `woken` after each sleep of this machine that ended connections, until cancelled.

    While the machine sleeps, trio's clock stands still and `clock` goes on.
    """
    while True:
        wall, counted = clock(), trio.current_time()
        await trio.sleep(_CLOCK_LOOK_SECONDS)
        slept = clock() - wall - (trio.current_time() - counted)
        if slept >= IDLE_TIMEOUT_SECONDS:
            log.info("woken", slept_seconds=int(slept))
            woken()
