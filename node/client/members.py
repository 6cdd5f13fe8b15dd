"""Members, devices and quorums of repos over the API, from Python: `ApiClient.members`, `devices` and `quorums`."""

from __future__ import annotations  # the types of answers are named by modules that are not imported yet

from typing import TYPE_CHECKING

from node.client.calls import Call
from node.contract import subjects

if TYPE_CHECKING:
    from node.contract.values import RootCommit


class MembersClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def invite(
        self, repo: str, permission: str, expires_seconds: int, uses: int = 1, reach: str = "machine"
    ) -> subjects.members.InvitationLinkView:
        """Make an invitation link that reaches at least so far: machine, network or anywhere."""
        return self._call(
            subjects.members.CREATE_INVITATION,
            repo=repo,
            permission=permission,
            expires_seconds=expires_seconds,
            uses=uses,
            reach=reach,
        )

    def list_all(self, repo: str) -> subjects.members.MemberList:
        """Members of a repo."""
        return self._call(subjects.members.LIST_MEMBERS, repo=repo)

    def grant(self, repo: str, user: str, permission: str) -> subjects.members.MembershipChange:
        """Make a user a member, or raise one."""
        return self._call(subjects.members.GRANT_PERMISSION, repo=repo, user=user, permission=permission)

    def remove(
        self, repo: str, user: str, keeps: str = "", *, person: bool = False
    ) -> subjects.members.RemovalResult:
        """Lower a member's permission to `keeps`; without it exclude the member. With `person`, all of its devices."""
        return self._call(subjects.members.REMOVE_MEMBER, repo=repo, user=user, keeps=keeps, person=person)

    def leave(self, repo: str, *, force: bool = False) -> subjects.members.LeaveResult:
        """Stop being a member."""
        return self._call(subjects.members.LEAVE_REPO, repo=repo, force=force)

    def rekey(self, repo: str, user: str) -> subjects.repos.RekeyedMember:
        """Seal the current secrets for a member again."""
        return self._call(subjects.repos.REKEY_MEMBER, repo=repo, user=user)

    def invitations(self, repo: str) -> subjects.members.InvitationList:
        """Invitations of a repo."""
        return self._call(subjects.members.LIST_INVITATIONS, repo=repo)

    def revoke_invitation(self, repo: str, invitation: str) -> subjects.members.MembershipChange:
        """End an invitation."""
        return self._call(subjects.members.REVOKE_INVITATION, repo=repo, invitation=invitation)


class DevicesClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def add(self, expires_seconds: int, reach: str = "machine") -> subjects.devices.DeviceLinkView:
        """Make a link for a device."""
        return self._call(subjects.devices.INVITE_DEVICE, expires_seconds=expires_seconds, reach=reach)

    def join(self, link: str) -> subjects.devices.DeviceList:
        """Become a device by a link."""
        return self._call(subjects.devices.JOIN_AS_DEVICE, link=link)

    def list_all(self) -> subjects.devices.DeviceList:
        """The devices of this user's person."""
        return self._call(subjects.devices.LIST_DEVICES)

    def sync(self) -> subjects.devices.DeviceSync:
        """Hand on again what devices lack."""
        return self._call(subjects.devices.SYNC_DEVICES)

    def remove(self, device: str) -> subjects.devices.RemovedDevice:
        """Exclude a device, and take the statement back."""
        return self._call(subjects.devices.REMOVE_DEVICE, device=device)


class QuorumsClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def show(self, repo: str) -> subjects.quorums.QuorumState:
        """Quorums in force and proposals."""
        return self._call(subjects.quorums.SHOW_QUORUM, repo=repo)

    def name(self, repo: str, signers: list[str], threshold: int, *, removals: bool) -> RootCommit:
        """Name the signers."""
        return self._call(
            subjects.quorums.SET_QUORUM, repo=repo, signers=signers, threshold=threshold, removals=removals
        )

    def propose_removal(self, repo: str, user: str, keeps: str = "") -> subjects.quorums.Proposal:
        """Ask the signers to exclude or demote a member."""
        return self._call(subjects.quorums.PROPOSE_REMOVAL, repo=repo, user=user, keeps=keeps)

    def propose_checkpoint(self, branch: str) -> subjects.quorums.Proposal:
        """Ask the signers for a checkpoint."""
        return self._call(subjects.quorums.PROPOSE_CHECKPOINT, branch=branch)

    def approve(self, repo: str, proposal: str) -> subjects.quorums.Proposal:
        """Sign a proposal."""
        return self._call(subjects.quorums.APPROVE_PROPOSAL, repo=repo, proposal=proposal)

    def finish(self, repo: str, proposal: str) -> subjects.quorums.Proposal:
        """Make a checkpoint that was approved."""
        return self._call(subjects.quorums.MAKE_CHECKPOINT, repo=repo, proposal=proposal)


class PeopleClient:
    """Names of people over the API."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def show_me(self) -> subjects.people.OwnName:
        """What this user calls itself."""
        return self._call(subjects.people.SHOW_ME)

    def state_me(self, name: str | None, color: int | None) -> subjects.people.OwnName:
        """Call this user so from now on; None for nothing."""
        return self._call(subjects.people.STATE_ME, name=name, color=color)

    def list_petnames(self) -> subjects.people.PetnameList:
        """What this user calls others."""
        return self._call(subjects.people.LIST_PETNAMES)

    def set_petname(self, user: str, name: str | None, *, peer: bool = False) -> subjects.people.Petname:
        """Call a user, or a node, so on this node; None for nothing."""
        return self._call(subjects.people.SET_PETNAME, user=user, name=name, peer=peer)
