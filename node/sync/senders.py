"""Remembers which peer sent each pending commit, so that it is not sent back once accepted.

Kept in memory, the latest alone.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from protocol.ids import CommitId
from protocol.limits.peers import PENDING_SENDERS_MAX

SenderT = TypeVar("SenderT")


class Senders(Generic[SenderT]):
    """Peers by the waiting commits that they sent. What is forgotten is sent back, and costs a batch."""

    def __init__(self, count_max: int = PENDING_SENDERS_MAX) -> None:
        self._count_max = count_max
        self._senders: OrderedDict[CommitId, set[SenderT]] = OrderedDict()  # oldest first

    def __len__(self) -> int:
        return len(self._senders)

    def note(self, ids: Collection[CommitId], sender: SenderT) -> None:
        """A peer has sent these commits, which wait."""
        for commit_id in ids:
            self._senders.setdefault(commit_id, set()).add(sender)
            self._senders.move_to_end(commit_id)
        while len(self._senders) > self._count_max:
            self._senders.popitem(last=False)

    def pop(self, released: Mapping[int, CommitId]) -> dict[SenderT, set[int]]:
        """Numbers by the peers that had sent them, of commits (ids by numbers) that wait no longer."""
        found: dict[SenderT, set[int]] = {}
        for num, commit_id in released.items():
            for sender in self._senders.pop(commit_id, ()):
                found.setdefault(sender, set()).add(num)
        return found

    def forget(self, sender: object) -> None:
        """A peer has gone."""
        for commit_id in [one for one, senders in self._senders.items() if sender in senders]:
            self._senders[commit_id] = {one for one in self._senders[commit_id] if one is not sender}
            if not self._senders[commit_id]:
                del self._senders[commit_id]
