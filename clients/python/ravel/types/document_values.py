"""Types of answers: document values."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import Count, Id

NextOffset = Annotated[int | None, Meta(description="The `offset` of the next window. Null: there is none.")]
Commits = Annotated[list[Id], Meta(description="Empty: nothing had to be written.")]


class WindowFields(TypedDict):
    """Part of a document that an answer holds."""

    branch: Id
    total: Count
    next: NextOffset


class DocumentSnapshot(TypedDict):
    """A snapshot of a set or a dict."""

    branch: Id
    commits: Annotated[list[Id], Meta(description="Empty: a snapshot was there already.")]
