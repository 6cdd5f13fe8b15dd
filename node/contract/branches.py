"""Branches: create, list, rename, archive, fork, merge, share and compact them."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import (
    ADMIN_BRANCH,
    MANAGE_BRANCH,
    MANAGE_REPO,
    READ_BRANCH,
    READ_BRANCHES,
    WRITE_BRANCH,
    TokenScope,
)
from node.contract.endpoint import LINK_ERRORS, WRITE_ERRORS, Endpoint
from node.contract.made import Makes
from node.contract.values import Name, NameRequest, Request
from ravel.types.branches import BranchList, BranchMerge, BranchView, CompactionResult
from ravel.types.values import Capability, RootCommit


class ForkRequest(NameRequest, frozen=True):
    """Forks a branch."""

    commit: Annotated[
        str, Meta(max_length=64, description="The commit that the fork continues. Empty: the branch's heads.")
    ] = ""


class MergeRequest(Request, frozen=True):
    """Merges a branch."""

    source: Annotated[Name, Meta(description="The branch to take from.")]


class BranchEditRequest(Request, frozen=True):
    """Renames or archives a branch. At least one field is given."""

    name: Name | None = None
    archived: bool | None = None


class CompactRequest(Request, frozen=True):
    """Compacts a branch."""

    dry_run: Annotated[bool, Meta(description="State what might be erased, and write nothing.")] = False
    without_missing: Annotated[
        bool,
        Meta(description="Do it although bodies that the documents need are absent: their content is lost."),
    ] = False


LIST_BRANCHES: Final = Endpoint(
    name="list_branches",
    method="GET",
    path="/repos/{repo}/branches",
    stability="stable",
    scopes=READ_BRANCHES,
    summary="List the branches of a repo.",
    answer=BranchList,
)
CREATE_BRANCH: Final = Endpoint(
    name="create_branch",
    method="POST",
    path="/repos/{repo}/branches",
    stability="stable",
    scopes=MANAGE_REPO,
    summary="Add a branch to a repo.",
    request=NameRequest,
    answer=BranchView,
    errors=WRITE_ERRORS,
)
EDIT_BRANCH: Final = Endpoint(
    name="edit_branch",
    method="POST",
    path="/branches/{branch}/edits",
    stability="stable",
    scopes=MANAGE_BRANCH,
    summary="Rename a branch, archive it, or take it back from the archive.",
    request=BranchEditRequest,
    answer=RootCommit,
    errors=WRITE_ERRORS,
)
POINT_MAIN: Final = Endpoint(
    name="point_main",
    method="POST",
    path="/branches/{branch}/main",
    scopes=(TokenScope("manage", "repo of branch", "branch"),),
    summary="Point main at a branch: from then on the name `main` means it.",
    answer=RootCommit,
    errors=WRITE_ERRORS,
)
FORK_BRANCH: Final = Endpoint(
    name="fork_branch",
    method="POST",
    path="/branches/{branch}/forks",
    stability="stable",
    scopes=(*READ_BRANCH, TokenScope("manage", "repo of branch", "branch")),
    summary="Add a branch that continues another one.",
    request=ForkRequest,
    answer=BranchView,
    errors=WRITE_ERRORS,
)
MERGE_BRANCH: Final = Endpoint(
    name="merge_branch",
    method="POST",
    path="/branches/{branch}/merges",
    stability="stable",
    scopes=(*WRITE_BRANCH, TokenScope("read", "branch", "source")),
    summary="Write again in a branch what another branch has and it has not.",
    request=MergeRequest,
    answer=BranchMerge,
    errors=(*WRITE_ERRORS, "too_large"),
)
SHARE_BRANCH: Final = Endpoint(
    name="share_branch",
    method="POST",
    path="/branches/{branch}/capability",
    stability="stable",
    scopes=ADMIN_BRANCH,
    summary="Make a link that lets anyone read one branch.",
    answer=Capability,
    makes=Makes(kind="branch_link", branch="branch"),
    errors=("not_permitted", *LINK_ERRORS),
)
COMPACT_BRANCH: Final = Endpoint(
    name="compact_branch",
    method="POST",
    path="/branches/{branch}/compactions",
    scopes=MANAGE_BRANCH,
    summary="Compact a branch, so that nodes may erase bodies that its documents no longer need.",
    request=CompactRequest,
    answer=CompactionResult,
    errors=(*WRITE_ERRORS, "too_large", "bad_input"),
)
