"""What a user can ask of a running node, one method for each request of the HTTP API.

Methods take and give plain values ready for JSON, and raise ServiceError for what a user can mend. Reads and writes of
the store go through `run_blocking`; nothing here waits without a deadline.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import trio

from node.config import CONFIG_NAME, is_dialable
from node.errors import ServiceError
from node.feeds import Feeds
from node.files import Files
from node.hub import Hub
from node.imports import ImportItem, import_items
from node.joining import Joiner, link_of
from node.network import Network
from node.outbound import Author
from node.resolve import resolve
from node.views import branch_view, peer_view, repo_view, timeline_items
from protocol.body import Invite, Permission, Post
from protocol.codec import DecodeError
from protocol.limits import LINK_PEER_COUNT_MAX, NAME_SIZE_MAX
from protocol.signing import key_pair
from protocol.text import InvitationLink, PeerAddress, id_text, invitation_text, parse_id, parse_invitation
from storage.commits import count_commits, count_heads, digest_timeline, load_facts, load_heads, load_timeline
from storage.repos import Branch, Repo, forget_peer, keep_peer, load_branches
from storage.waiting import UNREAD, count_rejections, count_waiting

VERSION: Final = "0.1.0"
_JOIN_TIMEOUT_SECONDS: Final = 30.0
_HEADS_SHOWN_MAX: Final = 128
JsonObject = dict[str, Any]


class NodeService:
    """The node, as its API shows it."""

    def __init__(
        self,
        *,
        hub: Hub,
        network: Network,
        author: Author,
        joiner: Joiner,
        node_key: bytes,
        home: Path,
        listen: str,
        advertise: str,
        export_folder: Path,
        clock: Callable[[], float],
    ) -> None:
        self._hub = hub
        self._network = network
        self._author = author
        self._joiner = joiner
        self._node_key = node_key
        self._home = home
        self._listen = listen
        self._advertise = advertise or listen
        self._export_folder = export_folder
        self._clock = clock
        self.files = Files(hub, author, self._branch)
        self.feeds = Feeds(hub, self._branch)
        self._started_at = clock()
        self._exporting = trio.Lock()

    async def status(self) -> JsonObject:
        """The node at a glance."""
        waiting = await self._hub.run_blocking(self._count_waiting)
        replica = self._hub.replica
        return {
            "version": VERSION,
            "node": id_text(self._node_key),
            "user": id_text(self._author.user),
            "home": str(self._home),
            "listen": self._listen,
            "uptime_seconds": int(self._clock() - self._started_at),
            "repos": len(replica.repos),
            "commits": sum(branch.commit_count for branch in await self._fresh_branches()),
            "pending": waiting,
            "rejected": self._hub.totals.rejected,
            "dropped": self._hub.totals.dropped,
            "peers": self._peers(),
        }

    async def create_repo(self, name: str) -> JsonObject:
        """Create a repo with a first branch called `main`."""
        _check_name(name)
        if any(repo.name == name for repo in self._hub.replica.repos.values()):
            raise _taken("repo", name)
        repo, intake = await self._hub.run_blocking(self._author.create_repo, name)
        self._hub.announce(intake)
        _, intake = await self._hub.run_blocking(self._author.create_branch, repo, "main")
        self._hub.announce(intake)
        return await self._repo_view(repo)

    async def list_repos(self) -> JsonObject:
        """All repos of this node."""
        return {"repos": [await self._repo_view(repo) for repo in self._hub.replica.repos.values()]}

    async def invite(self, repo: str, permission: str, expires_seconds: int) -> JsonObject:
        """Make an invitation link for one person; it is a secret until it is used or expires."""
        target = self._repo(repo)
        wanted = {"read": Permission.READ, "write": Permission.WRITE}.get(permission)
        if wanted is None:
            raise ServiceError("bad_request", f"permission is read or write, not {permission!r}")
        if expires_seconds <= 0:
            raise ServiceError("bad_request", "an invitation expires in the future")
        peers = self._ways_to(target)
        if not peers:
            raise ServiceError(
                "bad_config",
                f"this node listens on {self._listen}, which tells nobody how to reach it",
                f"set [network] advertise in {self._home / CONFIG_NAME} to host:port, and start it again",
            )
        seed = secrets.token_bytes(32)
        expires_at = int((self._clock() + expires_seconds) * 1000)
        body = Invite(key_pair(seed)[0], wanted, 1, expires_at)
        root = self._hub.replica.root_branch(target)
        written, intake = await self._hub.run_blocking(self._author.write, root, body)
        self._hub.announce(intake)
        link = link_of(target, written.commit_id, seed, wanted, expires_at, peers)
        return {
            "invitation": invitation_text(link),
            "expires_at": expires_at // 1000,
            "addresses": [peer.address for peer in peers],
        }

    async def join(self, invitation: str) -> JsonObject:
        """Join a repo by an invitation link; waits a while for the membership to arrive, and goes on without it."""
        link = self._parse_link(invitation)
        for peer in link.peers:
            _check_dialable(peer.address, "bad_link")
        repo = await self._joiner.begin(link)
        for peer in link.peers:
            if peer.peer != self._node_key:
                await self.add_peer(peer.address, id_text(peer.peer))
        with trio.move_on_after(_JOIN_TIMEOUT_SECONDS):
            while await self._hub.run_blocking(self._permission, repo) is None:
                await self._hub.wait_for_change()
        return await self._repo_view(repo)

    async def list_members(self, repo: str) -> JsonObject:
        """Members and what they may do."""
        target = self._repo(repo)
        state = await self._hub.run_blocking(self._joiner.member_state, target)
        members = sorted((id_text(user), held.name.lower()) for user, held in state.members().items())
        return {"members": [{"user": user, "permission": held} for user, held in members]}

    async def list_branches(self, repo: str) -> JsonObject:
        """Branches of a repo, without the root branch."""
        target = self._repo(repo)
        branches = [
            branch
            for branch in await self._fresh_branches()
            if branch.repo_num == target.num and not branch.facts.is_root_branch
        ]
        return {"branches": [await self._branch_view(branch) for branch in branches]}

    async def create_branch(self, repo: str, name: str) -> JsonObject:
        """Add a branch to a repo."""
        _check_name(name)
        target = self._repo(repo)
        siblings = [branch for branch in self._hub.replica.branches.values() if branch.repo_num == target.num]
        if any(branch.name == name for branch in siblings):
            raise _taken("branch", name)
        branch, intake = await self._hub.run_blocking(self._author.create_branch, target, name)
        self._hub.announce(intake)
        return await self._branch_view(branch)

    async def write(self, branch: str, text: str) -> JsonObject:
        """Write one post on the branch's heads; it is durable when this returns."""
        target = self._branch(branch)
        written, intake = await self._hub.run_blocking(self._author.write, target, Post(text))
        self._hub.announce(intake)
        return await self._hub.run_blocking(self._commit_view, target, written.commit_id)

    async def timeline(self, branch: str, after_position: int, limit: int) -> JsonObject:
        """A window of the timeline: `limit` items from the one after `after_position` (-1: from the start)."""
        target = self._branch(branch)
        return await self._hub.run_blocking(self._timeline, target, after_position + 1, limit)

    async def digest(self, branch: str) -> JsonObject:
        """The digest of the whole timeline: equal on two nodes exactly if they show the same."""
        return await self._hub.run_blocking(self._digest, self._branch(branch))

    async def import_items(self, branch: str, items: list[JsonObject], source: str) -> JsonObject:
        """Import one bounded batch of another system's commits."""
        target = self._branch(branch)
        batch = [ImportItem(**item) for item in items]
        summary, intake = await self._hub.run_blocking(import_items, self._author, target, source, batch)
        self._hub.announce(intake)
        return {"imported": summary.imported, "already": summary.already, "heads": summary.heads}

    async def export(self) -> JsonObject:
        """Write what is new since the last export as Parquet."""
        async with self._exporting:
            return await self._hub.run_blocking(self._export)

    async def add_peer(self, address: str, peer: str) -> JsonObject:
        """Keep a connection to a peer."""
        key = _parse_peer(peer)
        _check_dialable(address, "bad_request")
        if key == self._node_key:
            raise ServiceError("bad_request", "that is this node itself")
        await self._hub.run_blocking(self._store_peer, key, address)
        self._network.keep(key, address)
        return next(
            peer_view(state, self._branch_names()) for state in self._network.peers if state.peer == key
        )

    async def list_peers(self) -> JsonObject:
        """Peers and how each topic stands with them."""
        return {"peers": self._peers()}

    async def remove_peer(self, peer: str) -> JsonObject:
        """Disconnect from a peer and dial it no more."""
        # One peer may have two connections, an old one that is ending among them.
        key = resolve("peer", peer, [(key, "", key) for key in {state.peer for state in self._network.peers}])
        await self._hub.run_blocking(self._forget_peer, key)
        self._network.forget(key)
        return {}

    # --- steps ---

    def _ways_to(self, repo: Repo) -> tuple[PeerAddress, ...]:
        """Where the repo can be had: here, and at peers that follow it. Others are nobody's business."""
        topics = {
            branch.topic for branch in self._hub.replica.branches.values() if branch.repo_num == repo.num
        }
        ways = [PeerAddress(self._advertise, self._node_key)] if is_dialable(self._advertise) else []
        ways += [
            PeerAddress(state.address, state.peer)
            for state in self._network.peers
            if state.direction == "out"
            and state.connection is not None
            and any(progress.topic in topics and progress.is_joined for progress in state.connection.topics)
        ]
        return tuple(ways[:LINK_PEER_COUNT_MAX])

    def _repo(self, text: str) -> Repo:
        return resolve(
            "repo", text, ((repo.repo_id, repo.name, repo) for repo in self._hub.replica.repos.values())
        )

    def _branch(self, text: str) -> Branch:
        """A branch by name, id or prefix; REPO:BRANCH where the name alone is not unique."""
        repo_text, _, branch_text = text.rpartition(":")
        branches = [
            branch
            for branch in self._hub.replica.branches.values()
            if not branch.facts.is_root_branch
            and (not repo_text or branch.repo_num == self._repo(repo_text).num)
        ]
        return resolve(
            "branch", branch_text, ((branch.branch_id, branch.name, branch) for branch in branches)
        )

    def _branch_names(self) -> dict[bytes, Branch]:
        return dict(self._hub.replica.by_topic)

    def _peers(self) -> list[JsonObject]:
        names = self._branch_names()
        return [peer_view(state, names) for state in self._network.peers]

    def _parse_link(self, text: str) -> InvitationLink:
        try:
            link = parse_invitation(text)
        except DecodeError as error:
            raise ServiceError(
                "bad_link", f"this is not an invitation: {error}", "copy the link whole, or ask for a new one"
            ) from None
        if link.expires_at < self._clock() * 1000:
            raise ServiceError("expired", "the invitation has expired", "ask for a new one")
        return link

    def _permission(self, repo: Repo) -> Permission | None:
        return self._joiner.member_state(repo).permission(self._author.user)

    def _count_waiting(self) -> int:
        with self._hub.replica.database.read() as connection:
            return count_waiting(connection)

    async def _fresh_branches(self) -> list[Branch]:
        def read() -> list[Branch]:
            with self._hub.replica.database.read() as connection:
                return list(load_branches(connection))

        return await self._hub.run_blocking(read)

    async def _repo_view(self, repo: Repo) -> JsonObject:
        branches = [branch for branch in await self._fresh_branches() if branch.repo_num == repo.num]
        permission = await self._hub.run_blocking(self._permission, repo)
        return repo_view(self._hub.replica.repos[repo.num], branches, permission)

    async def _branch_view(self, branch: Branch) -> JsonObject:
        def read() -> JsonObject:
            with self._hub.replica.database.read() as connection:
                return branch_view(
                    branch,
                    load_heads(connection, branch.num, _HEADS_SHOWN_MAX),
                    count_heads(connection, branch.num),
                    waiting=count_waiting(connection, branch.num),
                    unread=count_waiting(connection, branch.num, reason=UNREAD),
                    rejected=count_rejections(connection, branch.num),
                )

        return await self._hub.run_blocking(read)

    def _commit_view(self, branch: Branch, commit_id: bytes) -> JsonObject:
        with self._hub.replica.database.read() as connection:
            rank = load_facts(connection, [commit_id])[commit_id].rank
        return {"commit": id_text(commit_id), "rank": rank, "branch": id_text(branch.branch_id)}

    def _timeline(self, branch: Branch, offset: int, limit: int) -> JsonObject:
        with self._hub.replica.database.read() as connection:
            rows = load_timeline(connection, branch.num, offset, limit)
            items = timeline_items(connection, branch, rows, offset)
            total = count_commits(connection, branch.num)
        following = offset + len(rows)
        return {"items": items, "total": total, "next": following - 1 if rows and following < total else None}

    def _digest(self, branch: Branch) -> JsonObject:
        with self._hub.replica.database.read() as connection:
            digest, count = digest_timeline(connection, branch.num)
            heads = load_heads(connection, branch.num, _HEADS_SHOWN_MAX)
            head_count = count_heads(connection, branch.num)
        return {
            "digest": digest,
            "commits": count,
            "heads": [id_text(commit_id) for commit_id, _ in heads],
            "head_count": head_count,
        }

    def _export(self) -> JsonObject:
        # Imported when first needed: pyarrow is a third of a daemon's memory.
        from storage.export import export_store

        database, created_at = self._hub.replica.database, int(self._clock())
        summary = export_store(database, self._export_folder, id_text(self._node_key), created_at)
        return {
            "path": str(summary.path),
            "commits": summary.commits,
            "added": summary.added,
            "parts": summary.parts,
            "watermark": summary.watermark,
        }

    def _store_peer(self, key: bytes, address: str) -> None:
        with self._hub.replica.database.write() as connection:
            keep_peer(connection, key, address)

    def _forget_peer(self, key: bytes) -> None:
        with self._hub.replica.database.write() as connection:
            forget_peer(connection, key)


def _check_dialable(address: str, code: str) -> None:
    if not is_dialable(address):
        raise ServiceError(code, f"{address!r} is not host:port that can be dialed")


def _check_name(name: str) -> None:
    """Names are typed: as arguments, as parts of a URL's path, and before or after the colon of REPO:BRANCH."""
    if not 0 < len(name) <= NAME_SIZE_MAX or not name.isprintable() or name != name.strip():
        raise ServiceError(
            "bad_request", f"a name has 1 to {NAME_SIZE_MAX} printable characters, no space at its ends"
        )
    if ":" in name or name.startswith("-") or name in (".", ".."):
        raise ServiceError("bad_request", f"a name has no colon, does not begin with -, and is not {name!r}")


def _taken(what: str, name: str) -> ServiceError:
    return ServiceError("already_exists", f"there is a {what} called {name!r}", "choose another name")


def _parse_peer(text: str) -> bytes:
    try:
        return parse_id(text)
    except DecodeError:
        raise ServiceError(
            "bad_request", f"{text!r} is not a peer id", "`ravel id` on the other node prints it"
        ) from None
