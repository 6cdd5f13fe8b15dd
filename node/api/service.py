"""Application service of a running node: one method for each API request.

Methods take and give plain values ready for JSON, and raise ServiceError for what a user can mend. Reads and writes of
the store go through `run_blocking`; nothing here waits without a deadline.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import trio

from node.api.browsers import Browsers
from node.api.edits import Edits
from node.api.live_texts import LiveTexts
from node.api.node_events import NodeSource, SharedPeers
from node.api.qr import draw_qr
from node.api.relay_accounts import RelayAccounts
from node.api.relay_admin import Relaying
from node.api.relay_overview import RelayOverview
from node.api.remote import Remote
from node.api.repo_list import ListedRepos
from node.api.repo_views import RepoViews
from node.api.revoking import Revoking
from node.api.targets import Targets
from node.api.tokens import Tokens
from node.authoring.author import Author
from node.authoring.writing import create_branch, create_repo
from node.care.background import Background, Health
from node.care.backups import Backups
from node.care.own_keys import OwnKeys
from node.care.reports import Reports
from node.care.settings import SettingsService
from node.content.compacting import Compacting
from node.content.documents import Documents
from node.content.files import FileService
from node.content.posts import Posts
from node.content.search import Search
from node.content.texts import Texts
from node.contract.branches import BranchList, BranchView
from node.contract.commits import CommitView, VerdictView, VoidList
from node.contract.members import InvitationLinkView
from node.contract.node import NodeLists, NodeStatus, QrCode
from node.contract.repos import RepoFork, RepoView
from node.contract.timelines import PastCommits, TangleView
from node.contract.values import Capability, Empty
from node.exports.archives import Archives
from node.exports.exports import Exports
from node.home.config_layers import Setting
from node.home.tokens import TokenFile
from node.importers.imports import Imports
from node.membership.inbox import Inbox
from node.membership.joining import Joiner
from node.membership.key_rotation import KeyRotation
from node.membership.lobbies import count_lobbies, find_repo
from node.membership.members import Members, find_user
from node.membership.merging import Merging
from node.membership.names import Names, check_name
from node.membership.pairing import Pairing
from node.membership.peers import Peers
from node.membership.profiles import NameActions
from node.membership.quorums import Quorums
from node.membership.relay_joining import RelayJoining
from node.membership.requests import Requests
from node.membership.sharing import Sharing, reach_text
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.observe.disk_use import StorageView
from node.observe.standing import Standings
from node.observe.standing_view import Outlook
from node.observe.watching import Watching
from node.runtime.errors import ServiceError
from node.runtime.version import VERSION
from node.scuttlebutt.threads import THREAD
from node.sync.hub import Hub
from node.timelines.commit_history import describe, list_past
from node.timelines.tangles import TangleQuestion, show_tangle
from node.timelines.timelines import HEADS_SHOWN_MAX, Feeds, Timelines
from node.timelines.unseen import UnseenCommits
from node.timelines.views import branch_view
from node.timelines.why import explain, list_voids
from protocol.ids import PeerId
from protocol.links import find_kept_ask
from protocol.text import id_text
from storage.commits.damaged import DamagedCount, count_damaged
from storage.commits.heads import count_heads, load_heads
from storage.commits.pending import UNREAD, count_pending, count_rejections
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch, Repo


class NodeService:
    """The node, as its API shows it."""

    def __init__(
        self,
        *,
        hub: Hub,
        network: Network,
        author: Author,
        joiner: Joiner,
        node_key: PeerId,
        home: Path,
        addresses: OwnAddresses,
        web_address: str = "",
        exports: Exports,
        tokens: TokenFile,
        clock: Callable[[], float],
        has_search: bool = True,
        remote: Remote | None = None,
        settings: Sequence[Setting] = (),
    ) -> None:
        """`settings`: those that the daemon was started with."""
        self._hub = hub
        self.replica = hub.replica
        self._author = author
        self._joiner = joiner
        self._network = network
        self._node_key = node_key
        self._home = home
        self._addresses = addresses
        self._web_address = web_address
        self._clock = clock
        self.targets = Targets(hub.replica, author.user)
        self.run_blocking = hub.run_blocking
        self.tokens = Tokens(tokens, self.targets, hub.run_blocking)
        self.browsers = Browsers(self.tokens, remote, hub.run_blocking)
        self.files = FileService(hub, author, self._branch, lambda: bool(network.relays))
        self.posts = Posts(hub, author, self._branch)
        self.search = Search(hub, is_enabled=has_search)
        self.documents = Documents(hub, author, self._branch)
        hub.presences.speak_as(author.user, author.sign)
        self.texts = Texts(hub, author, self._branch, hub.presences.has_other_editors)
        self.live_texts = LiveTexts(hub, self.texts, self._branch)
        self.compacting = Compacting(hub, author, self.documents, self.texts, self._member_branch)
        self.feeds = Feeds(hub, self._branch)
        self.timelines = Timelines(hub, self._branch)
        self.edits = Edits(hub, self._branch)
        self.unseen = UnseenCommits(hub, author.user, self._branch, clock)
        self.imports = Imports(hub, author, self._branch)
        self.members = Members(hub, author, self._whole_repo, self._member_branch)
        self.merging = Merging(hub, author, self._member_branch)
        self.renewing = KeyRotation(hub, author, self._whole_repo, self._member_branch)
        self.quorums = Quorums(hub, author, self._whole_repo, self._member_branch)
        self.relaying = Relaying(hub)
        self.relay_overview = RelayOverview(network, self.relaying.find_relay, home, hub.run_blocking)
        self.accounts = RelayAccounts(
            hub, network, self.relaying.find_relay, addresses=addresses, node_key=node_key, clock=clock
        )
        self.exports = exports
        self.archives = Archives(exports.destination, hub.run_blocking)
        self.names = Names(hub, author, self._whole_repo, self._member_branch)
        self.peers = Peers(hub, network, node_key)
        self.shared_peers = SharedPeers(self.peers.list_all)
        self.relay_joining = RelayJoining(hub, self.peers, network)
        self.sharing = Sharing(hub, network, self.peers, author, joiner, addresses=addresses, clock=clock)
        self.requests = Requests(hub, author, self.sharing, joiner, self._whole_repo)
        self.people = NameActions(
            hub, author, joiner.profiles, joiner.topics_changed, lambda: [one.peer for one in network.peers]
        )
        self.pairing = Pairing(hub, author, self.sharing, self.members)
        self.revoking = Revoking(
            self.tokens, self.targets, self.members, self.requests, self.accounts, self.relaying, self.peers
        )
        self.inbox = Inbox(hub, author, self.sharing, self._whole_repo, self._member_branch)
        self.standings = Standings(hub, network)
        views = RepoViews(hub, author, joiner, self.standings, self.requests, self.inbox)
        self.repo_list = ListedRepos(hub, self.standings, views)
        self.watching = Watching(hub, network, home, clock, exports)
        self.storage = StorageView(hub, home)
        self.background = Background()
        self.settings = SettingsService(home, settings, hub.run_blocking)
        self.health = Health(home)
        self.own_keys = OwnKeys(home, hub.run_blocking)
        self.backups = Backups(home, self.background, hub.run_blocking, clock)
        self.reports = Reports(home, exports, self.background, hub.run_blocking, clock)
        self._started_at = clock()
        self._drawing = trio.Lock()

    async def status(self) -> NodeStatus:
        """The node at a glance."""
        waiting, damaged = await self._hub.run_blocking(self._count_pending)
        replica = self._hub.replica
        displaced_at = self._network.displacements.find_last(self._clock())
        came_ms, ahead = replica.own_feeds.elsewhere_at, replica.author_clocks.find_ahead()
        return {
            "version": VERSION,
            "node": id_text(self._node_key),
            "user": id_text(self._author.user),
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
            "commits": await self._hub.run_blocking(replica.shown.count_all, replica.database),
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
            "rejected": self._hub.totals.rejected,
            "dropped": self._hub.totals.dropped,
            "export": self.exports.status(),
            "search": await self.search.view(),
            "peers": await self.peers.views(),
        }

    async def create_repo(self, name: str) -> RepoView:
        """Create a repo with a first branch called `main`."""
        repo = await create_repo(self._hub, self._author, check_name(name), "main", is_unique=True)
        return await self.repo_list.show(repo)

    async def fork_repo(self, repo: str, name: str) -> RepoFork:
        """Create a repo of this user's own that continues another."""
        checked = check_name(name)
        return await self.merging.fork_repo(self._repo(repo), checked)

    async def forget_repo(self, repo: str, accept_loss: bool = False) -> Empty:
        """Delete a repo from this node. Refused where it may be the last copy, unless that is accepted."""
        target = self._repo(repo)
        if target.has_members and not accept_loss:
            outlook = self.standings.outlook(target)
            await self._hub.run_blocking(self._check_elsewhere, target, outlook)
        await self._hub.write(self._forget, target)
        self._hub.topics_changed()
        return {}

    def _check_elsewhere(self, repo: Repo, outlook: Outlook) -> None:
        """Raises ServiceError `last_copy` where commits of a repo, or this user's files, may be on this node alone."""
        unheld = self.standings.count_unheld(self._author.user, {repo.num: outlook})[repo.num]
        if not self.standings.is_held(repo, outlook):
            raise ServiceError(
                "last_copy",
                "no other node is known to hold all of the repo",
                "`ravel repo sync REPO` waits until one does, and `ravel backup` keeps a copy; "
                "`ravel repo forget REPO --accept-loss` deletes it all the same",
            )
        if unheld.files:
            raise ServiceError(
                "last_copy",
                f"no peer has fetched and no relay keeps {unheld.files} of your files, as far as this node knows",
                "peers fetch a file when they read it (`ravel file get`), relays when they have room "
                "(`ravel peer add --relay`), and `ravel backup` keeps a copy; "
                "`ravel repo forget REPO --accept-loss` deletes it all the same",
            )

    def _forget(self, repo: Repo) -> None:
        replica = self._hub.replica
        with replica.change() as change:
            if (
                repo.has_members
            ):  # first: a crash between leaves a feed that waits for a peer, and no forked one
                replica.own_feeds.note_deletion(repo.repo_id)
            forget_repo(change.connection, repo.num)
            change.changed_repos.add(repo.repo_id)
            replica.forget_membership(repo.repo_id)

    async def list_all(self) -> NodeLists:
        """Peers and repos of this node."""
        return {**await self.peers.list_all(), **await self.repo_list.list()}

    def look_on(self, cursor: str = "", *, changes: bool = False) -> NodeSource:
        """Peers and repos as they change: with `changes` only those that have, since a cursor."""
        return NodeSource(self.shared_peers.look, self.repo_list.list, cursor, only_changes=changes)

    async def invite(
        self, repo: str, permission: str, expires_seconds: int, uses: int, reach: str, renews: bool
    ) -> InvitationLinkView:
        """Make a bearer link."""
        target = self._whole_repo(repo)
        return await self.sharing.invite(target, permission, expires_seconds, uses, reach, renews=renews)

    async def join(self, invitation: str, follow: bool = False) -> RepoView:
        """Join a repo by an invitation link, or ask to be let in by a link that asks."""
        joined = await self.sharing.join(invitation, follow=follow)
        ask = find_kept_ask(joined.invitation)  # accepted meanwhile, the repo itself is here
        target = None if ask is None else find_repo(self._hub.replica, ask.repo)
        return await self.repo_list.show(target or joined)

    async def capability(self, repo: str) -> Capability:
        """A repo's read capability as a link."""
        return await self.sharing.capability(self._whole_repo(repo))

    async def branch_capability(self, branch: str) -> Capability:
        """A branch's read capability as a link."""
        return await self.sharing.branch_capability(self._member_branch(branch))

    async def follow(self, capability: str) -> RepoView:
        """Read and replicate a repo, or one of its branches, by a read capability."""
        return await self.repo_list.show(await self.sharing.follow(capability))

    async def list_branches(self, repo: str) -> BranchList:
        """Branches of a repo, without the root branch."""
        target = self._repo(repo)

        def read() -> list[BranchView]:
            replica = self._hub.replica
            branches = replica.shown.count_in(replica.database, [target.num])[target.num]
            return self._branch_views([branch for branch in branches if not branch.facts.is_root_branch])

        return {"branches": await self._hub.run_blocking(read)}

    async def create_branch(self, repo: str, name: str) -> BranchView:
        """Add a branch to a repo."""
        target = self._whole_repo(repo)
        branch = await create_branch(self._hub, self._author, target, check_name(name), is_unique=True)
        return await self._branch_view(branch)

    async def fork_branch(self, branch: str, name: str, commit: str) -> BranchView:
        """Add a branch that continues another from a commit."""
        self._member_branch(branch)
        checked = check_name(name)
        return await self._branch_view(await self.merging.fork(branch, checked, commit))

    async def list_voids(self, branch: str) -> VoidList:
        """Void commits of a branch, and why they are."""
        voids = await self._hub.run_blocking(list_voids, self._hub.replica, self._branch(branch))
        return {"voids": voids}

    async def why(self, commit: str) -> VerdictView:
        """The verdict on a commit, in words."""
        return await self._hub.run_blocking(explain, self._hub.replica, commit)

    async def show(self, commit: str) -> CommitView:
        """A commit with all it says."""
        return await self._hub.run_blocking(describe, self._hub.replica, commit)

    async def past(self, branch: str, commit: str, limit: int) -> PastCommits:
        """The end of a branch as it was at a commit, which may be said by its tag."""
        target = self._branch(branch)
        repo = self._hub.replica.repos[target.repo_num]
        tag = (await self._hub.run_blocking(self.names.tags, repo)).get(commit)
        if tag is not None and tag.commit is not None:
            commit = id_text(tag.commit)
        return await self._hub.run_blocking(list_past, self._hub.replica, target, commit, limit)

    async def tangle(
        self,
        repo: str,
        kind: str,
        *,
        limit: int,
        branch: str = "main",
        author: str = "",
        epoch: str = "",
        message: str = "",
        name: str = THREAD,
    ) -> TangleView:
        """The end of a tangle of a repo. `TangleQuestion` says what the arguments mean."""
        question = TangleQuestion(kind, limit, branch, author, epoch, message, name)
        is_of_branch = kind in ("branch", "feed")
        target = self._repo(repo) if is_of_branch else self._whole_repo(repo)
        if is_of_branch:
            begin = self._branch(f"{id_text(target.repo_id)}:{branch}")
        else:
            begin = self._hub.replica.root_branch(target)
        user = self._author.user
        if author:
            user = await self._hub.run_blocking(
                partial(find_user, everyone=True), author, self._hub.replica, target
            )
        return await self._hub.run_blocking(show_tangle, self._hub.replica, target, question, begin, user)

    async def draw_qr(self, text: str) -> QrCode:
        """A QR code of a link, a tenth of a second of work: one at a time. Raises ServiceError `too_large`."""
        async with self._drawing:
            return await self._hub.run_blocking(draw_qr, text)

    # --- steps ---

    def _repo(self, text: str) -> Repo:
        return self.targets.repo(text)

    def _whole_repo(self, text: str) -> Repo:
        """A repo whose members are known here."""
        return _with_members(self._repo(text))

    def _member_branch(self, text: str) -> Branch:
        """A branch of such a repo."""
        branch = self._branch(text)
        _with_members(self._hub.replica.repos[branch.repo_num])
        return branch

    def _branch(self, text: str) -> Branch:
        return self.targets.branch(text)

    def _count_pending(self) -> tuple[int, DamagedCount]:
        with self._hub.replica.database.read() as connection:
            return count_pending(connection), count_damaged(connection)

    async def _branch_view(self, branch: Branch) -> BranchView:
        (view,) = await self._hub.run_blocking(self._branch_views, [branch])
        return view

    def _branch_views(self, branches: Sequence[Branch]) -> list[BranchView]:
        with self._hub.replica.database.read() as connection:
            return [
                branch_view(
                    branch,
                    load_heads(connection, branch.num, HEADS_SHOWN_MAX),
                    count_heads(connection, branch.num),
                    waiting=count_pending(connection, branch.num),
                    unread=count_pending(connection, branch.num, reason=UNREAD),
                    rejected=count_rejections(connection, branch.num),
                )
                for branch in branches
            ]


def _with_members(repo: Repo) -> Repo:
    if not repo.has_members:
        raise ServiceError(
            "not_permitted",
            "this node follows single branches of that repo, and neither its members nor the others",
            "ask a member for an invitation",
        )
    return repo
