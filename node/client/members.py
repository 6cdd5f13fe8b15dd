"""Members, devices and quorums of repos over the API, from Python: `ApiClient.members`, `devices` and `quorums`."""

from node.client.calls import Call
from node.contract import devices, members, quorums, repos
from node.contract.values import RootCommit


class MembersClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def invite(
        self, repo: str, permission: str, expires_seconds: int, uses: int = 1
    ) -> members.InvitationLinkView:
        """Make an invitation link."""
        return self._call(
            members.CREATE_INVITATION,
            repo=repo,
            permission=permission,
            expires_seconds=expires_seconds,
            uses=uses,
        )

    def list_all(self, repo: str) -> members.MemberList:
        """Members of a repo."""
        return self._call(members.LIST_MEMBERS, repo=repo)

    def grant(self, repo: str, user: str, permission: str) -> members.MembershipChange:
        """Make a user a member, or raise one."""
        return self._call(members.GRANT_PERMISSION, repo=repo, user=user, permission=permission)

    def remove(self, repo: str, user: str, keeps: str = "", *, person: bool = False) -> members.RemovalResult:
        """Lower a member's permission to `keeps`; without it exclude the member. With `person`, all of its devices."""
        return self._call(members.REMOVE_MEMBER, repo=repo, user=user, keeps=keeps, person=person)

    def leave(self, repo: str, *, force: bool = False) -> members.LeaveResult:
        """Stop being a member."""
        return self._call(members.LEAVE_REPO, repo=repo, force=force)

    def rekey(self, repo: str, user: str) -> repos.RekeyedMember:
        """Seal the current secrets for a member again."""
        return self._call(repos.REKEY_MEMBER, repo=repo, user=user)

    def invitations(self, repo: str) -> members.InvitationList:
        """Invitations of a repo."""
        return self._call(members.LIST_INVITATIONS, repo=repo)

    def revoke_invitation(self, repo: str, invitation: str) -> members.MembershipChange:
        """End an invitation."""
        return self._call(members.REVOKE_INVITATION, repo=repo, invitation=invitation)


class DevicesClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def add(self, expires_seconds: int) -> devices.DeviceLinkView:
        """Make a link for a device."""
        return self._call(devices.INVITE_DEVICE, expires_seconds=expires_seconds)

    def join(self, link: str) -> devices.DeviceList:
        """Become a device by a link."""
        return self._call(devices.JOIN_AS_DEVICE, link=link)

    def list_all(self) -> devices.DeviceList:
        """The devices of this user's person."""
        return self._call(devices.LIST_DEVICES)

    def sync(self) -> devices.DeviceSync:
        """Hand on again what devices lack."""
        return self._call(devices.SYNC_DEVICES)

    def remove(self, device: str) -> devices.RemovedDevice:
        """Exclude a device, and take the statement back."""
        return self._call(devices.REMOVE_DEVICE, device=device)


class QuorumsClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def show(self, repo: str) -> quorums.QuorumState:
        """Quorums in force and proposals."""
        return self._call(quorums.SHOW_QUORUM, repo=repo)

    def name(self, repo: str, signers: list[str], threshold: int, *, removals: bool) -> RootCommit:
        """Name the signers."""
        return self._call(
            quorums.SET_QUORUM, repo=repo, signers=signers, threshold=threshold, removals=removals
        )

    def propose_removal(self, repo: str, user: str, keeps: str = "") -> quorums.Proposal:
        """Ask the signers to exclude or demote a member."""
        return self._call(quorums.PROPOSE_REMOVAL, repo=repo, user=user, keeps=keeps)

    def propose_checkpoint(self, branch: str) -> quorums.Proposal:
        """Ask the signers for a checkpoint."""
        return self._call(quorums.PROPOSE_CHECKPOINT, branch=branch)

    def approve(self, repo: str, proposal: str) -> quorums.Proposal:
        """Sign a proposal."""
        return self._call(quorums.APPROVE_PROPOSAL, repo=repo, proposal=proposal)

    def finish(self, repo: str, proposal: str) -> quorums.Proposal:
        """Make a checkpoint that was approved."""
        return self._call(quorums.MAKE_CHECKPOINT, repo=repo, proposal=proposal)
