"""Types of answers: unseen."""

from typing import Annotated, TypedDict

from ravel.types.values import Count, Id, PersonText, means

_Unseen = Annotated[
    int,
    means(
        "Posts, files and imported commits of others, but deleted and hidden ones, among the latest 1,000 commits.",
        ge=0,
    ),
]
_More = Annotated[bool, means("More commits came since than were looked at.")]


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
    mentions: Annotated[Count, means("Of the newest 100 of them, those that mention the user.")]
    latest_mention: Annotated[MentioningCommit | None, means("The newest of these.")]


class UnseenList(TypedDict):
    """Branches with something new."""

    branches: list[UnseenBranch]


class UnseenCommitList(TypedDict):
    """New commits of one branch."""

    branch: Id
    unseen: _Unseen
    more: _More
    mentions: Count
    commits: Annotated[list[Id], means("The new ones, the latest that came first.")]
    visited: Annotated[bool, means("False: the branch was never marked as seen, so all of it is new.")]
    up_to: Annotated[int, means("For `PUT /branches/{branch}/seen`, once it was shown.")]
