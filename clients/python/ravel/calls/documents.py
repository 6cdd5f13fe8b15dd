# A method is its signature: the decorator makes what it does.
# mypy: disable-error-code="empty-body"
"""Calls: documents. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller, calls, watches
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Iterable, Mapping, Sequence

    from ravel.event_streams import EventStream
    from ravel.types.document_list import DocumentList, DocumentRemoval, DocumentTitle
    from ravel.types.document_queries import FoundAnywhere, FoundDocuments, JsonIndex
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
    from ravel.types.files import AddedFiles, FileList, FileView, ImportedWindow, ImportResult, RemovedFile
    from ravel.types.json_documents import JsonDocumentView, JsonEditResult
    from ravel.types.values import Empty

GET_FILE: Final[Operation[bytes]] = Operation("GET", "/branches/{branch}/files/{file}")


class DocumentsCalls(SyncCaller):
    """Methods that wait for the answer."""

    @calls("GET", "/branches/{branch}/documents", "document_list.DocumentList")
    def list_documents(
        self, branch: str, *, kind: str = "", prefix: str = "", offset: int = 0, limit: int = 100
    ) -> DocumentList:
        """List the documents of a branch."""

    @calls("POST", "/branches/{branch}/documents/titles", "document_list.DocumentTitle")
    def rename_document(self, branch: str, kind: str, *, name: str = "", title: str = "") -> DocumentTitle:
        """Give a document a title. Its name stays."""

    @calls("POST", "/branches/{branch}/documents/removals", "document_list.DocumentRemoval")
    def remove_document(self, branch: str, kind: str, *, name: str = "") -> DocumentRemoval:
        """Hide a document from the list. Its next write shows it again."""

    @calls("GET", "/branches/{branch}/set", "documents.SetWindow")
    def show_set(self, branch: str, *, name: str = "", offset: int = 0, limit: int = 100) -> SetWindow:
        """Show a window of a branch's set."""

    @calls("POST", "/branches/{branch}/set", "documents.SetEditResult")
    def edit_set(
        self, branch: str, *, add: Sequence[str] = (), remove: Sequence[str] = (), name: str = ""
    ) -> SetEditResult:
        """Add items to a branch's set, and remove others."""

    @calls("POST", "/branches/{branch}/set/snapshots", "document_values.DocumentSnapshot", in_query=True)
    def snapshot_set(self, branch: str, *, name: str = "") -> DocumentSnapshot:
        """Compact a set's history. Its content does not change."""

    @calls("GET", "/branches/{branch}/dict", "documents.DictWindow")
    def show_dict(self, branch: str, *, name: str = "", offset: int = 0, limit: int = 100) -> DictWindow:
        """Show a window of a branch's dict."""

    @calls("GET", "/branches/{branch}/dict/entry", "documents.DictEntryView")
    def show_entry(self, branch: str, *, key: str = "", name: str = "") -> DictEntryView:
        """Show one entry of a branch's dict."""

    @calls("POST", "/branches/{branch}/dict", "documents.DictEditResult")
    def edit_dict(
        self, branch: str, *, put: Mapping[str, str] | None = None, erase: Sequence[str] = (), name: str = ""
    ) -> DictEditResult:
        """Put values into a branch's dict, and erase others."""

    @calls("POST", "/branches/{branch}/dict/snapshots", "document_values.DocumentSnapshot", in_query=True)
    def snapshot_dict(self, branch: str, *, name: str = "") -> DocumentSnapshot:
        """Compact a dict's history. Its content does not change."""

    @calls("POST", "/branches/{branch}/text/clients", "documents.TextClient")
    def open_text(self, branch: str) -> TextClient:
        """Get a Yjs client id for an editor of a branch's text.

        The id belongs to this user and this branch, and no other editor gets it. Set it as the document's
        client id before anything is typed (`ydoc.clientID`), and again after the document is made anew. A
        program that keeps its id goes on with it, once its document has the whole text.
        """

    @calls("POST", "/branches/{branch}/text/imports", "documents.TextPush")
    def import_text(self, branch: str, update: bytes) -> TextPush:
        """Type the text of another Yjs document at the end of a branch's text.

        The words of each text of the document are typed by this user, at the end of the text of the same name.
        Who wrote them there, formats and other types are left out.
        """

    @calls("GET", "/branches/{branch}/text", "documents.TextView")
    def pull_text(self, branch: str, *, root: str | None = None) -> TextView:
        """Show a branch's text as one Yjs update and, optionally, as plain text."""

    @calls("POST", "/branches/{branch}/text", "documents.TextPush")
    def push_text(self, branch: str, update: bytes, *, gather: bool = False) -> TextPush:
        """Write a Yjs update to a branch's text.

        The document needs a client id of `open_text`. An update of which words would not be in the text is
        refused with `bad_input`, as a whole: its client id is another's, its clocks were used, or it builds on
        words that are not here.
        """

    @calls("GET", "/branches/{branch}/text/changes", "documents.TextChanges")
    def follow_text(self, branch: str, *, vector: str = "", session: str = "") -> TextChanges:
        """Show what an editor lacks of a branch's text, or follow it as it changes.

        A stream begins with an `update` of all that is lacking, and a `presence`. The editor takes every update
        in; in which order does not matter. At `whole` it begins anew with an empty document, since what it has
        includes commits that count no more.
        """

    @watches(follow_text)
    def watch_text(
        self, branch: str, *, vector: str = "", session: str = "", reconnect: bool = True
    ) -> EventStream:
        """Follow events as they come: `update`, `whole`, `presence`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """

    @calls("PUT", "/branches/{branch}/text/presence", "values.Empty")
    def tell_presence(
        self,
        branch: str,
        session: bytes,
        root: str,
        *,
        anchor: bytes = b"",
        head: bytes = b"",
        typed: str = "",
        client: int = 0,
        clock: int = 0,
    ) -> Empty:
        """Tell other editors of a branch's text that one has it open, and where its cursor is.

        Told to editors at this node and, under the node's user, to connected nodes of members who read the
        branch; stored nowhere. It holds for 30 seconds: tell it again every 10, and when the cursor moves or
        something is typed, at most 16 times a second.
        """

    @calls("GET", "/branches/{branch}/json", "json_documents.JsonDocumentView")
    def follow_json(self, branch: str, *, name: str = "") -> JsonDocumentView:
        """Show a JSON document of a branch, or follow it: the whole of it whenever it has changed."""

    @watches(follow_json)
    def watch_json(self, branch: str, *, name: str = "", reconnect: bool = True) -> EventStream:
        """Follow events as they come: `document`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """

    @calls("POST", "/branches/{branch}/json", "json_documents.JsonEditResult")
    def edit_json(
        self, branch: str, edits: Sequence[Mapping[str, object]], *, name: str = "", preview: bool = False
    ) -> JsonEditResult:
        """Edit a JSON document of a branch."""

    @calls("POST", "/branches/{branch}/json/snapshots", "document_values.DocumentSnapshot")
    def snapshot_json(self, branch: str, *, name: str = "") -> DocumentSnapshot:
        """Compact a JSON document's history. Its content does not change."""

    @calls("GET", "/branches/{branch}/json/documents", "document_queries.FoundDocuments")
    def follow_json_documents(
        self,
        branch: str,
        *,
        prefix: str = "",
        where: str = "",
        sort: str = "",
        cursor: str = "",
        limit: int = 100,
    ) -> FoundDocuments:
        """Find JSON documents of a branch by name and fields, or follow what a query finds.

        A filter is JSON, of MongoDB's operators: `$eq $ne $lt $lte $gt $gte $in $nin $exists $prefix $conflict
        $and $or`, with dots in the paths of fields. Comparisons hold within one type. What is not there meets
        `$ne`, `$nin` and `$exists: false` alone. `$conflict: true` finds fields with conflicts, and beside the
        fields, documents with any.
        """

    @watches(follow_json_documents)
    def watch_json_documents(
        self,
        branch: str,
        *,
        prefix: str = "",
        where: str = "",
        sort: str = "",
        limit: int = 100,
        reconnect: bool = True,
    ) -> EventStream:
        """Follow events as they come: `result`, `changes`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """

    @calls("GET", "/json/documents", "document_queries.FoundAnywhere")
    def follow_json_anywhere(
        self,
        *,
        branches: str = "",
        repo: str = "",
        prefix: str = "",
        where: str = "",
        sort: str = "",
        cursor: str = "",
        limit: int = 100,
    ) -> FoundAnywhere:
        """Find JSON documents of several branches by name and fields, in one order, or follow what a query finds.

        At most 64 branches, each of which is asked as `follow_json_documents` would be for the first `limit`. A
        stream takes in branches that come, where none are named. Then nothing is fetched: of branches whose
        contents this node does not keep, documents count as `unreadable` until a request names the branch.
        """

    @watches(follow_json_anywhere)
    def watch_json_anywhere(
        self,
        *,
        branches: str = "",
        repo: str = "",
        prefix: str = "",
        where: str = "",
        sort: str = "",
        limit: int = 100,
        reconnect: bool = True,
    ) -> EventStream:
        """Follow events as they come: `result`, `changes`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """

    @calls("POST", "/branches/{branch}/json/indexes", "document_queries.JsonIndex")
    def declare_json_index(self, branch: str, fields: Sequence[str], *, prefix: str = "") -> JsonIndex:
        """Declare an index of the JSON documents of a branch, on this node.

        Queries use it whose `sort` has its fields, or those that are left once `where` fixes the first ones to
        a value. It stays; of over 8 in a branch the first declared go. Its fields stand in the node's store in
        the clear.
        """

    @calls("GET", "/branches/{branch}/files", "files.FileList")
    def list_files(self, branch: str, *, after: int = 0, limit: int = 100, places: bool = False) -> FileList:
        """List the files of a branch, window by window."""

    @calls("POST", "/branches/{branch}/files", "files.FileView", takes_bytes=True)
    def add_file(self, branch: str, content: bytes | Iterable[bytes], *, name: str = "") -> FileView:
        """Add a file to a branch. It is durable when the answer comes."""

    @calls("POST", "/branches/{branch}/files/batch", "files.AddedFiles", takes_bytes=True, seconds_max=3600.0)
    def add_files(self, branch: str, content: bytes | Iterable[bytes]) -> AddedFiles:
        """Add many files to a branch, all or none. They are durable when the answer comes.

        At most 1024 files, no two of one name. A request may be sent again: what the branch has under the same
        name and with the same content is passed over.
        """

    @calls("DELETE", "/branches/{branch}/files/{file}", "files.RemovedFile")
    def remove_file(self, branch: str, file: str) -> RemovedFile:
        """Remove a file from a branch. Its content stays on the nodes that have it."""

    @calls("POST", "/branches/{branch}/import", "files.ImportResult", seconds_max=3600.0)
    def import_commits(self, branch: str, items: Sequence[Mapping[str, object]], source: str) -> ImportResult:
        """Import a batch of another system's commits."""

    @calls("GET", "/branches/{branch}/imported", "files.ImportedWindow")
    def list_imported(
        self, branch: str, *, source: str = "", after: int = 0, limit: int = 1000
    ) -> ImportedWindow:
        """List the ids that this node imported from a source."""
