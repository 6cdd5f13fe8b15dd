"""Types that the endpoints of all documents of values share: windows, snapshots and what an edit wrote."""

from dataclasses import dataclass
from typing import Final

from node.contract.endpoint import WRITE_ERRORS, QueryParameter, limit_parameter
from protocol.limits.users import DOCUMENT_WINDOW_MAX
from ravel.types.document_values import WindowFields
from verifier.documents import DocumentEntry

READ_ERRORS: Final = ("too_large", "incomplete")
"""Codes of an endpoint that reads a document."""
EDIT_ERRORS: Final = (*WRITE_ERRORS, "too_large")
"""Codes of an endpoint that writes to a document."""
NAME: Final = (
    "The document's name; empty for the unnamed one of its kind. Lists leave out names that begin with a dot."
)
NAME_PARAMETER: Final = QueryParameter(name="name", type=str, default="", description=NAME)
WINDOW: Final = (
    QueryParameter(name="offset", type=int, default=0, description="Pass over so many."),
    limit_parameter(DOCUMENT_WINDOW_MAX),
)
"""The query of an endpoint that shows a window."""


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
