"""`PeopleService`: members of repos, invitations, requests to join, devices, recovery and profiles."""

from collections.abc import Callable

from node.api.targets import Targets
from node.authoring.author import Author
from node.membership.joining import Joiner
from node.membership.key_rotation import KeyRotation
from node.membership.member_changes import MemberChanges
from node.membership.member_checkpoints import MemberCheckpoints
from node.membership.members import Members
from node.membership.pairing import Pairing
from node.membership.profiles import NameActions
from node.membership.quorums import Quorums
from node.membership.recovery import Recovery
from node.membership.requests import Requests
from node.membership.sharing import Sharing
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peers import Peers
from node.sync.hub import Hub
from ravel.types.members import InvitationLinkView
from ravel.types.values import Capability


class PeopleService:
    """Parts that answer endpoints about members and people."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        author: Author,
        joiner: Joiner,
        targets: Targets,
        peers: Peers,
        *,
        addresses: OwnAddresses,
        clock: Callable[[], float],
    ) -> None:
        self._targets = targets
        find_repo, find_branch = targets.repo_with_members, targets.branch_with_members
        self.sharing = Sharing(hub, network, peers, author, joiner, addresses=addresses, clock=clock)
        self.members = Members(hub, author, find_repo, find_branch)
        self.member_changes = MemberChanges(hub, find_repo)
        self.quorums = Quorums(hub, author, find_repo, find_branch)
        self.key_rotation = KeyRotation(hub, author, find_repo, find_branch)
        self.member_checkpoints = MemberCheckpoints(hub, author, find_repo, find_branch)
        self.requests = Requests(hub, author, self.sharing, joiner, find_repo)
        self.pairing = Pairing(hub, author, self.sharing, self.members)
        self.recovery = Recovery(hub, author)
        self.profiles = NameActions(
            hub, author, joiner.profiles, joiner.topics_changed, lambda: [one.peer for one in network.peers]
        )

    async def invite(
        self, repo: str, permission: str, expires_seconds: int, uses: int, reach: str, renews: bool
    ) -> InvitationLinkView:
        """Make a bearer link."""
        target = self._targets.repo_with_members(repo)
        return await self.sharing.invite(target, permission, expires_seconds, uses, reach, renews=renews)

    async def show_read_link(self, repo: str) -> Capability:
        """Return a repo's read capability as a link."""
        return await self.sharing.capability(self._targets.repo_with_members(repo))

    async def show_branch_link(self, branch: str) -> Capability:
        """Return a branch's read capability as a link."""
        return await self.sharing.branch_capability(self._targets.branch_with_members(branch))
