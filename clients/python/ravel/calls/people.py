# A method is its signature: the decorator makes what it does.
# mypy: disable-error-code="empty-body"
"""Calls: people. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ravel.callers import SyncCaller, calls

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

    from ravel.types.devices import DeviceLinkView, DeviceList, DeviceSync, PromotedDevice, RemovedDevice
    from ravel.types.members import (
        CheckpointList,
        InvitationLinkView,
        InvitationList,
        LeaveResult,
        MemberChangeList,
        MemberList,
        MembershipChange,
        RemovalResult,
    )
    from ravel.types.people import OwnName, Petname, PetnameList
    from ravel.types.quorums import Proposal, QuorumState
    from ravel.types.recovery import NamedFriends, RecoveryList, RecoveryResult, RecoverySignatures
    from ravel.types.repos import (
        EpochList,
        FreshKey,
        HolderList,
        LinkView,
        NewEpoch,
        RepoFork,
        RepoKeeping,
        RepoList,
        RepoView,
        TagList,
    )
    from ravel.types.requests import AskLinkList, AskLinkMade, RequestList, RequestView
    from ravel.types.values import Capability, Empty, RootCommit


class PeopleCalls(SyncCaller):
    """Methods that wait for the answer."""

    @calls("GET", "/repos", "repos.RepoList")
    def list_repos(self, *, since: str = "") -> RepoList:
        """List the repos of this node."""

    @calls("POST", "/repos", "repos.RepoView")
    def create_repo(self, name: str, *, founders: Sequence[str] = (), council: int | None = None) -> RepoView:
        """Create a repo with a branch `main`."""

    @calls("POST", "/link", "repos.LinkView")
    def look_at_link(self, link: str) -> LinkView:
        """Show the content of a link, before you use it. The node asks no peer and stores nothing."""

    @calls("POST", "/join", "repos.RepoView")
    def join_repo(self, invitation: str, *, follow: bool = False) -> RepoView:
        """Join a repo by a bearer link, or ask to be let in by a link that asks."""

    @calls("POST", "/follow", "repos.RepoView")
    def follow_repo(self, capability: str) -> RepoView:
        """Read and replicate a repo, or one of its branches, by a read capability."""

    @calls("POST", "/repos/{repo}/forks", "repos.RepoFork")
    def fork_repo(self, repo: str, name: str) -> RepoFork:
        """Create a repo of this user that continues another."""

    @calls("GET", "/repos/{repo}/holders", "repos.HolderList")
    def list_holders(self, repo: str) -> HolderList:
        """List who has what of a repo: peers that follow it now, and those that were seen to hold all of it."""

    @calls("GET", "/repos/{repo}/keeping", "repos.RepoKeeping")
    def show_keeping(self, repo: str, *, last_days: int | None = None) -> RepoKeeping:
        """Show which contents of a repo this node keeps."""

    @calls("PUT", "/repos/{repo}/keeping", "repos.RepoKeeping")
    def set_keeping(
        self,
        repo: str,
        branches: Sequence[str] | None,
        *,
        last_days: int | None = None,
        files: str = "on_demand",
    ) -> RepoKeeping:
        """Keep contents of some branches of a repo alone on this node, of posts of some days, and of files, or
        all.
        """

    @calls("DELETE", "/repos/{repo}", "values.Empty", in_query=True, seconds_max=3600.0)
    def forget_repo(self, repo: str, *, accept_loss: bool = False) -> Empty:
        """Delete a repo from this node, with all its commits."""

    @calls("POST", "/repos/{repo}/capability", "values.Capability")
    def share_repo(self, repo: str) -> Capability:
        """Make a link that lets anyone read a repo."""

    @calls("GET", "/repos/{repo}/epochs", "repos.EpochList")
    def list_epochs(self, repo: str) -> EpochList:
        """List the epochs of a repo."""

    @calls("POST", "/repos/{repo}/epochs", "repos.NewEpoch")
    def start_epoch(self, repo: str) -> NewEpoch:
        """Give a repo new secrets, sealed for exactly its members."""

    @calls("POST", "/repos/{repo}/prekeys", "repos.FreshKey")
    def state_prekey(self, repo: str) -> FreshKey:
        """State a fresh key of this user, to which later epochs are sealed."""

    @calls("GET", "/repos/{repo}/tags", "repos.TagList")
    def list_tags(self, repo: str) -> TagList:
        """List the named commits of a repo."""

    @calls("PUT", "/repos/{repo}/tags/{name}", "values.RootCommit")
    def set_tag(self, repo: str, name: str, commit: str) -> RootCommit:
        """Name a commit, or move a name to it."""

    @calls("DELETE", "/repos/{repo}/tags/{name}", "values.RootCommit")
    def remove_tag(self, repo: str, name: str) -> RootCommit:
        """Remove the name of a commit."""

    @calls("GET", "/repos/{repo}/members", "members.MemberList")
    def list_members(self, repo: str) -> MemberList:
        """List the members of a repo and what they may do."""

    @calls("GET", "/repos/{repo}/members/changes", "members.MemberChangeList")
    def list_member_changes(self, repo: str, *, limit: int = 100, since: int = 0) -> MemberChangeList:
        """List who came to a repo, left, was excluded, may do something else or has another name."""

    @calls("POST", "/repos/{repo}/members", "members.MembershipChange")
    def grant_permission(self, repo: str, user: str, permission: str) -> MembershipChange:
        """Make a user a member, or raise a member's permission."""

    @calls("POST", "/repos/{repo}/removals", "members.RemovalResult")
    def remove_member(self, repo: str, user: str, *, keeps: str = "", person: bool = True) -> RemovalResult:
        """Exclude a member, or lower a member's permission."""

    @calls("POST", "/repos/{repo}/leave", "members.LeaveResult")
    def leave_repo(self, repo: str, *, force: bool = False) -> LeaveResult:
        """Stop being a member of a repo."""

    @calls("GET", "/repos/{repo}/invitations", "members.InvitationList")
    def list_invitations(self, repo: str) -> InvitationList:
        """List the invitations of a repo."""

    @calls("POST", "/repos/{repo}/invitations", "members.InvitationLinkView")
    def create_invitation(
        self,
        repo: str,
        *,
        permission: str = "write",
        expires_seconds: int = 604800,
        uses: int = 1,
        reach: str = "machine",
        renews: bool = False,
    ) -> InvitationLinkView:
        """Make an invitation link."""

    @calls("DELETE", "/repos/{repo}/invitations/{invitation}", "members.MembershipChange")
    def revoke_invitation(self, repo: str, invitation: str) -> MembershipChange:
        """End an invitation."""

    @calls("POST", "/branches/{branch}/adoptions", "members.MembershipChange")
    def adopt_commits(self, branch: str, commits: Sequence[str]) -> MembershipChange:
        """Make void commits of a branch count again."""

    @calls("GET", "/repos/{repo}/checkpoints", "members.CheckpointList")
    def list_checkpoints(self, repo: str) -> CheckpointList:
        """List who signed who the members are, and who signed something false."""

    @calls("POST", "/repos/{repo}/checkpoints", "values.RootCommit")
    def sign_members(self, repo: str) -> RootCommit:
        """Sign who the members are, what they may do, and which secrets are theirs, for others to compare."""

    @calls("POST", "/repos/{repo}/lobbies", "requests.AskLinkMade")
    def make_ask_link(
        self,
        repo: str,
        *,
        permission: str = "write",
        expires_seconds: int = 604800,
        uses: int = 16,
        reach: str = "machine",
    ) -> AskLinkMade:
        """Make a link by which users ask to be let into a repo. It has no secret of the repo."""

    @calls("GET", "/repos/{repo}/lobbies", "requests.AskLinkList")
    def list_ask_links(self, repo: str) -> AskLinkList:
        """List the links by which users ask to be let into a repo."""

    @calls("DELETE", "/repos/{repo}/lobbies/{lobby}", "requests.AskLinkList")
    def close_ask_link(self, repo: str, lobby: str) -> AskLinkList:
        """End a link by which users ask. Who asked by it and has no answer is not accepted any more."""

    @calls("GET", "/repos/{repo}/requests", "requests.RequestList")
    def list_requests(self, repo: str) -> RequestList:
        """List who asks to be let into a repo."""

    @calls("GET", "/requests", "requests.RequestList")
    def list_all_requests(self) -> RequestList:
        """List who asks to be let into any repo, and what this user asked for."""

    @calls("POST", "/repos/{repo}/requests/{request}/answers", "requests.RequestView")
    def answer_request(self, repo: str, request: str, accepts: bool, *, permission: str = "") -> RequestView:
        """Accept a request, which makes the user a member, or refuse it."""

    @calls("DELETE", "/requests/{request}", "requests.RequestList")
    def cancel_request(self, request: str) -> RequestList:
        """Take back a request of this user, named by its repo."""

    @calls("GET", "/me", "people.OwnName")
    def show_me(self) -> OwnName:
        """Show what this user calls itself, and in which repos others see it."""

    @calls("PUT", "/me", "people.OwnName")
    def state_me(self, name: str | None, *, color: int | None = None) -> OwnName:
        """State what this user calls itself, in all repos where it may write, now and later.

        Of each minute the first statement in a repo counts: the node waits for the next one where that is
        needed.
        """

    @calls("GET", "/petnames", "people.PetnameList")
    def list_petnames(self) -> PetnameList:
        """List what this user calls others. These names are on this node alone."""

    @calls("PUT", "/petnames", "people.Petname")
    def set_petname(self, user: str, name: str | None, *, peer: bool = False) -> Petname:
        """Name a user or a node on this node, or take the name away. It goes before what a user calls itself."""

    @calls("GET", "/devices", "devices.DeviceList")
    def list_devices(self) -> DeviceList:
        """List the devices of this user's person, and how each stands in the repos."""

    @calls("POST", "/devices/invitations", "devices.DeviceLinkView")
    def invite_device(self, *, expires_seconds: int = 3600, reach: str = "machine") -> DeviceLinkView:
        """Make a link by which another user becomes a device of this one."""

    @calls("POST", "/devices/join", "devices.DeviceList")
    def join_as_device(self, link: str) -> DeviceList:
        """Become a device of the person who made a link."""

    @calls("POST", "/devices/sync", "devices.DeviceSync")
    def sync_devices(self) -> DeviceSync:
        """Hand on again, as the first device, what other devices lack."""

    @calls("DELETE", "/devices/{device}", "devices.RemovedDevice")
    def remove_device(self, device: str) -> RemovedDevice:
        """Take a device out of all repos, and take back that it is the same person's."""

    @calls("POST", "/devices/{device}/promotion", "devices.PromotedDevice")
    def promote_device(self, device: str) -> PromotedDevice:
        """Pass this user's place to a device in all repos. This user is no member any more."""

    @calls("GET", "/recovery", "recovery.RecoveryList")
    def list_friends(self) -> RecoveryList:
        """List this user's recovery friends, and the members who named this user as one."""

    @calls("PUT", "/recovery/friends", "recovery.NamedFriends")
    def name_friends(
        self, friends: Sequence[str], *, need: int | None = None, only: str = ""
    ) -> NamedFriends:
        """Name the friends who together may let a new key of this user in."""

    @calls("POST", "/recovery/signatures", "recovery.RecoverySignatures")
    def sign_recovery(self, member: str, user: str) -> RecoverySignatures:
        """Sign, as a friend, that a key is a member's new one."""

    @calls("POST", "/recovery", "recovery.RecoveryResult")
    def finish_recovery(self, texts: Sequence[str]) -> RecoveryResult:
        """Let a key in that enough friends of a member have signed for."""

    @calls("GET", "/repos/{repo}/quorum", "quorums.QuorumState")
    def show_quorum(self, repo: str) -> QuorumState:
        """Show the quorums in force and the latest proposals."""

    @calls("PUT", "/repos/{repo}/quorum", "values.RootCommit")
    def set_quorum(
        self, repo: str, signers: Sequence[str], threshold: int, *, removals: bool = False
    ) -> RootCommit:
        """Set who must approve checkpoints and, optionally, removals."""

    @calls("POST", "/repos/{repo}/proposals", "quorums.Proposal")
    def propose_removal(self, repo: str, user: str, *, keeps: str = "", person: bool = True) -> Proposal:
        """Ask the signers to exclude a member, or to lower a member's permission."""

    @calls("POST", "/branches/{branch}/proposals", "quorums.Proposal")
    def propose_checkpoint(self, branch: str) -> Proposal:
        """Ask the signers for a checkpoint of a branch as it is now."""

    @calls("POST", "/repos/{repo}/proposals/{proposal}/approvals", "quorums.Proposal")
    def approve_proposal(self, repo: str, proposal: str) -> Proposal:
        """Sign a proposal. The last approval that a checkpoint lacks makes it."""

    @calls("POST", "/repos/{repo}/proposals/{proposal}/checkpoint", "quorums.Proposal")
    def make_checkpoint(self, repo: str, proposal: str) -> Proposal:
        """Make a checkpoint that enough signers have approved."""
