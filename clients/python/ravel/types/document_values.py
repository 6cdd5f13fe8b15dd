"""Types of answers: document values."""

from typing import Annotated, TypedDict

from ravel.types.values import Count, Id, means

NextOffset = Annotated[int | None, means("The `offset` of the next window. Null: there is none.")]
Commits = Annotated[list[Id], means("Empty: nothing had to be written.")]


class WindowFields(TypedDict):
    """Part of a document that an answer holds."""

    branch: Id
    total: Count
    next: NextOffset


class DocumentSnapshot(TypedDict):
    """A snapshot of a set or a dict."""

    branch: Id
    commits: Annotated[list[Id], means("Empty: a snapshot was there already.")]
