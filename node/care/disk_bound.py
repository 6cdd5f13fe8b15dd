"""Keeps the store's size under a bound (`[storage] size_max`): picks how many days of posts the repos keep.

The days are a rule as that of `ravel repo keep --last`: peers are told (`keeps1`), and `node.care.giving_up` gives up what
is older once a member's node has shown it, as far as it has to. All repos have the same days. People open what is new, in
whichever repo; to begin with the largest one would take a post of last week there before one of ten years ago elsewhere.

Days go down as far as what is older makes room enough, where a node that could show it is connected. What no node has shown
at a look counts for nothing then. They go up again, one step at a time and hours apart, while the store with what comes
again stays below three quarters of the bound.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
import trio

from node.sync.hub import Hub
from node.sync.kept_parts import bound_contents, change_keeping, find_keepers
from protocol.ids import UserId
from storage.blobs.old_sizes import weigh_absent, weigh_old
from storage.commits.blocks import DamagedBlock
from storage.commits.own_commits import load_author_num
from storage.repos.repos import Branch, Repo, posts_from

log = structlog.get_logger()

LOOK_SECONDS: Final = 60.0
"""Seconds between two looks at the size: a look costs two queries. So much may come beyond the bound."""
STEPS: Final = (0, 3650, 1825, 1095, 730, 365, 180, 90, 60, 30, 14, 7)
"""Days that are chosen from, 0 for any age. Fewer than the last would take what people talk of now."""
LOWERED_SECONDS: Final = 900.0
"""Seconds after which the days go down again: peers need some to show anything."""
RAISED_SECONDS: Final = 6 * 3600.0
"""Seconds after a change of the days until they may go up, and for which the store is not weighed for that again."""


class DiskBound:
    """Measures the store, and changes the days of all repos. `hub.bound` has what it found."""

    def __init__(self, hub: Hub, user: UserId) -> None:
        self._hub = hub
        self._user = user
        self._is_fruitless = False  # a look under these days has given nothing up
        self._finds_nobody = False  # who could show anything, at the last look
        self._lowered_from = trio.current_time()
        self._raised_from = trio.current_time() + RAISED_SECONDS

    @property
    def is_look_wanted(self) -> bool:
        """True while old contents have to go, and some may that are not known to stay."""
        bound = self._hub.bound
        return bound.excess > 0 and not self._finds_nobody and not self._is_fruitless

    async def look(self, *, is_freed: bool) -> None:
        """Measure the store, and change the days where that is due. Raises StorageError.

        `is_freed`: the space of all that was given up is free; else the days do not go down.
        Costs O(packs); O(commits and files) where the days may change.
        """
        bound, days = self._hub.bound, self._find_days()
        if not bound.size_max:
            if days:
                await self._change(0)
            return
        await self._hub.run_blocking(bound.measure, self._hub.replica)
        if not bound.excess:
            bound.state, self._is_fruitless = "under", False
            await self._raise(days)
            return
        branches = await self._find_shown()
        if not branches:
            if not await self._hub.run_blocking(self._has_others):
                bound.state = "stuck"
            elif self._finds_nobody:  # not at the first look: after a start peers have yet to connect
                bound.state = "alone"
            self._finds_nobody = True
            return
        if self._finds_nobody or bound.state == "under":
            bound.state, self._is_fruitless, self._finds_nobody = "giving_up", False, False
        if is_freed and trio.current_time() >= self._lowered_from:
            await self._lower(days, branches)

    def note_look(self, given_up: int) -> None:
        """Note how many contents a look has given up."""
        bound = self._hub.bound
        self._is_fruitless = bound.excess > 0 and not given_up
        if given_up and bound.state == "stuck":
            bound.state = "giving_up"

    async def _lower(self, days: int, branches: Collection[Branch]) -> None:
        """Keep fewer days, if what is older than now makes too little room."""
        older = await self._hub.run_blocking(self._weigh, branches)
        wanted = choose_days(older, days, self._hub.bound.excess, is_fruitless=self._is_fruitless)
        self._lowered_from = trio.current_time() + LOWERED_SECONDS
        if wanted is None:
            self._hub.bound.state = "stuck"
        elif wanted != days:
            await self._change(wanted)

    async def _raise(self, days: int) -> None:
        """Keep the posts of one step more, if there is room for what comes then."""
        bound = self._hub.bound
        if not days or bound.size > bound.growing_max or trio.current_time() < self._raised_from:
            return
        self._raised_from = trio.current_time() + RAISED_SECONDS
        wanted = STEPS[_step_of(days) - 1]
        coming = await self._hub.run_blocking(self._weigh_coming, wanted)
        if bound.size + coming <= bound.growing_max:
            await self._change(wanted)

    async def _change(self, days: int) -> None:
        hub, nums = self._hub, [one.num for one in self._find_repos()]
        await change_keeping(hub, nums, partial(bound_contents, hub.replica, days, hub.clock_ms()))
        self._is_fruitless = False
        self._raised_from = trio.current_time() + RAISED_SECONDS
        log.info(
            "days of posts kept since the store's size is bounded", days=days or "any", size=hub.bound.size
        )

    def _find_repos(self) -> list[Repo]:
        return [one for one in self._hub.replica.repos.values() if one.has_members]

    def _find_days(self) -> int:
        return max((one.bound_days for one in self._hub.replica.repos.values()), default=0)

    async def _find_shown(self) -> list[Branch]:
        """Find the branches of which a member's node that keeps posts of any age is connected."""
        found = list[Branch]()
        for repo in self._find_repos():
            topics = self._hub.replica.tables.topics_in(repo.num)
            users = {
                branch: {user for topic in topics for _, user in find_keepers(self._hub, topic, branch.num)}
                for branch in self._hub.replica.branches_in(repo.num)
                if not branch.facts.is_root_branch
            }
            if any(users.values()):
                members = await self._hub.run_blocking(self._find_members, repo)
                if self._user in members:
                    found += [branch for branch, keepers in users.items() if not keepers.isdisjoint(members)]
        return found

    # --- in threads ---

    def _has_others(self) -> bool:
        """Return True if this user and others are members of any repo: only these show anything."""
        found = map(self._find_members, self._find_repos())
        return any(self._user in members and len(members) > 1 for members in found)

    def _find_members(self, repo: Repo) -> Collection[UserId]:
        try:
            return self._hub.replica.members(repo)
        except DamagedBlock:
            return ()

    def _weigh(self, branches: Collection[Branch]) -> list[int]:
        """Sum the bytes of what is older than each step of days; the first, of any age, has none."""
        replica, now_ms = self._hub.replica, self._hub.clock_ms()
        befores = [posts_from(days, now_ms) for days in STEPS[1:]]
        total = [0] * len(befores)
        with replica.database.read() as connection:
            own = load_author_num(connection, self._user)
            for branch in branches:
                sizes = weigh_old(
                    connection,
                    replica.packs,
                    branch.num,
                    own,
                    befores,
                    with_posts=self._hub.bound.counts_rows,
                )
                total = [one + other for one, other in zip(total, sizes, strict=True)]
        return [0, *total]

    def _weigh_coming(self, wanted: int) -> int:
        replica, now_ms = self._hub.replica, self._hub.clock_ms()
        coming = 0
        with replica.database.read() as connection:
            for repo in self._find_repos():
                since = posts_from(replace(repo, bound_days=wanted).kept_days, now_ms)
                before = posts_from(repo.kept_days, now_ms)
                for branch in replica.branches_in(repo.num):
                    if branch.is_kept:
                        coming += weigh_absent(
                            connection,
                            replica.packs,
                            branch.num,
                            since,
                            before,
                            with_files=repo.keeps_files,
                            with_posts=self._hub.bound.counts_rows,
                        )
        return coming


def choose_days(older: Sequence[int], days: int, excess: int, *, is_fruitless: bool) -> int | None:
    """Choose the most days that make room for `excess` bytes, or for as many as can go; None where none can.

    `older` are the bytes that each of STEPS has to give. Where a look was fruitless under the days that are kept now, of no
    use is what is older.
    """
    now = _step_of(days)
    useless = older[now] if is_fruitless else 0
    enough = min(excess, older[-1] - useless)
    if enough <= 0:
        return None
    return next(STEPS[step] for step in range(now, len(STEPS)) if older[step] - useless >= enough)


def _step_of(days: int) -> int:
    """Return the number of the step of some days: another version may have had other steps."""
    return next((step for step, one in enumerate(STEPS) if one <= days and (one or not days)), len(STEPS) - 1)
