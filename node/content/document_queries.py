"""Finds JSON documents of a branch by name and fields. `document_filters` has the filters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
import trio

from node.content.document_filters import (
    All,
    FieldPath,
    FilterError,
    matches,
    parse_filter,
    parse_path,
    sort_key,
    value_at,
)
from node.content.documents import REMOVED, Documents, document_key
from node.contract.document_queries import FoundDocument, FoundDocuments
from node.contract.values import find_repeated_key
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import JSON, SET
from protocol.limits.users import (
    QUERY_COUNT_MAX,
    QUERY_FILTER_SIZE_MAX,
    QUERY_SECONDS,
    QUERY_SORT_FIELDS_MAX,
    QUERY_SORTED_COUNT_MAX,
    QUERY_WINDOW_SECONDS,
)
from verifier.documents import DocumentEntry
from verifier.json_documents import JsonValue, read_json

LOOKED_AT_ONCE: Final = 64
"""Documents that are read in one transaction, between which others have their turn."""


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """Names that begin so, a filter, fields to sort by (True: downwards), and at most how many."""

    prefix: str
    where: All
    sort: tuple[tuple[FieldPath, bool], ...]
    limit: int


def parse_query(prefix: str, where: str, sort: str, limit: int) -> DocumentQuery:
    """Parse a query. Raises ServiceError `bad_request`."""
    try:
        return DocumentQuery(
            prefix, parse_filter(_parse_json(where) if where else {}), tuple(_parse_sort(sort)), limit
        )
    except FilterError as error:
        raise ServiceError(
            "bad_request", str(error), "docs/reference/endpoints.md has the operators"
        ) from None


def _parse_json(text: str) -> object:
    encoded = text.encode()
    if len(encoded) > QUERY_FILTER_SIZE_MAX:
        raise FilterError(f"a filter has at most {QUERY_FILTER_SIZE_MAX} bytes")
    try:
        found = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FilterError(f"the filter is no JSON: {error}") from None
    if (repeated := find_repeated_key(encoded)) is not None:
        raise FilterError(f"the key {repeated[:40]!r} stands twice in one object")
    return found


def _parse_sort(text: str) -> "list[tuple[FieldPath, bool]]":
    fields = text.split(",") if text else []
    if len(fields) > QUERY_SORT_FIELDS_MAX:
        raise FilterError(f"a query sorts by at most {QUERY_SORT_FIELDS_MAX} fields")
    return [(parse_path(field.removeprefix("-")), field.startswith("-")) for field in fields]


class DocumentQueries:
    """Queries of the JSON documents of branches, which are named as `Documents` takes them."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def find(
        self, branch: str, prefix: str, where: str, sort: str, cursor: str, limit: int
    ) -> FoundDocuments:
        """Find documents, up to `limit`, after a cursor. Costs O(what the documents looked at hold), which are bounded.

        Raises ServiceError `bad_request`, `too_large`.
        """
        query = parse_query(prefix, where, sort, limit)
        if query.sort and cursor:
            raise ServiceError("bad_request", "a sorted query has no cursor", "raise `limit`")
        if query.sort:
            branch_id, _ = await self._documents.list_names(JSON, branch, prefix, None, 1)
            return {"branch": branch_id, "documents": await self.window(branch, query), "cursor": None}
        deadline = trio.current_time() + QUERY_SECONDS
        found: list[FoundDocument] = []
        looked, after = 0, cursor or None
        while True:
            batch = await self._look(branch, query, after)
            some = batch.found[: limit - len(found)]
            found += some
            looked, after = looked + len(batch.names), batch.names[-1] if batch.names else None
            if len(found) == limit and (
                some != batch.found or some[-1]["name"] != after or not batch.is_last
            ):
                return {"branch": batch.branch, "documents": found, "cursor": some[-1]["name"]}
            if batch.is_last:
                return {"branch": batch.branch, "documents": found, "cursor": None}
            if looked >= QUERY_COUNT_MAX or trio.current_time() > deadline:
                return {"branch": batch.branch, "documents": found, "cursor": after}

    async def window(self, branch: str, query: DocumentQuery) -> list[FoundDocument]:
        """Find the first `limit` documents. Costs O(what the documents looked at hold), which are bounded.

        Raises ServiceError `too_large` where too many must be looked at for them, or for too long.
        """
        deadline = trio.current_time() + QUERY_WINDOW_SECONDS
        count_max = QUERY_SORTED_COUNT_MAX if query.sort else QUERY_COUNT_MAX
        found: list[FoundDocument] = []
        looked, after = 0, None
        while query.sort or len(found) < query.limit:
            batch = await self._look(branch, query, after)
            found += batch.found
            looked += len(batch.names)
            if batch.is_last:
                break
            if looked >= count_max or trio.current_time() > deadline:
                raise _too_many(looked)
            after = batch.names[-1]
        for path, is_downwards in reversed(query.sort):  # sorting keeps the order of equals: by name at last
            found.sort(key=partial(_field_key, path), reverse=is_downwards)
        return found[: query.limit]

    async def _look(self, branch: str, query: DocumentQuery, after: str | None) -> "_Batch":
        """Look at some documents after a name."""
        branch_id, names = await self._documents.list_names(JSON, branch, query.prefix, after, LOOKED_AT_ONCE)
        keys = [document_key(JSON.name, name) for name in names]
        removed = await self._documents.read_marks(SET, branch, keys, REMOVED)
        shown = [
            name
            for name, key in zip(names, keys, strict=True)
            if not (key in removed and removed[key].values)
        ]
        read = await self._documents.read_many(JSON, branch, shown, partial(_read_matching, query))
        found: list[FoundDocument] = [
            {"name": name, "value": one.value, "conflict_count": len(one.conflicts)}
            for name, one in zip(shown, read, strict=True)
            if one is not None
        ]
        return _Batch(branch_id, names, found, len(names) < LOOKED_AT_ONCE)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some documents of a branch by name: those that were looked at, and those of them that meet a filter."""

    branch: str
    names: list[str]
    found: list[FoundDocument]
    is_last: bool


def _read_matching(query: DocumentQuery, entries: Mapping[str, DocumentEntry]) -> JsonValue | None:
    """Return a document that was written to and meets the filter, else None. Runs in a thread: filters may be long."""
    if not any(entry.values for entry in entries.values()):
        return None
    found = read_json(entries)
    return found if matches(query.where, partial(value_at, found.value)) else None


def _field_key(path: FieldPath, found: FoundDocument) -> bytes:
    return sort_key(value_at(found["value"], path))


def _too_many(count: int) -> ServiceError:
    return ServiceError(
        "too_large",
        f"over {count} documents would be looked at",
        "name a longer `prefix`; without `sort`, answers come in windows (`cursor`)",
    )
