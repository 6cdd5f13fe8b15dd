"""Requests absent bodies from connected peers, as whole publications.

A peer may not have them (it erased them) or withhold them, which only it knows. So of each branch's topic one peer is
asked at a time, for a bounded number of commits, the latest first: what nobody has snapshotted or erased yet is among these.
A peer that gives none of what it was asked for in time is asked for no more of the topic while it is connected, and the
next one is. What comes late counts all the same: it takes the way of every publication, and `ingest.backfill` puts bodies
in.
"""

from dataclasses import dataclass, field
from typing import Final

import structlog
import trio

from node.sync.hub import BlockSource, Hub
from protocol.ids import CommitId
from protocol.limits.peers import BODIES_LOOK_SECONDS, FETCH_TIMEOUT_SECONDS, WANT_COUNT_MAX
from storage.commits.absent_bodies import count_missing, find_missing, load_missing
from storage.engine.database import StorageError
from storage.repos.repos import Branch

log = structlog.get_logger()

_ABOVE_ALL: Final = 1 << 62
"""A number that no commit has."""


@dataclass(slots=True)
class _Peer:
    """How far a peer was asked on a topic: for commits from `top` down to `before`, and for all up to `floor` earlier."""

    source: BlockSource
    before: int = _ABOVE_ALL
    top: int = 0
    floor: int = 0
    has_none: bool = False


@dataclass(slots=True)
class _Question:
    """What a peer was asked for: numbers of commits, how many of them it still owes, and when that was seen to change."""

    peer: _Peer
    nums: list[int]
    owed: int
    since: float


@dataclass(slots=True)
class _Asking:
    """Outstanding requests of one topic and their peers, most recently asked first."""

    question: _Question | None = None
    peers: list[_Peer] = field(default_factory=list)


class BodyFetcher:
    """Asks for what is missing, and for nothing else."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._asking: dict[int, _Asking] = {}  # by the topic's number

    async def run(self) -> None:
        """Ask on, for as long as the node runs."""
        while True:
            changes, absences = self._hub.changes.count, self._hub.absences.count
            is_any_missing = True
            try:
                is_any_missing = await self._look()
            except StorageError as error:
                log.error("storage failed", error=str(error))
            if is_any_missing:  # peers come, go and are late without a change
                with trio.move_on_after(BODIES_LOOK_SECONDS):
                    await self._hub.changes.wait(changes)
            else:  # not at every change: the look would cost each write a tenth of its time
                await self._hub.absences.wait(absences)

    async def _look(self) -> bool:
        """Ask what is to be asked now; whether anything is missing."""
        lacking = set(await self._hub.run_blocking(self._find_missing))
        on_topics = {
            num: branch for num, branch in self._hub.replica.on_topics.items() if branch.num in lacking
        }
        self._asking = {num: self._asking.get(num, _Asking()) for num in on_topics}
        for branch in on_topics.values():
            await self._look_at(branch, self._asking[branch.topic_num])
        return bool(lacking)

    async def _look_at(self, branch: Branch, asking: _Asking) -> None:
        """See what came of the last question on a topic, and ask the next one."""
        run, sources = self._hub.run_blocking, self._hub.sources
        known = [peer.source for peer in asking.peers]
        asking.peers = [peer for peer in asking.peers if peer.source in sources]
        asking.peers += [_Peer(source) for source in sources if source not in known]
        question = asking.question
        if question is not None:
            owed = await run(self._count, question.nums)
            if owed < question.owed:
                question.owed, question.since = owed, trio.current_time()
            is_late = trio.current_time() - question.since >= FETCH_TIMEOUT_SECONDS
            if owed and not is_late and question.peer.source in sources:
                return
            question.peer.has_none |= owed == len(question.nums)
            asking.question = None
        for peer in list(asking.peers):
            if peer.has_none or not peer.source.has_joined(branch.topic):
                continue
            found = await run(self._load, branch, peer.before, peer.floor)
            if not found:  # what came since stands above all that it was asked for
                peer.before, peer.floor = _ABOVE_ALL, max(peer.floor, peer.top)
            elif peer.source in sources:
                nums = [num for num, _ in found]
                peer.before, peer.top = nums[-1], max(peer.top, nums[0])
                asking.question = _Question(peer, nums, len(nums), trio.current_time())
                asking.peers.sort(key=lambda one: one is not peer)
                peer.source.want(branch.topic, tuple(commit_id for _, commit_id in found))
                return

    # --- in threads ---

    def _find_missing(self) -> list[int]:
        with self._hub.replica.database.read() as connection:
            return find_missing(connection)

    def _count(self, nums: list[int]) -> int:
        with self._hub.replica.database.read() as connection:
            return count_missing(connection, nums)

    def _load(self, branch: Branch, before: int, after: int) -> list[tuple[int, CommitId]]:
        place = (branch.num, branch.topic_num)
        with self._hub.replica.database.read() as connection:
            return load_missing(connection, *place, before, after, WANT_COUNT_MAX)
