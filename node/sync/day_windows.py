"""Fetches posts of a day that is not here yet, while a branch's past is on its way.

Of a branch's commits a peer tells those with the highest ranks below one (`want-window1`). Their authors say when they were
written. So a rank near the day is found by a few questions for a few commits each, then a window is asked for. What comes is
kept apart for the one request, like the newest commits, and confirmed by the same rules. Where a peer does not answer, or
nothing of what it tells is confirmed, others are asked.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import trio

from node.ingest.kept_windows import KeptWindows
from node.ingest.publication_parsing import Opened
from node.ingest.publication_reading import branch_mark_in
from node.runtime.scheduling import WorkBill
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.ids import BranchMark, CommitId
from protocol.limits.peers import (
    DAY_EPOCHS_MAX,
    DAY_PEER_SECONDS,
    DAY_QUESTIONS_MAX,
    DAY_SECONDS,
    WINDOW_ASK_COUNT,
    WINDOW_PAGES_MAX,
)
from protocol.session.features import WINDOWS
from storage.commits.commits import load_rows, load_timeline
from storage.commits.display import load_latest_time
from storage.repos.epochs import Epoch, Topic
from storage.repos.repos import Branch

_LOOKED_AT: Final = 8
"""Commits of one question: authors assert times, so the middle one counts."""


async def fetch_day(hub: Hub, branch: Branch, since: int) -> KeptWindows | None:
    """Fetch a window of a branch from a time on (unix ms), where that is not here and its past is on its way.

    Waits DAY_SECONDS at most. Returns what came; None where nothing is to be asked. Raises StorageError.
    """
    found = await hub.run_blocking(_find_place, hub, branch, since)
    if found is None:
        return None
    bounds, epochs = found
    days = KeptWindows(hub.replica, hub.windows.vouchers)
    silent = set[Conversation]()
    with trio.move_on_after(DAY_SECONDS), hub.asking_first():
        for source, topic, mark in _find_sources(hub, branch, epochs):
            if source in silent:
                continue
            with trio.move_on_after(DAY_PEER_SECONDS) as limit:
                if await _Search(hub, source, topic, branch, mark, days).fetch(bounds, since):
                    break
            if limit.cancelled_caught:
                silent.add(source)
    return days


def _find_sources(
    hub: Hub, branch: Branch, epochs: Sequence[Epoch]
) -> Iterator[tuple[Conversation, Topic, BranchMark]]:
    """Find who can be asked for a branch's commits of some epochs: peers, each with a topic and the branch's mark there."""
    by_topic = hub.replica.tables.by_topic
    for epoch in epochs:
        mark = branch_mark_in(epoch.key, branch.branch_id)
        for name in (epoch.writers_topic, epoch.topic):
            topic = None if name is None else by_topic.get(name)
            for source in list(hub.sources):
                if topic is not None and source.has_joined(topic.topic) and source.knows(WINDOWS):
                    yield source, topic, mark


def _find_place(hub: Hub, branch: Branch, since: int) -> "tuple[_Bounds, list[Epoch]] | None":
    """Find between which commits a time is, the epoch in use then and those after it. None if nothing is to be asked."""
    shown = hub.windows.find(branch.num)
    newest = None if shown is None else next(iter(shown.listed), None)
    if newest is None or _time_of(newest.opened) <= since:
        return None
    with hub.replica.database.read() as connection:
        latest = load_latest_time(connection, branch.num)
        if latest is not None and latest >= since:
            return None
        last = load_timeline(connection, branch.num, max(0, branch.commit_count - 1), 1)
        epochs = hub.replica.tables.held_epochs(branch.repo_num)
        inits = load_rows(connection, {CommitId(one) for one in epochs})
    begins = {
        one.num: inits[CommitId(raw)].timestamp for raw, one in epochs.items() if CommitId(raw) in inits
    }
    ordered = sorted(((begins.get(one.num, 0), one) for one in epochs.values()), key=itemgetter(0))
    first = max(0, bisect_right(ordered, since, key=itemgetter(0)) - 1)
    low = (last[0].rank, last[0].timestamp) if last else (0, ordered[0][0] if ordered else 0)
    bounds = _Bounds(*low, _rank_of(newest.opened), _time_of(newest.opened))
    return bounds, [epoch for _, epoch in ordered[first : first + DAY_EPOCHS_MAX]]


class _Bounds(NamedTuple):
    """Ranks between which a time is, and the times (unix ms) of commits there."""

    low: int
    low_time: int
    high: int
    high_time: int


class _Search:
    """Search for a time among the commits of one mark that a peer has."""

    def __init__(
        self,
        hub: Hub,
        source: Conversation,
        topic: Topic,
        branch: Branch,
        mark: BranchMark,
        days: KeptWindows,
    ) -> None:
        """`days` takes what is found."""
        self._hub = hub
        self._source = source
        self._topic = topic
        self._branch = branch
        self._mark = mark
        self._days = days

    async def fetch(self, bounds: _Bounds, since: int) -> bool:
        """Keep commits from a time on (unix ms). Return False if the peer has none of which any is confirmed."""
        rank = await self._find_rank(bounds, since)
        if rank is None:
            return False
        span = WINDOW_ASK_COUNT
        for _ in range(WINDOW_PAGES_MAX):
            opened = await self._look(rank + span, WINDOW_ASK_COUNT)
            if not opened:
                return False
            above = _rank_of(opened[0]) - rank
            if above <= 0 or span == 1:
                return await self._keep(rank, span, opened)
            span = max(
                1, span - above
            )  # several commits have one rank: so many ranks are as many as one answer has
        return False

    async def _keep(self, rank: int, span: int, opened: Sequence[Opened]) -> bool:
        """Keep a window, and others above it as long as nothing is confirmed. Return True once anything is."""
        bill = WorkBill(self._source.account)
        for page in range(2, WINDOW_PAGES_MAX):
            self._days.keep(self._branch.num, self._topic, opened)
            shown = await self._hub.look(bill, self._days.find, self._branch.num)
            if shown is not None and shown.listed:
                bill.earn()
                return True
            above = await self._look(rank + page * span, WINDOW_ASK_COUNT)
            if not above or _rank_of(above[-1]) <= _rank_of(opened[-1]):
                break
            opened = above
        return False

    async def _find_rank(self, bounds: _Bounds, since: int) -> int | None:
        """Find a rank below which all is earlier than a time, about; None if the peer does not answer.

        Guesses where the time would be if commits were written evenly, and beyond that by a step that doubles as long as
        the guess stays on one side.
        """
        low, low_time, high, high_time = bounds
        step, was_early = WINDOW_ASK_COUNT // 4, None
        for _ in range(DAY_QUESTIONS_MAX):
            if high - low <= WINDOW_ASK_COUNT // 4:
                break
            share = (since - low_time) / max(1, high_time - low_time)
            guess = low + round((high - low) * min(max(share, 0.0), 1.0))
            guess += 0 if was_early is None else step if was_early else -step
            guess = min(max(guess, low + 1), high - 1)
            opened = await self._look(guess, _LOOKED_AT)
            if opened is None:
                return None
            is_early = not opened or _time_of(_middle(opened)) < since
            if is_early:
                low = guess
                low_time = _time_of(_middle(opened)) if opened else low_time
            else:
                high, high_time = min(map(_rank_of, opened)), _time_of(_middle(opened))
            step = 2 * step if is_early == was_early else WINDOW_ASK_COUNT // 4
            was_early = is_early
        return low

    async def _look(self, below: int, count: int) -> Sequence[Opened] | None:
        """Ask for commits below a rank, the lowest first; None where the peer does not answer."""
        opened = await self._source.look_at_window(self._topic, self._mark, below, count)
        return None if opened is None else sorted(opened, key=_rank_of)


def _middle(opened: Sequence[Opened]) -> Opened:
    return sorted(opened, key=_time_of)[len(opened) // 2]


def _rank_of(opened: Opened) -> int:
    return opened.signed.commit.rank


def _time_of(opened: Opened) -> int:
    return opened.signed.commit.content.timestamp
