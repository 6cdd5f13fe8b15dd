"""Types and endpoints of the list of a branch's documents."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import READ_BRANCH, WRITE_BRANCH
from node.contract.document_values import EDIT_ERRORS, NAME, READ_ERRORS, WINDOW
from node.contract.endpoint import Endpoint, QueryParameter
from node.contract.values import Request
from protocol.limits.formats import NAME_SIZE_MAX
from ravel.types.document_list import DocumentKindName, DocumentList, DocumentRemoval, DocumentTitle

DocumentNameField = Annotated[str, Meta(description=NAME)]


class DocumentTitleRequest(Request, frozen=True):
    """Gives a document a title."""

    kind: DocumentKindName
    name: DocumentNameField = ""
    title: Annotated[str, Meta(max_length=NAME_SIZE_MAX, description="Empty: none.")] = ""


class DocumentRemovalRequest(Request, frozen=True):
    """Leaves a document out of the list."""

    kind: DocumentKindName
    name: DocumentNameField = ""


LIST_DOCUMENTS: Final = Endpoint(
    name="list_documents",
    method="GET",
    path="/branches/{branch}/documents",
    scopes=READ_BRANCH,
    summary="List the documents of a branch.",
    query=(
        QueryParameter(name="kind", type=str, default="", description="Only of this kind."),
        QueryParameter(name="prefix", type=str, default="", description="Only names that begin so."),
        *WINDOW,
    ),
    answer=DocumentList,
    errors=("bad_request", *READ_ERRORS),
)
RENAME_DOCUMENT: Final = Endpoint(
    name="rename_document",
    method="POST",
    path="/branches/{branch}/documents/titles",
    scopes=WRITE_BRANCH,
    summary="Give a document a title. Its name stays.",
    request=DocumentTitleRequest,
    answer=DocumentTitle,
    errors=EDIT_ERRORS,
)
REMOVE_DOCUMENT: Final = Endpoint(
    name="remove_document",
    method="POST",
    path="/branches/{branch}/documents/removals",
    scopes=WRITE_BRANCH,
    summary="Hide a document from the list. Its next write shows it again.",
    request=DocumentRemovalRequest,
    answer=DocumentRemoval,
    errors=EDIT_ERRORS,
)
