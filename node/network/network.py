"""Listens for peers, dials them with back-off, and tracks all connections.

A peer is its key; its address is only where it was last found. Each peer that is kept has one dialing task, which waits
while any connection with that peer lasts, and doubles its pause, with jitter, while the peer does not answer. Addresses
that were learned are dialed by `node.network.peer_discovery`, by ways of this module. A peer that no dial reaches is met
through a relay (`node.network.circuit_dialing`).
"""

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio
from sqlalchemy import Connection as SqlConnection

from node.network.admission import Admission, HalfOpen, network_key
from node.network.circuit_client import CircuitClient, CircuitStream
from node.network.circuit_dialing import CircuitDialer, place_of
from node.network.circuit_switch import CircuitSwitch
from node.network.dialing import DialsFailed, HostAllowance, dial_first, order_addresses
from node.network.line import Line, one_connection, open_tcp
from node.network.own_addresses import OwnAddresses
from node.network.peer_discovery import PeerFinder
from node.network.peer_state import DUPLICATE, Displacements, PeerState, explain_end, listed, stays
from node.network.punching import Puncher
from node.network.sleep_watch import watch_clock
from node.runtime.backoff import Backoff
from node.runtime.subnets import address_of, subnet_of
from node.sync.addresses import AddressBook, AddressSource, Learned
from node.sync.connection import Connection
from node.sync.goodbye import say_goodbye
from node.sync.hub import Hub
from node.sync.introductions import Introducer
from node.sync.transport import SecureStream, TransportError, accept, dial
from protocol.ids import PeerId, RepoId, TopicKey
from protocol.keys import AgreementSecret, NodeSeed
from protocol.limits.peers import (
    ADDRESS_REACHED_SECONDS,
    CIRCUIT_PEERS_WANTED,
    CONNECTIONS_MAX,
    DIAL_BACKOFF_MAX_SECONDS,
    DIAL_BACKOFF_MIN_SECONDS,
    HANDSHAKE_TIMEOUT_SECONDS,
    REACHED_PEERS_MAX,
    RELAY_CONNECTIONS_MAX,
)
from protocol.links import PeerAddress
from protocol.reach import may_travel
from protocol.session_outputs import AddressSeen, ReachOutput
from protocol.signing import public_key
from protocol.text import id_text
from protocol.web_address import is_web_address, parse_web_address
from storage.engine.database import StorageError
from storage.peers.peers import ReachedRow, forget_reached, put_reached
from storage.repos.epochs import Topic

if TYPE_CHECKING:
    from node.network.websocket import WebListener, WebSocketStream

log = structlog.get_logger()


class Network:
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
        self._hub = hub
        self._seed = node_seed
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._dialed: dict[PeerId, PeerState] = {}
        self._sought: list[PeerState] = []
        self._inbound: list[PeerState] = []
        self._relayed: list[PeerState] = []
        self.banned: set[PeerId] = set()
        """Peers that are not spoken with: neither dialed nor served."""
        self.relays: set[PeerId] = set()
        """Peers that may keep all that this node follows."""
        self.linked: dict[PeerId, set[RepoId]] = {}
        """By peer: repos whose links named it, and which it may keep."""
        own = PeerAddress(own_address, public_key(node_seed))
        self.book = AddressBook(own.peer, self.banned)
        found = self._own_addresses = addresses if addresses is not None else OwnAddresses(own_address)
        self.introducer = Introducer(hub, self.book, own, lambda: found.forwarded, lambda: found.public)
        self._introduces = introduces
        self._own_addresses.when_changed(self._move)
        self.switch = switch
        """Passes circuits on, where this node is a relay that does."""
        client = CircuitClient(
            own.peer,
            self._may_use,
            lambda stream, relay: self._serve_stream(stream, place_of(relay)),
            lambda: self._circuit_dialer.tell(),
            self._may_meet,
        )
        self._client = client if takes_circuits and switch is None else None
        self._circuit_dialer = CircuitDialer(client, self._missed, self._is_wanted, self._converse_through)
        self._reached: dict[PeerId, int] = {}  # by peer: unix seconds
        self._proven: dict[PeerId, str] = {}  # by the same peers: the address
        self._allowance = HostAllowance()
        self._punches = punches and introduces
        self._admission = Admission(CONNECTIONS_MAX if hub.relay is None else RELAY_CONNECTIONS_MAX)
        self._puncher = Puncher(
            self, node_seed, self._allowance, self._admission, found, lambda: hub.replica.by_topic
        )
        self._ended, self._woken = trio.Event(), trio.Event()
        self._half_open = HalfOpen()
        self.displacements = Displacements()
        self._met: dict[PeerId, None] = {}  # peers that have shown that they know a topic, the latest last

    @property
    def peers(self) -> list[PeerState]:
        """Every kept peer, then learned ones that are dialed or connected, and every peer that connected to this node."""
        return [*self._dialed.values(), *self._sought, *self._relayed, *self._inbound]

    @property
    def known_keys(self) -> set[PeerId]:
        """Peers that this node would dial if it knew where."""
        return set(self._dialed) | {learned.peer for learned in self.book.all}

    async def run(
        self,
        listeners: list[trio.SocketListener],
        web: "WebListener | None" = None,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the listeners, those by WebSocket too, and dial kept peers, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(watch_clock, self._clock, self._wake)
            peer_finder = PeerFinder(self, self.book, self.introducer, self._keep_reached, self._drop_reached)
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

    def load(self, rows: list[ReachedRow]) -> None:
        """Take up where peers were reached before this node was started, the latest first."""
        for row in reversed(rows):
            self._reached[row.peer] = row.reached_at
            self._proven[row.peer] = row.address
            is_fresh = self._clock() - row.reached_at <= ADDRESS_REACHED_SECONDS
            if is_fresh and row.source in (AddressSource.INTRODUCTION, AddressSource.LAN):
                source = AddressSource(row.source)
                self.book.load(row.peer, row.address, source, row.repos, trio.current_time())

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
        old = self._dialed.get(peer)
        state = self._new_state(peer, address, "out", "waiting", source)
        state.others = tuple(others)
        if old is not None:
            old.add_addresses(address, others, source)
            if old.connection is not None:
                return  # where it is connected may be the only address that this network lets through
            old.scope.cancel()
            state.address, state.others = old.address, old.others
            state.source, state.from_links = old.source, old.from_links
        self._dialed[peer] = state
        assert self._nursery is not None, "run() comes first"
        self._nursery.start_soon(self._keep_dialing, state)

    def forget(self, peer: PeerId) -> None:
        """Stop dialing this peer, end its connections, and entrust it with nothing."""
        self.relays.discard(peer)
        self.linked.pop(peer, None)
        self.book.forget(peer)
        self._reached.pop(peer, None)
        self._proven.pop(peer, None)
        old = self._dialed.pop(peer, None)
        if old is not None:
            old.scope.cancel()
        for state in [*self._sought, *self._relayed, *self._inbound]:
            if state.peer == peer:
                state.scope.cancel()

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

        state = self._new_state(secure.peer_key, address, "in", "connected", AddressSource.INCOMING)
        if web is not None:
            state.is_web = True
            web.charge_to(state)
        across = address if web is None else ""
        try:
            with listed(self._inbound, state):
                await self._converse(state, secure, across, met if not is_known else None)
        finally:
            self._admission.leave(address, is_known=is_known)

    def _is_known(self, peer: PeerId) -> bool:
        """Whether a peer is configured, learned of, or has shown that it knows a topic: no stranger takes its place."""
        return peer in self.known_keys or peer in self._reached or peer in self._met

    async def _keep_dialing(self, state: PeerState) -> None:
        backoff = Backoff(DIAL_BACKOFF_MIN_SECONDS, DIAL_BACKOFF_MAX_SECONDS)

        async def reached() -> None:
            await self._note_reached(state, ())

        with state.scope:
            while True:
                while self.is_direct(state.peer):
                    await self._ended.wait()
                await self._try_dialing(state, reached)
                if state.has_lasted and state.has_shared:
                    backoff.succeed()  # who shares nothing hangs up after a while, and would be dialed at once
                self._enter(state, "waiting")
                pause = backoff.fail()
                if self.is_connected(state.peer):  # by a circuit: there is time to find a direct way
                    pause = DIAL_BACKOFF_MAX_SECONDS
                with trio.move_on_after(pause):
                    await self._woken.wait()
                    backoff.succeed()  # what was tried before says nothing of where this machine is now

    async def try_learned(self, learned: Learned, reached: Callable[[], Awaitable[None]]) -> bool:
        """Dial, call `reached` once the peer has proved its key, and converse. Whether a conversation came of it."""
        state = self._new_state(learned.peer, learned.address, "out", "dialing", learned.source)
        with listed(self._sought, state):
            await self._try_dialing(state, reached)
        return state.has_lasted or (state.has_met and self.is_connected(learned.peer))

    async def _try_dialing(self, state: PeerState, reached: Callable[[], Awaitable[None]]) -> None:
        """One attempt, and the conversation that comes of it; what goes wrong is noted."""
        self._enter(state, "dialing")
        state.begin_try()
        if state.missed_since is None:
            state.missed_since = trio.current_time()
            self._circuit_dialer.tell()
        try:
            await self._dial_once(state, reached)
        except TransportError as error:
            state.last_error = f"{error.reason}: {error}"
        except DialsFailed as error:
            state.last_error = f"no answer: {error}"
        except (OSError, ValueError) as error:
            # ValueError: the host is no name that can be looked up.
            state.last_error = f"no answer from {state.address}: {error}"
        except Exception:  # the border of one connection: whatever is wrong with it, the others go on
            log.exception("connection failed", direction="out", address=state.address)
            state.last_error = "a defect in Ravel; the log has the details"

    async def _dial_once(self, state: PeerState, reached: Callable[[], Awaitable[None]]) -> None:
        first = state.address
        addresses = order_addresses(
            (first, *state.others), self._proven.get(state.peer), self._own_addresses.is_near
        )

        async def connect(address: str) -> Line:
            return await self._open_line(state, address)

        async def prove(line: Line) -> SecureStream:
            ephemeral = AgreementSecret(secrets.token_bytes(32))
            return await dial(line.stream, self._seed, state.peer, ephemeral)

        state.address, line, secure = await dial_first(
            addresses,
            connect,
            prove,
            Line.abandon,
            lambda one: say_goodbye(one, "stopping"),
        )
        state.local_host, state.is_web = line.local_host, is_web_address(state.address)
        state.socket, state.seen = line.tcp, ""
        state.others = tuple(one for one in (first, *state.others) if one != state.address)
        self._allowance.give_back(state.address, trio.current_time())
        state.last_error = None
        try:
            await reached()
        except BaseException:  # a cancellation too: nobody else would close it
            await say_goodbye(secure, "stopping")
            raise
        self._enter(state, "connected")
        await self._converse(state, secure, line.across)

    async def _open_line(self, state: PeerState, address: str) -> Line:
        """A connection to where the peer may be. A host that only a link named is not dialed at will."""
        is_trusted = not state.is_linked(address) or self._proven.get(state.peer) == address
        if not is_trusted and not self._allowance.try_dial(address, trio.current_time()):
            raise TransportError("paused", f"{address} was dialed often enough for now")
        web = parse_web_address(address)
        with trio.move_on_after(HANDSHAKE_TIMEOUT_SECONDS) as scope:
            if web is None:
                return await open_tcp(address)
            from node.network.websocket import dial_websocket  # few nodes need what it imports

            return await dial_websocket(web)
        assert scope.cancelled_caught, "it is the only way here"
        raise TransportError("timeout", f"no connection to {address}")

    async def _converse_through(self, peer: PeerId, stream: CircuitStream, relay: PeerId) -> bool:
        """Shake hands on a circuit, and converse. Return True if that lasted."""
        kept = self._dialed.get(peer)
        source = AddressSource.INTRODUCTION if kept is None else kept.source
        state = self._new_state(peer, place_of(relay), "out", "dialing", source)
        state.begin_try()
        try:
            with listed(self._relayed, state):
                secure = await dial(stream, self._seed, peer, AgreementSecret(secrets.token_bytes(32)))
                self._enter(state, "connected")
                await self._converse(state, secure, state.address)
        except TransportError as error:
            log.info("circuit failed", peer=id_text(peer), relay=id_text(relay), reason=error.reason)
        except Exception:  # the border of one connection: whatever is wrong with it, the others go on
            log.exception("connection failed", direction="out", address=state.address)
        finally:
            await trio.aclose_forcefully(stream)
        return state.has_lasted

    async def converse_punched(self, circuit: PeerState, secure: SecureStream, line: Line) -> None:
        """Have a session, in the place of the one on the circuit."""
        state = self._new_state(
            circuit.peer, line.across, circuit.direction, "connected", AddressSource.INTRODUCTION
        )
        state.is_punched, state.local_host = True, line.local_host
        with listed(self._relayed, state):
            await self._converse(state, secure, line.across)

    def _may_punch(self, state: PeerState) -> bool:
        return self._punches and state.through is not None

    def _start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Start a task that may fail without anything else."""

        async def run() -> None:
            with one_connection():
                await work(*args)

        assert self._nursery is not None, "run() comes first"
        self._nursery.start_soon(run)

    def _may_use(self, relay: PeerId) -> bool:
        """Whether a relay is trusted to pass circuits on: this user, or a link to a repo, has named it."""
        return relay in self.relays or relay in self.linked

    def _may_meet(self, topic: TopicKey) -> bool:
        """Whether nodes that follow a topic are met: it is the present one of a repo's members."""
        return self._introduces and self.introducer.repo_of(topic) is not None

    def _missed(self) -> dict[PeerId, float]:
        """Kept peers that are not connected, and since when they are dialed."""
        return {
            state.peer: state.missed_since
            for state in self._dialed.values()
            if state.missed_since is not None and not self.is_connected(state.peer)
        }

    def _is_wanted(self, peer: PeerId, topic: TopicKey) -> bool:
        """Whether a node that a relay has named is asked for: few members are connected that follow the topic."""
        connected = [one.connection for one in self.peers if one.connection is not None]
        count = sum(not one.peer_is_relay and one.has_joined(topic) for one in connected)
        is_known = peer in self._dialed or peer in self.banned or self.is_connected(peer)
        return count < CIRCUIT_PEERS_WANTED and not is_known

    async def _converse(
        self, state: PeerState, secure: SecureStream, across: str, met: Callable[[], None] | None = None
    ) -> None:
        """`across` is where the other end is, if it is a node that is seen there. `met` is called once a stranger shows that
        it knows a topic; without it the peer is none."""
        is_dialable = state.direction == "out" and state.through is None
        is_dialed = is_dialable and not state.is_web and not state.is_punched
        connection = state.connection = Connection(
            self._hub,
            secure,
            lambda topic: self.may_keep(state.peer, topic),
            subnet_of(state.address),
            self.introducer if self._introduces else None,
            network=network_key(state.address),
            is_known=met is None,
            met=met,
            across=across,
            seen=lambda output: self._note_reach(state, output, across),
            circuits=(self.switch or self._client) if state.through is None else None,
        )
        for one in self.peers:
            if one.peer == state.peer:
                one.missed_since = None
        state.met_at = trio.current_time()
        self._settle_duplicates(state)
        if state.direction == "out" and self._may_punch(state):
            self._start(self._puncher.keep_asking, state)
        log.info("connected", peer=id_text(state.peer), direction=state.direction, address=state.address)
        try:
            with self.introducer.while_connected(connection, across, is_dialed=is_dialed):
                ended = await connection.run()
            state.last_error = explain_end(ended.reason, connection.goodbye)
            log.info("disconnected", peer=id_text(state.peer), reason=ended.reason)
        finally:
            state.connection = None
            state.has_shared = any(one.is_joined for one in connection.topics)
            self._ended.set()
            self._ended = trio.Event()
            if connection.goodbye == DUPLICATE and not self.is_connected(state.peer):
                self.displacements.note(state.peer, self._clock())
            kept = self._dialed.get(state.peer)
            if kept is not None and not self.is_connected(state.peer):
                kept.missed_since = trio.current_time()
                self._circuit_dialer.tell()

    def _note_reach(self, state: PeerState, output: ReachOutput, across: str) -> None:
        """A peer says where it sees this node; that counts only where this node has dialed it. Or it seeks a direct way:
        elsewhere than on a circuit there is no better one, and nothing is answered."""
        if not isinstance(output, AddressSeen):
            if self._may_punch(state):
                self._start(self._puncher.perform, state, output)
        elif state.direction == "out" and may_travel(output.address, across):
            state.seen = output.address
            self._own_addresses.note_claim(state.peer, output.address, across)

    async def _keep_reached(self, learned: Learned) -> None:
        state = next(one for one in self._sought if one.peer == learned.peer)
        await self._note_reached(state, learned.repos)

    async def _note_reached(self, state: PeerState, repos: Iterable[RepoId]) -> None:
        """The peer proved its key: note where and when."""
        now = state.reached_at = int(self._clock())
        self._reached.pop(state.peer, None)
        self._reached[state.peer] = now
        peer, address, source = state.peer, state.address, state.source
        self._proven[peer] = address
        if len(self._reached) > REACHED_PEERS_MAX:
            oldest = next(iter(self._reached))
            del self._reached[oldest]
            self._proven.pop(oldest, None)
        await self._store(lambda connection: put_reached(connection, peer, address, source, now, repos))

    async def _drop_reached(self, learned: Learned) -> None:
        """A learned address was dropped: nobody is there any more."""
        if not self.is_kept(learned.peer) and not self.book.knows(learned.peer):
            self._reached.pop(learned.peer, None)
            self._proven.pop(learned.peer, None)
            await self._store(lambda connection: forget_reached(connection, learned.peer))

    async def _store(self, change: Callable[[SqlConnection], None]) -> None:
        def write() -> None:
            with self._hub.replica.database.write() as connection:
                change(connection)

        try:
            await self._hub.write(write)
        except StorageError as error:  # a connection is as good without the note
            log.error("storage failed", error=str(error))

    def _wake(self) -> None:
        """Begin anew: peers have ended connections that were silent for so long, and all of them may answer now."""
        for state in self.peers:
            if state.connection is not None:
                state.connection.part("slept")
        self._hurry()

    def _move(self, gone: Collection[str]) -> None:
        """This machine's addresses have changed: connections from those that are gone lead nowhere."""
        for state in self.peers:
            if state.connection is not None and state.local_host in gone:
                state.connection.part("moved")
        self._hurry()

    def _hurry(self) -> None:
        """Dial at once."""
        self.book.hurry(trio.current_time())
        self._circuit_dialer.hurry()
        self._woken.set()
        self._woken = trio.Event()

    def may_keep(self, peer: PeerId, topic: Topic) -> bool:
        """Whether a peer, if it is a relay, may be told of a topic."""
        repos, linked = self._hub.replica.repos, self.linked.get(peer, ())
        named = (repos.get(num) for num in topic.repo_nums)  # it may be of tables before a repo was deleted
        return peer in self.relays or any(one is not None and one.repo_id in linked for one in named)

    def is_connected(self, peer: PeerId) -> bool:
        """Whether there is a connection with a peer."""
        return any(state.peer == peer and state.connection is not None for state in self.peers)

    def _settle_duplicates(self, new: PeerState) -> None:
        """Of two connections with one peer one goes."""
        assert new.connection is not None, "it has just begun"
        for old in self.peers:
            if old is new or old.peer != new.peer or old.connection is None:
                continue
            if stays(old, new, self.introducer.own.peer):
                new.connection.part(DUPLICATE)
            else:
                old.connection.part(DUPLICATE)

    def is_direct(self, peer: PeerId) -> bool:
        """Whether there is a connection with a peer that goes through no relay."""
        return any(
            state.peer == peer and state.connection is not None and state.through is None
            for state in self.peers
        )

    def reached_at(self, peer: PeerId) -> int | None:
        """Unix seconds when a peer that was dialed last proved its key."""
        return self._reached.get(peer)

    def is_kept(self, peer: PeerId) -> bool:
        """Whether a user or a link asked for a connection with a peer."""
        return peer in self._dialed

    def is_online(self) -> bool:
        """Whether any peer is connected."""
        return any(state.connection is not None for state in self.peers)

    def _new_state(
        self, peer: PeerId, address: str, direction: str, name: str, source: AddressSource
    ) -> PeerState:
        return PeerState(peer, address, direction, name, self._clock(), source, self._reached.get(peer))

    def _enter(self, state: PeerState, name: str) -> None:
        state.state, state.since = name, self._clock()
