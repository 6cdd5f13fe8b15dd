"""Types of answers: timelines. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ravel.types.commits import CommitItem, EditItem, StateItem, TimelineItem


class ClosingEvent(TypedDict):
    """The node stops. No fields."""


class TimelineWindow(TypedDict):
    """A window of a timeline."""

    items: list[TimelineItem]
    total: int
    """Commits of the whole timeline."""
    next: int | str | None
    """The `after_position`, or `after`, of the next window. Null: there is none."""
    previous: int | str | None
    """The `before_position`, or `before`, of the window before. Null: there is none."""
    cursor: NotRequired[str]
    """In canonical order: edits after it change this window."""
    arriving: NotRequired[ArrivingCommits]
    """Newest commits of the branch while its past is on its way. Only the last window has them."""


class EditWindow(TypedDict):
    """A window of a timeline's edits."""

    branch: str
    edits: list[EditView]
    reset: bool
    """Forget what was known before this window."""
    cursor: str
    """Where to continue."""
    more: bool
    """There are further edits now."""
    last: str
    """The cursor of now."""


class EditView(TypedDict):
    """An edit of a timeline."""

    cursor: str
    """Where to continue after this edit."""
    edit: str
    """What happens to the commit."""
    commit: str
    place: str
    """Where it stands now; of a remove, where it stood."""
    item: NotRequired[EditItem]
    """Of an insert: the commit."""
    position: NotRequired[int | None]
    """Its position after the edit. Null: it was removed."""
    position_before: NotRequired[int | None]
    """Its position before the edit. Null: it was inserted."""


class ResetEvent(TypedDict):
    """Notice that a client's knowledge of a timeline no longer holds."""

    cursor: str
    """A cursor of the branch's edits."""


class TimelineDigest(TypedDict):
    """The digest of a timeline."""

    digest: str
    """Equal on two nodes exactly if they show the same timeline."""
    commits: int
    heads: list[str]
    """At most 128."""
    head_count: int


class BranchState(TypedDict):
    """The end of a branch's state: what it continues, then its own commits."""

    branch: str
    items: list[StateItem]
    total: int
    """Commits of the whole state."""


class PastCommits(TypedDict):
    """The end of a branch as it was at a commit."""

    at: str
    items: list[CommitItem]


class FeedCheck(TypedDict):
    """The feeds of a branch."""

    branch: str
    feeds: list[FeedView]
    forks: list[FeedForkView]
    """The first 100."""
    fork_count: int


class TangleView(TypedDict):
    """The end of a tangle."""

    kind: str
    root: str
    count: int
    """Commits of the whole tangle."""
    tips: list[str]
    commits: list[TangleCommit]
    """The last ones, in canonical order."""


class ArrivingCommits(TypedDict):
    """The newest commits of a branch whose past is on its way. They have no positions, and settle in the timeline."""

    items: list[CommitItem]
    """In canonical order, edits and deletions applied: those that owners, admins or own devices confirm."""
    earlier: int
    """Commits before them that are on their way, at least."""
    waiting: int
    """Further commits. No trusted member has confirmed them so far."""


class FeedView(TypedDict):
    """An author's feed in a branch."""

    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    commits: int
    last: int
    """The highest sequence number."""
    forks: int
    """How many places of the feed were used more than once."""


class FeedForkView(TypedDict):
    """A place of a feed that was used for several commits."""

    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    sequence: int
    commits: list[str]
    """At most 16."""
    commit_count: int


class TangleCommit(TypedDict):
    """A commit in a tangle."""

    commit: str
    rank: int
    """The length of the longest path from a root."""
    previous: list[str]
    """What it follows in this tangle."""
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    body: str
    """The kind of its body."""
    time: int
    """Unix seconds."""
    void: bool
    tip: bool
    branch: bool
    """More than one commit follows it."""
    merge: bool
    """It follows more than one commit."""
    source: NotRequired[str]
    """Of an imported commit: its id there."""
    imported_author: NotRequired[str]
    """Of an imported commit: its author there."""
