"""Queries of JSON documents by name and fields: types and endpoint."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import READ_ANY, READ_BRANCH, WRITE_BRANCH
from node.contract.document_values import READ_ERRORS
from node.contract.endpoint import Endpoint, HeaderParameter, QueryParameter, StreamedEvent, limit_parameter
from node.contract.values import Request
from protocol.formats.document_kinds import DOCUMENT_KEY_SIZE_MAX
from protocol.formats.document_names import DOCUMENT_NAME_SIZE_MAX
from protocol.limits.users import (
    DOCUMENT_INDEXES_MAX,
    QUERY_BRANCHES_MAX,
    QUERY_LIMIT_MAX,
    QUERY_SORT_FIELDS_MAX,
    QUERY_SORTED_COUNT_MAX,
)
from ravel.types.document_queries import (
    FoundAnywhere,
    FoundDocuments,
    JsonIndex,
    ResultChangeEvent,
    ResultEvent,
)
from ravel.types.timelines import ClosingEvent


class JsonIndexRequest(Request, frozen=True, kw_only=True):
    """Declares an index."""

    prefix: Annotated[
        str,
        Meta(max_length=DOCUMENT_NAME_SIZE_MAX, description="Of documents whose names begin so. Empty: all."),
    ] = ""
    fields: Annotated[
        list[Annotated[str, Meta(max_length=DOCUMENT_KEY_SIZE_MAX)]],
        Meta(
            min_length=1,
            max_length=QUERY_SORT_FIELDS_MAX,
            description="Fields in the order in which they decide, `-` in front of those that go downwards.",
        ),
    ]


_PREFIX: Final = QueryParameter(
    name="prefix", type=str, default="", description="Names that begin so, such as `card/`."
)
_WHERE: Final = QueryParameter(name="where", type=str, default="", description="A filter. Empty: all.")
FOLLOW_JSON_DOCUMENTS: Final = Endpoint(
    name="follow_json_documents",
    method="GET",
    path="/branches/{branch}/json/documents",
    scopes=READ_BRANCH,
    summary="Find JSON documents of a branch by name and fields, or follow what a query finds.",
    details=(
        "A filter is JSON, of MongoDB's operators: `$eq $ne $lt $lte $gt $gte $in $nin $exists $prefix $conflict $and $or`, "
        "with dots in the paths of fields. Comparisons hold within one type. What is not there meets `$ne`, `$nin` and "
        "`$exists: false` alone. `$conflict: true` finds fields with conflicts, and beside the fields, documents with any."
    ),
    query=(
        _PREFIX,
        _WHERE,
        QueryParameter(
            name="sort",
            type=str,
            default="",
            description=(
                "Fields with commas between them, each with `-` in front for the other direction. Empty: by name. "
                f"Without an index, a query with it looks at {QUERY_SORTED_COUNT_MAX} documents at most."
            ),
        ),
        QueryParameter(
            name="cursor",
            type=str,
            default="",
            description="Where another answer ended. With `sort`, indexes alone have one.",
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
FOLLOW_JSON_ANYWHERE: Final = Endpoint(
    name="follow_json_anywhere",
    method="GET",
    path="/json/documents",
    scopes=READ_ANY,
    summary="Find JSON documents of several branches by name and fields, in one order, or follow what a query finds.",
    details=(
        f"At most {QUERY_BRANCHES_MAX} branches, each of which is asked as `follow_json_documents` would be for the first "
        "`limit`. A stream takes in branches that come, where none are named. Then nothing is fetched: of branches whose "
        "contents this node does not keep, documents count as `unreadable` until a request names the branch."
    ),
    query=(
        QueryParameter(
            name="branches",
            type=str,
            default="",
            description="Branches with commas between them. Empty: all of `repo`, or of all repos.",
        ),
        QueryParameter(name="repo", type=str, default="", description="Where no branches are named."),
        _PREFIX,
        _WHERE,
        QueryParameter(name="sort", type=str, default="", description="As of one branch."),
        QueryParameter(name="cursor", type=str, default="", description="Where another answer ended."),
        limit_parameter(QUERY_LIMIT_MAX),
    ),
    headers=(HeaderParameter("Last-Event-ID", "Of a stream: the result that the client has."),),
    answer=FoundAnywhere,
    events=(
        StreamedEvent("result", ResultEvent, "The whole result: first, and where the client's is not known."),
        StreamedEvent("changes", ResultChangeEvent, "What has changed of it."),
        StreamedEvent("closing", ClosingEvent, "The node stops. This is the last event."),
    ),
    errors=("bad_request", "not_found", "ambiguous", "not_permitted", "too_large", "busy"),
)
DECLARE_JSON_INDEX: Final = Endpoint(
    name="declare_json_index",
    method="POST",
    path="/branches/{branch}/json/indexes",
    scopes=WRITE_BRANCH,
    summary="Declare an index of the JSON documents of a branch, on this node.",
    details=(
        "Queries use it whose `sort` has its fields, or those that are left once `where` fixes the first ones to a "
        f"value. It stays; of over {DOCUMENT_INDEXES_MAX} in a branch the first declared go. Its fields stand in the "
        "node's store in the clear."
    ),
    request=JsonIndexRequest,
    answer=JsonIndex,
    is_keyless=True,
    errors=(*READ_ERRORS, "busy"),
)
