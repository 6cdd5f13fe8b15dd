"""Members of repos and what they may do: lists, invitations, grants, removals."""

from typing import Annotated, Final, NotRequired, TypedDict

from msgspec import Meta

from node.contract.access import ADMIN_BRANCH, ADMIN_REPO, READ_REPO
from node.contract.endpoint import LINK_ERRORS, WRITE_ERRORS, Endpoint, QueryParameter, limit_parameter
from node.contract.made import Makes
from node.contract.values import (
    Count,
    DemandedReach,
    HeldPermission,
    Id,
    IdText,
    LinkReach,
    PersonText,
    Request,
    RootCommit,
    UnixSeconds,
    UserText,
    among,
    one_of,
)
from protocol.limits.formats import ADOPTED_COUNT_MAX, INVITATION_USE_COUNT_MAX, PROFILE_COLOR_COUNT
from protocol.limits.users import TIMELINE_WINDOW_MAX

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
        bool, Meta(description="Also remove all other devices of the same person, all or none.")
    ] = False


class LeaveRequest(Request, frozen=True):
    """Leaves a repo."""

    force: Annotated[bool, Meta(description="Leave also as the last owner.")] = False


class AdoptionRequest(Request, frozen=True):
    """Adopts void commits."""

    commits: Annotated[list[IdText], Meta(min_length=1, max_length=ADOPTED_COUNT_MAX)]


class MemberView(TypedDict):
    """A member of a repo."""

    user: Id
    permission: HeldPermission
    person: Annotated[Id, Meta(description="The user by whom the person is known whose device this is.")]
    name: PersonText
    stated_name: Annotated[str | None, Meta(description="What the member calls itself. Null: nothing.")]
    petname: Annotated[
        str | None, Meta(description="What this user calls the member or its person. Null: nothing.")
    ]
    looks_alike: Annotated[bool, Meta(description="Another person has a name that looks like this one.")]
    color: (
        Annotated[int, Meta(ge=0, lt=PROFILE_COLOR_COUNT, description="The number of the member's color.")]
        | None
    )


class MemberList(TypedDict):
    """The members of a repo."""

    members: Annotated[
        list[MemberView], Meta(description="Devices of one person stand together, the first device first.")
    ]


class CheckpointView(TypedDict):
    """A membership checkpoint: an admin's signature under what follows from the root branch."""

    checkpoint: Annotated[Id, Meta(description="The id of its commit.")]
    author: Id
    author_name: PersonText
    time: UnixSeconds
    admin: Annotated[bool, Meta(description="The author is an admin now.")]
    state: Annotated[
        str,
        one_of(
            "true", "false", "unchecked",
            description="`false`: the same commits say something else here. `unchecked`: looked at later, or too large.",
        ),
    ]  # fmt: skip


class CheckpointList(TypedDict):
    """The membership checkpoints of a repo."""

    checkpoints: Annotated[
        list[CheckpointView], Meta(description="The latest 64, of one author 8, the newest first.")
    ]


class MembershipChange(TypedDict):
    """A change of who is in a repo, or of what counts there."""

    commit: Id
    repo: Id
    voided: Annotated[int, Meta(description="Count of commits that became void by it, or ceased to be void.")]
    user: NotRequired[Annotated[Id, Meta(description="User that a grant names.")]]


class LeaveResult(MembershipChange):
    """A removal, with the epoch that this node writes in now."""

    epoch: Id


class RemovalResult(LeaveResult):
    """A removal of a member."""

    other_devices: Annotated[list[Id], Meta(description="Users of the same person that are members still.")]


class InvitationLinkView(TypedDict):
    """A new invitation."""

    invitation: Annotated[str, Meta(description="The link. It is a secret until it is used or expires.")]
    id: Annotated[Id, Meta(description="The id of its commit, by which it is listed and revoked.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], Meta(description="Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class InvitationView(TypedDict):
    """An invitation that was made."""

    invitation: Annotated[Id, Meta(description="The id of its commit.")]
    author: Id
    author_name: PersonText
    permission: HeldPermission
    uses: Count
    expires_at: UnixSeconds
    joined: Annotated[list[Id], Meta(description="Users who joined by it.")]
    joined_names: Annotated[list[PersonText], Meta(description="What they are called, in the same order.")]
    revoked: bool
    renews: Annotated[
        bool, Meta(description="Its author's node renews the repo once it is used up or revoked.")
    ]


class MemberChangeView(TypedDict):
    """A change of who is in a repo, that counts now."""

    commit: Id
    time: Annotated[int, Meta(description="Unix seconds, as the author states them.")]
    kind: Annotated[
        str,
        one_of(
            *("joined", "granted", "lowered", "excluded", "left", "renamed"),
            description="`joined`: by a link. `granted`: by a member. `lowered`: may do less.",
        ),
    ]
    user: Annotated[Id, Meta(description="The user whose membership or name has changed.")]
    user_name: PersonText
    author: Annotated[
        Id, Meta(description="The user who made the change; of `joined`, `left` and `renamed`, the same one.")
    ]
    author_name: PersonText
    permission: Annotated[
        HeldPermission | None,
        Meta(description="The user's permission from then on. Null: the change says nothing of it."),
    ]
    earlier_name: Annotated[
        str | None, Meta(description="Of `renamed`: what the user called itself before. It proves nothing.")
    ]


class MemberChangeList(TypedDict):
    """The latest changes of who is in a repo."""

    changes: Annotated[list[MemberChangeView], Meta(description="By time, the latest last.")]


class InvitationList(TypedDict):
    """The invitations of a repo."""

    invitations: list[InvitationView]


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
