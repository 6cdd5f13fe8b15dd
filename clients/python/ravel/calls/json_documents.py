"""Calls: json_documents. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Mapping, Sequence

    from ravel.event_streams import EventStream
    from ravel.types.document_values import DocumentSnapshot
    from ravel.types.json_documents import JsonDocumentView, JsonEditResult

FOLLOW_JSON: Final[Operation[JsonDocumentView]] = Operation(
    "GET", "/branches/{branch}/json", "json_documents.JsonDocumentView", defaults={"name": ""}
)
EDIT_JSON: Final[Operation[JsonEditResult]] = Operation(
    "POST",
    "/branches/{branch}/json",
    "json_documents.JsonEditResult",
    defaults={"name": "", "preview": False},
)
SNAPSHOT_JSON: Final[Operation[DocumentSnapshot]] = Operation(
    "POST", "/branches/{branch}/json/snapshots", "document_values.DocumentSnapshot", defaults={"name": ""}
)


class JsonDocumentsCalls(SyncCaller):
    """Methods that wait for the answer."""

    def follow_json(self, branch: str, *, name: str = "") -> JsonDocumentView:
        """Show a JSON document of a branch, or follow it: the whole of it whenever it has changed."""
        return self._call(FOLLOW_JSON, {"branch": branch, "name": name})

    def watch_json(self, branch: str, *, name: str = "", reconnect: bool = True) -> EventStream:
        """Follow events as they come: `document`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(FOLLOW_JSON, {"branch": branch, "name": name}, reconnect=reconnect)

    def edit_json(
        self, branch: str, edits: Sequence[Mapping[str, object]], *, name: str = "", preview: bool = False
    ) -> JsonEditResult:
        """Edit a JSON document of a branch."""
        return self._call(EDIT_JSON, {"branch": branch, "edits": edits, "name": name, "preview": preview})

    def snapshot_json(self, branch: str, *, name: str = "") -> DocumentSnapshot:
        """Compact a JSON document's history. Its content does not change."""
        return self._call(SNAPSHOT_JSON, {"branch": branch, "name": name})
