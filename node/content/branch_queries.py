"""Queries of the JSON documents of several branches at once: one order over all of them, and one cursor."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from node.content.document_orders import BEGIN
from node.content.document_queries import DocumentQueries, DocumentQuery, parse_query
from node.content.document_windows import Found, ResultWindow
from node.runtime.errors import ServiceError
from protocol.limits.users import QUERY_BRANCHES_MAX, QUERY_SIZE_MAX, QUERY_WINDOW_SECONDS
from ravel.types.document_queries import FoundAnywhere, FoundInBranch


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
            raise ServiceError(
                "bad_request", "no answer has that cursor", "send the last answer's `cursor`"
            ) from None


class BranchQueries:
    """Queries of branches, which are named as REPO:BRANCH by their whole ids."""

    def __init__(self, queries: DocumentQueries) -> None:
        self._queries = queries

    async def find(
        self, branches: Sequence[str], prefix: str, where: str, sort: str, cursor: str, limit: int
    ) -> FoundAnywhere:
        """Find documents of some branches in one order, up to `limit`, after a cursor; equals stand by their branches' ids.

        Costs as much as the first `limit` of each branch. Raises ServiceError `bad_request`, `too_large`, `busy`.
        """
        if len(branches) > QUERY_BRANCHES_MAX:
            raise ServiceError(
                "too_large",
                f"a query has at most {QUERY_BRANCHES_MAX} branches",
                "name those that it is about",
            )
        query = parse_query(prefix, where, sort, limit)
        after = _Cursor.parse(cursor) if cursor else None
        deadline = trio.current_time() + QUERY_WINDOW_SECONDS
        found: list[tuple[bytes, str, Found]] = []
        unreadable = 0
        is_all = True
        for branch in branches:
            if trio.current_time() > deadline:
                raise ServiceError("too_large", "the branches take too long together", "name fewer of them")
            some, count, is_whole = await self._look(branch, query, after)
            found += [(place, branch, one) for place, one in some]
            is_all, unreadable = is_all and is_whole, unreadable + count
        found.sort(key=lambda one: one[:2])
        shown: list[FoundInBranch] = []
        size = 0
        for place, branch, one in found[:limit]:
            if shown and size + one.size > QUERY_SIZE_MAX:
                break
            size += one.size
            repo_id, _, branch_id = branch.partition(":")
            shown.append({**one.document, "repo": repo_id, "branch": branch_id})
            after = _Cursor(place, branch, one.document["name"])
        is_all = is_all and len(shown) == len(found)
        return {
            "documents": shown,
            "unreadable": unreadable,
            "cursor": None if is_all or after is None else after.text,
        }

    async def _look(
        self, branch: str, query: DocumentQuery, after: _Cursor | None
    ) -> tuple[list[tuple[bytes, Found]], int, bool]:
        """Find the first documents of one branch, by their places in the query's order.

        Return also how many could not be read, and whether these are all.
        """
        plan = await self._queries.plan(branch, query)
        begin = BEGIN if after is None else plan.base + after.place
        window = ResultWindow(query.limit, 0, begin)
        unreadable = await self._queries.fill(branch, query, plan, window)
        found = window.first()
        if after is not None and branch > after.branch:  # its equal of another branch was the last one
            equal = await self._queries.look_at(branch, query, plan, [after.name])
            found = [one for one in equal if one.place == begin] + found
        return [(one.place[len(plan.base) :], one) for one in found], len(unreadable), window.bound is None
