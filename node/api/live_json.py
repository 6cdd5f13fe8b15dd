"""JSON documents as apps follow them: one document, or what a query finds, as live streams.

A follower's cursor is the digest of what it was told. So a stream that was cut goes on exactly, without memory here, and a
slow follower gets the newest state alone.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Generic, TypeVar

import msgspec
import trio
from blake3 import blake3

from node.api.event_streams import Event
from node.content.document_queries import DocumentQueries, FollowedQuery, parse_query
from node.content.document_windows import DIGEST_SIZE, digest_of
from node.content.json_documents import JsonDocuments
from node.sync.hub import Hub
from protocol.ids import TopicKey
from protocol.limits.users import JSON_PAUSE_SECONDS
from ravel.types.document_queries import FoundDocument, ResultChangeEvent
from ravel.types.json_documents import JsonDocumentView
from storage.repos.repos import Branch

S = TypeVar("S")


class LiveJson:
    """The JSON documents of branches, which are named as `find_branch` takes them, as apps follow them."""

    def __init__(
        self,
        hub: Hub,
        documents: JsonDocuments,
        queries: DocumentQueries,
        find_branch: Callable[[str], Branch],
    ) -> None:
        self._hub = hub
        self._documents = documents
        self._queries = queries
        self._find_branch = find_branch

    def follow(self, branch: str, name: str, cursor: str) -> "JsonSource":
        """Return a source of a document's states that are not the one with this cursor. Raises ServiceError."""
        target = self._find_branch(branch)
        return JsonSource(self._hub, target, partial(self._show, branch, name), cursor)

    def follow_query(
        self, branch: str, prefix: str, where: str, sort: str, limit: int, cursor: str
    ) -> "QuerySource":
        """Return a source of what changes in a query's result since the one with this cursor. Raises ServiceError."""
        target, query = self._find_branch(branch), parse_query(prefix, where, sort, limit)
        return QuerySource(self._hub, target, partial(_find, self._queries.follow(branch, query)), cursor)

    async def _show(self, branch: str, name: str) -> tuple[JsonDocumentView, str]:
        state = await self._documents.show(branch, name)
        return state, await self._hub.run_blocking(_digest, state)


async def _find(followed: FollowedQuery) -> tuple[list[FoundDocument], str]:
    result = await followed.look()
    return [one.document for one in result], digest_of(result)


class _Source(ABC, Generic[S]):
    """States of something in a branch as they come, each with its digest. A look costs as much as reading it."""

    def __init__(
        self, hub: Hub, branch: Branch, look: Callable[[], Awaitable[tuple[S, str]]], cursor: str
    ) -> None:
        self._hub = hub
        self._branch = branch
        self._look = look
        self._cursor = cursor
        self._changed = trio.Event()
        self._changed.set()
        self._read_at = -JSON_PAUSE_SECONDS

    def start(self) -> None:
        """Be told of changes."""
        self._hub.add(self)

    def stop(self) -> None:
        """Stop listening."""
        self._hub.remove(self)

    def commits_accepted(
        self, _topic: TopicKey, _nums: tuple[int, ...], branches: AbstractSet[int] = frozenset()
    ) -> None:
        """Note accepted commits. Those of the root branch may make commits void."""
        if not branches.isdisjoint(self._hub.replica.tables.with_root(self._branch)):
            self._changed.set()

    def topics_changed(self) -> None:
        """Look again: topics have changed."""
        self._changed.set()

    def missed(self) -> None:
        """Look again: the hub skipped this listener."""
        self._changed.set()

    async def next(self) -> list[Event]:
        """Wait for the next state. Raises ServiceError, StorageError."""
        while True:
            await self._changed.wait()
            await trio.sleep_until(self._read_at + JSON_PAUSE_SECONDS)
            self._changed = trio.Event()
            self._read_at = trio.current_time()
            try:
                state, cursor = await self._look()
            except BaseException:  # cancelled before it was told: it has changed still
                self._changed.set()
                raise
            event = self._event(state, cursor, is_new=cursor != self._cursor)
            self._cursor = cursor
            if event is not None:
                return [event]

    @abstractmethod
    def _event(self, state: S, cursor: str, *, is_new: bool) -> Event | None:
        """Return what to tell of a state, if anything."""


class JsonSource(_Source[JsonDocumentView]):
    """The states of one JSON document as they come."""

    def _event(self, state: JsonDocumentView, cursor: str, *, is_new: bool) -> Event | None:
        return Event("document", cursor, state) if is_new else None


class QuerySource(_Source[list[FoundDocument]]):
    """Tell what changes in the result of a query."""

    _told: list[FoundDocument] | None = None

    def _event(self, state: list[FoundDocument], cursor: str, *, is_new: bool) -> Event | None:
        told, self._told = self._told, state
        if not is_new:
            return None
        if told is None:
            return Event("result", cursor, {"documents": state})
        return Event("changes", cursor, find_changes(told, state))


def find_changes(told: list[FoundDocument], state: list[FoundDocument]) -> ResultChangeEvent:
    """Return what has changed between two results. Costs O(n log n) of their length."""
    before = {one["name"]: one for one in told}
    after = {one["name"]: one for one in state}
    stayed = [name for name in before if name in after]
    order = [name for name in after if name in before]
    return {
        "added": [one for one in state if one["name"] not in before],
        "changed": [one for one in state if one["name"] in before and one != before[one["name"]]],
        "moved": _find_moved(stayed, order),
        "removed": [name for name in before if name not in after],
        "order": list(after),
    }


def _find_moved(stayed: list[str], order: list[str]) -> list[str]:
    """Return as few names as can be moved to make one order of the other: those outside a longest rising run."""
    place = {name: number for number, name in enumerate(stayed)}
    ends: list[int] = []  # the least end of a run of each length
    runs: list[int] = []  # the length of the longest run that ends with each name
    for name in order:
        length = bisect_left(ends, place[name])
        ends[length : length + 1] = [place[name]]
        runs.append(length)
    wanted = len(ends) - 1
    moved: list[str] = []
    limit = len(stayed)
    for name, run in zip(reversed(order), reversed(runs), strict=True):
        if run == wanted and place[name] < limit:
            wanted, limit = wanted - 1, place[name]
        else:
            moved.append(name)
    return moved[::-1]


def _digest(state: object) -> str:
    return blake3(msgspec.json.encode(state)).hexdigest(length=DIGEST_SIZE)
