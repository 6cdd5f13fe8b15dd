"""Types of answers: document_queries. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import Any, TypedDict


class FoundDocuments(TypedDict):
    """Documents that a query found, in its order."""

    branch: str
    documents: list[FoundDocument]
    unreadable: list[str]
    """Names of documents that cannot be read now; `follow_json` says why."""
    cursor: str | None
    """Go on from here: as many were found as were asked for, or enough were looked at for one request. Null: that
    is all.
    """


class ResultEvent(TypedDict):
    """The result as it is now, for who knows none or an older one."""

    documents: list[FoundDocument]


class ResultChangeEvent(TypedDict):
    """Change of the result since the event before this one."""

    added: list[FoundDocument]
    changed: list[FoundDocument]
    """Documents that have another value."""
    moved: list[str]
    """Names of those that stand elsewhere among the others."""
    removed: list[str]
    """Names of those that the result has no longer."""
    order: list[str]
    """Names of the whole result, in its order."""


class FoundAnywhere(TypedDict):
    """Documents of several branches that a query found, in its order; equals stand by the ids of their branches."""

    documents: list[FoundInBranch]
    unreadable: int
    """Documents that were looked at and cannot be read now."""
    cursor: str | None
    """Go on from here. Null: that is all."""


class JsonIndex(TypedDict):
    """A declared index of JSON documents."""

    branch: str
    prefix: str
    fields: list[str]
    ready: bool
    """False: it is not whole yet. Declare it again to go on."""


class FoundDocument(TypedDict):
    """A document that a query found."""

    name: str
    value: Any
    conflict_count: int


class FoundInBranch(TypedDict):
    """A document that a query of several branches found."""

    name: str
    value: Any
    conflict_count: int
    repo: str
    branch: str
