"""JSON documents as apps follow them: one document, or what a query finds, as live streams.

A follower's cursor is the digest of what it was told. So a stream that was cut goes on exactly, without memory here, and a
slow follower gets the newest state alone.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import Generic, Protocol, TypeVar

import msgspec
import trio
from blake3 import blake3

from node.api.event_streams import Event
from node.api.targets import Targets
from node.content.branch_queries import BranchQueries, FollowedBranches
from node.content.document_queries import DocumentQueries, FollowedQuery, parse_query
from node.content.document_windows import DIGEST_SIZE, Found, digest_of
from node.content.json_documents import JsonDocuments
from node.content.lineage import load_state_nums
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.limits.users import JSON_PAUSE_SECONDS
from ravel.types.document_queries import ResultChangeEvent
from ravel.types.json_documents import JsonDocumentView
from storage.repos.repos import Branch

S = TypeVar("S")
Looked = TypeVar("Looked", covariant=True)


class LiveJson:
    """The JSON documents of branches, which are named as `Targets` takes them, as apps follow them."""

    def __init__(
        self,
        hub: Hub,
        documents: JsonDocuments,
        queries: DocumentQueries,
        branch_queries: BranchQueries,
        targets: Targets,
    ) -> None:
        self._hub = hub
        self._documents = documents
        self._queries = queries
        self._branch_queries = branch_queries
        self._targets = targets

    def follow(self, find: Callable[[], Branch], name: str, cursor: str) -> "JsonSource":
        """Return a source of a document's states that are not the one with this cursor. Raises ServiceError.

        `find` returns the branch. It is asked again when the name may mean another one, as when main was pointed there.
        """

        def read_in(branch: str) -> Callable[[], Awaitable[tuple[JsonDocumentView, str]]]:
            return partial(self._show, branch, name)

        return JsonSource(self._hub, _OneBranch(self._hub, self._targets, find, read_in), cursor)

    def follow_query(
        self, find: Callable[[], Branch], prefix: str, where: str, sort: str, limit: int, cursor: str
    ) -> "QuerySource":
        """Return a source of changes of a query's result since the state of this cursor, of a branch as `follow` takes it.

        Raises ServiceError.
        """
        query = parse_query(prefix, where, sort, limit)

        def read_in(branch: str) -> Callable[[], Awaitable[tuple[list[Found], str]]]:
            return partial(_find, self._queries.follow(branch, query))

        return QuerySource(self._hub, _OneBranch(self._hub, self._targets, find, read_in), cursor)

    def follow_anywhere(
        self,
        find: Callable[[], Sequence[Branch]],
        prefix: str,
        where: str,
        sort: str,
        limit: int,
        cursor: str,
        *,
        opens: bool = True,
    ) -> "QuerySource":
        """Return a source as `follow_query`, of the branches that `find` returns in a thread.

        It is asked again when there may be others. Raises ServiceError.
        """
        followed = self._branch_queries.follow(parse_query(prefix, where, sort, limit, opens=opens))
        about = _Branches(self._hub, self._targets, find, followed)
        return QuerySource(self._hub, about, cursor)

    async def _show(self, branch: str, name: str) -> tuple[JsonDocumentView, str]:
        state = await self._documents.show(branch, name)
        return state, await self._hub.run_blocking(_digest, state)


async def _find(followed: FollowedQuery) -> tuple[list[Found], str]:
    result = await followed.look()
    return result, digest_of(result)


class _About(Protocol[Looked]):
    """Subject of a source: branches whose commits and contents matter to it."""

    def note(self, nums: AbstractSet[int] | None) -> bool:
        """Note that branches with these numbers (None: any) got commits; return True if this state depends on one."""
        ...

    async def look(self) -> tuple[Looked, str]:
        """Return what there is now, and its digest. Raises ServiceError, StorageError."""
        ...


class _OneBranch(Generic[S]):
    """The branch that a name means, with all that its state rests on."""

    def __init__(
        self,
        hub: Hub,
        targets: Targets,
        find: Callable[[], Branch],
        read_in: Callable[[str], Callable[[], Awaitable[tuple[S, str]]]],
    ) -> None:
        self._hub = hub
        self._targets = targets
        self._find = find
        self._read_in = read_in
        self._may_be_other = False
        self._take(find())

    def note(self, nums: AbstractSet[int] | None) -> bool:
        """Note changes, as _About."""
        if nums is None:
            self._may_be_other = True
            return True
        return not nums.isdisjoint(self._nums)

    async def look(self) -> tuple[S, str]:
        """Look, as _About."""
        if self._may_be_other:
            self._may_be_other = False
            # A name may have become unclear. Of a branch that is gone the reading tells.
            with suppress(ServiceError):
                found = self._find()
                if found.num != self._branch.num:
                    self._take(found)
        [self._nums] = await _load_nums(self._hub, [self._branch])  # before what it reads: no news is missed
        return await self._read()

    def _take(self, branch: Branch) -> None:
        self._branch = branch
        self._read = self._read_in(self._targets.name(branch))
        self._nums = self._hub.replica.tables.with_root(branch)


async def _load_nums(hub: Hub, branches: Sequence[Branch]) -> list[set[int]]:
    """Load the numbers of the branches that each of some branches rests on."""

    def load() -> list[set[int]]:
        with hub.replica.database.read() as connection:
            return [load_state_nums(hub.replica, connection, branch) for branch in branches]

    return await hub.run_blocking(load)


class _Branches:
    """Branches of a followed query, and those that have changed since they were looked at.

    A note costs O(branches with new commits), and a look after `topics_changed` O(branches).
    """

    def __init__(
        self, hub: Hub, targets: Targets, find: Callable[[], Sequence[Branch]], followed: FollowedBranches
    ) -> None:
        self._hub = hub
        self._targets = targets
        self._find = find
        self._followed = followed
        self._branches: dict[str, Branch] = {}
        self._of: dict[int, set[str]] = {}  # by the number of a branch that they rest on
        self._changed: set[str] = set()
        self._may_be_others = True

    def note(self, nums: AbstractSet[int] | None) -> bool:
        """Note changes, as _About."""
        if nums is None:
            self._may_be_others = True
            return True
        about = [self._of[num] for num in nums if num in self._of]
        self._changed.update(*about)
        return bool(about)

    async def look(self) -> tuple[list[Found], str]:
        """Return the result and its digest. Raises ServiceError."""
        if self._may_be_others:
            self._may_be_others = False
            try:
                await self._find_again()
            except BaseException:  # cancelled too: the next look asks again
                self._may_be_others = True
                raise
        changed, self._changed = self._changed, set()
        try:
            await self._note_lineages(changed)
        except BaseException:  # as above
            self._changed |= changed
            raise
        result = await self._followed.look(list(self._branches), changed)
        return result, digest_of(result)

    async def _find_again(self) -> None:
        found = await self._hub.run_blocking(self._find)
        self._branches, self._of = {self._targets.name(branch): branch for branch in found}, {}
        for name, branch in self._branches.items():
            self._note(name, self._hub.replica.tables.with_root(branch))
        self._changed = set(self._branches)  # what came meanwhile may not have been noted

    async def _note_lineages(self, names: AbstractSet[str]) -> None:
        """Note what changed branches rest on, before they are read: a lineage may have become known."""
        changed = {name: branch for name, branch in self._branches.items() if name in names}
        for name, nums in zip(changed, await _load_nums(self._hub, list(changed.values())), strict=True):
            self._note(name, nums)

    def _note(self, name: str, nums: AbstractSet[int]) -> None:
        for num in nums:
            self._of.setdefault(num, set()).add(name)


class _Source(ABC, Generic[S]):
    """States of something in branches as they come, each with its digest. A look costs as much as reading it."""

    def __init__(self, hub: Hub, about: _About[S], cursor: str) -> None:
        self._hub = hub
        self._about = about
        self._cursor = cursor
        self._changed = trio.Event()
        self._changed.set()
        self._next_at = float("-inf")

    def start(self) -> None:
        """Be told of changes."""
        self._hub.follow(self)

    def stop(self) -> None:
        """Stop listening."""
        self._hub.unfollow(self)

    def branches_changed(self, branches: AbstractSet[int]) -> None:
        """Note new commits and contents."""
        if self._about.note(branches):
            self._changed.set()

    def topics_changed(self) -> None:
        """Look again: topics have changed."""
        self._about.note(None)
        self._changed.set()

    def missed(self) -> None:
        """Look again: the hub skipped this listener."""
        self._about.note(None)
        self._changed.set()

    async def next(self) -> list[Event]:
        """Wait for the next state that can be read: for ever, once one was told. Raises ServiceError, StorageError."""
        while True:
            await self._changed.wait()
            await trio.sleep_until(self._next_at)
            self._changed = trio.Event()
            began = trio.current_time()
            self._next_at = began + JSON_PAUSE_SECONDS
            try:
                state, cursor = await self._about.look()
                ended = trio.current_time()  # who follows something large leaves others half of the time
                self._next_at = max(self._next_at, ended + (ended - began))
            except ServiceError as error:
                if error.code == "incomplete" and self._cursor:
                    continue  # contents of a new commit are on their way, and it will have changed with them
                self._changed.set()
                raise
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


class QuerySource(_Source[list[Found]]):
    """Tell what changes in the result of a query."""

    _told: list[Found] | None = None

    def _event(self, state: list[Found], cursor: str, *, is_new: bool) -> Event | None:
        told, self._told = self._told, state
        if not is_new:
            return None
        if told is None:
            return Event("result", cursor, {"documents": [one.document for one in state]})
        return Event("changes", cursor, find_changes(told, state))


def find_changes(told: list[Found], state: list[Found]) -> ResultChangeEvent:
    """Return what has changed between two results. Costs O(n log n) of their length."""
    before = {one.key: one for one in told}
    after = {one.key: one for one in state}
    stayed = [key for key in before if key in after]
    order = [key for key in after if key in before]
    return {
        "added": [one.document for one in state if one.key not in before],
        "changed": [after[key].document for key in order if after[key].digest != before[key].digest],
        "moved": _find_moved(stayed, order),
        "removed": [key for key in before if key not in after],
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
