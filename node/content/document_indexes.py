"""Indexes of JSON documents that apps declare: entries that are brought level with the documents when a query needs them.

So a write costs nothing more, and an index that was declared late, a document that was made anew and a node that was away
are the same work: reading the documents that have changed since. Where that takes longer than a query may, the query says
how to go on, and the next one finds less to do.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio
from sqlalchemy import Connection

from node.content.document_filters import FilterError
from node.content.document_operations import DocumentOperationReader
from node.content.document_orders import Fields, parse_fields, place_of
from node.content.document_state import DocumentState
from node.content.documents import UNREADABLE, Documents
from node.content.lineage import is_whole, lineage_nums
from node.ingest.tables import Tables
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.document_kinds import JSON
from protocol.formats.text import id_text
from protocol.limits.users import DOCUMENT_INDEXES_MAX, QUERY_SECONDS, QUERY_WINDOW_SECONDS
from ravel.types.document_queries import JsonIndex
from storage.commits.document_index_rows import (
    DocumentIndex,
    add_index,
    count_places,
    load_indexes,
    load_places,
    load_range,
    load_stale,
    load_unindexed,
    write_places,
)
from storage.commits.document_reading import load_names
from storage.commits.documents import load_documents_by_name
from storage.repos.repos import Branch
from verifier.documents import DocumentEntry
from verifier.json_documents import read_json

_NOBODY: Final[frozenset[str]] = frozenset()
_AT_ONCE: Final = 256
"""Documents that are read, and whose entries are written, between which others write: some 20 ms."""


class DocumentIndexes:
    """Declared indexes of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, documents: Documents, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._documents = documents
        self._find_branch = find_branch
        self._levelling = trio.Lock()

    async def declare(self, branch: str, prefix: str, fields: list[str]) -> JsonIndex:
        """Declare an index of documents whose names begin so, and bring it level as far as the time of a request goes.

        Costs O(what the documents hold), the first time. Raises ServiceError `bad_request`.
        """
        target, order = self._find_branch(branch), ",".join(fields)
        try:
            if len(parse_fields(order)) != len(fields):
                raise FilterError("a field of an order has a name, and no comma in it")
        except FilterError as error:
            raise ServiceError("bad_request", str(error), "name map keys, with dots between them") from None

        def add() -> DocumentIndex:
            database = self._hub.replica.database
            with database.write() as connection:
                add_index(database, connection, target.num, prefix, order, count_max=DOCUMENT_INDEXES_MAX)
                known = load_indexes(connection, target.num)
            return next(one for one in known if (one.prefix, one.fields) == (prefix, order))

        index = await self._hub.run_blocking(add)
        ready = await self._bring_level(branch, index)
        return {
            "branch": id_text(target.branch_id),
            "prefix": prefix,
            "fields": fields,
            "ready": ready,
        }

    async def find(self, branch: str, is_useful: Callable[[DocumentIndex], bool]) -> DocumentIndex | None:
        """Return the first index of a branch that is useful, brought level; None where there is none.

        Costs O(what the documents hold that changed since it was last asked). Raises ServiceError `busy` where that takes
        too long.
        """
        target = self._find_branch(branch)

        def load() -> DocumentIndex | None:
            with self._hub.replica.database.read() as connection:
                index = next((one for one in load_indexes(connection, target.num) if is_useful(one)), None)
                # Documents of a fork that has not come whole are never level.
                return index if index and is_whole(self._hub.replica, connection, target) else None

        index = await self._hub.run_blocking(load)
        if index is not None and not await self._bring_level(branch, index):
            raise ServiceError("busy", "the index of the documents is being made", "ask again")
        return index

    async def walk(self, index_num: int, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, str]]:
        """Return places and names from a place on, and before another. Costs O(limit and log n)."""

        def load() -> list[tuple[bytes, str]]:
            with self._hub.replica.database.read() as connection:
                return load_range(connection, index_num, start, end, limit)

        return await self._hub.run_blocking(load)

    async def _bring_level(self, branch: str, index: DocumentIndex) -> bool:
        """Enter what has changed since an index was level; whether there was time for all of it."""
        target = self._find_branch(branch)
        if (await self._hub.run_blocking(self._load_due, target, index.num, _NOBODY)).is_level:
            return True
        deadline = trio.current_time() + QUERY_WINDOW_SECONDS
        seen: set[str] = set()
        try:
            self._levelling.acquire_nowait()
        except trio.WouldBlock:  # another index is being made
            with trio.move_on_at(deadline) as waiting:
                await self._levelling.acquire()
            if waiting.cancelled_caught:
                return False
        try:
            while True:
                due = await self._hub.run_blocking(self._load_due, target, index.num, seen)
                if due.is_level:
                    return True
                places = await self._read_places(branch, index, due.names)
                # Once each: one that cannot be read stays stale, and the row of a branch that this one continues.
                seen.update(due.stale)
                await self._hub.run_blocking(self._write, index, places, due.upto)
                if trio.current_time() > deadline:
                    return False
        finally:
            self._levelling.release()

    async def _read_places(
        self, branch: str, index: DocumentIndex, names: Sequence[str]
    ) -> dict[str, bytes | None]:
        """Read where documents stand in an index; None for those that are empty, or cannot be read now."""
        places: dict[str, bytes | None] = {}
        fields = parse_fields(index.fields)
        left = [name for name in names if name.startswith(index.prefix)]
        while left:
            view = partial(_place_of_next, fields, iter(left))
            began = time.perf_counter()
            try:
                read = await self._documents.read_first(
                    JSON, branch, left, view, partial(_is_enough, began), opens=False
                )
            except ServiceError as error:
                if error.code not in UNREADABLE:
                    raise
                read = [None]
            places.update(zip(left, read, strict=False))
            left = left[len(read) :]
        return dict.fromkeys(names) | places

    def _load_due(self, branch: Branch, index_num: int, seen: Set[str]) -> "_Due":
        replica = self._hub.replica
        with replica.database.read() as connection:
            index = next((one for one in load_indexes(connection, branch.num) if one.num == index_num), None)
            if index is None:
                raise ServiceError("busy", "the index of the documents was replaced by another", "ask again")
            parts = lineage_nums(replica, connection, branch)
            # Those that are made anew come again, as changed ones.
            first = load_stale(connection, parts, _AT_ONCE + len(seen))
            stale = [one for one in first if one not in seen][:_AT_ONCE]
            names, upto = load_unindexed(connection, parts, (index.upto, index.upto_num), _AT_ONCE)
        return _Due(stale, list(dict.fromkeys([*stale, *names])), upto)

    def _write(self, index: DocumentIndex, places: Mapping[str, bytes | None], upto: tuple[int, int]) -> None:
        with self._hub.replica.database.write() as connection:
            write_places(connection, index, places, upto)


def is_index_wrong(
    tables: Tables, connection: Connection, reader: DocumentOperationReader, index: DocumentIndex
) -> bool:
    """Return True if an index that is level has a document otherwise than it is. Costs O(what the documents hold).

    Documents that changed since, must be made anew or cannot be read are not looked at.
    """
    branch, state = tables.branches[index.branch_num], DocumentState(tables, reader)
    parts = lineage_nums(tables, connection, branch)
    fields = parse_fields(index.fields)
    count, after = 0, None
    while names := load_names(connection, parts, JSON.name, index.prefix, after, _AT_ONCE):
        after = names[-1]
        known = load_documents_by_name(connection, branch.num, JSON.name, names)
        places = load_places(connection, index.num, names)
        count += len(places)
        for name, document in known.items():
            if document.is_stale or (document.changed_num, document.num) > (index.upto, index.upto_num):
                continue
            with suppress(ServiceError):
                (entries,) = state.read_whole(connection, [document], has_turn=True)
                if places.get(name) != _place_of_next(fields, iter([name]), entries):
                    return True
    return count != count_places(connection, index.num)


@dataclass(frozen=True, slots=True)
class _Due:
    """Documents that an index must take up or drop (`names`, of them the `stale`), of all changes up to `upto`."""

    stale: list[str]
    names: list[str]
    upto: tuple[int, int]

    @property
    def is_level(self) -> bool:
        return not self.names


def _place_of_next(
    fields: Fields, names: Iterator[str], entries: Mapping[str, DocumentEntry]
) -> bytes | None:
    name = next(names)
    if not any(entry.values for entry in entries.values()):
        return None
    return place_of(fields, name, read_json(entries).value)


def _is_enough(began: float) -> bool:
    return time.perf_counter() - began > QUERY_SECONDS
