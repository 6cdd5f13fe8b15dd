"""Calls: json_documents. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import AsyncCaller, SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Mapping, Sequence

    from ravel.event_streams import AsyncEventStream, EventStream
    from ravel.types.document_values import DocumentSnapshot
    from ravel.types.json_documents import JsonDocumentView, JsonEditResult

FOLLOW_JSON: Final[Operation[JsonDocumentView]] = Operation(
    name="follow_json",
    method="GET",
    path="/branches/{branch}/json",
    answer="json_documents.JsonDocumentView",
    query=("name",),
    defaults={"name": ""},
)
EDIT_JSON: Final[Operation[JsonEditResult]] = Operation(
    name="edit_json",
    method="POST",
    path="/branches/{branch}/json",
    answer="json_documents.JsonEditResult",
    body=("name", "preview", "edits"),
    defaults={"name": "", "preview": False},
)
SNAPSHOT_JSON: Final[Operation[DocumentSnapshot]] = Operation(
    name="snapshot_json",
    method="POST",
    path="/branches/{branch}/json/snapshots",
    answer="document_values.DocumentSnapshot",
    body=("name",),
    defaults={"name": ""},
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


class AsyncJsonDocumentsCalls(AsyncCaller):
    """Methods to await."""

    async def follow_json(self, branch: str, *, name: str = "") -> JsonDocumentView:
        """Show a JSON document of a branch, or follow it: the whole of it whenever it has changed."""
        return await self._call(FOLLOW_JSON, {"branch": branch, "name": name})

    def watch_json(self, branch: str, *, name: str = "", reconnect: bool = True) -> AsyncEventStream:
        """Follow events as they come: `document`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(FOLLOW_JSON, {"branch": branch, "name": name}, reconnect=reconnect)

    async def edit_json(
        self, branch: str, edits: Sequence[Mapping[str, object]], *, name: str = "", preview: bool = False
    ) -> JsonEditResult:
        """Edit a JSON document of a branch."""
        return await self._call(
            EDIT_JSON, {"branch": branch, "edits": edits, "name": name, "preview": preview}
        )

    async def snapshot_json(self, branch: str, *, name: str = "") -> DocumentSnapshot:
        """Compact a JSON document's history. Its content does not change."""
        return await self._call(SNAPSHOT_JSON, {"branch": branch, "name": name})
