"""`PeerRegistry`: the peers that this node dials or is connected to, and where each last proved its key."""

from collections.abc import Awaitable, Callable, Iterable

import structlog
import trio
from sqlalchemy import Connection as SqlConnection

from node.network.line import one_connection
from node.network.peer_state import PeerState
from node.sync.addresses import AddressBook, AddressSource, Learned
from node.sync.hub import Hub
from protocol.ids import PeerId, RepoId, TopicKey
from protocol.limits.network import ADDRESS_REACHED_SECONDS, CIRCUIT_PEERS_WANTED, REACHED_PEERS_MAX
from storage.engine.database import StorageError
from storage.peers.peers import ReachedRow, forget_reached, put_reached
from storage.repos.epochs import Topic

log = structlog.get_logger()


class PeerRegistry:
    """Peers of this node. `clock` gives unix seconds."""

    def __init__(self, hub: Hub, own_key: PeerId, clock: Callable[[], float]) -> None:
        self.hub = hub
        self.own_key = own_key
        self.clock = clock
        self.nursery: trio.Nursery | None = None
        self.dialed: dict[PeerId, PeerState] = {}
        """Peers that a user or a link has named: they are kept."""
        self.sought: list[PeerState] = []
        """Peers that are dialed at learned addresses."""
        self.inbound: list[PeerState] = []
        self.relayed: list[PeerState] = []
        """Peers that are reached through a relay, or were."""
        self.banned: set[PeerId] = set()
        """Peers that are not spoken with: neither dialed nor served."""
        self.relays: set[PeerId] = set()
        """Peers that may keep all that this node follows."""
        self.linked: dict[PeerId, set[RepoId]] = {}
        """By peer: repos whose links named it, and which it may keep."""
        self.book = AddressBook(own_key, self.banned)
        self.reached: dict[PeerId, int] = {}
        """Unix seconds when a peer that was dialed last proved its key, the latest last."""
        self.proven: dict[PeerId, str] = {}
        """Address at which it did."""
        self.ended = trio.Event()
        """Set, and replaced, when a connection has ended."""
        self.when_missed: Callable[[], None] = lambda: None
        """Called when a kept peer is missed."""

    @property
    def peers(self) -> list[PeerState]:
        """List kept peers, then learned ones that are dialed or connected, and those that connected to this node."""
        return [*self.dialed.values(), *self.sought, *self.relayed, *self.inbound]

    @property
    def known_keys(self) -> set[PeerId]:
        """Return the peers that this node wants to dial, with or without a known address."""
        return set(self.dialed) | {learned.peer for learned in self.book.all}

    def new_state(
        self, peer: PeerId, address: str, direction: str, name: str, source: AddressSource
    ) -> PeerState:
        """Make the state of a connection that begins, or of a peer that is dialed."""
        return PeerState(peer, address, direction, name, self.clock(), source, self.reached.get(peer))

    def enter(self, state: PeerState, name: str) -> None:
        """Note what a peer's state is now, and since when."""
        state.state, state.since = name, self.clock()

    def start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Start a task for one connection; its failure ends nothing else."""

        async def run() -> None:
            with one_connection():
                await work(*args)

        assert self.nursery is not None, "run() comes first"
        self.nursery.start_soon(run)

    # --- who is connected ---

    def is_connected(self, peer: PeerId) -> bool:
        """Return True if there is a connection with a peer."""
        return any(state.peer == peer and state.connection is not None for state in self.peers)

    def is_direct(self, peer: PeerId) -> bool:
        """Return True if there is a connection with a peer that goes through no relay."""
        return any(
            state.peer == peer and state.connection is not None and state.through is None
            for state in self.peers
        )

    def is_kept(self, peer: PeerId) -> bool:
        """Return True if a user or a link asked for a connection with a peer."""
        return peer in self.dialed

    def is_online(self) -> bool:
        """Return True if any peer is connected."""
        return any(state.connection is not None for state in self.peers)

    def find_missed(self) -> dict[PeerId, float]:
        """Return kept peers that are not connected, and since when they are dialed."""
        return {
            state.peer: state.missed_since
            for state in self.dialed.values()
            if state.missed_since is not None and not self.is_connected(state.peer)
        }

    def lacks_followers(self, peer: PeerId, topic: TopicKey) -> bool:
        """Return True if a node that a relay has named is asked for: few connected members follow the topic."""
        connected = [one.connection for one in self.peers if one.connection is not None]
        count = sum(not one.peer_is_relay and one.has_joined(topic) for one in connected)
        is_known = peer in self.dialed or peer in self.banned or self.is_connected(peer)
        return count < CIRCUIT_PEERS_WANTED and not is_known

    def may_keep(self, peer: PeerId, topic: Topic) -> bool:
        """Return True if a peer, if it is a relay, may be told of a topic."""
        repos, linked = self.hub.replica.repos, self.linked.get(peer, ())
        named = (repos.get(num) for num in topic.repo_nums)  # it may be of tables before a repo was deleted
        return peer in self.relays or any(one is not None and one.repo_id in linked for one in named)

    # --- where peers were reached ---

    def load(self, rows: list[ReachedRow]) -> None:
        """Take up where peers were reached before this node was started, the latest first."""
        for row in reversed(rows):
            self.reached[row.peer] = row.reached_at
            self.proven[row.peer] = row.address
            is_fresh = self.clock() - row.reached_at <= ADDRESS_REACHED_SECONDS
            if is_fresh and row.source in (AddressSource.INTRODUCTION, AddressSource.LAN):
                source = AddressSource(row.source)
                self.book.load(row.peer, row.address, source, row.repos, trio.current_time())

    def reached_at(self, peer: PeerId) -> int | None:
        """Return the unix seconds when a peer that was dialed last proved its key."""
        return self.reached.get(peer)

    async def note_reached(self, state: PeerState, repos: Iterable[RepoId]) -> None:
        """Note where and when a peer proved its key."""
        now = state.reached_at = int(self.clock())
        self.reached.pop(state.peer, None)
        self.reached[state.peer] = now
        peer, address, source = state.peer, state.address, state.source
        self.proven[peer] = address
        if len(self.reached) > REACHED_PEERS_MAX:
            oldest = next(iter(self.reached))
            del self.reached[oldest]
            self.proven.pop(oldest, None)
        await self._store(lambda connection: put_reached(connection, peer, address, source, now, repos))

    async def keep_learned(self, learned: Learned) -> None:
        """Note that a peer proved its key at a learned address."""
        state = next(one for one in self.sought if one.peer == learned.peer)
        await self.note_reached(state, learned.repos)

    async def drop_learned(self, learned: Learned) -> None:
        """Forget where a peer was reached, if no address of it is left."""
        if not self.is_kept(learned.peer) and not self.book.knows(learned.peer):
            self.reached.pop(learned.peer, None)
            self.proven.pop(learned.peer, None)
            await self._store(lambda connection: forget_reached(connection, learned.peer))

    async def _store(self, change: Callable[[SqlConnection], None]) -> None:
        def write() -> None:
            with self.hub.replica.database.write() as connection:
                change(connection)

        try:
            await self.hub.write(write)
        except StorageError as error:  # a connection is as good without the note
            log.error("storage failed", error=str(error))
