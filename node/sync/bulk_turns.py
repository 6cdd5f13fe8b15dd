"""Turns of peers in which one at a time brings much of a repo: each would send all of it, as none knows of the others.

A node says its summary of a topic last to who is not in turn, so that peer sends nothing of it. The turn ends when all that
the peer holds is here, when it leaves, or when it brings less than WINDOW_BEHIND_MIN commits in BULK_LOOK_SECONDS. Newest
commits are asked for from all at once. Time in which receipts are held back does not count, up to BULK_LOOK_SECONDS.
"""

from collections import defaultdict
from collections.abc import Callable

import trio

from node.ingest.replica import Replica
from node.runtime.counted_event import CountedEvent
from node.sync.conversation import Conversation
from protocol.limits.peers import BULK_LOOK_SECONDS, WINDOW_BEHIND_MIN
from protocol.session.topic_progress import TopicProgress


class BulkTurns:
    """The peer whose turn it is, by repo."""

    def __init__(self, replica: Replica, changes: CountedEvent, held_back: Callable[[], float]) -> None:
        """`held_back` tells for how many seconds in all receipts were held back."""
        self._replica = replica
        self._changes = changes
        self._held_back = held_back
        self._leaders: dict[int, Conversation] = {}  # by number of the repo
        # Peers that wait, in order. Of a peer's topics one looks at a time: each look costs O(topics of the repo).
        self._looking: defaultdict[tuple[int, Conversation], trio.Lock] = defaultdict(trio.Lock)

    def is_others(self, repo_num: int, peer: Conversation) -> bool:
        """Return True if it is another peer's turn, and much of a topic is still to come from it."""
        leader = self._leaders.get(repo_num, peer)
        if leader is peer:
            return False
        return any(one.behind >= WINDOW_BEHIND_MIN for one in self._progress(repo_num, leader))

    def begin(self, repo_num: int, peer: Conversation) -> None:
        """Begin a peer's turn, unless it is another's."""
        if not peer.is_ending() and not self.is_others(repo_num, peer):
            self._leaders[repo_num] = peer

    def leave(self, peer: Conversation) -> None:
        """End the turns of a peer that leaves."""
        self._leaders = {num: one for num, one in self._leaders.items() if one is not peer}
        for key in [key for key in self._looking if key[1] is peer]:
            del self._looking[key]
        self._changes.ring()

    async def take(self, repo_num: int, peer: Conversation) -> None:
        """Wait until it is a peer's turn."""
        if peer.is_ending():  # it would keep the turn, for it has left or is about to
            return
        looking = self._looking[repo_num, peer]
        async with looking:
            while not peer.is_ending() and (leader := self._leaders.setdefault(repo_num, peer)) is not peer:
                if not await self._brings_more(repo_num, leader) and self._leaders.get(repo_num) is leader:
                    self._pass_on(repo_num)
                    # Who has it now takes it, though all of it may be here already.
                    await trio.lowlevel.checkpoint()
        if not looking.locked():
            self._looking.pop((repo_num, peer), None)

    def _pass_on(self, repo_num: int) -> None:
        """Give the turn to who waits longest: else peers that bring nothing and come anew would be before the others."""
        del self._leaders[repo_num]
        for num, waiting in self._looking:
            if num == repo_num:
                self._leaders.setdefault(repo_num, waiting)
        self._changes.ring()

    async def _brings_more(self, repo_num: int, leader: Conversation) -> bool:
        """Look for a while at what a peer brings. Return False if it is to be the turn of another."""
        had, held_back = self._count(repo_num, leader), self._held_back()
        if await self._is_over(repo_num, leader, BULK_LOOK_SECONDS):
            return False
        held_back = self._held_back() - held_back
        if held_back and await self._is_over(repo_num, leader, min(held_back, BULK_LOOK_SECONDS)):
            return False
        return self._count(repo_num, leader) - had >= WINDOW_BEHIND_MIN

    async def _is_over(self, repo_num: int, leader: Conversation, seconds: float) -> bool:
        """Wait while it is a peer's turn, for some seconds at most. Return True once all that it holds is here."""
        with trio.move_on_after(seconds):
            while self._leaders.get(repo_num) is leader:
                count = self._changes.count
                found = self._progress(repo_num, leader)
                if found and all(leader.is_level(one.topic) for one in found):
                    return True
                await self._changes.wait(count)
        return False

    def _count(self, repo_num: int, leader: Conversation) -> int:
        return sum(one.received for one in self._progress(repo_num, leader))

    def _progress(self, repo_num: int, leader: Conversation) -> list[TopicProgress]:
        of_repo = self._replica.tables.topics_in(repo_num)
        found = (leader.session.progress_of(one.topic) for one in of_repo)
        return [one for one in found if one is not None and one.is_joined]
