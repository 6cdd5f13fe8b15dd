"""Searches posts, names of files, and texts of branches: asks the index which may fit, and compares the clear text.

So nothing is found that a timeline would not show: what was edited is found by its last text alone, and what is void,
deleted, hidden or erased is not found. A text is compared as it was read last (`search_texts`). Hits come with the latest
first, by the time at which their branches show them.
"""

import heapq
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from node.content.search_texts import parse_content
from node.content.search_words import RULES, Term, Words
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.timelines.commit_fields import CARRIED
from node.timelines.views import timeline_items
from protocol.formats.text import id_text, parse_id
from protocol.ids import UserId
from protocol.limits.formats import FILE_COUNT_MAX
from protocol.limits.users import (
    SEARCH_EXCERPT_SIZE,
    SEARCH_LOOKED_UP_AT_ONCE,
    SEARCH_OPENED_AT_ONCE,
    SEARCH_OPENED_MAX,
    SEARCH_OPENED_SIZE_MAX,
    SEARCH_SECONDS,
)
from ravel.types.commits import TimelineItem
from ravel.types.search import SearchHit, SearchIndexView, TextRoot
from storage.blobs.files import load_added
from storage.commits.commits import TimelineRow, load_numbered
from storage.commits.post_index import measure_posts
from storage.commits.search_index import (
    Candidate,
    IndexPart,
    IndexState,
    find_in_parts,
    load_candidates,
    load_parts,
    load_posts,
    load_state,
    measure_progress,
)
from storage.commits.search_texts import count_due, load_content
from storage.repos.repos import Branch

_TIME_MAX: Final = 2**62
"""Unix milliseconds after all times."""
_CURSOR: Final = re.compile(r"(-?[0-9]{1,18})\.([0-9]{1,19})")

Place = tuple[int, int]
"""Where a hit stands: its display time in unix milliseconds, and its number. The latest come first."""


@dataclass(frozen=True, slots=True)
class Question:
    """Terms, place and time of a search. Times are unix milliseconds, both ends included."""

    terms: Sequence[Term]
    branches: Sequence[Branch]
    limit: int
    authors: Mapping[int, frozenset[UserId]] | None = None  # by the repo's number; None: anybody
    since: int = -_TIME_MAX
    until: int = _TIME_MAX
    before: Place = (_TIME_MAX, 0)


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, and the cursor to go on from; None where all was looked at."""

    hits: list[SearchHit]
    cursor: str | None


@dataclass(slots=True)
class _Fitting:
    """Parts of a commit that fit: the beginning of its text, names of its files, and the texts that it stands for."""

    excerpt: str | None
    files: list[str]
    texts: list[TextRoot] = field(default_factory=list)


class Search:
    """Answers from the index. `clock` counts what a thread has used of the processor, in seconds."""

    def __init__(self, hub: Hub, *, is_enabled: bool, clock: Callable[[], float] = time.thread_time) -> None:
        self._hub = hub
        self._is_enabled = is_enabled
        self._clock = clock

    async def find(self, question: Question) -> Found:
        """Return the next hits. Raises ServiceError `not_permitted` where there is no index; StorageError."""
        if not self._is_enabled:
            raise ServiceError(
                "not_permitted",
                "search is left out on this node",
                "`ravel config set search.enabled true`, and start the daemon again",
            )
        return await self._hub.run_blocking(self._find, question)

    async def view(self, branches: Sequence[Branch] | None = None) -> SearchIndexView:
        """Show how far the index is, for these branches or for all. Raises StorageError."""
        nums = None if branches is None else [branch.num for branch in branches]
        return await self._hub.run_blocking(self._view, nums)

    def _view(self, branch_nums: Sequence[int] | None) -> SearchIndexView:
        if not self._is_enabled:
            return {"state": "off", "percent": 0, "texts_due": 0}
        with self._hub.replica.database.read() as connection:
            upto, last = measure_progress(connection, branch_nums)
            texts_due = count_due(connection, branch_nums)
        is_ready = upto >= last
        return {
            "state": "ready" if is_ready else "building",
            "percent": 100 if is_ready else upto * 100 // last,
            "texts_due": texts_due,
        }

    def _find(self, question: Question) -> Found:
        with self._hub.replica.database.read() as connection:
            state = load_state(connection)
            if state is None or state.rules != RULES:  # the daemon has just begun
                return Found([], None)
            return _Reader(connection, self._hub.replica, question, state, self._clock).read()


def parse_cursor(text: str) -> Place:
    """Decode where to go on. Raises ServiceError `bad_request`."""
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise ServiceError(
            "bad_request", "that is no cursor of a search", "send the `next` of the last answer"
        )
    return int(match[1]), int(match[2])


class _Reader:
    """One search in one moment of the store."""

    def __init__(
        self,
        connection: Connection,
        replica: Replica,
        question: Question,
        state: IndexState,
        clock: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._replica = replica
        self._question = question
        self._state = state
        self._clock = clock
        self._began = clock()
        self._branches = {branch.num: branch for branch in question.branches}
        self._opened = 0
        self._text_nums: set[int] = set()  # of commits that stand for texts
        self._hits: list[SearchHit] = []

    def read(self) -> Found:
        """Hits, until there are enough, none are left, or the work is too much."""
        last: Place | None = None
        batch: list[Place] = []
        for place, is_last in self._places():
            if is_last:  # all before this place were looked at, and there is no time for more
                rest = self._compare(batch)
                return Found(self._hits, _cursor(rest or place))
            if place == last:  # a post, by several of its versions
                continue
            last = place
            batch.append(place)
            if len(batch) == SEARCH_OPENED_AT_ONCE:
                rest = self._compare(batch)
                if rest is not None or self._opened >= SEARCH_OPENED_MAX or self._is_late():
                    return Found(self._hits, _cursor(rest or place))
                batch = []
        rest = self._compare(batch)
        return Found(self._hits, None if rest is None else _cursor(rest))

    def _places(self) -> Iterator[tuple[Place, bool]]:
        """Places that may hold hits, in order; those of one post may come several times.

        One that is marked ends it before its end: what stands before it was looked at.
        """
        question = self._question
        until = min(question.until, question.before[0])
        nums = [branch.num for branch in question.branches]
        parts = load_parts(self._connection, nums, since=question.since, until=until)
        words = frozenset(key for term in question.terms for key in term.keys)
        heap: list[Place] = []  # negative, since the latest come first
        lookups = self._look_up(parts, words)
        for part in parts:
            while heap and -heap[0][0] > part.newest:
                yield _taken(heap), False
            if self._is_late() and (part.newest, _TIME_MAX) < question.before:
                # Those in the heap that stand behind are found again.
                yield (part.newest, _TIME_MAX), True
                return
            found = next(lookups)
            if part.is_text:
                self._text_nums.update(found)
            for place in self._places_of(part.branch_num, found):
                if place < question.before and question.since <= place[0] <= question.until:
                    heapq.heappush(heap, (-place[0], -place[1]))
        while heap:
            yield _taken(heap), False

    def _look_up(self, parts: Sequence[IndexPart], words: frozenset[str]) -> Iterator[list[int]]:
        """Yield the items of each part: of a few parts first, since hits may be enough, then of more and more at once."""
        start, count = 0, 1
        while start < len(parts):
            some = parts[start : start + count]
            yield from find_in_parts(self._connection, self._state.key, some, words)
            start += count
            count = max(1, min(2 * count, SEARCH_LOOKED_UP_AT_ONCE // len(words)))

    def _places_of(self, branch_num: int, nums: Sequence[int]) -> Iterator[Place]:
        """Yield the places where commits may be shown: an edit also in the place of its post, if it counts."""
        candidates = load_candidates(self._connection, nums)
        yield from ((one.shown_at, one.num) for one in candidates)
        named = {(branch_num, one.about) for one in candidates if _is_edit(one) and one.about is not None}
        if named:
            posts = load_posts(self._connection, named)
            yield from ((post.shown_at, post.num) for post in posts.values())

    def _compare(self, places: Sequence[Place]) -> Place | None:
        """Add the hits among these; the place up to which it looked, where there is no room or no time for more.

        One post is always looked at, however long that takes: so each answer's cursor is behind its question's.
        """
        rows = [
            row for row in load_numbered(self._connection, [num for _, num in places]) if self._is_wanted(row)
        ]
        shown_at = {num: at for at, num in places}
        passed: Place | None = None
        for group in self._groups(rows):
            if passed is not None and self._is_late():
                return passed
            for row, item, names in self._open(group):
                if passed is not None and self._is_late():
                    return passed
                passed = shown_at[row.num], row.num
                self._compare_one(row, item, names)
                if len(self._hits) == self._question.limit:
                    return passed
        return None

    def _groups(self, rows: Sequence[TimelineRow]) -> Iterator[list[TimelineRow]]:
        """Yield the rows in groups that may be opened at once, each of one row at least."""
        sizes = measure_posts(self._connection, rows)
        group: list[TimelineRow] = []
        size = 0
        for row in rows:
            size += sizes.get(row.num, 0)
            if group and size > SEARCH_OPENED_SIZE_MAX:
                yield group
                group, size = [], sizes.get(row.num, 0)
            group.append(row)
        if group:
            yield group

    def _compare_one(self, row: TimelineRow, item: TimelineItem, names: Sequence[str]) -> None:
        """Add a hit, if this is one."""
        if "edits" in item or "deletes" in item:  # it is shown as its post
            return
        origin = item.get("origin")
        if origin is not None and not self._is_by(row, UserId(parse_id(origin["author"]))):
            return
        said = self._compare_text(row) if row.num in self._text_nums else self._compare_post(item, names)
        if said is None:
            return
        branch = self._branches[row.branch_num]
        repo = self._replica.repos.get(branch.repo_num)
        if repo is None:  # it was forgotten meanwhile
            return
        hit: SearchHit = {
            "repo": id_text(branch.facts.repo_id),
            "repo_name": repo.name,
            "branch": id_text(branch.branch_id),
            "branch_name": branch.name,
            "commit": item["commit"],
            "kind": item["kind"],
            "time": item["time"],
            "author": item["author"],
            "person": item["person"],
            "author_name": item["author_name"],
            "text": said.excerpt,
            "files": said.files,
        }
        if said.texts:
            hit["kind"], hit["texts"] = "text", said.texts
        if origin is not None:
            hit["origin"] = origin
        if "imported_author" in item:
            hit["imported_author"] = item["imported_author"]
        if "edited_at" in item:
            hit["edited_at"] = item["edited_at"]
        if "mentions" in item:
            hit["mentions"] = item["mentions"]
        self._hits.append(hit)

    def _compare_post(self, item: TimelineItem, names: Sequence[str]) -> _Fitting | None:
        terms, text = self._question.terms, Words(item["text"] or "")
        files = [name for name in names if Words(name).has(terms)]
        if not files and not text.has(terms):
            return None
        return _Fitting(None if item["text"] is None else text.excerpt(terms, SEARCH_EXCERPT_SIZE), files)

    def _compare_text(self, row: TimelineRow) -> _Fitting | None:
        """Texts of the branch that fit. None also where one of their commits became void, or its body is gone."""
        content = load_content(self._connection, row.branch_num)
        terms, fitting = self._question.terms, _Fitting(None, [])
        for one in () if content is None else parse_content(content):
            words = Words(f"{one.title}\n{one.text}" if one.title else one.text)
            if words.has(terms):
                fitting.texts.append({"root": one.root, "title": one.title})
                if fitting.excerpt is None:
                    fitting.excerpt = words.excerpt(terms, SEARCH_EXCERPT_SIZE)
        return fitting if fitting.texts else None

    def _open(self, rows: list[TimelineRow]) -> Iterator[tuple[TimelineRow, TimelineItem, Sequence[str]]]:
        """Yield rows as a timeline shows them, with names of files; without those of repos that are forgotten meanwhile."""
        try:
            items = timeline_items(self._connection, self._replica, rows, 0)
        except KeyError:
            left = [row for row in rows if self._is_wanted(row)]
            if len(left) == len(rows):
                raise
            yield from self._open(left)
            return
        self._opened += len(rows)
        adding = [row.num for row in rows if row.body_kind == "files"]
        added = load_added(self._connection, adding, len(adding) * FILE_COUNT_MAX)
        for row, item in zip(rows, items, strict=True):
            yield row, item, [one.name for one in added.get(row.num, ())]

    def _is_wanted(self, row: TimelineRow) -> bool:
        if row.is_void or row.branch_num not in self._branches:
            return False
        tables = self._replica.tables  # newer than this moment of the store: a repo may be forgotten since
        if row.branch_num not in tables.branches:
            return False
        # Whose a commit is that a merge wrote again, its body alone says.
        return row.body_kind == CARRIED or self._is_by(row, row.author)

    def _is_by(self, row: TimelineRow, author: UserId) -> bool:
        """Return True if the author of a commit is one of those that are asked for."""
        authors = self._question.authors
        return authors is None or author in authors.get(self._branches[row.branch_num].repo_num, ())

    def _is_late(self) -> bool:
        return self._clock() - self._began > SEARCH_SECONDS


def _is_edit(candidate: Candidate) -> bool:
    return candidate.relation == "edit"


def _taken(heap: list[Place]) -> Place:
    at, num = heapq.heappop(heap)
    return -at, -num


def _cursor(place: Place) -> str:
    return f"{place[0]}.{place[1]}"
