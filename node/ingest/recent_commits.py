"""`RecentCommits`: posts that this node has just written, as reading them from the store gives them.

The search index and followers ask for each within a second, and else read, decrypt and parse what was in memory before.
"""

from collections import OrderedDict
from typing import Final

from protocol.formats.body import Body
from protocol.formats.commit import Commit
from protocol.formats.content import Imported, Post
from protocol.ids import CommitId
from protocol.limits.formats import KIB

_COUNT_MAX: Final = 1024
"""Commits that are kept: three megabytes, and most of a second's writes."""
_LENGTH_MAX: Final = KIB
"""Characters of a text that is kept. Longer ones take more to send than to read again."""


class RecentCommits:
    """Commits with their bodies by id, the latest. For all threads.

    Neither ever changes. That the body is still here, the commit's row says.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[CommitId, tuple[Commit, Post | Imported]] = OrderedDict()  # the oldest first

    def note(self, commit: Commit, body: Body) -> None:
        """Keep a commit that was stored, if it is a short post."""
        if isinstance(body, Post | Imported) and len(body.text) <= _LENGTH_MAX:
            self._kept[commit.commit_id] = commit, body
            if len(self._kept) > _COUNT_MAX:
                self._kept.popitem(last=False)

    def find(self, commit_id: CommitId) -> tuple[Commit, Post | Imported] | None:
        """Return a commit and its body, or None."""
        return self._kept.get(commit_id)
