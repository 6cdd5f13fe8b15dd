"""`NodeService`: status and care of the node, its tokens and its exports."""

from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from node.api.branch_service import BranchService
from node.api.browsers import Browsers
from node.api.node_events import NodeSource
from node.api.peer_service import PeerService
from node.api.people_service import PeopleService
from node.api.qr import draw_qr
from node.api.revoking import Revoking
from node.api.targets import Targets
from node.api.tokens import Tokens
from node.care.background import Background, Health
from node.care.backups import Backups
from node.care.own_keys import OwnKeys
from node.care.reports import Reports
from node.care.settings import SettingsService
from node.exports.archives import Archives
from node.exports.exports import Exports
from node.home.config_layers import Setting
from node.home.tokens import TokenFile
from node.http.remote import Remote
from node.membership.lobbies import count_lobbies
from node.membership.sharing import reach_text
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.observe.watching import Monitoring, StorageView
from node.runtime.version import VERSION
from node.sync.hub import Hub
from protocol.formats.text import id_text
from protocol.ids import PeerId, UserId
from ravel.types.node import NodeLists, NodeStatus, QrCode, StoreBound
from storage.commits.damaged import DamagedCount, count_damaged
from storage.commits.pending import count_pending


class NodeService:
    """Parts that answer endpoints about the node itself."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        targets: Targets,
        peers: PeerService,
        people: PeopleService,
        branches: BranchService,
        *,
        user: UserId,
        node_key: PeerId,
        home: Path,
        addresses: OwnAddresses,
        web_address: str,
        exports: Exports,
        tokens: TokenFile,
        clock: Callable[[], float],
        remote: Remote | None,
        settings: Sequence[Setting],
    ) -> None:
        self._hub = hub
        self._network = network
        self._peers = peers
        self._branches = branches
        self._user = user
        self._node_key = node_key
        self._home = home
        self._addresses = addresses
        self._web_address = web_address
        self._clock = clock
        self.tokens = Tokens(tokens, targets, user, hub.run_blocking)
        self.browsers = Browsers(self.tokens, remote, hub.run_blocking)
        self.revoking = Revoking(
            self.tokens,
            targets,
            people.members,
            people.requests,
            peers.accounts,
            peers.relaying,
            peers.peers,
        )
        self.exports = exports
        self.archives = Archives(exports.destination, hub.run_blocking)
        self.watching = Monitoring(hub, network, home, clock, exports)
        self.storage = StorageView(hub, home)
        self.background = Background()
        self.settings = SettingsService(home, settings, hub.run_blocking)
        self.health = Health(home)
        self.own_keys = OwnKeys(home, hub)
        self.backups = Backups(home, id_text(node_key), self.background, hub.run_blocking, clock)
        self.reports = Reports(home, exports, self.background, hub.run_blocking, clock)
        self._started_at = clock()
        self._drawing = trio.Lock()

    async def show_status(self) -> NodeStatus:
        """Return the state of the node at a glance."""
        waiting, damaged = await self._hub.run_blocking(self._count_pending)
        replica = self._hub.replica
        displaced_at = self._network.displacements.find_last(self._clock())
        came_ms, ahead = replica.own_feeds.elsewhere_at, replica.author_clocks.find_ahead()
        return {
            "version": VERSION,
            "node": id_text(self._node_key),
            "user": id_text(self._user),
            "home": str(self._home),
            "listen": self._addresses.listen,
            "websocket_listen": self._web_address,
            "addresses": [
                {"address": one.address, "reach": reach_text(one.reach), "found_by": one.found_by}
                for one in self._addresses.known
            ],
            "router": {"state": self._addresses.router.state, "detail": self._addresses.router.detail},
            "relay": self._hub.relay is not None,
            "uptime_seconds": int(self._clock() - self._started_at),
            "repos": len(replica.repos) - count_lobbies(replica),
            "commits": await self._hub.run_blocking(lambda: replica.read_tables().commit_count),
            "pending": waiting,
            "damaged": {"commits": damaged.commits, "blocks": damaged.blocks},
            "lost_writes": {
                "detail": replica.own_feeds.detail,
                "repos": sorted(map(id_text, replica.own_feeds.uncertain & replica.tables.roots.keys())),
            },
            "key_use": {
                "displaced_at": None if displaced_at is None else int(displaced_at),
                "own_commits_came_at": None if came_ms is None else came_ms // 1000,
            },
            "clock": {
                "authors": len(ahead),
                "ahead_seconds": ahead[len(ahead) // 2] // 1000 if ahead else None,
            },
            "faults": await self.watching.find_faults(),
            "storage_bound": self._view_bound(),
            "rejected": self._hub.totals.rejected,
            "dropped": self._hub.totals.dropped,
            "export": self.exports.status(),
            "search": await self._branches.search.view(),
            "peers": await self._peers.peers.views(),
        }

    async def list_all(self) -> NodeLists:
        """List peers and repos of this node."""
        return {**await self._peers.peers.list_all(), **await self._branches.repo_list.list()}

    def follow(self, cursor: str = "", *, changes: bool = False) -> NodeSource:
        """Return a source of events about peers and repos: with `changes` only those that have changed since a cursor."""
        return NodeSource(
            self._peers.shared_list.look, self._branches.repo_list.list, cursor, only_changes=changes
        )

    async def draw_qr(self, text: str) -> QrCode:
        """Return a QR code of a link. Raises ServiceError `too_large`.

        One takes a tenth of a second of work, so they are drawn one at a time.
        """
        async with self._drawing:
            return await self._hub.run_blocking(draw_qr, text)

    def _view_bound(self) -> StoreBound | None:
        bound = self._hub.bound
        if not bound.size_max:
            return None
        days = max((one.bound_days for one in self._hub.replica.repos.values()), default=0)
        return {
            "size": bound.size,
            "size_max": bound.size_max,
            "days": days or None,
            "state": bound.state,
        }

    def _count_pending(self) -> tuple[int, DamagedCount]:
        with self._hub.replica.database.read() as connection:
            return count_pending(connection), count_damaged(connection)
