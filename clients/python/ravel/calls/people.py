"""Calls: people. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

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

LIST_REPOS: Final[Operation[RepoList]] = Operation("GET", "/repos", "repos.RepoList", defaults={"since": ""})
CREATE_REPO: Final[Operation[RepoView]] = Operation(
    "POST", "/repos", "repos.RepoView", defaults={"founders": (), "council": None}
)
LOOK_AT_LINK: Final[Operation[LinkView]] = Operation("POST", "/link", "repos.LinkView")
JOIN_REPO: Final[Operation[RepoView]] = Operation(
    "POST", "/join", "repos.RepoView", defaults={"follow": False}
)
FOLLOW_REPO: Final[Operation[RepoView]] = Operation("POST", "/follow", "repos.RepoView")
FORK_REPO: Final[Operation[RepoFork]] = Operation("POST", "/repos/{repo}/forks", "repos.RepoFork")
LIST_HOLDERS: Final[Operation[HolderList]] = Operation("GET", "/repos/{repo}/holders", "repos.HolderList")
SHOW_KEEPING: Final[Operation[RepoKeeping]] = Operation(
    "GET", "/repos/{repo}/keeping", "repos.RepoKeeping", defaults={"last_days": None}
)
SET_KEEPING: Final[Operation[RepoKeeping]] = Operation(
    "PUT", "/repos/{repo}/keeping", "repos.RepoKeeping", defaults={"last_days": None, "files": "on_demand"}
)
FORGET_REPO: Final[Operation[Empty]] = Operation(
    "DELETE",
    "/repos/{repo}",
    "values.Empty",
    defaults={"accept_loss": False},
    in_query=True,
    seconds_max=3600.0,
)
SHARE_REPO: Final[Operation[Capability]] = Operation("POST", "/repos/{repo}/capability", "values.Capability")
LIST_EPOCHS: Final[Operation[EpochList]] = Operation("GET", "/repos/{repo}/epochs", "repos.EpochList")
START_EPOCH: Final[Operation[NewEpoch]] = Operation("POST", "/repos/{repo}/epochs", "repos.NewEpoch")
STATE_PREKEY: Final[Operation[FreshKey]] = Operation("POST", "/repos/{repo}/prekeys", "repos.FreshKey")
LIST_TAGS: Final[Operation[TagList]] = Operation("GET", "/repos/{repo}/tags", "repos.TagList")
SET_TAG: Final[Operation[RootCommit]] = Operation("PUT", "/repos/{repo}/tags/{name}", "values.RootCommit")
REMOVE_TAG: Final[Operation[RootCommit]] = Operation(
    "DELETE", "/repos/{repo}/tags/{name}", "values.RootCommit"
)
LIST_MEMBERS: Final[Operation[MemberList]] = Operation("GET", "/repos/{repo}/members", "members.MemberList")
LIST_MEMBER_CHANGES: Final[Operation[MemberChangeList]] = Operation(
    "GET", "/repos/{repo}/members/changes", "members.MemberChangeList", defaults={"limit": 100, "since": 0}
)
GRANT_PERMISSION: Final[Operation[MembershipChange]] = Operation(
    "POST", "/repos/{repo}/members", "members.MembershipChange"
)
REMOVE_MEMBER: Final[Operation[RemovalResult]] = Operation(
    "POST", "/repos/{repo}/removals", "members.RemovalResult", defaults={"keeps": "", "person": True}
)
LEAVE_REPO: Final[Operation[LeaveResult]] = Operation(
    "POST", "/repos/{repo}/leave", "members.LeaveResult", defaults={"force": False}
)
LIST_INVITATIONS: Final[Operation[InvitationList]] = Operation(
    "GET", "/repos/{repo}/invitations", "members.InvitationList"
)
CREATE_INVITATION: Final[Operation[InvitationLinkView]] = Operation(
    "POST",
    "/repos/{repo}/invitations",
    "members.InvitationLinkView",
    defaults={
        "permission": "write",
        "expires_seconds": 604800,
        "uses": 1,
        "reach": "machine",
        "renews": False,
    },
)
REVOKE_INVITATION: Final[Operation[MembershipChange]] = Operation(
    "DELETE", "/repos/{repo}/invitations/{invitation}", "members.MembershipChange"
)
ADOPT_COMMITS: Final[Operation[MembershipChange]] = Operation(
    "POST", "/branches/{branch}/adoptions", "members.MembershipChange"
)
LIST_CHECKPOINTS: Final[Operation[CheckpointList]] = Operation(
    "GET", "/repos/{repo}/checkpoints", "members.CheckpointList"
)
SIGN_MEMBERS: Final[Operation[RootCommit]] = Operation(
    "POST", "/repos/{repo}/checkpoints", "values.RootCommit"
)
MAKE_ASK_LINK: Final[Operation[AskLinkMade]] = Operation(
    "POST",
    "/repos/{repo}/lobbies",
    "requests.AskLinkMade",
    defaults={"permission": "write", "expires_seconds": 604800, "uses": 16, "reach": "machine"},
)
LIST_ASK_LINKS: Final[Operation[AskLinkList]] = Operation(
    "GET", "/repos/{repo}/lobbies", "requests.AskLinkList"
)
CLOSE_ASK_LINK: Final[Operation[AskLinkList]] = Operation(
    "DELETE", "/repos/{repo}/lobbies/{lobby}", "requests.AskLinkList"
)
LIST_REQUESTS: Final[Operation[RequestList]] = Operation(
    "GET", "/repos/{repo}/requests", "requests.RequestList"
)
LIST_ALL_REQUESTS: Final[Operation[RequestList]] = Operation("GET", "/requests", "requests.RequestList")
ANSWER_REQUEST: Final[Operation[RequestView]] = Operation(
    "POST", "/repos/{repo}/requests/{request}/answers", "requests.RequestView", defaults={"permission": ""}
)
CANCEL_REQUEST: Final[Operation[RequestList]] = Operation(
    "DELETE", "/requests/{request}", "requests.RequestList"
)
SHOW_ME: Final[Operation[OwnName]] = Operation("GET", "/me", "people.OwnName")
STATE_ME: Final[Operation[OwnName]] = Operation("PUT", "/me", "people.OwnName", defaults={"color": None})
LIST_PETNAMES: Final[Operation[PetnameList]] = Operation("GET", "/petnames", "people.PetnameList")
SET_PETNAME: Final[Operation[Petname]] = Operation(
    "PUT", "/petnames", "people.Petname", defaults={"peer": False}
)
LIST_DEVICES: Final[Operation[DeviceList]] = Operation("GET", "/devices", "devices.DeviceList")
INVITE_DEVICE: Final[Operation[DeviceLinkView]] = Operation(
    "POST",
    "/devices/invitations",
    "devices.DeviceLinkView",
    defaults={"expires_seconds": 3600, "reach": "machine"},
)
JOIN_AS_DEVICE: Final[Operation[DeviceList]] = Operation("POST", "/devices/join", "devices.DeviceList")
SYNC_DEVICES: Final[Operation[DeviceSync]] = Operation("POST", "/devices/sync", "devices.DeviceSync")
REMOVE_DEVICE: Final[Operation[RemovedDevice]] = Operation(
    "DELETE", "/devices/{device}", "devices.RemovedDevice"
)
PROMOTE_DEVICE: Final[Operation[PromotedDevice]] = Operation(
    "POST", "/devices/{device}/promotion", "devices.PromotedDevice"
)
LIST_FRIENDS: Final[Operation[RecoveryList]] = Operation("GET", "/recovery", "recovery.RecoveryList")
NAME_FRIENDS: Final[Operation[NamedFriends]] = Operation(
    "PUT", "/recovery/friends", "recovery.NamedFriends", defaults={"need": None, "only": ""}
)
SIGN_RECOVERY: Final[Operation[RecoverySignatures]] = Operation(
    "POST", "/recovery/signatures", "recovery.RecoverySignatures"
)
FINISH_RECOVERY: Final[Operation[RecoveryResult]] = Operation("POST", "/recovery", "recovery.RecoveryResult")
SHOW_QUORUM: Final[Operation[QuorumState]] = Operation("GET", "/repos/{repo}/quorum", "quorums.QuorumState")
SET_QUORUM: Final[Operation[RootCommit]] = Operation(
    "PUT", "/repos/{repo}/quorum", "values.RootCommit", defaults={"removals": False}
)
PROPOSE_REMOVAL: Final[Operation[Proposal]] = Operation(
    "POST", "/repos/{repo}/proposals", "quorums.Proposal", defaults={"keeps": "", "person": True}
)
PROPOSE_CHECKPOINT: Final[Operation[Proposal]] = Operation(
    "POST", "/branches/{branch}/proposals", "quorums.Proposal"
)
APPROVE_PROPOSAL: Final[Operation[Proposal]] = Operation(
    "POST", "/repos/{repo}/proposals/{proposal}/approvals", "quorums.Proposal"
)
MAKE_CHECKPOINT: Final[Operation[Proposal]] = Operation(
    "POST", "/repos/{repo}/proposals/{proposal}/checkpoint", "quorums.Proposal"
)


class PeopleCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_repos(self, *, since: str = "") -> RepoList:
        """List the repos of this node."""
        return self._call(LIST_REPOS, {"since": since})

    def create_repo(self, name: str, *, founders: Sequence[str] = (), council: int | None = None) -> RepoView:
        """Create a repo with a branch `main`."""
        return self._call(CREATE_REPO, {"name": name, "founders": founders, "council": council})

    def look_at_link(self, link: str) -> LinkView:
        """Show the content of a link, before you use it. The node asks no peer and stores nothing."""
        return self._call(LOOK_AT_LINK, {"link": link})

    def join_repo(self, invitation: str, *, follow: bool = False) -> RepoView:
        """Join a repo by a bearer link, or ask to be let in by a link that asks."""
        return self._call(JOIN_REPO, {"invitation": invitation, "follow": follow})

    def follow_repo(self, capability: str) -> RepoView:
        """Read and replicate a repo, or one of its branches, by a read capability."""
        return self._call(FOLLOW_REPO, {"capability": capability})

    def fork_repo(self, repo: str, name: str) -> RepoFork:
        """Create a repo of this user that continues another."""
        return self._call(FORK_REPO, {"repo": repo, "name": name})

    def list_holders(self, repo: str) -> HolderList:
        """List who has what of a repo: peers that follow it now, and those that were seen to hold all of it."""
        return self._call(LIST_HOLDERS, {"repo": repo})

    def show_keeping(self, repo: str, *, last_days: int | None = None) -> RepoKeeping:
        """Show which contents of a repo this node keeps."""
        return self._call(SHOW_KEEPING, {"repo": repo, "last_days": last_days})

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
        return self._call(
            SET_KEEPING, {"repo": repo, "branches": branches, "last_days": last_days, "files": files}
        )

    def forget_repo(self, repo: str, *, accept_loss: bool = False) -> Empty:
        """Delete a repo from this node, with all its commits."""
        return self._call(FORGET_REPO, {"repo": repo, "accept_loss": accept_loss})

    def share_repo(self, repo: str) -> Capability:
        """Make a link that lets anyone read a repo."""
        return self._call(SHARE_REPO, {"repo": repo})

    def list_epochs(self, repo: str) -> EpochList:
        """List the epochs of a repo."""
        return self._call(LIST_EPOCHS, {"repo": repo})

    def start_epoch(self, repo: str) -> NewEpoch:
        """Give a repo new secrets, sealed for exactly its members."""
        return self._call(START_EPOCH, {"repo": repo})

    def state_prekey(self, repo: str) -> FreshKey:
        """State a fresh key of this user, to which later epochs are sealed."""
        return self._call(STATE_PREKEY, {"repo": repo})

    def list_tags(self, repo: str) -> TagList:
        """List the named commits of a repo."""
        return self._call(LIST_TAGS, {"repo": repo})

    def set_tag(self, repo: str, name: str, commit: str) -> RootCommit:
        """Name a commit, or move a name to it."""
        return self._call(SET_TAG, {"repo": repo, "name": name, "commit": commit})

    def remove_tag(self, repo: str, name: str) -> RootCommit:
        """Remove the name of a commit."""
        return self._call(REMOVE_TAG, {"repo": repo, "name": name})

    def list_members(self, repo: str) -> MemberList:
        """List the members of a repo and what they may do."""
        return self._call(LIST_MEMBERS, {"repo": repo})

    def list_member_changes(self, repo: str, *, limit: int = 100, since: int = 0) -> MemberChangeList:
        """List who came to a repo, left, was excluded, may do something else or has another name."""
        return self._call(LIST_MEMBER_CHANGES, {"repo": repo, "limit": limit, "since": since})

    def grant_permission(self, repo: str, user: str, permission: str) -> MembershipChange:
        """Make a user a member, or raise a member's permission."""
        return self._call(GRANT_PERMISSION, {"repo": repo, "user": user, "permission": permission})

    def remove_member(self, repo: str, user: str, *, keeps: str = "", person: bool = True) -> RemovalResult:
        """Exclude a member, or lower a member's permission."""
        return self._call(REMOVE_MEMBER, {"repo": repo, "user": user, "keeps": keeps, "person": person})

    def leave_repo(self, repo: str, *, force: bool = False) -> LeaveResult:
        """Stop being a member of a repo."""
        return self._call(LEAVE_REPO, {"repo": repo, "force": force})

    def list_invitations(self, repo: str) -> InvitationList:
        """List the invitations of a repo."""
        return self._call(LIST_INVITATIONS, {"repo": repo})

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
        return self._call(
            CREATE_INVITATION,
            {
                "repo": repo,
                "permission": permission,
                "expires_seconds": expires_seconds,
                "uses": uses,
                "reach": reach,
                "renews": renews,
            },
        )

    def revoke_invitation(self, repo: str, invitation: str) -> MembershipChange:
        """End an invitation."""
        return self._call(REVOKE_INVITATION, {"repo": repo, "invitation": invitation})

    def adopt_commits(self, branch: str, commits: Sequence[str]) -> MembershipChange:
        """Make void commits of a branch count again."""
        return self._call(ADOPT_COMMITS, {"branch": branch, "commits": commits})

    def list_checkpoints(self, repo: str) -> CheckpointList:
        """List who signed who the members are, and who signed something false."""
        return self._call(LIST_CHECKPOINTS, {"repo": repo})

    def sign_members(self, repo: str) -> RootCommit:
        """Sign who the members are, what they may do, and which secrets are theirs, for others to compare."""
        return self._call(SIGN_MEMBERS, {"repo": repo})

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
        return self._call(
            MAKE_ASK_LINK,
            {
                "repo": repo,
                "permission": permission,
                "expires_seconds": expires_seconds,
                "uses": uses,
                "reach": reach,
            },
        )

    def list_ask_links(self, repo: str) -> AskLinkList:
        """List the links by which users ask to be let into a repo."""
        return self._call(LIST_ASK_LINKS, {"repo": repo})

    def close_ask_link(self, repo: str, lobby: str) -> AskLinkList:
        """End a link by which users ask. Who asked by it and has no answer is not accepted any more."""
        return self._call(CLOSE_ASK_LINK, {"repo": repo, "lobby": lobby})

    def list_requests(self, repo: str) -> RequestList:
        """List who asks to be let into a repo."""
        return self._call(LIST_REQUESTS, {"repo": repo})

    def list_all_requests(self) -> RequestList:
        """List who asks to be let into any repo, and what this user asked for."""
        return self._call(LIST_ALL_REQUESTS, {})

    def answer_request(self, repo: str, request: str, accepts: bool, *, permission: str = "") -> RequestView:
        """Accept a request, which makes the user a member, or refuse it."""
        return self._call(
            ANSWER_REQUEST, {"repo": repo, "request": request, "accepts": accepts, "permission": permission}
        )

    def cancel_request(self, request: str) -> RequestList:
        """Take back a request of this user, named by its repo."""
        return self._call(CANCEL_REQUEST, {"request": request})

    def show_me(self) -> OwnName:
        """Show what this user calls itself, and in which repos others see it."""
        return self._call(SHOW_ME, {})

    def state_me(self, name: str | None, *, color: int | None = None) -> OwnName:
        """State what this user calls itself, in all repos where it may write, now and later.

        Of each minute the first statement in a repo counts: the node waits for the next one where that is
        needed.
        """
        return self._call(STATE_ME, {"name": name, "color": color})

    def list_petnames(self) -> PetnameList:
        """List what this user calls others. These names are on this node alone."""
        return self._call(LIST_PETNAMES, {})

    def set_petname(self, user: str, name: str | None, *, peer: bool = False) -> Petname:
        """Name a user or a node on this node, or take the name away. It goes before what a user calls itself."""
        return self._call(SET_PETNAME, {"user": user, "name": name, "peer": peer})

    def list_devices(self) -> DeviceList:
        """List the devices of this user's person, and how each stands in the repos."""
        return self._call(LIST_DEVICES, {})

    def invite_device(self, *, expires_seconds: int = 3600, reach: str = "machine") -> DeviceLinkView:
        """Make a link by which another user becomes a device of this one."""
        return self._call(INVITE_DEVICE, {"expires_seconds": expires_seconds, "reach": reach})

    def join_as_device(self, link: str) -> DeviceList:
        """Become a device of the person who made a link."""
        return self._call(JOIN_AS_DEVICE, {"link": link})

    def sync_devices(self) -> DeviceSync:
        """Hand on again, as the first device, what other devices lack."""
        return self._call(SYNC_DEVICES, {})

    def remove_device(self, device: str) -> RemovedDevice:
        """Take a device out of all repos, and take back that it is the same person's."""
        return self._call(REMOVE_DEVICE, {"device": device})

    def promote_device(self, device: str) -> PromotedDevice:
        """Pass this user's place to a device in all repos. This user is no member any more."""
        return self._call(PROMOTE_DEVICE, {"device": device})

    def list_friends(self) -> RecoveryList:
        """List this user's recovery friends, and the members who named this user as one."""
        return self._call(LIST_FRIENDS, {})

    def name_friends(
        self, friends: Sequence[str], *, need: int | None = None, only: str = ""
    ) -> NamedFriends:
        """Name the friends who together may let a new key of this user in."""
        return self._call(NAME_FRIENDS, {"friends": friends, "need": need, "only": only})

    def sign_recovery(self, member: str, user: str) -> RecoverySignatures:
        """Sign, as a friend, that a key is a member's new one."""
        return self._call(SIGN_RECOVERY, {"member": member, "user": user})

    def finish_recovery(self, texts: Sequence[str]) -> RecoveryResult:
        """Let a key in that enough friends of a member have signed for."""
        return self._call(FINISH_RECOVERY, {"texts": texts})

    def show_quorum(self, repo: str) -> QuorumState:
        """Show the quorums in force and the latest proposals."""
        return self._call(SHOW_QUORUM, {"repo": repo})

    def set_quorum(
        self, repo: str, signers: Sequence[str], threshold: int, *, removals: bool = False
    ) -> RootCommit:
        """Set who must approve checkpoints and, optionally, removals."""
        return self._call(
            SET_QUORUM, {"repo": repo, "signers": signers, "threshold": threshold, "removals": removals}
        )

    def propose_removal(self, repo: str, user: str, *, keeps: str = "", person: bool = True) -> Proposal:
        """Ask the signers to exclude a member, or to lower a member's permission."""
        return self._call(PROPOSE_REMOVAL, {"repo": repo, "user": user, "keeps": keeps, "person": person})

    def propose_checkpoint(self, branch: str) -> Proposal:
        """Ask the signers for a checkpoint of a branch as it is now."""
        return self._call(PROPOSE_CHECKPOINT, {"branch": branch})

    def approve_proposal(self, repo: str, proposal: str) -> Proposal:
        """Sign a proposal. The last approval that a checkpoint lacks makes it."""
        return self._call(APPROVE_PROPOSAL, {"repo": repo, "proposal": proposal})

    def make_checkpoint(self, repo: str, proposal: str) -> Proposal:
        """Make a checkpoint that enough signers have approved."""
        return self._call(MAKE_CHECKPOINT, {"repo": repo, "proposal": proposal})
