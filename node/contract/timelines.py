"""Timelines of branches: windows, edits for followers, digests; and other views of the same commits."""

from typing import Final

from node.contract.access import READ_BRANCH, READ_REPO
from node.contract.endpoint import (
    Endpoint,
    HeaderParameter,
    QueryParameter,
    StreamedEvent,
    limit_parameter,
)
from protocol.limits.users import EDIT_WINDOW_MAX, TANGLE_WINDOW_MAX, TIMELINE_WINDOW_MAX
from ravel.types.timelines import (
    BranchState,
    ClosingEvent,
    EditView,
    EditWindow,
    FeedCheck,
    PastCommits,
    ResetEvent,
    TangleView,
    TimelineDigest,
    TimelineWindow,
)

SHOW_TIMELINE: Final = Endpoint(
    name="show_timeline",
    method="GET",
    path="/branches/{branch}/timeline",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show a window of a branch's timeline.",
    details=(
        "In canonical order, give at most one of `after_position` and `before_position`. With `order=time`, give at "
        "most one of `after`, `before` and `since`."
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
            description="By time: the window ends before this commit. None is given: it ends with the timeline.",
        ),
        QueryParameter(
            name="since",
            type=int,
            minimum=0,
            description="By time: the window begins with the first commit from this moment on, in Unix seconds.",
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
