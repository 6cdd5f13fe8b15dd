"""Calls: timelines. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.event_streams import EventStream
    from ravel.types.timelines import (
        BranchState,
        EditWindow,
        FeedCheck,
        PastCommits,
        TangleView,
        TimelineDigest,
        TimelineWindow,
    )

SHOW_TIMELINE: Final[Operation[TimelineWindow]] = Operation(
    "GET",
    "/branches/{branch}/timeline",
    "timelines.TimelineWindow",
    defaults={
        "limit": 100,
        "order": "canonical",
        "after_position": None,
        "before_position": None,
        "after": None,
        "before": None,
    },
)
FOLLOW_EDITS: Final[Operation[EditWindow]] = Operation(
    "GET",
    "/branches/{branch}/edits",
    "timelines.EditWindow",
    defaults={"since": "", "positions": False, "limit": 100},
)
SHOW_DIGEST: Final[Operation[TimelineDigest]] = Operation(
    "GET", "/branches/{branch}/digest", "timelines.TimelineDigest"
)
SHOW_STATE: Final[Operation[BranchState]] = Operation(
    "GET", "/branches/{branch}/state", "timelines.BranchState", defaults={"limit": 100, "kind": ""}
)
SHOW_PAST: Final[Operation[PastCommits]] = Operation(
    "GET", "/branches/{branch}/past/{commit}", "timelines.PastCommits", defaults={"limit": 100}
)
CHECK_FEEDS: Final[Operation[FeedCheck]] = Operation("GET", "/branches/{branch}/feeds", "timelines.FeedCheck")
SHOW_TANGLE: Final[Operation[TangleView]] = Operation(
    "GET",
    "/repos/{repo}/tangles/{kind}",
    "timelines.TangleView",
    defaults={"limit": 100, "branch": "main", "author": "", "epoch": "", "message": "", "name": "thread"},
)


class TimelinesCalls(SyncCaller):
    """Methods that wait for the answer."""

    def show_timeline(
        self,
        branch: str,
        *,
        limit: int = 100,
        order: str = "canonical",
        after_position: int | None = None,
        before_position: int | None = None,
        after: str | None = None,
        before: str | None = None,
    ) -> TimelineWindow:
        """Show a window of a branch's timeline.

        In canonical order, give at most one of `after_position` and `before_position`. With `order=time`, give
        at most one of `after` and `before`.
        """
        return self._call(
            SHOW_TIMELINE,
            {
                "branch": branch,
                "limit": limit,
                "order": order,
                "after_position": after_position,
                "before_position": before_position,
                "after": after,
                "before": before,
            },
        )

    def follow_edits(
        self, branch: str, *, since: str = "", positions: bool = False, limit: int = 100
    ) -> EditWindow:
        """Show edits of a branch's timeline, or follow them as they come."""
        return self._call(
            FOLLOW_EDITS, {"branch": branch, "since": since, "positions": positions, "limit": limit}
        )

    def watch_edits(
        self, branch: str, *, since: str = "", positions: bool = False, reconnect: bool = True
    ) -> EventStream:
        """Follow events as they come: `edit`, `reset`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(
            FOLLOW_EDITS, {"branch": branch, "since": since, "positions": positions}, reconnect=reconnect
        )

    def show_digest(self, branch: str) -> TimelineDigest:
        """Show the digest of a branch's whole timeline."""
        return self._call(SHOW_DIGEST, {"branch": branch})

    def show_state(self, branch: str, *, limit: int = 100, kind: str = "") -> BranchState:
        """Show the last commits of a branch and of what it continues."""
        return self._call(SHOW_STATE, {"branch": branch, "limit": limit, "kind": kind})

    def show_past(self, branch: str, commit: str, *, limit: int = 100) -> PastCommits:
        """Show a branch as it was at a commit: the last commits of its past.

        The commit may also be given by its tag.
        """
        return self._call(SHOW_PAST, {"branch": branch, "commit": commit, "limit": limit})

    def check_feeds(self, branch: str) -> FeedCheck:
        """List the feeds of a branch, and the places that an author used more than once."""
        return self._call(CHECK_FEEDS, {"branch": branch})

    def show_tangle(
        self,
        repo: str,
        kind: str,
        *,
        limit: int = 100,
        branch: str = "main",
        author: str = "",
        epoch: str = "",
        message: str = "",
        name: str = "thread",
    ) -> TangleView:
        """Show the end of a tangle of a repo."""
        return self._call(
            SHOW_TANGLE,
            {
                "repo": repo,
                "kind": kind,
                "limit": limit,
                "branch": branch,
                "author": author,
                "epoch": epoch,
                "message": message,
                "name": name,
            },
        )
