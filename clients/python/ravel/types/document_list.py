"""Types of answers: document_list. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class DocumentList(TypedDict):
    """A window of a branch's documents, in the order in which this node learned of them."""

    branch: str
    documents: list[DocumentView]
    next: int | None
    """The `offset` of the next window. Null: there is none."""


class DocumentTitle(TypedDict):
    """A document's title."""

    branch: str
    commits: list[str]
    """Empty: nothing had to be written."""
    title: str


class DocumentRemoval(TypedDict):
    """A document that was removed."""

    branch: str
    commits: list[str]
    """Empty: nothing had to be written."""


class DocumentView(TypedDict):
    """A document of a branch."""

    kind: str
    """`set`, `dict` or `text`."""
    name: str
    title: str
    """Empty: it has none."""
    other_titles: list[str]
    """Titles that were given at the same time."""
    entries: int | None
    """Its items or keys. Null: of a text, or not counted before it is read."""
    confusable: bool
    """Another of the kind in this window looks like it."""
