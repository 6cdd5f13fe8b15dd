"""The list of repos: describes again only what has changed, and tells readers what that is.

Each description is kept. What may have changed is named by the store (`ShownTables.repos_since`), by connections
(`Standings.take_changed`), and by what passes with time: requests that wait, and users who ask. A cursor is a moment of
this list: a reader that shows one gets what has changed since. It does not say what that was, nor whether anything was,
so a token for some repos learns nothing of the others.
"""

import secrets
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final, TypeVar

import trio

from node.membership.lobbies import find_repo
from node.observe.repo_views import RepoViews
from node.observe.standing import Standings
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.links import find_kept_ask
from protocol.ids import RepoId
from protocol.limits.users import GONE_REPOS_KEPT_MAX
from ravel.types.repos import RepoList, RepoView
from storage.repos.repos import Repo

V = TypeVar("V")

_RUN_SIZE: Final = 6
_DIGITS_MAX: Final = 16


class ListedRepos:
    """All repos of this node as they are shown. One look at a time; callers wait for the one before."""

    def __init__(self, hub: Hub, standings: Standings, views: RepoViews) -> None:
        self.hub = hub
        self._standings = standings
        self.views = views
        self._lock = trio.Lock()
        self._run = secrets.token_hex(_RUN_SIZE)
        """A part of cursors: those of another run of the daemon get the whole list."""
        self._moment = 0
        """Of the last look: unix milliseconds, or a little later, so that no two looks have the same."""
        self._tick: int | None = None
        self._peer_names = hub.replica.people.peer_names
        self._had_damaged = hub.replica.has_damaged
        self._due: set[int] = set()  # repos to be described again
        self._timed: set[int] = set()  # those that may change with time alone
        self._revisions: dict[
            int, int
        ] = {}  # by repo: the moment at which the store was last seen to have touched it
        self._targets: dict[int, RepoId] = {}  # by lobby: the repo that is asked for there
        self._asked: dict[int, RepoId] = {}  # the same of lobbies in which this user asks
        self._shown: dict[int, RepoView] = {}  # by repo, in the order of numbers
        self._places: dict[str, int] = {}  # by the id that is shown: the repo which shows it
        # By id: the moment of the last change, the latest last; the same of those that are shown no more.
        self._moments: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._forgotten = 0
        """The latest moment of which it is not known any more what went then."""
        self.described_count = 0
        """How many repos were described so far: what looks cost."""

    async def list(self, since: str = "") -> RepoList:
        """List all repos, or those that have changed since a cursor. Raises StorageError."""
        async with self._lock:
            self._look()
            await self._describe(self._due)
            cursor = f"{self._run}-{self._moment}"
            after = self._read_cursor(since)
            if after is None:
                return {
                    "repos": [self._now(view) for view in self._shown.values()],
                    "gone": [],
                    "cursor": cursor,
                    "complete": True,
                }
            places = sorted(self._places[one] for one in _since(self._moments, after))
            return {
                "repos": [self._now(self._shown[num]) for num in places],
                "gone": list(_since(self._gone, after)),
                "cursor": cursor,
                "complete": False,
            }

    async def show(self, repo: Repo) -> RepoView:
        """Return one repo as it is now. Raises StorageError, and ServiceError `not_found` where it was deleted
        meanwhile."""
        async with self._lock:
            self._look()
            await self._describe(self._due & {repo.num})
            view = self._shown.get(repo.num)
        if view is None:
            raise ServiceError("not_found", "the repo was forgotten meanwhile")
        return self._now(view)

    def _look(self) -> None:
        """Note which repos may have changed. In trio's thread: connections change there."""
        replica = self.hub.replica
        self._moment = max(self._moment + 1, self.hub.clock_ms())
        self._tick, touched, restated = replica.shown.repos_since(self._tick)
        self._revisions.update(dict.fromkeys(touched, self._moment))
        due = {*touched, *restated, *self._standings.take_changed(), *self._timed}
        if self._peer_names is not replica.people.peer_names:  # they are replaced whole
            self._peer_names = replica.people.peer_names
            due |= replica.repos.keys()
        if self._had_damaged != replica.has_damaged:
            self._had_damaged = replica.has_damaged
            due |= replica.repos.keys()
        self._due |= due.union(self._related(due))

    def _related(self, nums: Iterable[int]) -> Iterator[int]:
        """Repos that are shown otherwise because their lobbies have changed; and what is asked for in each lobby."""
        replica = self.hub.replica
        for num in nums:
            before, repo = self._targets.get(num), replica.repos.get(num)
            link = None if repo is None else find_kept_ask(repo.invitation)
            _put(self._asked, num, None if link is None else link.repo)
            lobby_of = None if repo is None else replica.lobbies.get(repo.repo_id)
            _put(self._targets, num, lobby_of if link is None else link.repo)
            for target_id in {before, self._targets.get(num)}:
                target = None if target_id is None else find_repo(replica, target_id)
                if target is not None:
                    yield target.num

    async def _describe(self, nums: set[int]) -> None:
        """Describe these repos again. Those for which that fails stay due."""
        if not nums:
            return
        repos, wanted = self.hub.replica.repos, sorted(nums)
        here = [repos[num] for num in wanted if num in repos]
        outlooks = dict(self._standings.outlooks)
        revisions = {num: self._revisions.get(num, self._moment) for num in wanted}
        asked = frozenset(self._asked.values())
        found = await self.hub.run_blocking(self.views.describe, here, outlooks, revisions, asked)
        self.described_count += len(here)
        for num in wanted:
            self._put_view(num, found.get(num))
            if num not in repos:
                for table in (self._revisions, self._targets, self._asked):
                    table.pop(num, None)
            is_timed = num in self._asked or _may_change_alone(found.get(num))
            (self._timed.add if is_timed and num in repos else self._timed.discard)(num)
        self._due.difference_update(wanted)

    def _put_view(self, num: int, view: RepoView | None) -> None:
        before = self._shown.get(num)
        if before == view:
            return
        _put(self._shown, num, view)
        if before is not None and self._places.get(before["repo"]) == num:
            del self._places[before["repo"]]
        if view is not None:
            self._places[view["repo"]] = num
        for one in {shown["repo"] for shown in (before, view) if shown is not None}:
            self._moments.pop(one, None)
            self._gone.pop(one, None)
            (self._moments if one in self._places else self._gone)[one] = self._moment
        while len(self._gone) > GONE_REPOS_KEPT_MAX:
            self._forgotten = self._gone.pop(next(iter(self._gone)))

    def _now(self, view: RepoView) -> RepoView:
        """Return a view with `held_at` of now while a peer is level: that alone is no change."""
        standing = view["standing"]
        if not standing["in_sync_with"]:
            return view
        return {**view, "standing": {**standing, "held_at": self.hub.clock_ms() // 1000}}

    def _read_cursor(self, since: str) -> int | None:
        """Parse a cursor. Return None if it is of another run, too old or malformed: then the whole list answers it."""
        run, _, digits = since.partition("-")
        if run != self._run or not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS_MAX:
            return None
        return int(digits) if self._forgotten <= int(digits) <= self._moment else None


def _since(moments: dict[str, int], after: int) -> Iterator[str]:
    """Ids that have changed after a moment, the latest first: looks at one older change."""
    return takewhile(lambda one: moments[one] > after, reversed(moments))


def _may_change_alone(view: RepoView | None) -> bool:
    """Return True if a repo's view may change with time alone: requests expire, and damaged commits come back."""
    if view is None:
        return False
    return view["requests"] > 0 or view["permission"] == "damaged" or view["standing"]["damaged"] > 0


def _put(table: dict[int, V], num: int, value: V | None) -> None:
    if value is None:
        table.pop(num, None)
    else:
        table[num] = value
