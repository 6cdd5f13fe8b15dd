"""Repos: create, list, join, follow, fork and forget them; their epochs, tags, branches and links."""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from node.contract.access import ADMIN_ALL, ADMIN_REPO, MANAGE_REPO, NODE, READ_LISTS, READ_REPO
from node.contract.endpoint import LINK_ERRORS, LONG_WRITE_SECONDS, WRITE_ERRORS, Endpoint, QueryParameter
from node.contract.made import Makes
from node.contract.values import IdText, NameRequest, Request, link_of
from protocol.limits.formats import OWNER_COUNT_MAX
from protocol.limits.users import KEPT_BRANCHES_MAX, KEPT_DAYS_MAX
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
from ravel.types.values import Capability, Empty, RootCommit

FounderId = Annotated[str, Meta(min_length=1, max_length=128, description="A user's whole id.")]


class RepoRequest(NameRequest, frozen=True, kw_only=True):
    """Names a new repo, its founders and their council."""

    founders: Annotated[
        list[FounderId],
        Meta(max_length=OWNER_COUNT_MAX - 1, description="Users who own it too. They join by any link."),
    ] = field(default_factory=list)
    council: Annotated[
        Annotated[int, Meta(ge=2, le=OWNER_COUNT_MAX)] | None,
        Meta(
            description="How many founders together can exclude or demote any member, another founder too. It is more "
            "than half of the founders. Null: nobody can exclude a founder."
        ),
    ] = None


class JoinRequest(Request, frozen=True):
    """Joins by an invitation."""

    invitation: Annotated[str, link_of("invite", "ask")]
    follow: Annotated[
        bool,
        Meta(
            description="True if reading without being a member is good enough where the link makes no member."
        ),
    ] = False


class LookRequest(Request, frozen=True):
    """Names a link."""

    link: Annotated[str, link_of("invite", "ask", "read", "branch")]


class FollowRequest(Request, frozen=True):
    """Follows by a read capability."""

    capability: Annotated[str, link_of("read", "branch", description="The link of a repo or of a branch.")]


ALL_FILES: Final = "all"
FILES_ON_DEMAND: Final = "on_demand"


class KeepingRequest(Request, frozen=True):
    """Says whose contents to keep."""

    branches: Annotated[
        Annotated[list[str], Meta(max_length=KEPT_BRANCHES_MAX)] | None,
        Meta(
            description="Names or ids of branches. Others, and such as are added later, are not kept. Null: all are."
        ),
    ]
    last_days: Annotated[
        Annotated[int, Meta(ge=1, le=KEPT_DAYS_MAX)] | None,
        Meta(
            description="Contents of older posts of others are given up once a connected computer of a member, which "
            "keeps posts of any age, has shown that it has them, with their files. Null: posts of any age are kept."
        ),
    ] = None
    files: Annotated[
        Literal["on_demand", "all"],
        Meta(description="`all`: contents of files come by themselves. `on_demand`: once they are opened."),
    ] = FILES_ON_DEMAND


class TagRequest(Request, frozen=True):
    """Names a commit."""

    commit: IdText


LIST_REPOS: Final = Endpoint(
    name="list_repos",
    method="GET",
    path="/repos",
    stability="stable",
    scopes=READ_LISTS,
    summary="List the repos of this node.",
    query=(
        QueryParameter(
            name="since",
            type=str,
            description="The `cursor` of an earlier answer: only what has changed since. One from before a restart, or "
            "older than the latest 1,000 repos that went, gets the whole list.",
            default="",
        ),
    ),
    answer=RepoList,
)
CREATE_REPO: Final = Endpoint(
    name="create_repo",
    method="POST",
    path="/repos",
    stability="stable",
    scopes=ADMIN_ALL,
    summary="Create a repo with a branch `main`.",
    request=RepoRequest,
    answer=RepoView,
    errors=WRITE_ERRORS,
)
LOOK_AT_LINK: Final = Endpoint(
    name="look_at_link",
    method="POST",
    path="/link",
    scopes=ADMIN_ALL,
    summary="Show the content of a link, before you use it. The node asks no peer and stores nothing.",
    request=LookRequest,
    answer=LinkView,
    errors=("bad_link",),
)
JOIN_REPO: Final = Endpoint(
    name="join_repo",
    method="POST",
    path="/join",
    stability="stable",
    scopes=ADMIN_ALL,
    summary="Join a repo by a bearer link, or ask to be let in by a link that asks.",
    request=JoinRequest,
    answer=RepoView,
    errors=("bad_link", "expired", "not_permitted", "already_exists", "not_found", "too_large"),
)
FOLLOW_REPO: Final = Endpoint(
    name="follow_repo",
    method="POST",
    path="/follow",
    stability="stable",
    scopes=ADMIN_ALL,
    summary="Read and replicate a repo, or one of its branches, by a read capability.",
    request=FollowRequest,
    answer=RepoView,
    errors=("bad_link", "not_permitted", "already_exists", "not_found"),
)
FORK_REPO: Final = Endpoint(
    name="fork_repo",
    method="POST",
    path="/repos/{repo}/forks",
    stability="stable",
    scopes=(*READ_REPO, *ADMIN_ALL),
    summary="Create a repo of this user that continues another.",
    request=NameRequest,
    answer=RepoFork,
    errors=(*WRITE_ERRORS, "too_large"),
)
LIST_HOLDERS: Final = Endpoint(
    name="list_holders",
    method="GET",
    path="/repos/{repo}/holders",
    scopes=(*READ_REPO, *NODE),
    summary="List who has what of a repo: peers that follow it now, and those that were seen to hold all of it.",
    answer=HolderList,
)
SHOW_KEEPING: Final = Endpoint(
    name="show_keeping",
    method="GET",
    path="/repos/{repo}/keeping",
    scopes=READ_REPO,
    summary="Show which contents of a repo this node keeps.",
    query=(
        QueryParameter(
            name="last_days",
            type=int,
            description="Count posts older than so many days, in place of those that the repo's own rule says.",
            minimum=1,
            maximum=KEPT_DAYS_MAX,
        ),
    ),
    answer=RepoKeeping,
)
SET_KEEPING: Final = Endpoint(
    name="set_keeping",
    method="PUT",
    path="/repos/{repo}/keeping",
    scopes=ADMIN_REPO,
    summary="Keep contents of some branches of a repo alone on this node, of posts of some days, and of files, or all.",
    request=KeepingRequest,
    answer=RepoKeeping,
    errors=("not_permitted",),
)
FORGET_REPO: Final = Endpoint(
    name="forget_repo",
    method="DELETE",
    path="/repos/{repo}",
    stability="stable",
    scopes=ADMIN_REPO,
    summary="Delete a repo from this node, with all its commits.",
    query=(
        QueryParameter(
            name="accept_loss",
            type=bool,
            default=0,
            description="Also where no other node is known to hold all of it.",
        ),
    ),
    answer=Empty,
    errors=("last_copy",),
    seconds_max=LONG_WRITE_SECONDS,
)
SHARE_REPO: Final = Endpoint(
    name="share_repo",
    method="POST",
    path="/repos/{repo}/capability",
    stability="stable",
    scopes=ADMIN_REPO,
    summary="Make a link that lets anyone read a repo.",
    answer=Capability,
    makes=Makes(kind="read_link", repo="repo"),
    errors=("not_permitted", *LINK_ERRORS),
)
LIST_EPOCHS: Final = Endpoint(
    name="list_epochs",
    method="GET",
    path="/repos/{repo}/epochs",
    scopes=READ_REPO,
    summary="List the epochs of a repo.",
    answer=EpochList,
    errors=("not_permitted",),
)
START_EPOCH: Final = Endpoint(
    name="start_epoch",
    method="POST",
    path="/repos/{repo}/epochs",
    scopes=ADMIN_REPO,
    summary="Give a repo new secrets, sealed for exactly its members.",
    answer=NewEpoch,
    errors=WRITE_ERRORS,
)
STATE_PREKEY: Final = Endpoint(
    name="state_prekey",
    method="POST",
    path="/repos/{repo}/prekeys",
    scopes=ADMIN_REPO,
    summary="State a fresh key of this user, to which later epochs are sealed.",
    answer=FreshKey,
    errors=WRITE_ERRORS,
)
LIST_TAGS: Final = Endpoint(
    name="list_tags",
    method="GET",
    path="/repos/{repo}/tags",
    stability="stable",
    scopes=READ_REPO,
    summary="List the named commits of a repo.",
    answer=TagList,
    errors=("not_permitted",),
)
SET_TAG: Final = Endpoint(
    name="set_tag",
    method="PUT",
    path="/repos/{repo}/tags/{name}",
    stability="stable",
    scopes=MANAGE_REPO,
    summary="Name a commit, or move a name to it.",
    request=TagRequest,
    answer=RootCommit,
    errors=WRITE_ERRORS,
)
REMOVE_TAG: Final = Endpoint(
    name="remove_tag",
    method="DELETE",
    path="/repos/{repo}/tags/{name}",
    stability="stable",
    scopes=MANAGE_REPO,
    summary="Remove the name of a commit.",
    answer=RootCommit,
    errors=WRITE_ERRORS,
)
