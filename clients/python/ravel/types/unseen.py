"""Types of answers: unseen. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class UnseenList(TypedDict):
    """Branches with something new."""

    branches: list[UnseenBranch]


class UnseenCommitList(TypedDict):
    """New commits of one branch."""

    branch: str
    unseen: int
    """Posts, files and imported commits of others, among the latest 1,000 commits."""
    more: bool
    """More commits came since than were looked at."""
    mentions: int
    commits: list[str]
    """The new ones, the latest that came first."""
    visited: bool
    """False: the branch was never marked as seen, so all of it is new."""
    up_to: int
    """For `PUT /branches/{branch}/seen`, once it was shown."""


class UnseenBranch(TypedDict):
    """Counts of new commits in a branch."""

    branch: str
    repo: str
    unseen: int
    """Posts, files and imported commits of others, among the latest 1,000 commits."""
    more: bool
    """More commits came since than were looked at."""
    mentions: int
    """Of the newest 100 of them, those that mention the user."""
    latest_mention: MentioningCommit | None
    """The newest of these."""


class MentioningCommit(TypedDict):
    """A commit that mentions the user of this node."""

    commit: str
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
