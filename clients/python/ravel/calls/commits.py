"""Calls: commits. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

    from ravel.types.commits import (
        CommitView,
        StreamedOutcome,
        VerdictView,
        VoidList,
        WrittenCommitView,
        WrittenPosts,
    )

WRITE_POST: Final[Operation[WrittenCommitView]] = Operation(
    "POST", "/branches/{branch}/commits", "commits.WrittenCommitView", defaults={"resolve_mentions": False}
)
WRITE_POSTS: Final[Operation[WrittenPosts]] = Operation(
    "POST", "/branches/{branch}/commits/batch", "commits.WrittenPosts", seconds_max=3600.0
)
STREAM_POSTS: Final[Operation[StreamedOutcome]] = Operation(
    "POST",
    "/branches/{branch}/commits/stream",
    "commits.StreamedOutcome",
    takes_bytes=True,
    seconds_max=3600.0,
)
SHOW_COMMIT: Final[Operation[CommitView]] = Operation("GET", "/commits/{commit}", "commits.CommitView")
EXPLAIN_VERDICT: Final[Operation[VerdictView]] = Operation(
    "GET", "/commits/{commit}/verdict", "commits.VerdictView"
)
LIST_VOIDS: Final[Operation[VoidList]] = Operation("GET", "/branches/{branch}/voids", "commits.VoidList")


class CommitsCalls(SyncCaller):
    """Methods that wait for the answer."""

    def write_post(self, branch: str, text: str, *, resolve_mentions: bool = False) -> WrittenCommitView:
        """Write a post on the heads of a branch. It is durable when the answer comes."""
        return self._call(WRITE_POST, {"branch": branch, "text": text, "resolve_mentions": resolve_mentions})

    def write_posts(self, branch: str, texts: Sequence[str]) -> WrittenPosts:
        """Write many posts, each following the one before it. All are durable when the answer comes.

        They are stored some hundred at a time. Where that fails in between, the error says how many are
        written: these are the first, and they stay.
        """
        return self._call(WRITE_POSTS, {"branch": branch, "texts": texts})

    def show_commit(self, commit: str) -> CommitView:
        """Show a commit with all it states."""
        return self._call(SHOW_COMMIT, {"commit": commit})

    def explain_verdict(self, commit: str) -> VerdictView:
        """Explain the verdict on a commit: the rule and the commits that decide it."""
        return self._call(EXPLAIN_VERDICT, {"commit": commit})

    def list_voids(self, branch: str) -> VoidList:
        """List the void commits of a branch, and why they are void."""
        return self._call(LIST_VOIDS, {"branch": branch})
