"""Sets, dicts and texts of branches over the API, from Python: `ApiClient.documents`."""

from __future__ import annotations  # the types of answers are named by modules that are not imported yet

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from node.client.calls import Call
from node.contract import subjects

if TYPE_CHECKING:
    from node.contract.document_values import DocumentSnapshot


class DocumentsClient:
    """One method an endpoint."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def show_set(self, branch: str, offset: int = 0, limit: int = 1000) -> subjects.documents.SetWindow:
        """A window of a branch's set."""
        return self._call(subjects.documents.SHOW_SET, branch=branch, offset=offset, limit=limit)

    def edit_set(
        self, branch: str, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> subjects.documents.SetEditResult:
        """Add items to a branch's set, and remove others."""
        return self._call(subjects.documents.EDIT_SET, branch=branch, add=list(add), remove=list(remove))

    def snapshot_set(self, branch: str) -> DocumentSnapshot:
        """Compact the history of a branch's set."""
        return self._call(subjects.documents.SNAPSHOT_SET, branch=branch)

    def show_dict(self, branch: str, offset: int = 0, limit: int = 1000) -> subjects.documents.DictWindow:
        """A window of a branch's dict."""
        return self._call(subjects.documents.SHOW_DICT, branch=branch, offset=offset, limit=limit)

    def get_entry(self, branch: str, key: str) -> subjects.documents.DictEntryView:
        """One entry of a branch's dict."""
        return self._call(subjects.documents.SHOW_ENTRY, branch=branch, key=key)

    def edit_dict(
        self, branch: str, put: Mapping[str, str] | None = None, erase: Sequence[str] = ()
    ) -> subjects.documents.DictEditResult:
        """Put values into a branch's dict, and erase others."""
        return self._call(subjects.documents.EDIT_DICT, branch=branch, put=dict(put or {}), erase=list(erase))

    def snapshot_dict(self, branch: str) -> DocumentSnapshot:
        """Compact the history of a branch's dict."""
        return self._call(subjects.documents.SNAPSHOT_DICT, branch=branch)

    def compact(
        self, branch: str, *, dry_run: bool, without_missing: bool = False
    ) -> subjects.branches.CompactionResult:
        """Compact a branch."""
        return self._call(
            subjects.branches.COMPACT_BRANCH, branch=branch, dry_run=dry_run, without_missing=without_missing
        )

    def push_text(self, branch: str, update: bytes) -> subjects.documents.TextPush:
        """Push a Yjs update to a branch's text."""
        return self._call(subjects.documents.PUSH_TEXT, branch=branch, update=b64encode(update).decode())

    def pull_text(self, branch: str, root: str | None = None) -> subjects.documents.TextView:
        """A branch's text as one Yjs update, and of a root as plain text."""
        return self._call(subjects.documents.PULL_TEXT, branch=branch, root=root)
