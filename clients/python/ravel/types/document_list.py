"""Types of answers: document list."""

from typing import Annotated, TypedDict

from ravel.types.document_values import Commits, NextOffset
from ravel.types.values import Count, Id, means

DocumentKindName = Annotated[str, means("`set`, `dict` or `text`.")]


class DocumentView(TypedDict):
    """A document of a branch."""

    kind: DocumentKindName
    name: str
    title: Annotated[str, means("Empty: it has none.")]
    other_titles: Annotated[list[str], means("Titles that were given at the same time.")]
    entries: Annotated[
        Count | None, means("Its items or keys. Null: of a text, or not counted before it is read.")
    ]
    confusable: Annotated[bool, means("Another of the kind in this window looks like it.")]


class DocumentList(TypedDict):
    """A window of a branch's documents, in the order in which this node learned of them."""

    branch: Id
    documents: list[DocumentView]
    next: NextOffset


class DocumentTitle(TypedDict):
    """A document's title."""

    branch: Id
    commits: Commits
    title: str


class DocumentRemoval(TypedDict):
    """A document that was removed."""

    branch: Id
    commits: Commits
