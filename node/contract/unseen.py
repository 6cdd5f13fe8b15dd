"""Commits that the user of this node has not seen yet: counts, mentions, and the marks from which they are counted."""

from typing import Annotated, Final, TypedDict

from msgspec import Meta

from node.contract.access import READ_BRANCH, READ_LISTS, WRITE_BRANCH
from node.contract.endpoint import Endpoint
from node.contract.values import Count, Empty, Id, PersonText, Request
from protocol.limits.users import UNSEEN_COUNT_MAX, UNSEEN_OPENED_MAX

_Unseen = Annotated[
    int,
    Meta(
        ge=0,
        description=f"Posts, files and imported commits of others, among the latest {UNSEEN_COUNT_MAX:,} commits.",
    ),
]
_More = Annotated[bool, Meta(description="More commits came since than were looked at.")]


class SeenRequest(Request, frozen=True):
    """Has a branch seen."""

    up_to: Annotated[
        int, Meta(ge=0, le=2**53, description="The `up_to` of what was shown: what came later stays new.")
    ]


class MentioningCommit(TypedDict):
    """A commit that mentions the user of this node."""

    commit: Id
    author: Id
    author_name: PersonText


class UnseenBranch(TypedDict):
    """Counts of new commits in a branch."""

    branch: Id
    repo: Id
    unseen: _Unseen
    more: _More
    mentions: Annotated[
        Count, Meta(description=f"Of the newest {UNSEEN_OPENED_MAX} of them, those that mention the user.")
    ]
    latest_mention: Annotated[MentioningCommit | None, Meta(description="The newest of these.")]


class UnseenList(TypedDict):
    """Branches with something new."""

    branches: list[UnseenBranch]


class UnseenCommitList(TypedDict):
    """New commits of one branch."""

    branch: Id
    unseen: _Unseen
    more: _More
    mentions: Count
    commits: Annotated[list[Id], Meta(description="The new ones, the latest that came first.")]
    visited: Annotated[
        bool, Meta(description="False: the branch was never marked as seen, so all of it is new.")
    ]
    up_to: Annotated[int, Meta(description="For `PUT /branches/{branch}/seen`, once it was shown.")]


LIST_UNSEEN: Final = Endpoint(
    name="list_unseen",
    method="GET",
    path="/unseen",
    scopes=READ_LISTS,
    summary="List branches with commits of others that the user has not seen, archived ones left out.",
    answer=UnseenList,
)
SHOW_UNSEEN: Final = Endpoint(
    name="show_unseen",
    method="GET",
    path="/branches/{branch}/unseen",
    scopes=READ_BRANCH,
    summary="Show which commits of a branch the user has not seen.",
    answer=UnseenCommitList,
)
MARK_SEEN: Final = Endpoint(
    name="mark_seen",
    method="PUT",
    path="/branches/{branch}/seen",
    scopes=WRITE_BRANCH,
    summary="Have a branch seen up to a moment. Only this node knows.",
    request=SeenRequest,
    answer=Empty,
)
