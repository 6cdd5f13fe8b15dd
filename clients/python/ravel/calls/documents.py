"""Calls: documents. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Mapping, Sequence

    from ravel.event_streams import EventStream
    from ravel.types.document_values import DocumentSnapshot
    from ravel.types.documents import (
        DictEditResult,
        DictEntryView,
        DictWindow,
        SetEditResult,
        SetWindow,
        TextChanges,
        TextClient,
        TextPush,
        TextView,
    )
    from ravel.types.values import Empty

SHOW_SET: Final[Operation[SetWindow]] = Operation(
    "GET", "/branches/{branch}/set", "documents.SetWindow", defaults={"name": "", "offset": 0, "limit": 100}
)
EDIT_SET: Final[Operation[SetEditResult]] = Operation(
    "POST",
    "/branches/{branch}/set",
    "documents.SetEditResult",
    defaults={"add": (), "remove": (), "name": ""},
)
SNAPSHOT_SET: Final[Operation[DocumentSnapshot]] = Operation(
    "POST",
    "/branches/{branch}/set/snapshots",
    "document_values.DocumentSnapshot",
    defaults={"name": ""},
    in_query=True,
)
SHOW_DICT: Final[Operation[DictWindow]] = Operation(
    "GET", "/branches/{branch}/dict", "documents.DictWindow", defaults={"name": "", "offset": 0, "limit": 100}
)
SHOW_ENTRY: Final[Operation[DictEntryView]] = Operation(
    "GET", "/branches/{branch}/dict/entry", "documents.DictEntryView", defaults={"key": "", "name": ""}
)
EDIT_DICT: Final[Operation[DictEditResult]] = Operation(
    "POST",
    "/branches/{branch}/dict",
    "documents.DictEditResult",
    defaults={"put": None, "erase": (), "name": ""},
)
SNAPSHOT_DICT: Final[Operation[DocumentSnapshot]] = Operation(
    "POST",
    "/branches/{branch}/dict/snapshots",
    "document_values.DocumentSnapshot",
    defaults={"name": ""},
    in_query=True,
)
OPEN_TEXT: Final[Operation[TextClient]] = Operation(
    "POST", "/branches/{branch}/text/clients", "documents.TextClient"
)
IMPORT_TEXT: Final[Operation[TextPush]] = Operation(
    "POST", "/branches/{branch}/text/imports", "documents.TextPush"
)
PULL_TEXT: Final[Operation[TextView]] = Operation(
    "GET", "/branches/{branch}/text", "documents.TextView", defaults={"root": None}
)
PUSH_TEXT: Final[Operation[TextPush]] = Operation(
    "POST", "/branches/{branch}/text", "documents.TextPush", defaults={"gather": False}
)
FOLLOW_TEXT: Final[Operation[TextChanges]] = Operation(
    "GET", "/branches/{branch}/text/changes", "documents.TextChanges", defaults={"vector": "", "session": ""}
)
TELL_PRESENCE: Final[Operation[Empty]] = Operation(
    "PUT", "/branches/{branch}/text/presence", "values.Empty", defaults={"anchor": b"", "head": b""}
)


class DocumentsCalls(SyncCaller):
    """Methods that wait for the answer."""

    def show_set(self, branch: str, *, name: str = "", offset: int = 0, limit: int = 100) -> SetWindow:
        """Show a window of a branch's set."""
        return self._call(SHOW_SET, {"branch": branch, "name": name, "offset": offset, "limit": limit})

    def edit_set(
        self, branch: str, *, add: Sequence[str] = (), remove: Sequence[str] = (), name: str = ""
    ) -> SetEditResult:
        """Add items to a branch's set, and remove others."""
        return self._call(EDIT_SET, {"branch": branch, "add": add, "remove": remove, "name": name})

    def snapshot_set(self, branch: str, *, name: str = "") -> DocumentSnapshot:
        """Compact a set's history. Its content does not change."""
        return self._call(SNAPSHOT_SET, {"branch": branch, "name": name})

    def show_dict(self, branch: str, *, name: str = "", offset: int = 0, limit: int = 100) -> DictWindow:
        """Show a window of a branch's dict."""
        return self._call(SHOW_DICT, {"branch": branch, "name": name, "offset": offset, "limit": limit})

    def show_entry(self, branch: str, *, key: str = "", name: str = "") -> DictEntryView:
        """Show one entry of a branch's dict."""
        return self._call(SHOW_ENTRY, {"branch": branch, "key": key, "name": name})

    def edit_dict(
        self, branch: str, *, put: Mapping[str, str] | None = None, erase: Sequence[str] = (), name: str = ""
    ) -> DictEditResult:
        """Put values into a branch's dict, and erase others."""
        return self._call(EDIT_DICT, {"branch": branch, "put": put, "erase": erase, "name": name})

    def snapshot_dict(self, branch: str, *, name: str = "") -> DocumentSnapshot:
        """Compact a dict's history. Its content does not change."""
        return self._call(SNAPSHOT_DICT, {"branch": branch, "name": name})

    def open_text(self, branch: str) -> TextClient:
        """Get a Yjs client id for an editor of a branch's text.

        The id belongs to this user and this branch, and no other editor gets it. Set it as the document's
        client id before anything is typed (`ydoc.clientID`), and again after the document is made anew. A
        program that keeps its id goes on with it, once its document has the whole text.
        """
        return self._call(OPEN_TEXT, {"branch": branch})

    def import_text(self, branch: str, update: bytes) -> TextPush:
        """Type the text of another Yjs document at the end of a branch's text.

        The words of each text of the document are typed by this user, at the end of the text of the same name.
        Who wrote them there, formats and other types are left out.
        """
        return self._call(IMPORT_TEXT, {"branch": branch, "update": update})

    def pull_text(self, branch: str, *, root: str | None = None) -> TextView:
        """Show a branch's text as one Yjs update and, optionally, as plain text."""
        return self._call(PULL_TEXT, {"branch": branch, "root": root})

    def push_text(self, branch: str, update: bytes, *, gather: bool = False) -> TextPush:
        """Write a Yjs update to a branch's text.

        The document needs a client id of `open_text`. An update of which words would not be in the text is
        refused with `bad_input`, as a whole: its client id is another's, its clocks were used, or it builds on
        words that are not here.
        """
        return self._call(PUSH_TEXT, {"branch": branch, "update": update, "gather": gather})

    def follow_text(self, branch: str, *, vector: str = "", session: str = "") -> TextChanges:
        """Show what an editor lacks of a branch's text, or follow it as it changes.

        A stream begins with an `update` of all that is lacking, and a `presence`. The editor takes every update
        in; in which order does not matter. At `whole` it begins anew with an empty document, since what it has
        includes commits that count no more.
        """
        return self._call(FOLLOW_TEXT, {"branch": branch, "vector": vector, "session": session})

    def watch_text(
        self, branch: str, *, vector: str = "", session: str = "", reconnect: bool = True
    ) -> EventStream:
        """Follow events as they come: `update`, `whole`, `presence`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(
            FOLLOW_TEXT, {"branch": branch, "vector": vector, "session": session}, reconnect=reconnect
        )

    def tell_presence(
        self, branch: str, session: bytes, root: str, *, anchor: bytes = b"", head: bytes = b""
    ) -> Empty:
        """Tell other editors of a branch's text that one has it open, and where its cursor is.

        Told to editors at this node and, under the node's user, to connected nodes of members who read the
        branch; stored nowhere. It holds for 30 seconds: tell it again every 10, and when the cursor moves, at
        most five times a second.
        """
        return self._call(
            TELL_PRESENCE,
            {"branch": branch, "session": session, "root": root, "anchor": anchor, "head": head},
        )
