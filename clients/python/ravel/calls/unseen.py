"""Calls: unseen. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.unseen import UnseenCommitList, UnseenList
    from ravel.types.values import Empty

LIST_UNSEEN: Final[Operation[UnseenList]] = Operation("GET", "/unseen", "unseen.UnseenList")
SHOW_UNSEEN: Final[Operation[UnseenCommitList]] = Operation(
    "GET", "/branches/{branch}/unseen", "unseen.UnseenCommitList"
)
MARK_SEEN: Final[Operation[Empty]] = Operation("PUT", "/branches/{branch}/seen", "values.Empty")


class UnseenCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_unseen(self) -> UnseenList:
        """List branches with commits of others that the user has not seen, archived ones left out."""
        return self._call(LIST_UNSEEN, {})

    def show_unseen(self, branch: str) -> UnseenCommitList:
        """Show which commits of a branch the user has not seen."""
        return self._call(SHOW_UNSEEN, {"branch": branch})

    def mark_seen(self, branch: str, up_to: int) -> Empty:
        """Have a branch seen up to a moment. Only this node knows."""
        return self._call(MARK_SEEN, {"branch": branch, "up_to": up_to})
