"""Timelines of branches: windows, edits for followers, digests; and other views of the same commits."""

from typing import Annotated, Final, NotRequired, TypedDict

from msgspec import Meta

from node.contract.access import READ_BRANCH, READ_REPO
from node.contract.commits import CommitItem, EditItem, Place, Rank, StateItem, TimelineItem
from node.contract.endpoint import (
    Endpoint,
    HeaderParameter,
    QueryParameter,
    StreamedEvent,
    limit_parameter,
)
from node.contract.values import Count, Id, PersonText, UnixSeconds, one_of
from protocol.limits.users import EDIT_WINDOW_MAX, TANGLE_WINDOW_MAX, TIMELINE_WINDOW_MAX

Cursor = Annotated[str, Meta(description="A cursor of the branch's edits.")]


class ArrivingCommits(TypedDict):
    """The newest commits of a branch whose past is on its way. They have no positions, and settle in the timeline."""

    items: Annotated[
        list[CommitItem],
        Meta(
            description="In canonical order, edits and deletions applied: those that owners, admins or own devices confirm."
        ),
    ]
    earlier: Annotated[int, Meta(ge=0, description="Commits before them that are on their way, at least.")]
    waiting: Annotated[
        int, Meta(ge=0, description="Further commits. No trusted member has confirmed them so far.")
    ]


class TimelineWindow(TypedDict):
    """A window of a timeline."""

    items: list[TimelineItem]
    total: Annotated[int, Meta(ge=0, description="Commits of the whole timeline.")]
    next: Annotated[
        int | str | None,
        Meta(description="The `after_position`, or `after`, of the next window. Null: there is none."),
    ]
    previous: Annotated[
        int | str | None,
        Meta(description="The `before_position`, or `before`, of the window before. Null: there is none."),
    ]
    cursor: NotRequired[
        Annotated[str, Meta(description="In canonical order: edits after it change this window.")]
    ]
    arriving: NotRequired[
        Annotated[
            ArrivingCommits,
            Meta(
                description="Newest commits of the branch while its past is on its way. Only the last window has them."
            ),
        ]
    ]


class EditView(TypedDict):
    """An edit of a timeline."""

    cursor: Annotated[str, Meta(description="Where to continue after this edit.")]
    edit: Annotated[str, one_of("insert", "move", "remove", description="What happens to the commit.")]
    commit: Id
    place: Annotated[Place, Meta(description="Where it stands now; of a remove, where it stood.")]
    item: NotRequired[Annotated[EditItem, Meta(description="Of an insert: the commit.")]]
    position: NotRequired[
        Annotated[int | None, Meta(description="Its position after the edit. Null: it was removed.")]
    ]
    position_before: NotRequired[
        Annotated[int | None, Meta(description="Its position before the edit. Null: it was inserted.")]
    ]


class EditWindow(TypedDict):
    """A window of a timeline's edits."""

    branch: Id
    edits: list[EditView]
    reset: Annotated[bool, Meta(description="Forget what was known before this window.")]
    cursor: Annotated[Cursor, Meta(description="Where to continue.")]
    more: Annotated[bool, Meta(description="There are further edits now.")]
    last: Annotated[Cursor, Meta(description="The cursor of now.")]


class ResetEvent(TypedDict):
    """Notice that a client's knowledge of a timeline no longer holds."""

    cursor: Cursor


class ClosingEvent(TypedDict):
    """The node stops. No fields."""


class TimelineDigest(TypedDict):
    """The digest of a timeline."""

    digest: Annotated[str, Meta(description="Equal on two nodes exactly if they show the same timeline.")]
    commits: Count
    heads: Annotated[list[Id], Meta(description="At most 128.")]
    head_count: Count


class BranchState(TypedDict):
    """The end of a branch's state: what it continues, then its own commits."""

    branch: Id
    items: list[StateItem]
    total: Annotated[int, Meta(ge=0, description="Commits of the whole state.")]


class PastCommits(TypedDict):
    """The end of a branch as it was at a commit."""

    at: Id
    items: list[CommitItem]


class FeedView(TypedDict):
    """An author's feed in a branch."""

    author: Id
    author_name: PersonText
    commits: Count
    last: Annotated[int, Meta(ge=0, description="The highest sequence number.")]
    forks: Annotated[int, Meta(ge=0, description="How many places of the feed were used more than once.")]


class FeedForkView(TypedDict):
    """A place of a feed that was used for several commits."""

    author: Id
    author_name: PersonText
    sequence: Count
    commits: Annotated[list[Id], Meta(description="At most 16.")]
    commit_count: Count


class FeedCheck(TypedDict):
    """The feeds of a branch."""

    branch: Id
    feeds: list[FeedView]
    forks: Annotated[list[FeedForkView], Meta(description="The first 100.")]
    fork_count: Count


class TangleCommit(TypedDict):
    """A commit in a tangle."""

    commit: Id
    rank: Rank
    previous: Annotated[list[Id], Meta(description="What it follows in this tangle.")]
    author: Id
    author_name: PersonText
    body: Annotated[str, Meta(description="The kind of its body.")]
    time: UnixSeconds
    void: bool
    tip: bool
    branch: Annotated[bool, Meta(description="More than one commit follows it.")]
    merge: Annotated[bool, Meta(description="It follows more than one commit.")]
    source: NotRequired[Annotated[str, Meta(description="Of an imported commit: its id there.")]]
    imported_author: NotRequired[Annotated[str, Meta(description="Of an imported commit: its author there.")]]


class TangleView(TypedDict):
    """The end of a tangle."""

    kind: str
    root: Id
    count: Annotated[int, Meta(ge=0, description="Commits of the whole tangle.")]
    tips: list[Id]
    commits: Annotated[list[TangleCommit], Meta(description="The last ones, in canonical order.")]


SHOW_TIMELINE: Final = Endpoint(
    name="show_timeline",
    method="GET",
    path="/branches/{branch}/timeline",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show a window of a branch's timeline.",
    details=(
        "In canonical order, give at most one of `after_position` and `before_position`. With `order=time`, give at "
        "most one of `after` and `before`."
    ),
    query=(
        limit_parameter(TIMELINE_WINDOW_MAX),
        QueryParameter(
            name="order",
            type=str,
            default="canonical",
            description="`canonical`, which is the same on all nodes, or `time`.",
        ),
        QueryParameter(
            name="after_position",
            type=int,
            minimum=-1,
            description="The window begins after this position. -1, the default: at the start.",
        ),
        QueryParameter(
            name="before_position",
            type=int,
            description="The window ends before this position, or with the timeline if that is shorter.",
        ),
        QueryParameter(name="after", type=str, description="By time: the window begins after this commit."),
        QueryParameter(
            name="before",
            type=str,
            description="By time: the window ends before this commit. Neither is given: it ends with the timeline.",
        ),
    ),
    answer=TimelineWindow,
)
FOLLOW_EDITS: Final = Endpoint(
    name="follow_edits",
    method="GET",
    path="/branches/{branch}/edits",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show edits of a branch's timeline, or follow them as they come.",
    query=(
        QueryParameter(
            name="since",
            type=str,
            default="",
            description="The cursor to continue from. Empty: from the start.",
        ),
        QueryParameter(
            name="positions", type=bool, default=0, description="State positions where they are known."
        ),
        limit_parameter(EDIT_WINDOW_MAX),
    ),
    headers=(
        HeaderParameter("Last-Event-ID", "Of a stream: the cursor to continue from. It replaces `since`."),
    ),
    answer=EditWindow,
    events=(
        StreamedEvent("edit", EditView, "An edit. The event's id is its cursor."),
        StreamedEvent("reset", ResetEvent, "Forget all that was known before."),
        StreamedEvent("closing", ClosingEvent, "The node stops. This is the last event."),
    ),
    errors=("busy",),
)
SHOW_DIGEST: Final = Endpoint(
    name="show_digest",
    method="GET",
    path="/branches/{branch}/digest",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show the digest of a branch's whole timeline.",
    answer=TimelineDigest,
)
SHOW_STATE: Final = Endpoint(
    name="show_state",
    method="GET",
    path="/branches/{branch}/state",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show the last commits of a branch and of what it continues.",
    query=(
        limit_parameter(TIMELINE_WINDOW_MAX),
        QueryParameter(
            name="kind", type=str, default="", description="Only commits of this kind, as `text`. Empty: all."
        ),
    ),
    answer=BranchState,
    errors=("not_permitted", "incomplete", "too_large"),
)
SHOW_PAST: Final = Endpoint(
    name="show_past",
    method="GET",
    path="/branches/{branch}/past/{commit}",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show a branch as it was at a commit: the last commits of its past.",
    details="The commit may also be given by its tag.",
    query=(limit_parameter(TIMELINE_WINDOW_MAX),),
    answer=PastCommits,
)
CHECK_FEEDS: Final = Endpoint(
    name="check_feeds",
    method="GET",
    path="/branches/{branch}/feeds",
    scopes=READ_BRANCH,
    summary="List the feeds of a branch, and the places that an author used more than once.",
    answer=FeedCheck,
)
SHOW_TANGLE: Final = Endpoint(
    name="show_tangle",
    method="GET",
    path="/repos/{repo}/tangles/{kind}",
    scopes=READ_REPO,
    summary="Show the end of a tangle of a repo.",
    query=(
        limit_parameter(TANGLE_WINDOW_MAX),
        QueryParameter(
            name="branch", type=str, default="main", description="Of kinds `branch` and `feed`: the branch."
        ),
        QueryParameter(
            name="author", type=str, default="", description="Of kind `feed`: the member. Empty: this user."
        ),
        QueryParameter(
            name="epoch",
            type=str,
            default="",
            description="Of kind `members`: the epoch, by its id or a prefix. Empty: the current one.",
        ),
        QueryParameter(
            name="message", type=str, default="", description="Of kind `thread`: the id of its first message."
        ),
        QueryParameter(
            name="name",
            type=str,
            default="thread",
            description="Of kind `thread`: what messages call the tangle.",
        ),
    ),
    answer=TangleView,
    errors=("not_permitted", "too_large"),
)
