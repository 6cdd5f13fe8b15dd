"""Reads pages of a branch's timeline (canonical or by time), and its digest.

`edits` follows them.

A window of the canonical order is asked for by position, one of the order by time by a commit at its side: positions
there would have to be counted.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from sqlalchemy import Connection

from node.ingest.kept_windows import KeptWindows
from node.runtime.errors import ServiceError
from node.sync.day_windows import fetch_day
from node.sync.hub import Hub
from node.timelines.arriving import show_arriving
from node.timelines.views import edit_cursor_text, show_opened, timeline_items
from node.timelines.why import find_commit
from protocol.formats.text import id_text
from protocol.ids import CommitId
from protocol.limits.users import FEED_FORK_COMMITS_SHOWN_MAX, FEED_FORKS_SHOWN_MAX
from ravel.types.timelines import FeedCheck, TimelineDigest, TimelineWindow
from storage.commits.commits import count_commits, digest_timeline, load_numbered, load_timeline
from storage.commits.display import load_display_window
from storage.commits.edits import Cursor, load_last_change
from storage.commits.feeds import load_feed_forks, load_feeds
from storage.commits.heads import count_heads, load_heads
from storage.repos.repos import Branch

HEADS_SHOWN_MAX: Final = 128
"""Heads of one answer: more are counted."""
_ORDERS: Final = ("canonical", "time")
_SECONDS_MAX: Final = 2**52
"""Unix seconds beyond which nothing is looked for: as milliseconds they are still numbers of the store."""


class Timelines:
    """The timelines of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._find_branch = find_branch

    async def read(
        self,
        branch: str,
        *,
        limit: int,
        order: str,
        after_position: int | None,
        before_position: int | None,
        after: str | None,
        before: str | None,
        since: int | None = None,
    ) -> TimelineWindow:
        """Return at most `limit` items of one side of a position, or with `order` "time" of a commit or from a moment on.

        Raises ServiceError `bad_request` where there is no such order, or the sides do not go with it, or with each other.
        """
        if order not in _ORDERS:
            raise ServiceError(
                "bad_request", f"there is no order {order[:20]!r}", f"say {' or '.join(_ORDERS)}"
            )
        by_position, by_commit = (after_position, before_position), (after, before, since)
        given = [side for side in (*by_position, *by_commit) if side is not None]
        foreign = by_position if order == "time" else by_commit
        if len(given) > 1 or any(side is not None for side in foreign):
            raise ServiceError(
                "bad_request",
                "a timeline is asked for beside a position, or with order=time beside a commit or since a moment",
                "give one of after_position and before_position, or order=time and one of after, before and since",
            )
        if order == "time":
            since_ms = None if since is None else min(since, _SECONDS_MAX) * 1000
            return await self.window_by_time(branch, after or "", before or "", limit, since_ms)
        if before_position is not None:
            return await self.window_before(branch, before_position, limit)
        return await self.window(branch, -1 if after_position is None else after_position, limit)

    async def window(self, branch: str, after_position: int, limit: int) -> TimelineWindow:
        """Return at most `limit` items from the one after `after_position` (-1: from the start)."""
        target = self._find_branch(branch)
        return await show_opened(self._hub, partial(self._window, target, after_position + 1, limit))

    async def window_before(self, branch: str, before_position: int, limit: int) -> TimelineWindow:
        """Return at most `limit` items, the last one that before `before_position`, or the timeline's last one."""
        target = self._find_branch(branch)
        return await show_opened(self._hub, partial(self._window_before, target, before_position, limit))

    async def window_by_time(
        self, branch: str, after: str, before: str, limit: int, since: int | None = None
    ) -> TimelineWindow:
        """Return at most `limit` items by time: the first after a commit or since a moment; else the last before one.

        With neither, the last of all. `since` is in unix milliseconds. If that is not here yet, connected peers are asked
        for what they have of it.
        Raises ServiceError `not_found`, `ambiguous`.
        """
        target = self._find_branch(branch)
        days = None if since is None else await fetch_day(self._hub, target, since)
        read = partial(self._window_by_time, target, after, before, limit, since, days)
        return await show_opened(self._hub, read)

    async def digest(self, branch: str) -> TimelineDigest:
        """Return the digest of the whole timeline: equal on two nodes exactly if they show the same."""
        return await self._hub.run_blocking(self._digest, self._find_branch(branch))

    # --- in threads ---

    def _window(self, branch: Branch, position: int, limit: int) -> TimelineWindow:
        with self._hub.replica.database.read() as connection:
            window = self._canonical(connection, branch, position, limit)
        return self._with_arriving(window, branch, limit)

    def _window_before(self, branch: Branch, before: int, limit: int) -> TimelineWindow:
        with self._hub.replica.database.read() as connection:
            end = min(before, count_commits(connection, branch.num))
            start = max(end - limit, 0)
            window = self._canonical(connection, branch, start, end - start)
        return self._with_arriving(window, branch, limit)

    def _canonical(self, connection: Connection, branch: Branch, position: int, limit: int) -> TimelineWindow:
        rows = load_timeline(connection, branch.num, position, limit)
        items = timeline_items(connection, self._hub.replica, rows, position)
        total = count_commits(connection, branch.num)
        following = position + len(rows)
        return {
            "items": items,
            "total": total,
            "next": following - 1 if rows and following < total else None,
            "previous": position if rows and position else None,
            "cursor": edit_cursor_text(
                self._hub.store_name, branch, Cursor(load_last_change(connection, branch.num))
            ),
        }

    def _window_by_time(
        self,
        branch: Branch,
        after: str,
        before: str,
        limit: int,
        since: int | None,
        days: KeptWindows | None,
    ) -> TimelineWindow:
        def beside(connection: Connection, text: str) -> CommitId | None:
            return find_commit(connection, text, [branch]).commit_id if text else None

        with self._hub.replica.database.read() as connection:
            nums = load_display_window(
                connection,
                branch.num,
                limit + 1,  # one more tells whether there are more
                after=beside(connection, after),
                before=beside(connection, before),
                since=since,
            )
            is_forwards = bool(after) or since is not None
            shown = nums[:limit] if is_forwards else nums[-limit:]
            rows = load_numbered(connection, shown)
            items = timeline_items(connection, self._hub.replica, rows, 0)
            total = count_commits(connection, branch.num)
        for item in items:
            del item["position"]  # it is one of the other order
        is_cut = len(nums) > limit
        window: TimelineWindow = {
            "items": items,
            "total": total,
            "next": items[-1]["commit"] if items and (is_cut if is_forwards else before) else None,
            "previous": items[0]["commit"] if items and (is_forwards or is_cut) else None,
        }
        return self._with_arriving(window, branch, limit, since, days)

    def _with_arriving(
        self,
        window: TimelineWindow,
        branch: Branch,
        limit: int,
        since: int | None = None,
        days: KeptWindows | None = None,
    ) -> TimelineWindow:
        """Add the newest posts to the last window, although their past has not arrived and they have no place yet.

        With `since`, the first from that moment on, of what was fetched for it (`days`).
        """
        if window["next"] is None:
            arriving = show_arriving(self._hub, branch, limit, since, days)
            if arriving is not None:
                window["arriving"] = arriving
        return window

    def _digest(self, branch: Branch) -> TimelineDigest:
        with self._hub.replica.database.read() as connection:
            digest, count = digest_timeline(connection, branch.num)
            heads = load_heads(connection, branch.num, HEADS_SHOWN_MAX)
            head_count = count_heads(connection, branch.num)
        return {
            "digest": digest,
            "commits": count,
            "heads": [id_text(commit_id) for commit_id, _ in heads],
            "head_count": head_count,
        }


class Feeds:
    """Looks at the feeds of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._find_branch = find_branch

    async def check(self, branch: str) -> FeedCheck:
        """List every author's feed, and the places used more than once: the first of them, and of their commits."""
        return await self._hub.run_blocking(self._check, self._find_branch(branch))

    def _check(self, branch: Branch) -> FeedCheck:
        with self._hub.replica.database.read() as connection:
            feeds = load_feeds(connection, branch.num)
            forks = load_feed_forks(
                connection,
                branch.num,
                place_limit=FEED_FORKS_SHOWN_MAX,
                commit_limit=FEED_FORK_COMMITS_SHOWN_MAX,
            )
        people, repo_id = self._hub.replica.people, branch.facts.repo_id
        return {
            "branch": id_text(branch.branch_id),
            "feeds": [
                {
                    "author": id_text(feed.author),
                    "author_name": people.name(repo_id, feed.author),
                    "commits": feed.commits,
                    "last": feed.last,
                    "forks": feed.forks,
                }
                for feed in feeds
            ],
            "forks": [
                {
                    "author": id_text(fork.author),
                    "author_name": people.name(repo_id, fork.author),
                    "sequence": fork.sequence,
                    "commits": [id_text(commit_id) for commit_id in fork.commit_ids],
                    "commit_count": fork.count,
                }
                for fork in forks
            ],
            "fork_count": sum(feed.forks for feed in feeds),
        }
