"""Calls: posts. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.posts import HiddenPost, PostVersions, Thread, WrittenPost

REPLY_TO_POST: Final[Operation[WrittenPost]] = Operation(
    "POST", "/commits/{commit}/replies", "posts.WrittenPost", defaults={"resolve_mentions": False}
)
EDIT_POST: Final[Operation[WrittenPost]] = Operation(
    "PUT", "/commits/{commit}/text", "posts.WrittenPost", defaults={"resolve_mentions": False}
)
DELETE_POST: Final[Operation[WrittenPost]] = Operation("DELETE", "/commits/{commit}", "posts.WrittenPost")
HIDE_POST: Final[Operation[HiddenPost]] = Operation("PUT", "/commits/{commit}/hidden", "posts.HiddenPost")
SHOW_VERSIONS: Final[Operation[PostVersions]] = Operation(
    "GET", "/commits/{commit}/versions", "posts.PostVersions", defaults={"limit": 100, "before": ""}
)
SHOW_THREAD: Final[Operation[Thread]] = Operation(
    "GET", "/commits/{commit}/thread", "posts.Thread", defaults={"limit": 100, "after": ""}
)


class PostsCalls(SyncCaller):
    """Methods that wait for the answer."""

    def reply_to_post(self, commit: str, text: str, *, resolve_mentions: bool = False) -> WrittenPost:
        """Write a reply to a post, in its branch."""
        return self._call(
            REPLY_TO_POST, {"commit": commit, "text": text, "resolve_mentions": resolve_mentions}
        )

    def edit_post(self, commit: str, text: str, *, resolve_mentions: bool = False) -> WrittenPost:
        """Give a post of one's own another text. Earlier ones stay readable until they are erased."""
        return self._call(EDIT_POST, {"commit": commit, "text": text, "resolve_mentions": resolve_mentions})

    def delete_post(self, commit: str) -> WrittenPost:
        """Delete a post of one's own for good. What it said stays readable until it is erased."""
        return self._call(DELETE_POST, {"commit": commit})

    def hide_post(self, commit: str, hidden: bool) -> HiddenPost:
        """Hide a post from the timelines of all members, or show it again."""
        return self._call(HIDE_POST, {"commit": commit, "hidden": hidden})

    def show_versions(self, commit: str, *, limit: int = 100, before: str = "") -> PostVersions:
        """Show what a post said over time: the last versions that count, also of a deleted or hidden post."""
        return self._call(SHOW_VERSIONS, {"commit": commit, "limit": limit, "before": before})

    def show_thread(self, commit: str, *, limit: int = 100, after: str = "") -> Thread:
        """Show the thread of a post: the first post, and the replies."""
        return self._call(SHOW_THREAD, {"commit": commit, "limit": limit, "after": after})
