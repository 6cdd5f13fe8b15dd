"""Calls: document_queries. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

    from ravel.event_streams import EventStream
    from ravel.types.document_queries import FoundAnywhere, FoundDocuments, JsonIndex

FOLLOW_JSON_DOCUMENTS: Final[Operation[FoundDocuments]] = Operation(
    "GET",
    "/branches/{branch}/json/documents",
    "document_queries.FoundDocuments",
    defaults={"prefix": "", "where": "", "sort": "", "cursor": "", "limit": 100},
)
FIND_JSON_DOCUMENTS: Final[Operation[FoundAnywhere]] = Operation(
    "GET",
    "/json/documents",
    "document_queries.FoundAnywhere",
    defaults={"branches": "", "repo": "", "prefix": "", "where": "", "sort": "", "cursor": "", "limit": 100},
)
DECLARE_JSON_INDEX: Final[Operation[JsonIndex]] = Operation(
    "POST", "/branches/{branch}/json/indexes", "document_queries.JsonIndex", defaults={"prefix": ""}
)


class DocumentQueriesCalls(SyncCaller):
    """Methods that wait for the answer."""

    def follow_json_documents(
        self,
        branch: str,
        *,
        prefix: str = "",
        where: str = "",
        sort: str = "",
        cursor: str = "",
        limit: int = 100,
    ) -> FoundDocuments:
        """Find JSON documents of a branch by name and fields, or follow what a query finds.

        A filter is JSON, of MongoDB's operators: `$eq $ne $lt $lte $gt $gte $in $nin $exists $prefix $conflict
        $and $or`, with dots in the paths of fields. Comparisons hold within one type. What is not there meets
        `$ne`, `$nin` and `$exists: false` alone. `$conflict: true` finds fields with conflicts, and beside the
        fields, documents with any.
        """
        return self._call(
            FOLLOW_JSON_DOCUMENTS,
            {
                "branch": branch,
                "prefix": prefix,
                "where": where,
                "sort": sort,
                "cursor": cursor,
                "limit": limit,
            },
        )

    def watch_json_documents(
        self,
        branch: str,
        *,
        prefix: str = "",
        where: str = "",
        sort: str = "",
        limit: int = 100,
        reconnect: bool = True,
    ) -> EventStream:
        """Follow events as they come: `result`, `changes`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(
            FOLLOW_JSON_DOCUMENTS,
            {"branch": branch, "prefix": prefix, "where": where, "sort": sort, "limit": limit},
            reconnect=reconnect,
        )

    def find_json_documents(
        self,
        *,
        branches: str = "",
        repo: str = "",
        prefix: str = "",
        where: str = "",
        sort: str = "",
        cursor: str = "",
        limit: int = 100,
    ) -> FoundAnywhere:
        """Find JSON documents of several branches by name and fields, in one order.

        At most 64 branches, each of which is asked as `follow_json_documents` would be for the first `limit`.
        """
        return self._call(
            FIND_JSON_DOCUMENTS,
            {
                "branches": branches,
                "repo": repo,
                "prefix": prefix,
                "where": where,
                "sort": sort,
                "cursor": cursor,
                "limit": limit,
            },
        )

    def declare_json_index(self, branch: str, fields: Sequence[str], *, prefix: str = "") -> JsonIndex:
        """Declare an index of the JSON documents of a branch, on this node.

        Queries use it whose `sort` has its fields, or those that are left once `where` fixes the first ones to
        a value. It stays; of over 8 in a branch the first declared go. Its fields stand in the node's store in
        the clear.
        """
        return self._call(DECLARE_JSON_INDEX, {"branch": branch, "fields": fields, "prefix": prefix})
