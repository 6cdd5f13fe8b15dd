"""Commits that the user of this node has not seen: counts by branch, and mentions among the newest.

The marks are this node's: pages on a laptop and a phone show the same, and nobody else learns who has read what.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import trio
from sqlalchemy import Connection

from node.ingest.replica import Replica
from node.sync.hub import Hub
from node.timelines.commit_fields import CARRIED
from node.timelines.views import timeline_items
from protocol.formats.text import id_text, parse_id
from protocol.ids import UserId
from protocol.limits.users import UNSEEN_COUNT_MAX, UNSEEN_LIST_OPENED_MAX, UNSEEN_OPENED_MAX
from ravel.types.commits import Origin, TimelineItem
from ravel.types.unseen import MentioningCommit, UnseenBranch, UnseenCommitList, UnseenList
from ravel.types.values import Empty
from storage.commits.commits import load_numbered
from storage.commits.local_state import Unseen, load_mark, load_marks, load_unseen, put_mark
from storage.repos.repos import Branch
from verifier.posts import devices_of

_NEVER: Final = 0


@dataclass(frozen=True, slots=True)
class _News:
    """New commits of a branch, while `state` is what they were counted from."""

    state: tuple[int, int, int, int]  # mark, commits, void ones, hidden ones
    nums: tuple[int, ...]  # of commits, the newest first
    up_to: int
    has_more: bool
    mentions: tuple[MentioningCommit, ...]
    is_opened: bool = True


@dataclass(slots=True)
class _Budget:
    """Number of commits that a request may still open."""

    left: int


class UnseenCommits:
    """Counter of what is new to one user. `clock` gives unix seconds."""

    def __init__(
        self, hub: Hub, user: UserId, find_branch: Callable[[str], Branch], clock: Callable[[], float]
    ) -> None:
        self._hub = hub
        self._user = user
        self._find_branch = find_branch
        self._clock = clock
        self._tick: int | None = None  # up to which changes of repos were looked at
        self._marks: dict[int, int] = {}  # branch number -> mark, as they were read
        self._due: set[int] = (
            set()
        )  # branches that have changed since they were looked at, or were not opened
        self._known: dict[int, _News] = {}  # branch number -> as it was looked at last
        self._new: set[int] = set()  # those in which there is something
        self._lock = trio.Lock()  # requests beside each other would each open the same commits

    async def list_all(self) -> UnseenList:
        """Branches with something new."""
        async with self._lock:
            return await self._hub.run_blocking(self._list)

    async def show(self, branch: str) -> UnseenCommitList:
        """Count what is new in a branch."""
        found = self._find_branch(branch)
        async with self._lock:
            return await self._hub.run_blocking(self._show, found)

    async def mark(self, branch: str, up_to: int) -> Empty:
        """Mark it as seen."""
        found = self._find_branch(branch)
        await self._hub.write(self._mark, found, up_to)
        async with self._lock:  # a list that has read the mark before would else keep it
            self._due.add(found.num)
            self._marks.pop(found.num, None)
        return {}

    def _mark(self, branch: Branch, up_to: int) -> None:
        with self._hub.replica.database.write() as connection:
            put_mark(connection, branch.num, up_to, int(self._clock() * 1000))

    def _list(self) -> UnseenList:
        """Looks at branches that have changed since the last list: a page asks after each commit that comes."""
        replica = self._hub.replica
        is_first = self._tick is None
        self._tick, touched, _ = replica.shown.repos_since(self._tick)
        tables = replica.tables
        self._due.update(num for one in touched for num in tables.branches_of_repo.get(one, ()))
        if any(one not in tables.repos for one in touched):
            for gone in self._known.keys() - tables.branches.keys():
                del self._known[gone]
                self._new.discard(gone)
                self._marks.pop(gone, None)
        due = [tables.branches[num] for num in sorted(self._due) if num in tables.branches]
        counted = replica.shown.count_in(replica.database, {branch.repo_num for branch in due})
        current = {branch.num: branch for each in counted.values() for branch in each}
        budget = _Budget(UNSEEN_LIST_OPENED_MAX)
        with replica.database.read() as connection:
            if is_first:
                self._marks = dict(load_marks(connection))
            for branch in due:
                self._look_at(connection, current.get(branch.num, branch), budget)
        return {
            "branches": [
                self._view(tables.branches[num]) for num in sorted(self._new) if num in tables.branches
            ]
        }

    def _look_at(self, connection: Connection, branch: Branch, budget: _Budget) -> None:
        """Note whether there is something new in a branch. One that the budget does not reach to stays due."""
        self._new.discard(branch.num)
        if not branch.facts.is_root_branch and not branch.is_archived:
            news = self._look(connection, branch, self._mark_of(connection, branch), budget)
            if news.nums or news.has_more:
                self._new.add(branch.num)
            if not news.is_opened:
                return
        self._due.discard(branch.num)

    def _mark_of(self, connection: Connection, branch: Branch) -> int:
        mark = self._marks.get(branch.num)
        if mark is None:
            mark = load_mark(connection, branch.num)
            self._marks[branch.num] = mark = _NEVER if mark is None else mark
        return mark

    def _view(self, branch: Branch) -> UnseenBranch:
        news = self._known[branch.num]
        return {
            "branch": id_text(branch.branch_id),
            "repo": id_text(branch.facts.repo_id),
            "unseen": len(news.nums),
            "more": news.has_more,
            "mentions": len(news.mentions),
            "latest_mention": news.mentions[0] if news.mentions else None,
        }

    def _show(self, branch: Branch) -> UnseenCommitList:
        replica = self._hub.replica
        counted = replica.shown.count_in(replica.database, [branch.repo_num])[branch.repo_num]
        current = next((one for one in counted if one.num == branch.num), branch)
        with replica.database.read() as connection:
            mark = self._mark_of(connection, branch)
            news = self._look(connection, current, mark, _Budget(UNSEEN_OPENED_MAX))
            rows = load_numbered(connection, news.nums)
        return {
            "branch": id_text(branch.branch_id),
            "unseen": len(news.nums),
            "more": news.has_more,
            "mentions": len(news.mentions),
            "commits": [id_text(row.commit_id) for row in rows],
            "visited": mark != _NEVER,
            "up_to": news.up_to,
        }

    def _look(self, connection: Connection, branch: Branch, mark: int, budget: _Budget) -> _News:
        """Count what is new, again only where the branch or its mark has changed. Beyond the budget: without mentions."""
        replica = self._hub.replica
        hidden_count = len(replica.hidden(branch.facts.repo_id).get(branch.branch_id, {}))
        state = (mark, branch.commit_count, branch.void_count, hidden_count)
        known = self._known.get(branch.num)
        if known is not None and known.state == state and known.is_opened:
            return known
        unseen, up_to, has_more = load_unseen(connection, branch.num, mark, UNSEEN_COUNT_MAX)
        persons = replica.persons(branch.facts.repo_id)
        me = persons.get(self._user, self._user)
        others = [one for one in unseen if persons.get(one.author, one.author) != me]
        nums = tuple(one.num for one in others if one.kind != CARRIED)
        # Posts before what may be none: a merge may carry thousands of edits of documents.
        by_kind = sorted(others, key=lambda one: one.kind == CARRIED)
        opened, closed = by_kind[:UNSEEN_OPENED_MAX], by_kind[UNSEEN_OPENED_MAX:]
        if len(opened) > budget.left:
            # A later list finds its mentions.
            news = self._known[branch.num] = _News(state, nums, up_to, has_more, (), is_opened=False)
            return news
        budget.left -= len(opened)
        items = _open(connection, replica, opened)
        carried = {
            num
            for num, item in items.items()
            if "origin" in item
            and (item["text"] is not None or "files" in item)
            and persons.get(author := UserId(parse_id(item["origin"]["author"])), author) != me
        }
        left_out = _find_attached(items)  # a post with its files is one message
        left_out |= {num for num, item in items.items() if "deleted" in item or "hidden_by" in item}
        nums = tuple(
            one.num
            for one in others
            if one.num not in left_out and (one.kind != CARRIED or one.num in carried)
        )
        has_more |= any(one.kind == CARRIED for one in closed)
        shown = (items[num] for num in nums if num in items)
        named = {id_text(one) for one in devices_of(persons, [me])[me]}
        news = _News(state, nums, up_to, has_more, tuple(_find_mentions(shown, named)))
        self._known[branch.num] = news
        return news


def _open(connection: Connection, replica: Replica, unseen: list[Unseen]) -> dict[int, TimelineItem]:
    """Open commits; return them by number."""
    rows = load_numbered(connection, [one.num for one in unseen])
    return {
        row.num: item for row, item in zip(rows, timeline_items(connection, replica, rows, 0), strict=True)
    }


def _find_attached(items: Mapping[int, TimelineItem]) -> set[int]:
    """Return the commits that only add files of other given posts."""
    named = {one["commit"] for item in items.values() for one in item.get("attachments", ())}
    return {num for num, item in items.items() if item["commit"] in named}


def _find_mentions(items: Iterable[TimelineItem], users: Collection[str]) -> list[MentioningCommit]:
    """Find the commits that mention one of some users: a name may lead to any device of a person."""
    found: list[MentioningCommit] = []
    for item in items:
        if any(one["user"] in users for one in item.get("mentions", ())):
            by: Origin | TimelineItem = item.get("origin", item)
            found.append({"commit": item["commit"], "author": by["author"], "author_name": by["author_name"]})
    return found
