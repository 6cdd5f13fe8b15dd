"""Queries of JSON documents by name and fields: types and endpoint."""

from typing import Annotated, Any, Final, TypedDict

from msgspec import Meta

from node.contract.access import READ_BRANCH
from node.contract.document_values import READ_ERRORS
from node.contract.endpoint import Endpoint, HeaderParameter, QueryParameter, StreamedEvent, limit_parameter
from node.contract.timelines import ClosingEvent
from node.contract.values import Count, Id
from protocol.limits.users import QUERY_LIMIT_MAX, QUERY_SORTED_COUNT_MAX


class FoundDocument(TypedDict):
    """A document that a query found."""

    name: str
    value: Any
    conflict_count: Count


class FoundDocuments(TypedDict):
    """Documents that a query found, in its order."""

    branch: Id
    documents: list[FoundDocument]
    cursor: Annotated[
        str | None,
        Meta(
            description=(
                "Go on from here: as many were found as were asked for, or enough were looked at for one request. "
                "Null: that is all."
            )
        ),
    ]


class ResultEvent(TypedDict):
    """The result as it is now, for who knows none or an older one."""

    documents: list[FoundDocument]


class ResultChangeEvent(TypedDict):
    """Change of the result since the event before this one."""

    added: list[FoundDocument]
    changed: Annotated[list[FoundDocument], Meta(description="Documents that have another value.")]
    moved: Annotated[list[str], Meta(description="Names of those that stand elsewhere among the others.")]
    removed: Annotated[list[str], Meta(description="Names of those that the result has no longer.")]
    order: Annotated[list[str], Meta(description="Names of the whole result, in its order.")]


FOLLOW_JSON_DOCUMENTS: Final = Endpoint(
    name="follow_json_documents",
    method="GET",
    path="/branches/{branch}/json/documents",
    scopes=READ_BRANCH,
    summary="Find JSON documents of a branch by name and fields, or follow what a query finds.",
    details=(
        "A filter is JSON, of MongoDB's operators: `$eq $ne $lt $lte $gt $gte $in $nin $exists $prefix $and $or`, with "
        "dots in the paths of fields. Comparisons hold within one type. What is not there meets `$ne`, `$nin` and "
        "`$exists: false` alone."
    ),
    query=(
        QueryParameter(
            name="prefix", type=str, default="", description="Names that begin so, such as `card/`."
        ),
        QueryParameter(name="where", type=str, default="", description="A filter. Empty: all."),
        QueryParameter(
            name="sort",
            type=str,
            default="",
            description=(
                "Fields with commas between them, each with `-` in front for the other direction. Empty: by name. A "
                f"query with it looks at {QUERY_SORTED_COUNT_MAX} documents at most."
            ),
        ),
        QueryParameter(
            name="cursor", type=str, default="", description="Where another answer ended. Not with `sort`."
        ),
        limit_parameter(QUERY_LIMIT_MAX),
    ),
    headers=(HeaderParameter("Last-Event-ID", "Of a stream: the result that the client has."),),
    answer=FoundDocuments,
    events=(
        StreamedEvent("result", ResultEvent, "The whole result: first, and where the client's is not known."),
        StreamedEvent("changes", ResultChangeEvent, "What has changed of it."),
        StreamedEvent("closing", ClosingEvent, "The node stops. This is the last event."),
    ),
    errors=(*READ_ERRORS, "busy"),
)
