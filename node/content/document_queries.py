"""Finds JSON documents of a branch by name and fields. `document_filters` has the filters."""

import time
from collections.abc import Iterator, Mapping, Sequence
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
from node.content.document_windows import Found, ResultWindow
from node.content.documents import REMOVED, Documents, document_key
from node.contract.document_queries import FoundDocument, FoundDocuments
from node.contract.values import find_repeated_key
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import JSON, SET
from protocol.limits.users import (
    QUERY_CHANGES_MAX,
    QUERY_COUNT_MAX,
    QUERY_FILTER_SIZE_MAX,
    QUERY_SECONDS,
    QUERY_SIZE_MAX,
    QUERY_SORT_FIELDS_MAX,
    QUERY_SORTED_COUNT_MAX,
    QUERY_WINDOW_SECONDS,
)
from verifier.documents import DocumentEntry
from verifier.json_documents import read_json

_DOWNWARDS: Final = bytes(range(255, -1, -1))
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
        branch_id, _ = await self._documents.list_names(JSON, branch, prefix, None, 1)
        if query.sort:
            if cursor:
                raise ServiceError("bad_request", "a sorted query has no cursor", "raise `limit`")
            window = await self.look_through(branch, query, spare=0)
            return {
                "branch": branch_id,
                "documents": [one.document for one in window.first()],
                "cursor": None,
            }
        deadline = trio.current_time() + QUERY_SECONDS
        found: list[FoundDocument] = []
        size = looked = 0
        after = cursor or None
        while True:
            batch = await self._look(branch, query, after)
            for one in batch.found:
                if found and size + one.size > QUERY_SIZE_MAX:
                    return {"branch": branch_id, "documents": found, "cursor": after}
                found.append(one.document)
                size, after = size + one.size, one.document["name"]
                if len(found) == limit:
                    is_all = batch.is_last and after == batch.after
                    return {"branch": branch_id, "documents": found, "cursor": None if is_all else after}
            if batch.is_last:
                return {"branch": branch_id, "documents": found, "cursor": None}
            looked, after = looked + batch.count, batch.after
            if looked >= QUERY_COUNT_MAX or trio.current_time() > deadline:
                return {"branch": branch_id, "documents": found, "cursor": after}

    def follow(self, branch: str, query: DocumentQuery) -> "FollowedQuery":
        """Return a query's result to be looked at again and again."""
        return FollowedQuery(self._documents, self, branch, query)

    async def look_through(self, branch: str, query: DocumentQuery, spare: int) -> ResultWindow:
        """Find the first `limit` documents of a query, and some to spare. Costs O(what the documents looked at hold).

        Raises ServiceError `too_large` where too many must be looked at for them, for too long, or they have too much.
        """
        window = ResultWindow(query.limit, spare)
        if query.sort:
            window.bound = None  # any may come first
        await self.fill(branch, query, window)
        return window

    async def fill(self, branch: str, query: DocumentQuery, window: ResultWindow) -> None:
        """Look at what is behind the bound of a window until it has what is wanted. Costs and raises as `look_through`."""
        deadline = trio.current_time() + QUERY_WINDOW_SECONDS
        count_max = QUERY_SORTED_COUNT_MAX if query.sort else QUERY_COUNT_MAX
        looked = 0
        after = None if query.sort or window.bound is None else window.bound.decode() or None
        while query.sort or window.is_short:
            batch = await self._look(branch, query, after)
            if not query.sort:
                window.bound = None if batch.is_last else batch.after.encode()
            for one in batch.found:
                window.put(one)
            _trim(window)
            if batch.is_last:
                return
            looked, after = looked + batch.count, batch.after
            if looked >= count_max or trio.current_time() > deadline:
                raise _too_many(looked)

    async def look_at(self, branch: str, query: DocumentQuery, names: Sequence[str]) -> "list[Found]":
        """Return those of some documents that meet a query. Costs O(what they hold)."""
        found: list[Found] = []
        while names:
            some, count = await self._look_at_first(branch, query, names)
            found += some
            names = names[count:]
        return found

    async def _look(self, branch: str, query: DocumentQuery, after: str | None) -> "_Batch":
        """Look at some documents after a name."""
        _, names = await self._documents.list_names(JSON, branch, query.prefix, after, LOOKED_AT_ONCE)
        if not names:
            return _Batch(0, after or "", [], is_last=True)
        found, count = await self._look_at_first(branch, query, names)
        is_last = len(names) < LOOKED_AT_ONCE and count == len(names)
        return _Batch(count, names[count - 1], found, is_last)

    async def _look_at_first(
        self, branch: str, query: DocumentQuery, names: Sequence[str]
    ) -> tuple[list[Found], int]:
        """Look at the first of some documents, one at least, and return how many these were."""
        keys = [document_key(JSON.name, name) for name in names]
        removed = await self._documents.read_marks(SET, branch, keys, REMOVED)
        shown = [
            name
            for name, key in zip(names, keys, strict=True)
            if not (key in removed and removed[key].values)
        ]
        if not shown:
            return [], len(names)
        look = _Look(query, iter(shown))
        read = await self._documents.read_first(JSON, branch, shown, look.read, look.is_enough)
        count = len(names) if len(read) == len(shown) else names.index(shown[len(read)])
        return [one for one in read if one is not None], count


@dataclass(frozen=True, slots=True)
class _Batch:
    """Documents that were looked at, how many and up to which name, and those of them that meet a query."""

    count: int
    after: str
    found: list[Found]
    is_last: bool


class _Look:
    """A look at documents one after another, in a thread: filters and documents may be long."""

    def __init__(self, query: DocumentQuery, names: Iterator[str]) -> None:
        self._query = query
        self._names = names
        self._size = 0
        self._ends_at: float | None = None

    def read(self, entries: Mapping[str, DocumentEntry]) -> Found | None:
        """Return the next document, if it was written to and meets the filter."""
        name = next(self._names)
        self._size += sum(len(value.value or "") for entry in entries.values() for value in entry.tips)
        if not any(entry.values for entry in entries.values()):
            return None
        read = read_json(entries)
        if not matches(self._query.where, partial(value_at, read.value)):
            return None
        document: FoundDocument = {
            "name": name,
            "value": read.value,
            "conflict_count": len(read.conflicts),
        }
        return Found.of(_place_of(self._query, name, read.value), document, msgspec.json.encode(document))

    def is_enough(self) -> bool:
        """Return True if the documents were many enough for one transaction and one answer."""
        if self._ends_at is None:
            self._ends_at = time.perf_counter() + QUERY_SECONDS
        return self._size > QUERY_SIZE_MAX or time.perf_counter() > self._ends_at


def _place_of(query: DocumentQuery, name: str, value: object) -> bytes:
    """Return where a document stands in the order of a query: by its fields, then by its name.

    No key of a field is the beginning of another, so they are compared one by one, and their complements downwards.
    """
    fields = [(sort_key(value_at(value, path)), is_downwards) for path, is_downwards in query.sort]
    return b"".join(key.translate(_DOWNWARDS) if down else key for key, down in fields) + name.encode()


def _trim(window: ResultWindow) -> None:
    if not window.trim(QUERY_SIZE_MAX):
        raise ServiceError(
            "too_large", f"the documents have over {QUERY_SIZE_MAX} bytes together", "ask for fewer (`limit`)"
        )


def _too_many(count: int) -> ServiceError:
    return ServiceError(
        "too_large",
        f"over {count} documents would be looked at",
        "name a longer `prefix`; without `sort`, answers come in windows (`cursor`)",
    )


class FollowedQuery:
    """The result of a query that is looked at again and again.

    A look costs O(what the documents hold that have changed since the last one), and O(`limit`) to tell of the result; where
    the result has lost documents, also what must be looked at to fill it. After QUERY_CHANGES_MAX changes, or where a
    document was removed or brought back, all is found anew.
    """

    def __init__(
        self, documents: Documents, queries: DocumentQueries, branch: str, query: DocumentQuery
    ) -> None:
        self._documents = documents
        self._queries = queries
        self._branch = branch
        self._query = query
        self._window: ResultWindow | None = None
        self._upto = 0

    async def look(self) -> list[Found]:
        """Return the result as it is now. Raises ServiceError as `DocumentQueries.look_through`."""
        window, self._window = self._window, None  # which is not right if this fails
        if window is not None and not await self._follow(window):
            window = None
        if window is None:
            self._upto = await self._documents.find_last_change(self._branch)
            window = await self._queries.look_through(self._branch, self._query, LOOKED_AT_ONCE)
        self._window = window
        return window.first()

    async def _follow(self, window: ResultWindow) -> bool:
        """Let a window follow the changes; whether it could."""
        branch, query = self._branch, self._query
        changed = await self._documents.list_changes(JSON, branch, self._upto, QUERY_CHANGES_MAX)
        if changed is None or changed.has_marks:
            return False
        self._upto = changed.upto
        names = [name for name in changed.names if name.startswith(query.prefix)]
        found = await self._queries.look_at(branch, query, names)
        for name in names:
            window.drop(name)
        for one in found:
            window.put(one)
        if window.is_short:
            if query.sort:
                return False
            await self._queries.fill(branch, query, window)
        _trim(window)
        return True
