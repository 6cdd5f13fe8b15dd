"""Calls: document_list. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import AsyncCaller, SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.document_list import DocumentList, DocumentRemoval, DocumentTitle

LIST_DOCUMENTS: Final[Operation[DocumentList]] = Operation(
    name="list_documents",
    method="GET",
    path="/branches/{branch}/documents",
    answer="document_list.DocumentList",
    query=("kind", "prefix", "offset", "limit"),
    defaults={"kind": "", "prefix": "", "offset": 0, "limit": 100},
)
RENAME_DOCUMENT: Final[Operation[DocumentTitle]] = Operation(
    name="rename_document",
    method="POST",
    path="/branches/{branch}/documents/titles",
    answer="document_list.DocumentTitle",
    body=("kind", "name", "title"),
    defaults={"name": "", "title": ""},
)
REMOVE_DOCUMENT: Final[Operation[DocumentRemoval]] = Operation(
    name="remove_document",
    method="POST",
    path="/branches/{branch}/documents/removals",
    answer="document_list.DocumentRemoval",
    body=("kind", "name"),
    defaults={"name": ""},
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


class AsyncDocumentListCalls(AsyncCaller):
    """Methods to await."""

    async def list_documents(
        self, branch: str, *, kind: str = "", prefix: str = "", offset: int = 0, limit: int = 100
    ) -> DocumentList:
        """List the documents of a branch."""
        return await self._call(
            LIST_DOCUMENTS,
            {"branch": branch, "kind": kind, "prefix": prefix, "offset": offset, "limit": limit},
        )

    async def rename_document(
        self, branch: str, kind: str, *, name: str = "", title: str = ""
    ) -> DocumentTitle:
        """Give a document a title. Its name stays."""
        return await self._call(
            RENAME_DOCUMENT, {"branch": branch, "kind": kind, "name": name, "title": title}
        )

    async def remove_document(self, branch: str, kind: str, *, name: str = "") -> DocumentRemoval:
        """Leave a document out of the list until somebody writes to it."""
        return await self._call(REMOVE_DOCUMENT, {"branch": branch, "kind": kind, "name": name})
