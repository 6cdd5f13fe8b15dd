"""Timelines of branches as users ask for them: a window, or the digest of the whole. `edits` follows them."""

from collections.abc import Callable
from typing import Any, Final

from node.hub import Hub
from node.views import timeline_items
from protocol.text import id_text
from storage.commits import count_commits, count_heads, digest_timeline, load_heads, load_timeline
from storage.repos import Branch

HEADS_SHOWN_MAX: Final = 128
"""Heads of one answer: more are counted."""
JsonObject = dict[str, Any]


class Timelines:
    """The timelines of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._find_branch = find_branch

    async def window(self, branch: str, after_position: int, limit: int) -> JsonObject:
        """At most `limit` items from the one after `after_position` (-1: from the start)."""
        target = self._find_branch(branch)
        return await self._hub.run_blocking(self._window, target, after_position + 1, limit)

    async def digest(self, branch: str) -> JsonObject:
        """The digest of the whole timeline: equal on two nodes exactly if they show the same."""
        return await self._hub.run_blocking(self._digest, self._find_branch(branch))

    # --- in threads ---

    def _window(self, branch: Branch, offset: int, limit: int) -> JsonObject:
        with self._hub.replica.database.read() as connection:
            rows = load_timeline(connection, branch.num, offset, limit)
            items = timeline_items(connection, self._hub.replica.on_topics, rows, offset)
            total = count_commits(connection, branch.num)
        following = offset + len(rows)
        return {"items": items, "total": total, "next": following - 1 if rows and following < total else None}

    def _digest(self, branch: Branch) -> JsonObject:
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
