"""Types of answers: timelines."""

from typing import Annotated, NotRequired, TypedDict

from ravel.types.commits import CommitItem, EditItem, Place, Rank, StateItem, TimelineItem
from ravel.types.values import Count, Id, PersonText, UnixSeconds, means, one_of

Cursor = Annotated[str, means("A cursor of the branch's edits.")]


class VouchedBy(TypedDict):
    """Maker of the link by which this node joined, on whose word some of these commits rest until the past is here."""

    user: Id
    name: Annotated[str, means("How the maker is called, or the start of the id.")]
    at: UnixSeconds


class ArrivingCommits(TypedDict):
    """The newest commits of a branch whose past is on its way. They have no positions, and settle in the timeline."""

    items: Annotated[
        list[CommitItem],
        means(
            "In canonical order, edits and deletions applied: those that owners, admins or own devices confirm."
        ),
    ]
    earlier: Annotated[int, means("Commits before them that are on their way, at least.", ge=0)]
    waiting: Annotated[int, means("Further commits. No trusted member has confirmed them so far.", ge=0)]
    vouched: NotRequired[
        Annotated[VouchedBy, means("Where some are shown by the word of who made the link.")]
    ]


class TimelineWindow(TypedDict):
    """A window of a timeline."""

    items: list[TimelineItem]
    total: Annotated[int, means("Commits of the whole timeline.", ge=0)]
    next: Annotated[
        int | str | None, means("The `after_position`, or `after`, of the next window. Null: there is none.")
    ]
    previous: Annotated[
        int | str | None,
        means("The `before_position`, or `before`, of the window before. Null: there is none."),
    ]
    cursor: NotRequired[Annotated[str, means("In canonical order: edits after it change this window.")]]
    arriving: NotRequired[
        Annotated[
            ArrivingCommits,
            means(
                "Newest commits of the branch while its past is on its way. Only the last window has them."
            ),
        ]
    ]


class EditView(TypedDict):
    """An edit of a timeline."""

    cursor: Annotated[str, means("Where to continue after this edit.")]
    edit: Annotated[str, one_of("insert", "move", "remove", description="What happens to the commit.")]
    commit: Id
    place: Annotated[Place, means("Where it stands now; of a remove, where it stood.")]
    item: NotRequired[
        Annotated[
            EditItem,
            means("Of an insert, and of a move to the same place: contents that had been absent came."),
        ]
    ]
    position: NotRequired[Annotated[int | None, means("Its position after the edit. Null: it was removed.")]]
    position_before: NotRequired[
        Annotated[int | None, means("Its position before the edit. Null: it was inserted.")]
    ]


class EditWindow(TypedDict):
    """A window of a timeline's edits."""

    branch: Id
    edits: list[EditView]
    reset: Annotated[bool, means("Forget what was known before this window.")]
    cursor: Annotated[Cursor, means("Where to continue.")]
    more: Annotated[bool, means("There are further edits now.")]
    last: Annotated[Cursor, means("The cursor of now.")]


class ResetEvent(TypedDict):
    """Notice that a client's knowledge of a timeline no longer holds."""

    cursor: Cursor


class ClosingEvent(TypedDict):
    """The node stops. No fields."""


class TimelineDigest(TypedDict):
    """The digest of a timeline."""

    digest: Annotated[str, means("Equal on two nodes exactly if they show the same timeline.")]
    commits: Count
    heads: Annotated[list[Id], means("At most 128.")]
    head_count: Count


class BranchState(TypedDict):
    """The end of a branch's state: what it continues, then its own commits."""

    branch: Id
    items: list[StateItem]
    total: Annotated[int, means("Commits of the whole state.", ge=0)]


class PastCommits(TypedDict):
    """The end of a branch as it was at a commit."""

    at: Id
    items: list[CommitItem]


class FeedView(TypedDict):
    """An author's feed in a branch."""

    author: Id
    author_name: PersonText
    commits: Count
    last: Annotated[int, means("The highest sequence number.", ge=0)]
    forks: Annotated[int, means("How many places of the feed were used more than once.", ge=0)]


class FeedForkView(TypedDict):
    """A place of a feed that was used for several commits."""

    author: Id
    author_name: PersonText
    sequence: Count
    commits: Annotated[list[Id], means("At most 16.")]
    commit_count: Count


class FeedCheck(TypedDict):
    """The feeds of a branch."""

    branch: Id
    feeds: list[FeedView]
    forks: Annotated[list[FeedForkView], means("The first 100.")]
    fork_count: Count


class TangleCommit(TypedDict):
    """A commit in a tangle."""

    commit: Id
    rank: Rank
    previous: Annotated[list[Id], means("What it follows in this tangle.")]
    author: Id
    author_name: PersonText
    body: Annotated[str, means("The kind of its body.")]
    time: UnixSeconds
    void: bool
    tip: bool
    branch: Annotated[bool, means("More than one commit follows it.")]
    merge: Annotated[bool, means("It follows more than one commit.")]
    source: NotRequired[Annotated[str, means("Of an imported commit: its id there.")]]
    imported_author: NotRequired[Annotated[str, means("Of an imported commit: its author there.")]]


class TangleView(TypedDict):
    """The end of a tangle."""

    kind: str
    root: Id
    count: Annotated[int, means("Commits of the whole tangle.", ge=0)]
    tips: list[Id]
    commits: Annotated[list[TangleCommit], means("The last ones, in canonical order.")]
