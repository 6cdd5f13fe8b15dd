"""Turns of peers in which one at a time brings much of a repo: each would send all of it, as none knows of the others.

A node says its summary of a topic last to who is not in turn, so that peer sends nothing of it. The turn ends when all that
the peer holds is here, when it leaves, or when it brings less than WINDOW_BEHIND_MIN commits in BULK_LOOK_SECONDS. Newest
commits are asked for from all at once.
"""

import trio

from node.ingest.replica import Replica
from node.runtime.counted_event import CountedEvent
from node.sync.conversation import Conversation
from protocol.limits.peers import BULK_LOOK_SECONDS, WINDOW_BEHIND_MIN
from protocol.session.topic_progress import TopicProgress


class BulkTurns:
    """The peer whose turn it is, by repo."""

    def __init__(self, replica: Replica, changes: CountedEvent) -> None:
        self._replica = replica
        self._changes = changes
        self._leaders: dict[int, Conversation] = {}  # by number of the repo

    def is_others(self, repo_num: int, peer: Conversation) -> bool:
        """Return True if it is another peer's turn, and much of a topic is still to come from it."""
        leader = self._leaders.get(repo_num, peer)
        if leader is peer:
            return False
        return any(one.behind >= WINDOW_BEHIND_MIN for one in self._progress(repo_num, leader))

    def begin(self, repo_num: int, peer: Conversation) -> None:
        """Begin a peer's turn, unless it is another's."""
        if not self.is_others(repo_num, peer):
            self._leaders[repo_num] = peer

    def leave(self, peer: Conversation) -> None:
        """End the turns of a peer that leaves."""
        self._leaders = {num: one for num, one in self._leaders.items() if one is not peer}
        self._changes.ring()

    async def take(self, repo_num: int, peer: Conversation) -> None:
        """Wait until it is a peer's turn."""
        while (leader := self._leaders.setdefault(repo_num, peer)) is not peer:
            if not await self._brings_more(repo_num, leader) and self._leaders.get(repo_num) is leader:
                del self._leaders[repo_num]

    async def _brings_more(self, repo_num: int, leader: Conversation) -> bool:
        """Look for a while at what a peer brings. Return False if it is to be the turn of another."""
        had = sum(one.received for one in self._progress(repo_num, leader))
        with trio.move_on_after(BULK_LOOK_SECONDS):
            while self._leaders.get(repo_num) is leader:
                count = self._changes.count
                found = self._progress(repo_num, leader)
                if found and all(leader.is_level(one.topic) for one in found):
                    return False
                await self._changes.wait(count)
        return sum(one.received for one in self._progress(repo_num, leader)) - had >= WINDOW_BEHIND_MIN

    def _progress(self, repo_num: int, leader: Conversation) -> list[TopicProgress]:
        of_repo = self._replica.tables.topics_in(repo_num)
        found = (leader.session.progress_of(one.topic) for one in of_repo)
        return [one for one in found if one is not None and one.is_joined]
