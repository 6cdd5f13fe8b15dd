"""Calls: document_list. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.document_list import DocumentList, DocumentRemoval, DocumentTitle

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


class DocumentListCalls(SyncCaller):
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
        """Leave a document out of the list until somebody writes to it."""
        return self._call(REMOVE_DOCUMENT, {"branch": branch, "kind": kind, "name": name})
