"""Finds JSON documents of a branch by name and fields. `document_filters` has the filters."""

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
import trio

from node.content.document_filters import All, FieldPath, FilterError, matches, parse_filter, value_at
from node.content.document_indexes import DocumentIndexes
from node.content.document_orders import BEGIN, END, Fields, find_range, parse_fields, place_of
from node.content.document_windows import Found, ResultWindow
from node.content.documents import REMOVED, UNREADABLE, Documents, document_key
from node.contract.values import find_repeated_key
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import JSON, SET
from protocol.limits.users import (
    QUERY_CHANGES_MAX,
    QUERY_COUNT_MAX,
    QUERY_FILTER_SIZE_MAX,
    QUERY_SECONDS,
    QUERY_SIZE_MAX,
    QUERY_SORTED_COUNT_MAX,
    QUERY_WINDOW_SECONDS,
)
from ravel.types.document_queries import FoundDocument, FoundDocuments
from storage.commits.document_index_rows import DocumentIndex
from verifier.documents import DocumentEntry
from verifier.json_contents import ROOT
from verifier.json_documents import JsonValue, read_json

At = tuple[bytes, str]
"""A document as it is walked through: its place there, and its name."""
LOOKED_AT_ONCE: Final = 64
"""Documents read in one transaction. Other work has its turn between two transactions."""


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """Names that begin so, a filter, fields to sort by (True: downwards), and at most how many.

    `opens`: contents come that are not kept here.
    """

    prefix: str
    where: All
    sort: Fields
    limit: int
    opens: bool


def parse_query(prefix: str, where: str, sort: str, limit: int, *, opens: bool = True) -> DocumentQuery:
    """Parse a query. Raises ServiceError `bad_request`."""
    try:
        return DocumentQuery(
            prefix, parse_filter(_parse_json(where) if where else {}), parse_fields(sort), limit, opens
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


@dataclass(frozen=True, slots=True)
class Plan:
    """Walk through documents: by name, or by an index from `start` to `end`, and by which fields they stand.

    `is_ordered`: so they come in the query's order. Else all must be looked at before the first is known. `base`: what is in
    front of the query's own places.
    """

    fields: Fields
    index_num: int | None
    start: bytes
    end: bytes
    base: bytes
    is_ordered: bool


def plan_by_name(query: DocumentQuery) -> Plan:
    """Return how documents are walked through without an index."""
    return Plan(query.sort, None, BEGIN, END, BEGIN, is_ordered=not query.sort)


class DocumentQueries:
    """Queries of the JSON documents of branches, which are named as `Documents` takes them."""

    def __init__(self, documents: Documents, indexes: DocumentIndexes) -> None:
        self._documents = documents
        self._indexes = indexes

    async def find(
        self, branch: str, prefix: str, where: str, sort: str, cursor: str, limit: int
    ) -> FoundDocuments:
        """Find up to `limit` documents after a cursor. Costs O(content of the documents looked at), which is bounded.

        With an index, only the documents in the part that the query names are looked at. Raises ServiceError `bad_request`,
        `too_large`, `busy`.
        """
        query = parse_query(prefix, where, sort, limit)
        plan = await self.plan(branch, query)
        answer: FoundDocuments = {
            "branch": self._documents.id_of(branch),
            "documents": [],
            "unreadable": [],
            "cursor": None,
        }
        if not plan.is_ordered:
            if cursor:
                raise ServiceError(
                    "bad_request", "a sorted query without an index has no cursor", "raise `limit`"
                )
            window = ResultWindow(query.limit, 0)
            answer["unreadable"] = await self.fill(branch, query, plan, window)
            answer["documents"] = [one.document for one in window.first()]
            return answer
        deadline = trio.current_time() + QUERY_SECONDS
        found, size, looked = answer["documents"], 0, 0
        after = _parse_cursor(query, plan, answer["branch"], cursor) if cursor else None

        def go_on(after: At | None) -> FoundDocuments:
            return {**answer, "cursor": _cursor_of(query, plan, answer["branch"], after)}

        while True:
            batch = await self.look(branch, query, plan, after)
            for one in batch.found:
                if found and size + one.size > QUERY_SIZE_MAX:
                    return go_on(after)
                found.append(one.document)
                size, after = size + one.size, (batch.places[one.document["name"]], one.document["name"])
                if len(found) == limit:
                    is_all = batch.is_last and after == batch.after
                    return answer if is_all else go_on(after)
            answer["unreadable"] += batch.unreadable
            if batch.is_last:
                return answer
            looked, after = looked + batch.count, batch.after
            if looked >= QUERY_COUNT_MAX or trio.current_time() > deadline:
                return go_on(after)

    def follow(self, branch: str, query: DocumentQuery) -> "FollowedQuery":
        """Return a query's result to be looked at again and again."""
        return FollowedQuery(self._documents, self, branch, query)

    async def plan(self, branch: str, query: DocumentQuery) -> Plan:
        """Choose how the documents of a query are walked through, by an index if one has its order.

        Costs as `DocumentIndexes.find` and `Documents.open_all`: it waits here, not in the time that a query has. Raises
        ServiceError `busy`, `incomplete`.
        """
        if query.opens:
            await self._documents.open_all(JSON, [branch])

        def find(index: DocumentIndex) -> tuple[bytes, bytes, bytes] | None:
            if not query.prefix.startswith(index.prefix):
                return None
            return find_range(parse_fields(index.fields), query.where, query.sort)

        index = await self._indexes.find(branch, lambda one: find(one) is not None)
        part = None if index is None else find(index)
        if index is None or part is None:
            return plan_by_name(query)
        return Plan(parse_fields(index.fields), index.num, *part, is_ordered=True)

    async def fill(self, branch: str, query: DocumentQuery, plan: Plan, window: ResultWindow) -> list[str]:
        """Look at what is behind the bound of a window until it has what is wanted; return what could not be read.

        Costs O(what the documents looked at hold). Raises ServiceError `too_large` where too many must be looked at, for
        too long, or they have too much.
        """
        deadline = trio.current_time() + QUERY_WINDOW_SECONDS
        count_max = QUERY_COUNT_MAX if plan.is_ordered else QUERY_SORTED_COUNT_MAX
        looked, unreadable = 0, list[str]()
        after = (window.bound, "") if plan.is_ordered and window.bound else None
        if not plan.is_ordered:
            window.bound = None  # any may come first
        while window.is_short or not plan.is_ordered:
            batch = await self.look(branch, query, plan, after)
            if plan.is_ordered:
                window.bound = None if batch.is_last or batch.after is None else batch.after[0]
            for one in batch.found:
                window.put(one)
            unreadable += batch.unreadable
            trim(window)
            if batch.is_last:
                break
            looked, after = looked + batch.count, batch.after
            check_looked(looked, count_max, deadline)
        return unreadable

    async def look_at(
        self, branch: str, query: DocumentQuery, plan: Plan, names: Sequence[str]
    ) -> "list[Found]":
        """Return the given documents that meet a query. Costs O(what they hold)."""
        found: list[Found] = []
        while names:
            look = await self._look_at_first(branch, query, plan, names)
            found += look.found
            names = names[look.count :]
        return found

    async def look(self, branch: str, query: DocumentQuery, plan: Plan, after: At | None) -> "Batch":
        """Look at some documents after one, as they are walked through. Costs O(what they hold)."""
        count = min(LOOKED_AT_ONCE, max(query.limit + 1, LOOKED_AT_ONCE // 4))
        if plan.index_num is None:
            begin = None if after is None else after[0].decode()
            listed = await self._documents.list_names(JSON, branch, query.prefix, begin, count)
            page = [(name.encode(), name) for name in listed]
        else:
            start = plan.start if after is None else max(plan.start, after[0] + b"\0")
            page = await self._indexes.walk(plan.index_num, start, plan.end, count)
        wanted = [(place, name) for place, name in page if name.startswith(query.prefix)]
        names = [name for _, name in wanted]
        look = await self._look_at_first(branch, query, plan, names) if names else _Look([], 0, [])
        is_whole = look.count == len(wanted)
        return Batch(
            look.found,
            look.unreadable,
            {name: place for place, name in wanted},
            len(page) if is_whole else look.count,
            after=(page[-1] if page else after) if is_whole else wanted[look.count - 1],
            is_last=is_whole and len(page) < count,
        )

    async def _look_at_first(
        self, branch: str, query: DocumentQuery, plan: Plan, names: Sequence[str]
    ) -> "_Look":
        """Look at the first of some documents, one at least."""
        keys = [document_key(JSON.name, name) for name in names]
        removed = await self._documents.read_marks(SET, branch, keys, REMOVED)
        shown = [
            name
            for name, key in zip(names, keys, strict=True)
            if not (key in removed and removed[key].values)
        ]
        if not shown:
            return _Look([], len(names), [])
        reading = _Reading(query, plan, iter(shown))
        try:
            read = await self._documents.read_first(
                JSON, branch, shown, reading.read, reading.is_enough, opens=query.opens
            )
        except ServiceError as error:
            if error.code not in UNREADABLE:
                raise
            return _Look([], names.index(shown[0]) + 1, shown[:1])
        count = len(names) if len(read) == len(shown) else names.index(shown[len(read)])
        return _Look([one for one in read if one is not None], count, [])


@dataclass(frozen=True, slots=True)
class _Look:
    """Documents that meet a query, the count of documents looked at, and those that could not be read."""

    found: list[Found]
    count: int
    unreadable: list[str]


@dataclass(frozen=True, slots=True)
class Batch:
    """A look at documents that follow one another: their places, how many were passed, and the last of these."""

    found: list[Found]
    unreadable: list[str]
    places: Mapping[str, bytes]
    count: int
    after: At | None
    is_last: bool


class _Reading:
    """Reads documents one after another, in a thread: filters and documents may be long."""

    def __init__(self, query: DocumentQuery, plan: Plan, names: Iterator[str]) -> None:
        self._query = query
        self._plan = plan
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
        if not matches(self._query.where, partial(value_at, read.value), partial(_is_in_conflict, read)):
            return None
        document: FoundDocument = {
            "name": name,
            "value": read.value,
            "conflict_count": len(read.conflicts),
        }
        return Found.of(
            place_of(self._plan.fields, name, read.value), document, msgspec.json.encode(document)
        )

    def is_enough(self) -> bool:
        """Return True if the documents were many enough for one transaction and one answer."""
        if self._ends_at is None:
            self._ends_at = time.perf_counter() + QUERY_SECONDS
        return self._size > QUERY_SIZE_MAX or time.perf_counter() > self._ends_at


def _is_in_conflict(read: JsonValue, path: FieldPath) -> bool:
    """Return True if values at a path of maps, or inside it, were put beside each other; at the empty one, any."""
    return any(not path or one.address[: len(path) + 1] == (ROOT, *path) for one in read.conflicts)


def _cursor_of(query: DocumentQuery, plan: Plan, branch_id: str, after: At | None) -> str | None:
    """Return what says where to go on: a name where names decide, else a place in the query's own order.

    So the next answer may come by another index. It says the branch, for a name such as `main` can come to mean another.
    """
    if after is None:
        return None
    place, name = after
    said = f"p{urlsafe_b64encode(place[len(plan.base) :]).decode()}" if query.sort else f"n{name}"
    return f"{branch_id}.{said}"


def _parse_cursor(query: DocumentQuery, plan: Plan, branch_id: str, cursor: str) -> At:
    of_branch, _, said = cursor.partition(".")
    if of_branch != branch_id:
        raise ServiceError(
            "bad_request", "that cursor is none of this branch: main may mean another now", "begin without it"
        )
    try:
        if query.sort and said[:1] == "p":
            return plan.base + urlsafe_b64decode(said[1:].encode()), ""
    except ValueError:
        pass
    if query.sort or said[:1] != "n":
        raise ServiceError(
            "bad_request", "no answer to this query has that cursor", "send the last answer's `cursor`"
        )
    return plan.base + said[1:].encode(), said[1:]


def trim(window: ResultWindow) -> None:
    """Let a window keep what one answer may have. Raises ServiceError `too_large` where that is less than is wanted."""
    if not window.trim(QUERY_SIZE_MAX):
        raise too_big()


def too_big() -> ServiceError:
    """Return the refusal of a query whose documents no answer holds."""
    return ServiceError(
        "too_large", f"the documents have over {QUERY_SIZE_MAX} bytes together", "ask for fewer (`limit`)"
    )


def check_looked(count: int, count_max: int, deadline: float) -> None:
    """Raise ServiceError `too_large` for a query that has looked at too many documents, or for too long."""
    if count >= count_max:
        problem = f"over {count} documents would be looked at"
    elif trio.current_time() > deadline:
        problem = f"to look at {count} documents and more takes over {QUERY_WINDOW_SECONDS:.0f} seconds"
    else:
        return
    raise ServiceError(
        "too_large",
        problem,
        "name a longer `prefix`, or declare an index; without `sort`, answers come in windows (`cursor`)",
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
        self._plan: Plan | None = None
        self._upto = 0

    async def look(self) -> list[Found]:
        """Return the result as it is now. Raises ServiceError as `DocumentQueries.fill`."""
        window, self._window = self._window, None  # which is not right if this fails
        if window is not None and not await self._follow(window):
            window = None
        if window is None:
            self._upto = await self._documents.find_last_change(self._branch)
            self._plan = await self._queries.plan(self._branch, self._query)
            window = ResultWindow(self._query.limit, LOOKED_AT_ONCE)
            await self._queries.fill(self._branch, self._query, self._plan, window)
        self._window = window
        return window.first()

    async def _follow(self, window: ResultWindow) -> bool:
        """Let a window follow the changes; whether it could."""
        branch, query, plan = self._branch, self._query, self._plan
        changed = await self._documents.list_changes(JSON, branch, self._upto, QUERY_CHANGES_MAX)
        if plan is None or changed is None or changed.has_marks:
            return False
        self._upto = changed.upto
        names = [name for name in changed.names if name.startswith(query.prefix)]
        found = await self._queries.look_at(branch, query, plan, names)
        for name in names:
            window.drop(name)
        for one in found:
            window.put(one)
        if window.is_short:
            if not plan.is_ordered or plan != await self._queries.plan(branch, query):
                return False
            await self._queries.fill(branch, query, plan, window)
        trim(window)
        return True
