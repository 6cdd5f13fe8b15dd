"""Calls: documents. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
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

LIST_DOCUMENTS: Final[Operation[DocumentList]] = Operation(
    "GET",
    "/branches/{branch}/documents",
    "document_list.DocumentList",
    defaults={"kind": "", "prefix": "", "offset": 0, "limit": 100},
)
RENAME_DOCUMENT: Final[Operation[DocumentTitle]] = Operation(
    "POST",
    "/branches/{branch}/documents/titles",
    "document_list.DocumentTitle",
    defaults={"name": "", "title": ""},
)
REMOVE_DOCUMENT: Final[Operation[DocumentRemoval]] = Operation(
    "POST", "/branches/{branch}/documents/removals", "document_list.DocumentRemoval", defaults={"name": ""}
)
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
    "PUT",
    "/branches/{branch}/text/presence",
    "values.Empty",
    defaults={"anchor": b"", "head": b"", "typed": "", "client": 0, "clock": 0},
)
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
FOLLOW_JSON_DOCUMENTS: Final[Operation[FoundDocuments]] = Operation(
    "GET",
    "/branches/{branch}/json/documents",
    "document_queries.FoundDocuments",
    defaults={"prefix": "", "where": "", "sort": "", "cursor": "", "limit": 100},
)
FOLLOW_JSON_ANYWHERE: Final[Operation[FoundAnywhere]] = Operation(
    "GET",
    "/json/documents",
    "document_queries.FoundAnywhere",
    defaults={"branches": "", "repo": "", "prefix": "", "where": "", "sort": "", "cursor": "", "limit": 100},
)
DECLARE_JSON_INDEX: Final[Operation[JsonIndex]] = Operation(
    "POST", "/branches/{branch}/json/indexes", "document_queries.JsonIndex", defaults={"prefix": ""}
)
LIST_FILES: Final[Operation[FileList]] = Operation(
    "GET", "/branches/{branch}/files", "files.FileList", defaults={"after": 0, "limit": 100, "places": False}
)
ADD_FILE: Final[Operation[FileView]] = Operation(
    "POST", "/branches/{branch}/files", "files.FileView", defaults={"name": ""}, takes_bytes=True
)
ADD_FILES: Final[Operation[AddedFiles]] = Operation(
    "POST", "/branches/{branch}/files/batch", "files.AddedFiles", takes_bytes=True, seconds_max=3600.0
)
GET_FILE: Final[Operation[bytes]] = Operation("GET", "/branches/{branch}/files/{file}")
REMOVE_FILE: Final[Operation[RemovedFile]] = Operation(
    "DELETE", "/branches/{branch}/files/{file}", "files.RemovedFile"
)
IMPORT_COMMITS: Final[Operation[ImportResult]] = Operation(
    "POST", "/branches/{branch}/import", "files.ImportResult", seconds_max=3600.0
)
LIST_IMPORTED: Final[Operation[ImportedWindow]] = Operation(
    "GET",
    "/branches/{branch}/imported",
    "files.ImportedWindow",
    defaults={"source": "", "after": 0, "limit": 1000},
)


class DocumentsCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_documents(
        self, branch: str, *, kind: str = "", prefix: str = "", offset: int = 0, limit: int = 100
    ) -> DocumentList:
        """List the documents of a branch."""
        return self._call(
            LIST_DOCUMENTS,
            {"branch": branch, "kind": kind, "prefix": prefix, "offset": offset, "limit": limit},
        )

    def rename_document(self, branch: str, kind: str, *, name: str = "", title: str = "") -> DocumentTitle:
        """Give a document a title. Its name stays."""
        return self._call(RENAME_DOCUMENT, {"branch": branch, "kind": kind, "name": name, "title": title})

    def remove_document(self, branch: str, kind: str, *, name: str = "") -> DocumentRemoval:
        """Hide a document from the list. Its next write shows it again."""
        return self._call(REMOVE_DOCUMENT, {"branch": branch, "kind": kind, "name": name})

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
        return self._call(
            TELL_PRESENCE,
            {
                "branch": branch,
                "session": session,
                "root": root,
                "anchor": anchor,
                "head": head,
                "typed": typed,
                "client": client,
                "clock": clock,
            },
        )

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
        return self._call(
            FOLLOW_JSON_DOCUMENTS,
            {
                "branch": branch,
                "prefix": prefix,
                "where": where,
                "sort": sort,
                "cursor": cursor,
                "limit": limit,
            },
        )

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
        return self._watch(
            FOLLOW_JSON_DOCUMENTS,
            {"branch": branch, "prefix": prefix, "where": where, "sort": sort, "limit": limit},
            reconnect=reconnect,
        )

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
        return self._call(
            FOLLOW_JSON_ANYWHERE,
            {
                "branches": branches,
                "repo": repo,
                "prefix": prefix,
                "where": where,
                "sort": sort,
                "cursor": cursor,
                "limit": limit,
            },
        )

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
        return self._watch(
            FOLLOW_JSON_ANYWHERE,
            {
                "branches": branches,
                "repo": repo,
                "prefix": prefix,
                "where": where,
                "sort": sort,
                "limit": limit,
            },
            reconnect=reconnect,
        )

    def declare_json_index(self, branch: str, fields: Sequence[str], *, prefix: str = "") -> JsonIndex:
        """Declare an index of the JSON documents of a branch, on this node.

        Queries use it whose `sort` has its fields, or those that are left once `where` fixes the first ones to
        a value. It stays; of over 8 in a branch the first declared go. Its fields stand in the node's store in
        the clear.
        """
        return self._call(DECLARE_JSON_INDEX, {"branch": branch, "fields": fields, "prefix": prefix})

    def list_files(self, branch: str, *, after: int = 0, limit: int = 100, places: bool = False) -> FileList:
        """List the files of a branch, window by window."""
        return self._call(LIST_FILES, {"branch": branch, "after": after, "limit": limit, "places": places})

    def add_file(self, branch: str, content: bytes | Iterable[bytes], *, name: str = "") -> FileView:
        """Add a file to a branch. It is durable when the answer comes."""
        return self._call(ADD_FILE, {"branch": branch, "name": name}, content)

    def add_files(self, branch: str, content: bytes | Iterable[bytes]) -> AddedFiles:
        """Add many files to a branch, all or none. They are durable when the answer comes.

        At most 1024 files, no two of one name. A request may be sent again: what the branch has under the same
        name and with the same content is passed over.
        """
        return self._call(ADD_FILES, {"branch": branch}, content)

    def remove_file(self, branch: str, file: str) -> RemovedFile:
        """Remove a file from a branch. Its content stays on the nodes that have it."""
        return self._call(REMOVE_FILE, {"branch": branch, "file": file})

    def import_commits(self, branch: str, items: Sequence[Mapping[str, object]], source: str) -> ImportResult:
        """Import a batch of another system's commits."""
        return self._call(IMPORT_COMMITS, {"branch": branch, "items": items, "source": source})

    def list_imported(
        self, branch: str, *, source: str = "", after: int = 0, limit: int = 1000
    ) -> ImportedWindow:
        """List the ids that this node imported from a source."""
        return self._call(LIST_IMPORTED, {"branch": branch, "source": source, "after": after, "limit": limit})
