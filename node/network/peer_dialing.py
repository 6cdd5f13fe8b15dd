"""`PeerDialer`: dials peers with back-off, and hands those that prove their key to `node.network.conversing`.

Each peer that is kept has one dialing task, which waits while any direct connection with that peer lasts.
"""

import secrets
from collections.abc import Awaitable, Callable

import structlog
import trio

from node.circuits.client import CircuitStream
from node.circuits.dialing import place_of
from node.network.conversing import Conversing
from node.network.dialing import DialsFailed, HostAllowance, dial_first, order_addresses
from node.network.line import Line, open_tcp
from node.network.own_addresses import OwnAddresses
from node.network.peer_registry import PeerRegistry
from node.network.peer_state import PeerState, listed
from node.runtime.backoff import Backoff
from node.sync.addresses import AddressSource, Learned
from node.wire.transport import SecureStream, TransportError, dial, say_goodbye
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.formats.text import id_text
from protocol.formats.web_address import is_web_address, parse_web_address
from protocol.ids import PeerId
from protocol.limits.peers import (
    DIAL_BACKOFF_MAX_SECONDS,
    DIAL_BACKOFF_MIN_SECONDS,
    HANDSHAKE_TIMEOUT_SECONDS,
)

log = structlog.get_logger()


class PeerDialer:
    """Dials kept and learned peers, and shakes hands on circuits."""

    def __init__(
        self,
        registry: PeerRegistry,
        conversing: Conversing,
        seed: NodeSeed,
        addresses: OwnAddresses,
        allowance: HostAllowance,
    ) -> None:
        """`allowance` bounds how often hosts are dialed that only links have named."""
        self._registry = registry
        self._conversing = conversing
        self._seed = seed
        self._addresses = addresses
        self._allowance = allowance
        self._woken = trio.Event()

    def hurry(self) -> None:
        """Dial at once: earlier tries say nothing of where this machine is now."""
        self._woken.set()
        self._woken = trio.Event()

    async def keep_dialing(self, state: PeerState) -> None:
        """Dial a kept peer whenever it is not connected, until its scope is cancelled."""
        registry, backoff = self._registry, Backoff(DIAL_BACKOFF_MIN_SECONDS, DIAL_BACKOFF_MAX_SECONDS)

        async def reached() -> None:
            await registry.note_reached(state, ())

        with state.scope:
            while True:
                while registry.is_direct(state.peer):
                    await registry.ended.wait()
                await self._try(state, reached)
                if state.has_lasted and state.has_shared:
                    backoff.reset()  # who shares nothing hangs up after a while, and would be dialed at once
                registry.enter(state, "waiting")
                pause = backoff.fail()
                if registry.is_connected(state.peer):  # by a circuit: there is time to find a direct way
                    pause = DIAL_BACKOFF_MAX_SECONDS
                with trio.move_on_after(pause):
                    await self._woken.wait()
                    backoff.reset()

    async def dial_learned(self, learned: Learned, reached: Callable[[], Awaitable[None]]) -> bool:
        """Dial a learned address, call `reached` once the peer has proved its key, and converse.

        Return True if a session was established that lasted, or lasts in another connection.
        """
        registry = self._registry
        state = registry.new_state(learned.peer, learned.address, "out", "dialing", learned.source)
        with listed(registry.sought, state):
            await self._try(state, reached)
        return state.has_lasted or (state.has_met and registry.is_connected(learned.peer))

    async def dial_through(self, peer: PeerId, stream: CircuitStream, relay: PeerId) -> bool:
        """Shake hands on a circuit, and converse. Return True if that lasted."""
        registry = self._registry
        kept = registry.dialed.get(peer)
        source = AddressSource.INTRODUCTION if kept is None else kept.source
        state = registry.new_state(peer, place_of(relay), "out", "dialing", source)
        state.reset_met_at()
        try:
            with listed(registry.relayed, state):
                secure = await dial(stream, self._seed, peer, AgreementSecret(secrets.token_bytes(32)))
                registry.enter(state, "connected")
                await self._conversing.converse(state, secure, state.address)
        except TransportError as error:
            log.info("circuit failed", peer=id_text(peer), relay=id_text(relay), reason=error.reason)
        except Exception:  # the border of one connection: whatever is wrong with it, the others go on
            log.exception("connection failed", direction="out", address=state.address)
        finally:
            await trio.aclose_forcefully(stream)
        return state.has_lasted

    async def _try(self, state: PeerState, reached: Callable[[], Awaitable[None]]) -> None:
        """Dial once and converse; note what goes wrong."""
        self._registry.enter(state, "dialing")
        state.reset_met_at()
        if state.missed_since is None:
            state.missed_since = trio.current_time()
            self._registry.when_missed()
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
        proven = self._registry.proven.get(state.peer)
        addresses = order_addresses((first, *state.others), proven, self._addresses.is_near)

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
        self._registry.enter(state, "connected")
        await self._conversing.converse(state, secure, line.across)

    async def _open_line(self, state: PeerState, address: str) -> Line:
        """Connect to where the peer may be. A host that only a link named is dialed with restraint."""
        is_trusted = not state.is_linked(address) or self._registry.proven.get(state.peer) == address
        if not is_trusted and not self._allowance.try_dial(address, trio.current_time()):
            raise TransportError("paused", f"{address} was dialed often enough for now")
        web = parse_web_address(address)
        # Connecting may take as long as the handshake after it: both are round trips to the same host.
        with trio.move_on_after(HANDSHAKE_TIMEOUT_SECONDS) as scope:
            if web is None:
                return await open_tcp(address)
            from node.network.websocket import dial_websocket  # few nodes need what it imports

            return await dial_websocket(web)
        assert scope.cancelled_caught, "it is the only way here"
        raise TransportError("timeout", f"no connection to {address}")
