"""Types of answers: document queries."""

from typing import Annotated, Any, NotRequired, TypedDict

from ravel.types.values import Count, Id, means


class FoundDocument(TypedDict):
    """A document that a query found."""

    name: str
    value: Any
    conflict_count: Count
    repo: NotRequired[Annotated[Id, means("Where several branches were asked.")]]
    branch: NotRequired[Annotated[Id, means("Where several were asked.")]]
    key: NotRequired[
        Annotated[str, means("BRANCH/NAME, by which changes name it where several branches were asked.")]
    ]


class FoundDocuments(TypedDict):
    """Documents that a query found, in its order."""

    branch: Id
    documents: list[FoundDocument]
    unreadable: Annotated[
        list[str], means("Names of documents that cannot be read now; `follow_json` says why.")
    ]
    cursor: Annotated[
        str | None,
        means(
            "Go on from here: as many were found as were asked for, or enough were looked at for one request. "
            "Null: that is all."
        ),
    ]


class FoundAnywhere(TypedDict):
    """Documents of several branches that a query found, in its order; equals stand by the ids of their branches."""

    documents: list[FoundDocument]
    unreadable: Annotated[Count, means("Documents that were looked at and cannot be read now.")]
    cursor: Annotated[str | None, means("Go on from here. Null: that is all.")]


class JsonIndex(TypedDict):
    """A declared index of JSON documents."""

    branch: Id
    prefix: str
    fields: list[str]
    ready: Annotated[bool, means("False: it is not whole yet. Declare it again to go on.")]


class ResultEvent(TypedDict):
    """The result as it is now, for who knows none or an older one."""

    documents: list[FoundDocument]


class ResultChangeEvent(TypedDict):
    """Change of the result since the event before this one. Documents of several branches are named by their keys."""

    added: list[FoundDocument]
    changed: Annotated[list[FoundDocument], means("Documents that have another value.")]
    moved: Annotated[list[str], means("Names of those that stand elsewhere among the others.")]
    removed: Annotated[list[str], means("Names of those that the result has no longer.")]
    order: Annotated[list[str], means("Names of the whole result, in its order.")]
