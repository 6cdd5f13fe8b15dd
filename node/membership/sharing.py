"""User actions on share links: invitations, which make members, and read capabilities, which let anyone follow.

Links are secrets. They are made and shown when a user asks for one, and never logged.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import trio

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commit
from node.ingest.replica import Replica
from node.membership.joining import Joiner, link_of
from node.membership.link_looks import parse_pasted
from node.membership.lobbies import find_asked, find_repo
from node.membership.vouching import make_voucher
from node.network.network import Network
from node.network.own_addresses import OwnAddresses, told_reach
from node.network.peer_state import PeerState
from node.network.peers import TRUST_CHANGED, Peers, check_dialable
from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from node.runtime.wording import date_text
from node.sync.connection import Connection
from node.sync.hub import Hub
from protocol.codec import DecodeError, encode
from protocol.crypto.hashing import branch_secret
from protocol.crypto.keys import InvitationSeed
from protocol.crypto.signing import key_pair
from protocol.formats.block import Reference
from protocol.formats.body import BranchLink, Invite, Permission
from protocol.formats.links import (
    RENEWAL_NOTE,
    AskLink,
    BranchCapability,
    BranchChannel,
    DeviceLink,
    InvitationLink,
    PeerAddress,
    ReadCapability,
    branch_capability_text,
    capability_text,
    invitation_text,
    link_kind,
    parse_ask_link,
    parse_branch_capability,
    parse_capability,
    parse_device_link,
    parse_invitation,
)
from protocol.formats.text import id_text, pasted_word
from protocol.ids import ObjectId, PeerId, RepoId, TopicKey, UserId
from protocol.limits.formats import LINK_CHANNEL_COUNT_MAX, LINK_PEER_COUNT_MAX
from protocol.limits.peers import LOBBY_COUNT_MAX
from protocol.session.reach import Reach
from ravel.types.members import InvitationLinkView
from ravel.types.values import Capability
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo

_ARRIVAL_TIMEOUT_SECONDS: Final = 30.0
"""How long a request waits for a repo's first commits; the node goes on without it."""
_POSTS_SHOWN_SECONDS: Final = 1.0
"""Seconds that it waits on for the membership once the posts that the link names are shown: mostly it is here by then."""
_RELAY_SECONDS: Final = 3.0
"""How long a link waits for a relay that has just been added: it names those alone that have the repo."""
_LOOK_SECONDS: Final = 0.1
_REACHES: Final = {"machine": Reach.MACHINE, "network": Reach.PRIVATE, "anywhere": Reach.EVERYBODY}
"""How far a link reaches, as the API says it."""
T = TypeVar("T")


def _nothing() -> bool:
    """Return False: there is nothing that would make a wait shorter."""
    return False


class Sharing:
    """Makes links of repos, and takes up those of others. `addresses` are what a link says of this node."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        peers: Peers,
        author: Author,
        joiner: Joiner,
        *,
        addresses: OwnAddresses,
        clock: Callable[[], float],
    ) -> None:
        self._hub = hub
        self._network = network
        self._peers = peers
        self._author = author
        self._joiner = joiner
        self._addresses = addresses
        self._clock = clock

    async def invite(
        self,
        repo: Repo,
        permission: str,
        expires_seconds: int,
        uses: int,
        reach: str = "machine",
        *,
        renews: bool = False,
    ) -> InvitationLinkView:
        """Make a bearer link for so many people; it is a secret until the repo is renewed.

        With `renews` this node revokes the link once it is used up, and then renews the repo.

        Raises ServiceError `bad_config`, and makes none, where it would not reach as far as is demanded.
        """
        wanted = {"read": Permission.READ, "write": Permission.WRITE}.get(permission)
        if wanted is None:
            raise ServiceError("bad_request", f"permission is read or write, not {permission!r}")
        if expires_seconds <= 0:
            raise ServiceError("bad_request", "an invitation expires in the future")
        await self._hub.run_blocking(check_inviter, self._hub.replica, repo, self._author.user)
        ways = await self.ways_to(repo)
        self.check_reach(ways, reach)
        seed = InvitationSeed(secrets.token_bytes(32))
        expires_at = int((self._clock() + expires_seconds) * 1000)
        body = Invite(key_pair(seed)[0], wanted, uses, expires_at)
        root = self._hub.replica.root_branch(repo)
        written = await write_commit(
            self._hub, self._author, root, Draft(body, metadata=RENEWAL_NOTE if renews else b"")
        )
        epoch = self._hub.replica.writing_epoch(repo)
        voucher = await self._hub.run_blocking(
            make_voucher,
            self._hub.replica,
            self._author,
            repo,
            epoch,
            written.commit_id,
            by := self._joiner.profiles.me.name,
            self._hub.clock_ms(),
        )
        link = link_of(repo, epoch, written.commit_id, seed, wanted, expires_at, ways.peers, voucher, by)
        return {
            "invitation": invitation_text(link),
            "id": id_text(written.commit_id),
            "expires_at": expires_at // 1000,
            "addresses": ways.addresses,
            "reach": reach_text(ways.reach),
        }

    async def join(self, text: str, *, follow: bool = False) -> Repo:
        """Join a repo by an invitation link; waits a while for the membership to arrive, and goes on without it.

        A link that makes no member any more opens the repo all the same. The user who wants that says `follow`; for all
        others nothing of the repo stays here: nobody shall take reading for membership. Raises ServiceError `expired`.
        """
        text = pasted_word(text)
        if link_kind(text) == "ask":
            return await self._ask(parse_pasted(parse_ask_link, text, "a link that asks"))
        repo, refused = await self._join(parse_pasted(parse_invitation, text, "an invitation"), follow=follow)
        if refused and not follow:
            raise ServiceError(
                "expired",
                f"the invitation makes you no member: {refused}",
                "ask for a new one; its link still opens the repo, if to read is enough: `ravel repo join --follow LINK`",
            )
        return repo

    async def _ask(self, link: AskLink) -> Repo:
        """Ask by a link; gives the lobby. Waits a while until the request is made, and goes on without it."""
        replica, invitation = self._hub.replica, link.opened()
        self._check_time(invitation, "the link")
        _check_peers(invitation.peers)
        target = find_repo(replica, link.repo)
        if target is not None and await self._hub.run_blocking(self.permission, target) is not None:
            raise ServiceError(
                "already_exists",
                f"you are a member of {target.name}",
                "`ravel repo list` shows what you may do there",
            )
        if len(await self._hub.run_blocking(find_asked, replica)) >= LOBBY_COUNT_MAX:
            raise ServiceError(
                "too_large", f"{LOBBY_COUNT_MAX} requests of yours are open", "`ravel requests cancel REPO`"
            )
        lobby = await self._joiner.begin_asking(link)
        await self._reach(invitation.peers, lobby.repo_id)
        await self._reach(invitation.peers, link.repo)  # a relay may keep the repo's topics, too
        refused = self._joiner.lobbies.refused
        await self._until(lambda: self.permission(lobby) is not None or lobby.repo_id in refused)
        if lobby.repo_id in refused:
            reason = refused[lobby.repo_id]
            await self._hub.write(self._joiner.lobbies.forget, [lobby])
            self._hub.topics_changed()
            raise ServiceError("expired", f"the link lets you ask nothing: {reason}", "ask for a new one")
        return lobby

    async def invite_device(
        self, repo: Repo, expires_seconds: int, reach: str
    ) -> tuple[DeviceLink, InvitationLinkView]:
        """Make a link by which one user becomes a device of this one, and the invitation in it.

        `repo` is the devices repo. Raises ServiceError as `invite` does.
        """
        made = await self.invite(repo, "write", expires_seconds, 1, reach)
        return DeviceLink(self._author.user, encode(parse_invitation(made["invitation"]))), made

    async def join_as_device(self, text: str) -> Repo:
        """Become a device by such a link; as `join`.

        The list of devices that it opened does not stay where it makes no device any more: ServiceError `expired`.
        """
        link = parse_pasted(parse_device_link, pasted_word(text), "a link for a device")
        if link.person == self._author.user:
            raise ServiceError("bad_link", "that link is this user's own", "use it on the other device")
        repo, refused = await self._join(link.opened(), link.person)
        if refused:
            raise ServiceError(
                "expired",
                f"the link makes you no device: {refused}",
                "make a new link there: ravel device add",
            )
        return repo

    async def forget(self, repo: Repo) -> None:
        """Delete a repo from this node."""
        await self._joiner.forget(repo)

    async def _join(
        self, link: InvitationLink, person: UserId | None = None, *, follow: bool = False
    ) -> tuple[Repo, str]:
        """Join by an opened link. Return also why it makes no member, empty where it does or nothing was heard yet.

        What a link opened that makes no member stays where the user wants to `follow`, or followed before.
        """
        self._check_time(link, "the invitation")
        _check_peers(link.peers)
        stays = follow or find_repo(self._hub.replica, link.repo) is not None
        repo = await self._joiner.begin(link, person)
        await self._reach(link.peers, repo.repo_id)
        await self._until(
            lambda: self.permission(repo) is not None or repo.repo_id in self._joiner.refused,
            lambda: self._has_posts(repo),
        )
        refused = self._joiner.refused.get(repo.repo_id, "")
        if refused and not stays:
            await self._joiner.forget(repo)
        return repo, refused

    def _check_time(self, link: InvitationLink, what: str) -> None:
        """Raise ServiceError if a link has expired by this node's clock, which may be wrong itself."""
        now = self._clock()
        if link.expires_at <= now * 1000:
            raise ServiceError(
                "expired",
                f"{what} has expired: it was good until {date_text(link.expires_at // 1000)}, and the clock here says "
                f"{date_text(now)}",
                "ask for a new one; if the clock is wrong, set it: `ravel doctor` compares it",
            )

    async def capability(self, repo: Repo) -> Capability:
        """Return the repo's read capability as a link: a secret that does not expire, and makes nobody a member."""
        ways = await self.ways_to(repo)
        epoch = self._hub.replica.writing_epoch(repo)
        root = Reference(ObjectId(repo.init_id), repo.init_key)
        capability = ReadCapability(repo.repo_id, root, epoch.epoch_id, epoch.key, ways.peers, repo.name)
        return _capability_view(capability_text(capability), ways)

    async def branch_capability(self, branch: Branch) -> Capability:
        """Return a branch's read capability as a link: a secret that opens this branch and nothing else of its repo.

        Raises ServiceError `not_permitted`, `too_large`.
        """
        ways = await self.ways_to(self._hub.replica.repos[branch.repo_num])
        await self.state_link(branch)
        try:
            text = branch_capability_text(self.capability_of(branch, ways.peers))
        except DecodeError:
            raise _too_many_epochs() from None
        return _capability_view(text, ways)

    def capability_of(self, branch: Branch, peers: tuple[PeerAddress, ...] = ()) -> BranchCapability:
        """Return what opens a branch on its topics in all epochs, the current one first.

        Raises ServiceError `too_large`, and `not_permitted` where this node lacks the writers' secret.
        """
        replica = self._hub.replica
        repo = replica.repos[branch.repo_num]
        of_epochs = {one.epochs[0].num: one for one in replica.tables.links_of(branch.num) if one.epochs}
        current = of_epochs.pop(repo.epoch_num, None)
        if current is None:
            raise ServiceError(
                "not_permitted", "this node may read the branch and not make links to it", READ_ONLY_ADVICE
            )
        channels = [_channel_of(one, branch) for one in [current, *reversed(of_epochs.values())]]
        if len(channels) > LINK_CHANNEL_COUNT_MAX:
            raise _too_many_epochs()
        return BranchCapability(
            repo.repo_id, repo.init_id, branch.branch_id, branch.name, tuple(channels), peers
        )

    async def state_link(self, branch: Branch) -> None:
        """State in the root branch, once, that writers' nodes publish a branch on a topic of its own from now on.

        Raises ServiceError `not_permitted`.
        """
        if not await self._hub.run_blocking(self._is_linked, branch):
            root = self._hub.replica.root_branch(self._hub.replica.repos[branch.repo_num])
            await write_commit(self._hub, self._author, root, BranchLink(branch.branch_id))
            self._hub.topics_changed()

    def _is_linked(self, branch: Branch) -> bool:
        replica = self._hub.replica
        with replica.membership_lock:
            membership = replica.membership(branch.facts.repo_id)
            return branch.branch_id in membership.operations.linked_branches()

    async def _follow_branch(self, text: str) -> Repo:
        capability = parse_pasted(parse_branch_capability, text, "a branch's capability")
        _check_peers(capability.peers)
        known = self._hub.replica.tables.of_id.get(capability.repo)
        if known is not None and known.has_members:
            raise ServiceError("already_exists", "this node follows the whole repo of that branch")
        repo = await self._joiner.follow_branch(capability)
        await self._reach(capability.peers, repo.repo_id)
        await self._until(
            lambda: any(
                branch.commit_count
                for branch in self._hub.replica.read_tables().branches_in(repo.num)
                if branch.branch_id == capability.branch
            )
        )
        return repo

    async def follow(self, text: str) -> Repo:
        """Read and replicate a repo, or one branch of it, by a read capability.

        Waits a while for the first commits, and goes on without them.
        """
        text = pasted_word(text)
        if link_kind(text) == "branch":
            return await self._follow_branch(text)
        capability = parse_pasted(parse_capability, text, "a read capability")
        _check_peers(capability.peers)
        repo = await self._joiner.follow(capability)
        await self._reach(capability.peers, repo.repo_id)
        await self._until(lambda: bool(self._hub.replica.members(repo)))
        return repo

    def permission(self, repo: Repo) -> Permission | None:
        """Return the permission of this node's user; None if the user is no member. Reads the store."""
        return self._hub.replica.permission(repo, self._author.user)

    async def _until(self, has_arrived: Callable[[], bool], has_posts: Callable[[], bool] = _nothing) -> None:
        """Wait a while until something has arrived, for which a thread looks after each change; less where posts have."""
        with trio.move_on_after(_ARRIVAL_TIMEOUT_SECONDS) as waiting:
            while True:
                change_count = self._hub.changes.count
                if await self._hub.run_blocking(has_arrived):
                    return
                if await self._hub.run_blocking(has_posts):
                    waiting.deadline = min(waiting.deadline, trio.current_time() + _POSTS_SHOWN_SECONDS)
                    has_posts = _nothing
                await self._hub.changes.wait(change_count)

    def _has_posts(self, repo: Repo) -> bool:
        """Return True if posts of a repo are shown that its link names."""
        windows, vouched = self._hub.windows, self._hub.windows.vouchers.find(repo.num)
        if vouched is None:
            return False
        branch = self._hub.replica.tables.find_branch(repo.num, vouched.states.branch)
        shown = None if branch is None else windows.find(branch.num)
        return shown is not None and bool(shown.listed)

    async def _reach(self, peers: tuple[PeerAddress, ...], repo_id: RepoId) -> None:
        addresses: dict[PeerId, list[str]] = {}
        for peer in peers:
            addresses.setdefault(peer.peer, []).append(peer.address)
        for key, (first, *others) in addresses.items():
            await self._peers.keep(key, first, repo_id, others)

    def check_reach(self, ways: "Ways", reach: str) -> None:
        """Raise ServiceError `bad_config` where a link of these ways would not reach as far as is demanded."""
        if ways.reach < _REACHES[reach]:
            raise _too_near(self._addresses, ways.reach)

    async def ways_to(self, repo: Repo, *, relays_only: bool = False) -> "Ways":
        """Find where the repo can be had: here, and at peers that follow it, or at relays of them alone; no other address.

        A relay that this user has just added is waited for. Raises ServiceError `bad_config`.
        """
        topics = {one.topic for one in self._hub.replica.tables.topics_in(repo.num)}
        with trio.move_on_after(_RELAY_SECONDS):
            while any(self._is_coming(state, topics) for state in self._network.peers):  # noqa: ASYNC110  # a connection that begins tells no event
                await trio.sleep(_LOOK_SECONDS)
        own = self._network.introducer.own.peer
        found = [
            (PeerAddress(one.address, own), one.reach if one.reach is not None else Reach.MACHINE)
            for one in self._addresses.for_links
        ]
        found += [
            (PeerAddress(state.address, state.peer), told_reach(state.address))
            for state in self._network.peers
            if state.direction == "out"
            and state.through is None
            and state.connection is not None
            and (state.connection.peer_is_relay or not relays_only)
            and _has_joined(state.connection, topics)
        ]
        if not found and self._addresses.known:
            raise ServiceError(
                "bad_config",
                'network.advertise = "nothing": the link would name nobody who has the repo',
                "use a relay (`ravel peer add --relay HOST:PORT PEER-ID`), or take that setting back",
            )
        if not found:
            raise ServiceError(
                "bad_config",
                f"this node listens on {self._addresses.listen}, and this machine has no address on any network",
                "connect it to a network, or `ravel config set network.advertise HOST:PORT`, then `ravel down` and "
                "`ravel up`",
            )
        chosen = found[:LINK_PEER_COUNT_MAX]
        return Ways(tuple(peer for peer, _ in chosen), max(reach for _, reach in chosen))

    def _is_coming(self, state: PeerState, topics: set[TopicKey]) -> bool:
        """Return True if a peer is a relay of this user's that is dialed for the first time, or has just been reached."""
        if state.peer not in self._network.relays or state.direction != "out" or state.through is not None:
            return False
        if state.connection is None:
            return state.last_error in (None, TRUST_CHANGED)
        is_new = trio.current_time() - state.met_at < _RELAY_SECONDS
        return is_new and not _has_joined(state.connection, topics)


@dataclass(frozen=True, slots=True)
class Ways:
    """Addresses at which a repo can be had, and from how far away."""

    peers: tuple[PeerAddress, ...]
    reach: Reach

    @property
    def addresses(self) -> list[str]:
        """Return the addresses in the form in which they are dialed."""
        return [peer.address for peer in self.peers]


def _has_joined(connection: Connection, topics: set[TopicKey]) -> bool:
    """Return True if a connection follows any of these topics."""
    return any(progress.topic in topics and progress.is_joined for progress in connection.topics)


def reach_text(reach: Reach | None) -> str:
    """Return the API's word for a reach."""
    if reach is None:
        return "unknown"
    return next(text for text, one in _REACHES.items() if one is reach)


def _capability_view(text: str, ways: Ways) -> Capability:
    return {
        "capability": text,
        "addresses": ways.addresses,
        "reach": reach_text(ways.reach),
    }


def _too_near(addresses: OwnAddresses, reach: Reach) -> ServiceError:
    """Make the error for a link that would not reach as far as was demanded."""
    if reach is Reach.PRIVATE:
        return ServiceError(
            "bad_config",
            "the link would work on this network only: this node knows no public address of its own",
            "use a relay (`ravel peer add --relay HOST:PORT PEER-ID`), or forward a port of the router and `ravel "
            "config set network.advertise HOST:PORT`",
        )
    if addresses.is_open:
        return ServiceError(
            "bad_config",
            "the link would work on this machine only: it has no address on any network",
            "connect it to a network, or use a relay (`ravel peer add --relay HOST:PORT PEER-ID`)",
        )
    return ServiceError(
        "bad_config",
        f"the link would work on this machine only: this node listens on {addresses.listen}",
        f"ravel config set network.listen '*:{addresses.listen.rpartition(':')[2]}', then `ravel down` and `ravel up`; "
        "for a trial on this machine alone, the same command with --local",
    )


def check_inviter(replica: Replica, repo: Repo, user: UserId) -> None:
    """Raise ServiceError `not_permitted` unless a user may invite to a repo, and answer who asks. Reads the store."""
    own = replica.permission(repo, user)
    if own is None or own < Permission.ADMIN:
        raise ServiceError(
            "not_permitted",
            f"inviting needs the permission admin, and you hold {own.name.lower() if own else 'none'} in {repo.name}",
            f"ask one who holds it: `ravel member list {id_text(repo.repo_id)[:12]}` shows who",
        )


def _too_many_epochs() -> ServiceError:
    return ServiceError(
        "too_large", "the branch has been in too many epochs for one link", "invite to the repo instead"
    )


def _channel_of(link: Topic, branch: Branch) -> BranchChannel:
    (epoch,) = link.epochs
    secret = branch_secret(epoch.key, branch.branch_id)
    return BranchChannel(epoch.epoch_id, link.topic, secret, epoch.convergence_secret)


def _check_peers(peers: tuple[PeerAddress, ...]) -> None:
    for peer in peers:
        check_dialable(peer.address, "bad_link")
