"""Members of repos and what they may do: lists, invitations, grants, removals."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import ADMIN_BRANCH, ADMIN_REPO, READ_REPO
from node.contract.endpoint import LINK_ERRORS, WRITE_ERRORS, Endpoint, QueryParameter, limit_parameter
from node.contract.made import Makes
from node.contract.values import DemandedReach, IdText, Request, UserText, among
from protocol.limits.formats import ADOPTED_COUNT_MAX, INVITATION_USE_COUNT_MAX
from protocol.limits.users import TIMELINE_WINDOW_MAX
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
from ravel.types.values import (
    RootCommit,
)

PermissionText = Annotated[
    str,
    among(
        *("read", "write", "manage", "admin", "owner"),
        description="`read`, `write`, `manage`, `admin` or `owner`.",
    ),
]


class InvitationRequest(Request, frozen=True):
    """Makes an invitation."""

    permission: Annotated[str, among("read", "write", description="`read` or `write`.")] = "write"
    expires_seconds: Annotated[int, Meta(ge=1, le=366 * 86_400)] = 7 * 86_400
    uses: Annotated[
        int, Meta(ge=1, le=INVITATION_USE_COUNT_MAX, description="How many users may join by it.")
    ] = 1
    reach: DemandedReach = "machine"
    renews: Annotated[
        bool,
        Meta(description="True if this node renews the repo's secrets once the link is used up or revoked."),
    ] = False


class GrantRequest(Request, frozen=True):
    """Grants a permission."""

    user: UserText
    permission: PermissionText


class RemovalRequest(Request, frozen=True):
    """Takes rights away."""

    user: UserText
    keeps: Annotated[
        str,
        among(
            *("", "read", "write", "manage", "admin"),
            description="A lower permission. Empty: the user is excluded.",
        ),
    ] = ""
    person: Annotated[
        bool,
        Meta(description="Also remove all other devices of the same person, if that is not the own one."),
    ] = True


class LeaveRequest(Request, frozen=True):
    """Leaves a repo."""

    force: Annotated[bool, Meta(description="Leave also as the last owner.")] = False


class AdoptionRequest(Request, frozen=True):
    """Adopts void commits."""

    commits: Annotated[list[IdText], Meta(min_length=1, max_length=ADOPTED_COUNT_MAX)]


LIST_MEMBERS: Final = Endpoint(
    name="list_members",
    method="GET",
    path="/repos/{repo}/members",
    stability="stable",
    scopes=READ_REPO,
    summary="List the members of a repo and what they may do.",
    answer=MemberList,
    errors=("not_permitted",),
)
LIST_MEMBER_CHANGES: Final = Endpoint(
    name="list_member_changes",
    method="GET",
    path="/repos/{repo}/members/changes",
    scopes=READ_REPO,
    summary="List who came to a repo, left, was excluded, may do something else or has another name.",
    query=(
        limit_parameter(TIMELINE_WINDOW_MAX),
        QueryParameter(
            name="since", type=int, default=0, description="Only what was done from then on, in Unix seconds."
        ),
    ),
    answer=MemberChangeList,
    errors=("not_permitted",),
)
GRANT_PERMISSION: Final = Endpoint(
    name="grant_permission",
    method="POST",
    path="/repos/{repo}/members",
    stability="stable",
    scopes=ADMIN_REPO,
    summary="Make a user a member, or raise a member's permission.",
    request=GrantRequest,
    answer=MembershipChange,
    makes=Makes(kind="member", repo="repo", what="user"),
    errors=WRITE_ERRORS,
)
REMOVE_MEMBER: Final = Endpoint(
    name="remove_member",
    method="POST",
    path="/repos/{repo}/removals",
    stability="stable",
    scopes=ADMIN_REPO,
    summary="Exclude a member, or lower a member's permission.",
    request=RemovalRequest,
    answer=RemovalResult,
    errors=(*WRITE_ERRORS, "needs_quorum"),
)
LEAVE_REPO: Final = Endpoint(
    name="leave_repo",
    method="POST",
    path="/repos/{repo}/leave",
    stability="stable",
    scopes=ADMIN_REPO,
    summary="Stop being a member of a repo.",
    request=LeaveRequest,
    answer=LeaveResult,
    errors=WRITE_ERRORS,
)
LIST_INVITATIONS: Final = Endpoint(
    name="list_invitations",
    method="GET",
    path="/repos/{repo}/invitations",
    stability="stable",
    scopes=READ_REPO,
    summary="List the invitations of a repo.",
    answer=InvitationList,
    errors=("not_permitted",),
)
CREATE_INVITATION: Final = Endpoint(
    name="create_invitation",
    method="POST",
    path="/repos/{repo}/invitations",
    stability="stable",
    scopes=ADMIN_REPO,
    summary="Make an invitation link.",
    request=InvitationRequest,
    answer=InvitationLinkView,
    makes=Makes(kind="invitation", repo="repo", what="id", until="expires_at"),
    errors=(*WRITE_ERRORS, *LINK_ERRORS),
)
REVOKE_INVITATION: Final = Endpoint(
    name="revoke_invitation",
    method="DELETE",
    path="/repos/{repo}/invitations/{invitation}",
    stability="stable",
    scopes=ADMIN_REPO,
    summary="End an invitation.",
    answer=MembershipChange,
    errors=WRITE_ERRORS,
)
ADOPT_COMMITS: Final = Endpoint(
    name="adopt_commits",
    method="POST",
    path="/branches/{branch}/adoptions",
    scopes=ADMIN_BRANCH,
    summary="Make void commits of a branch count again.",
    request=AdoptionRequest,
    answer=MembershipChange,
    errors=WRITE_ERRORS,
)
LIST_CHECKPOINTS: Final = Endpoint(
    name="list_checkpoints",
    method="GET",
    path="/repos/{repo}/checkpoints",
    scopes=READ_REPO,
    summary="List who signed who the members are, and who signed something false.",
    answer=CheckpointList,
    errors=("not_permitted",),
)
SIGN_MEMBERS: Final = Endpoint(
    name="sign_members",
    method="POST",
    path="/repos/{repo}/checkpoints",
    scopes=ADMIN_REPO,
    summary="Sign who the members are, what they may do, and which secrets are theirs, for others to compare.",
    answer=RootCommit,
    errors=WRITE_ERRORS,
)
