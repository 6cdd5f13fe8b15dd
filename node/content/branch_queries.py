"""Queries of the JSON documents of several branches at once: one order over all of them, and one cursor."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from node.content.document_orders import BEGIN
from node.content.document_queries import (
    LOOKED_AT_ONCE,
    At,
    DocumentQueries,
    DocumentQuery,
    Plan,
    check_looked,
    parse_query,
    plan_by_name,
    too_big,
)
from node.content.document_windows import Found, ResultWindow
from node.content.documents import Documents
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import JSON
from protocol.limits.users import (
    QUERY_BRANCHES_MAX,
    QUERY_CHANGES_MAX,
    QUERY_COUNT_MAX,
    QUERY_SIZE_MAX,
    QUERY_SORTED_COUNT_MAX,
    QUERY_WINDOW_SECONDS,
)
from ravel.types.document_queries import FoundAnywhere

_BETWEEN: Final = b"\0"
"""Between a place in the query's order, which ends with a name, and the branch: names have no such byte."""


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The last document of an answer: its place in the query's order, its branch, and its name."""

    place: bytes
    branch: str
    name: str

    @property
    def text(self) -> str:
        return f"{urlsafe_b64encode(self.place).decode()}.{self.branch}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> "_Cursor":
        """Parse a cursor. Raises ServiceError `bad_request`."""
        try:
            place, branch, name = text.split(".", 2)
            return cls(urlsafe_b64decode(place.encode()), branch, name)
        except ValueError:
            raise _no_cursor() from None


def _no_cursor() -> ServiceError:
    return ServiceError("bad_request", "no answer has that cursor", "send the last answer's `cursor`")


class BranchQueries:
    """Queries of branches, which are named as REPO:BRANCH by their whole ids."""

    def __init__(self, documents: Documents, queries: DocumentQueries) -> None:
        self._documents = documents
        self._queries = queries

    async def find(
        self,
        branches: Sequence[str],
        prefix: str,
        where: str,
        sort: str,
        cursor: str,
        limit: int,
        *,
        opens: bool = True,
    ) -> FoundAnywhere:
        """Find documents of some branches in one order, up to `limit`, after a cursor; equals stand by their branches' ids.

        Costs at most as much as the first `limit` of each branch. Raises ServiceError `bad_request`, `too_large`, `busy`.
        """
        query = parse_query(prefix, where, sort, limit, opens=opens)
        after = _Cursor.parse(cursor) if cursor else None
        if after is not None and not sort and after.place != after.name.encode():
            raise _no_cursor()
        begin = BEGIN if after is None else _place_among(after.place, after.branch)
        window = ResultWindow(query.limit, 0, begin)
        unreadable = await self.fill(branches, query, window, after)
        found = window.first()
        is_all = window.bound is None or not found
        return {
            "documents": [one.document for one in found],
            "unreadable": unreadable,
            "cursor": None if is_all else _cursor_of(found[-1]).text,
        }

    def follow(self, query: DocumentQuery) -> "FollowedBranches":
        """Return a query's result to be looked at again and again."""
        return FollowedBranches(self._documents, self._queries, self, query)

    async def fill(
        self,
        branches: Sequence[str],
        query: DocumentQuery,
        window: ResultWindow,
        after: "_Cursor | None" = None,
    ) -> int:
        """Put the first documents of all branches together into an empty window; return how many could not be read.

        Each branch is walked through up to the window's bound. So the window alone is held. Raises ServiceError `too_large`
        where too many must be looked at, for too long.
        """
        check_count(len(branches))
        if query.opens:
            await self._documents.open_all(JSON, branches)  # together, and not in the time that a query has
        window.bound = None
        deadline = trio.current_time() + QUERY_WINDOW_SECONDS
        return sum([await self._fill(branch, query, window, after, deadline) for branch in branches])

    async def _fill(
        self,
        branch: str,
        query: DocumentQuery,
        window: ResultWindow,
        after: "_Cursor | None",
        deadline: float,
    ) -> int:
        plan = await self._queries.plan(branch, query)
        if after is not None and branch > after.branch:  # its equal of another branch was the last one
            by_name = plan_by_name(query)
            for one in await self._queries.look_at(branch, query, by_name, [after.name]):
                window.put(in_branch(branch, by_name, one))
        at: At | None = None
        if after is not None and plan.is_ordered:
            at = (plan.base + after.place, after.name)
        looked = unreadable = 0
        count_max = QUERY_COUNT_MAX if plan.is_ordered else QUERY_SORTED_COUNT_MAX
        while True:
            batch = await self._queries.look(branch, query, plan, at)
            for one in batch.found:
                window.put(in_branch(branch, plan, one))
            window.trim(QUERY_SIZE_MAX)
            looked, unreadable, at = looked + batch.count, unreadable + len(batch.unreadable), batch.after
            if batch.is_last or (plan.is_ordered and _is_behind(window, branch, plan, at)):
                return unreadable
            check_looked(looked, count_max, deadline)


def check_count(count: int) -> None:
    """Raise ServiceError `too_large` for more branches than a query has."""
    if count > QUERY_BRANCHES_MAX:
        raise ServiceError(
            "too_large", f"a query has at most {QUERY_BRANCHES_MAX} branches", "name those that it is about"
        )


def in_branch(branch: str, plan: Plan, found: Found) -> Found:
    """Return what was found in a branch by a plan as it stands among what is found in others."""
    repo_id, _, branch_id = branch.partition(":")
    return found.in_branch(repo_id, branch_id, _place_among(found.place[len(plan.base) :], branch))


def _place_among(place: bytes, branch: str) -> bytes:
    return place + _BETWEEN + branch.encode()


def _is_behind(window: ResultWindow, branch: str, plan: Plan, at: At | None) -> bool:
    """Return True if what follows in a branch is behind what the window takes."""
    if window.bound is None or at is None:
        return False
    return _place_among(at[0][len(plan.base) :], branch) >= window.bound


def _cursor_of(found: Found) -> _Cursor:
    place, _, branch = found.place.rpartition(_BETWEEN)
    return _Cursor(place, branch.decode(), found.document["name"])


class FollowedBranches:
    """The result of a query of several branches that is looked at again and again.

    A look costs O(what the documents hold that have changed since the last one), and O(`limit`) to tell of the result. All
    is found anew where the result lacks documents, a branch has over QUERY_CHANGES_MAX changes, a document was removed or
    brought back, or the branches are others.
    """

    def __init__(
        self, documents: Documents, queries: DocumentQueries, of_branches: BranchQueries, query: DocumentQuery
    ) -> None:
        self._documents = documents
        self._queries = queries
        self._of_branches = of_branches
        self._query = query
        self._window: ResultWindow | None = None
        self._upto: dict[str, int] = {}

    async def look(self, branches: Sequence[str], changed: Collection[str]) -> list[Found]:
        """Return the result of these branches as it is now. `changed`: those that may have changed since the last look.

        Raises ServiceError as `BranchQueries.fill`.
        """
        window, self._window = self._window, None  # which is not right if this fails
        if window is not None and not (
            self._upto.keys() == set(branches) and await self._follow(window, changed)
        ):
            window = None
        if window is None:
            self._upto = {one: await self._documents.find_last_change(one) for one in branches}
            window = ResultWindow(self._query.limit, LOOKED_AT_ONCE)
            await self._of_branches.fill(branches, self._query, window)
            if window.is_short:  # what has come has too many bytes
                raise too_big()
        self._window = window
        return window.first()

    async def _follow(self, window: ResultWindow, changed: Collection[str]) -> bool:
        """Let a window follow the changes; whether it could."""
        plan = plan_by_name(self._query)
        for branch in changed:
            news = await self._documents.list_changes(JSON, branch, self._upto[branch], QUERY_CHANGES_MAX)
            if news is None or news.has_marks:
                return False
            self._upto[branch] = news.upto
            names = [name for name in news.names if name.startswith(self._query.prefix)]
            found = await self._queries.look_at(branch, self._query, plan, names)
            for name in names:
                window.drop(f"{branch.partition(':')[2]}/{name}")
            for one in found:
                window.put(in_branch(branch, plan, one))
        return window.trim(QUERY_SIZE_MAX) and not window.is_short
