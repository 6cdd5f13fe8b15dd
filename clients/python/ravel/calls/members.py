"""Calls: members. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

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
    from ravel.types.values import RootCommit

LIST_MEMBERS: Final[Operation[MemberList]] = Operation("GET", "/repos/{repo}/members", "members.MemberList")
LIST_MEMBER_CHANGES: Final[Operation[MemberChangeList]] = Operation(
    "GET", "/repos/{repo}/members/changes", "members.MemberChangeList", defaults={"limit": 100, "since": 0}
)
GRANT_PERMISSION: Final[Operation[MembershipChange]] = Operation(
    "POST", "/repos/{repo}/members", "members.MembershipChange"
)
REMOVE_MEMBER: Final[Operation[RemovalResult]] = Operation(
    "POST", "/repos/{repo}/removals", "members.RemovalResult", defaults={"keeps": "", "person": False}
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


class MembersCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_members(self, repo: str) -> MemberList:
        """List the members of a repo and what they may do."""
        return self._call(LIST_MEMBERS, {"repo": repo})

    def list_member_changes(self, repo: str, *, limit: int = 100, since: int = 0) -> MemberChangeList:
        """List who came to a repo, left, was excluded, may do something else or has another name."""
        return self._call(LIST_MEMBER_CHANGES, {"repo": repo, "limit": limit, "since": since})

    def grant_permission(self, repo: str, user: str, permission: str) -> MembershipChange:
        """Make a user a member, or raise a member's permission."""
        return self._call(GRANT_PERMISSION, {"repo": repo, "user": user, "permission": permission})

    def remove_member(self, repo: str, user: str, *, keeps: str = "", person: bool = False) -> RemovalResult:
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
