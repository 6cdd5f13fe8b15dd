"""Types that the endpoints of all documents of values share: windows, snapshots and what an edit wrote."""

from dataclasses import dataclass
from typing import Annotated, Final, TypedDict

from msgspec import Meta

from node.contract.endpoint import WRITE_ERRORS, QueryParameter, limit_parameter
from node.contract.values import Count, Id
from protocol.limits.users import DOCUMENT_WINDOW_MAX
from verifier.documents import DocumentEntry

NextOffset = Annotated[int | None, Meta(description="The `offset` of the next window. Null: there is none.")]
Commits = Annotated[list[Id], Meta(description="Empty: nothing had to be written.")]
READ_ERRORS: Final = ("too_large", "incomplete")
"""Codes of an endpoint that reads a document."""
EDIT_ERRORS: Final = (*WRITE_ERRORS, "too_large")
"""Codes of an endpoint that writes to a document."""
NAME: Final = "The document's name; empty for the unnamed one of its kind."
NAME_PARAMETER: Final = QueryParameter(name="name", type=str, default="", description=NAME)
WINDOW: Final = (
    QueryParameter(name="offset", type=int, default=0, description="Pass over so many."),
    limit_parameter(DOCUMENT_WINDOW_MAX),
)
"""The query of an endpoint that shows a window."""


class WindowFields(TypedDict):
    """Part of a document that an answer holds."""

    branch: Id
    total: Count
    next: NextOffset


class DocumentSnapshot(TypedDict):
    """A snapshot of a set or a dict."""

    branch: Id
    commits: Annotated[list[Id], Meta(description="Empty: a snapshot was there already.")]


@dataclass(frozen=True, slots=True)
class ValuesWindow:
    """A window of a document: items or keys with their entries, ordered by UTF-8 bytes."""

    entries: list[tuple[str, DocumentEntry]]
    fields: WindowFields


@dataclass(frozen=True, slots=True)
class WrittenValues:
    """Result of an edit: ids of commits, and the items or keys that it set and those that it deleted."""

    branch: str
    commits: list[str]
    there: list[str]
    gone: list[str]
