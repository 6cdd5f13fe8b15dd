"""Peers: listening, dialing with back-off, and which connections there are.

A peer is its key; its address is only where it was last found. Each peer that is kept has one dialing task, which waits
while any connection with that peer lasts, and doubles its pause, with jitter, while the peer does not answer.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
import trio

from node.connection import Connection
from node.hub import Hub
from node.subnets import subnet_of
from node.transport import SecureStream, TransportError, accept, dial
from protocol.limits import (
    CONNECTIONS_MAX,
    DIAL_BACKOFF_MAX_SECONDS,
    DIAL_BACKOFF_MIN_SECONDS,
    HANDSHAKE_TIMEOUT_SECONDS,
    RELAY_CONNECTIONS_MAX,
)
from protocol.text import id_text
from storage.repos import Branch

log = structlog.get_logger()

_JITTER: Final = 0.3
"""Share of a pause that is left to chance, so that peers that lost each other together do not return together."""

_LASTED_SECONDS: Final = 5.0
"""Seconds after which a connection counts as one that worked, and the next pause is the shortest again."""


@dataclass(slots=True)
class PeerState:
    """What status shows of one peer."""

    peer: bytes
    address: str
    direction: str
    state: str
    since: float
    last_error: str | None = None
    connection: Connection | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)


class Network:
    """All connections of a node. `run` owns every task."""

    def __init__(self, hub: Hub, node_seed: bytes, clock: Callable[[], float]) -> None:
        self._hub = hub
        self._seed = node_seed
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._dialed: dict[bytes, PeerState] = {}
        self._inbound: list[PeerState] = []
        self.banned: set[bytes] = set()
        """Peers that are not spoken with: neither dialed nor served."""
        self.relays: set[bytes] = set()
        """Peers that may keep all that this node follows."""
        self.linked: dict[bytes, set[bytes]] = {}
        """By peer: repos whose links named it, and which it may keep."""
        self._ended = trio.Event()
        limit = CONNECTIONS_MAX if hub.relay is None else RELAY_CONNECTIONS_MAX
        self._admitted = trio.CapacityLimiter(limit)

    @property
    def peers(self) -> list[PeerState]:
        """Every kept peer, and every peer that connected to this node."""
        return [*self._dialed.values(), *self._inbound]

    async def run(
        self,
        listeners: list[trio.SocketListener],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the listeners and dial kept peers, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.serve_listeners(self._serve, listeners, handler_nursery=nursery)

    def keep(self, peer: bytes, address: str) -> None:
        """Dial this peer from now on, whenever there is no connection with it; unless it is banned."""
        if peer in self.banned:
            log.info("not dialed", peer=id_text(peer), reason="banned")
            return
        old = self._dialed.pop(peer, None)
        if old is not None:
            old.scope.cancel()
        state = PeerState(peer, address, "out", "waiting", self._clock())
        self._dialed[peer] = state
        assert self._nursery is not None, "run() comes first"
        self._nursery.start_soon(self._keep_dialing, state)

    def forget(self, peer: bytes) -> None:
        """Stop dialing this peer, end its connections, and entrust it with nothing."""
        self.relays.discard(peer)
        self.linked.pop(peer, None)
        old = self._dialed.pop(peer, None)
        if old is not None:
            old.scope.cancel()
        for state in self._inbound:
            if state.peer == peer:
                state.scope.cancel()

    async def _serve(self, stream: trio.SocketStream) -> None:
        try:
            self._admitted.acquire_on_behalf_of_nowait(stream)
        except trio.WouldBlock:  # counted before the handshake, which strangers can begin too
            log.warning("connection refused", reason="too many connections")
            await trio.aclose_forcefully(stream)
            return
        try:
            await self._serve_admitted(stream)
        except Exception:  # the border of one connection: whatever is wrong with it, the others go on
            log.exception("connection failed", direction="in")
        finally:
            self._admitted.release_on_behalf_of(stream)

    async def _serve_admitted(self, stream: trio.SocketStream) -> None:
        address = _address_of(stream)
        try:
            secure = await accept(stream, self._seed, secrets.token_bytes(32))
        except TransportError as error:
            log.info("handshake failed", reason=error.reason)
            return
        if secure.peer_key in self.banned:
            log.info("connection refused", peer=id_text(secure.peer_key), reason="banned")
            await trio.aclose_forcefully(stream)
            return
        state = PeerState(secure.peer_key, address, "in", "connected", self._clock())
        self._inbound.append(state)
        try:
            with state.scope:
                await self._converse(state, secure)
        finally:
            self._inbound.remove(state)

    async def _keep_dialing(self, state: PeerState) -> None:
        pause = DIAL_BACKOFF_MIN_SECONDS
        with state.scope:
            while True:
                while self._is_connected(state.peer):
                    await self._ended.wait()
                began = trio.current_time()
                self._enter(state, "dialing")
                try:
                    await self._dial_once(state)
                except TransportError as error:
                    state.last_error = f"{error.reason}: {error}"
                except (OSError, ValueError) as error:
                    # ValueError: the host is no name that can be looked up.
                    state.last_error = f"no answer from {state.address}: {error}"
                except Exception:  # the border of one connection: whatever is wrong with it, the others go on
                    log.exception("connection failed", direction="out", address=state.address)
                    state.last_error = "a defect in Ravel; the log has the details"
                if trio.current_time() - began > _LASTED_SECONDS:
                    pause = DIAL_BACKOFF_MIN_SECONDS
                self._enter(state, "waiting")
                await trio.sleep(pause * (1 - _JITTER * secrets.randbelow(1000) / 1000))
                pause = min(pause * 2, DIAL_BACKOFF_MAX_SECONDS)

    async def _dial_once(self, state: PeerState) -> None:
        host, _, port = state.address.rpartition(":")
        with trio.move_on_after(HANDSHAKE_TIMEOUT_SECONDS) as scope:
            stream = await trio.open_tcp_stream(host.strip("[]"), int(port))
        if scope.cancelled_caught:
            raise TransportError("timeout", f"no connection to {state.address}")
        secure = await dial(stream, self._seed, state.peer, secrets.token_bytes(32))
        state.last_error = None
        self._enter(state, "connected")
        await self._converse(state, secure)

    async def _converse(self, state: PeerState, secure: SecureStream) -> None:
        is_dialed = state.direction == "out"
        state.connection = Connection(
            self._hub,
            secure,
            lambda branch: is_dialed and self.may_keep(state.peer, branch),
            subnet_of(state.address),
        )
        log.info("connected", peer=id_text(state.peer), direction=state.direction, address=state.address)
        try:
            ended = await state.connection.run()
            state.last_error = None if ended.reason in ("closed", "peer_left") else ended.reason
            log.info("disconnected", peer=id_text(state.peer), reason=ended.reason)
        finally:
            state.connection = None
            self._ended.set()
            self._ended = trio.Event()

    def may_keep(self, peer: bytes, branch: Branch) -> bool:
        """Whether a peer, if it is a relay, may be told of a branch's topic."""
        return peer in self.relays or branch.facts.repo_id in self.linked.get(peer, ())

    def is_dialed(self, peer: bytes) -> bool:
        """Whether this node keeps a connection to a peer of its own accord."""
        return peer in self._dialed

    def _is_connected(self, peer: bytes) -> bool:
        return any(state.peer == peer and state.connection is not None for state in self.peers)

    def _enter(self, state: PeerState, name: str) -> None:
        state.state, state.since = name, self._clock()


async def open_listener(address: str) -> list[trio.SocketListener]:
    """Listeners on host:port. Raises OSError."""
    host, _, port = address.rpartition(":")
    try:
        return list(await trio.open_tcp_listeners(int(port), host=host.strip("[]")))
    except ValueError as error:
        raise OSError(f"{host!r} is not a host: {error}") from None


def listening_address(listeners: list[trio.SocketListener]) -> str:
    """host:port that the first listener got."""
    host, port = listeners[0].socket.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address_of(stream: trio.SocketStream) -> str:
    try:
        host, port = stream.socket.getpeername()[:2]
    except OSError:  # the peer has gone already
        return "unknown"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
