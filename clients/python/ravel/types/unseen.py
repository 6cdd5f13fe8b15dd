"""Types of answers: unseen."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import Count, Id, PersonText

_Unseen = Annotated[
    int,
    Meta(
        ge=0,
        description="Posts, files and imported commits of others, among the latest 1,000 commits.",
    ),
]
_More = Annotated[bool, Meta(description="More commits came since than were looked at.")]


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
    mentions: Annotated[Count, Meta(description="Of the newest 100 of them, those that mention the user.")]
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
