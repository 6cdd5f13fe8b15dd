"""`RecentPublications`: what this node has just written, as it is sent, so that it need not be read for connected peers.

A write is on its way to them a thread and six statements sooner. What is not here any more is read from the store.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

from protocol.ids import TopicKey
from protocol.limits.formats import MIB

_SIZE_MAX: Final = MIB
"""Bytes that are kept: peers ask for what is new within milliseconds, and a thousand small commits are as much."""


class RecentPublications:
    """Encoded publications by topic and number, the latest.

    They stay true: what this user wrote is erased only while no daemon runs.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[TopicKey, int], bytes] = OrderedDict()  # the oldest first
        self._size = 0

    def note(self, topic: TopicKey, encoded: Iterable[tuple[int, bytes]]) -> None:
        """Note publications that were stored: numbers with encodings, the newest first. What has no room is passed over."""
        latest: list[tuple[int, bytes]] = []
        size = 0
        for num, publication in encoded:
            size += len(publication)
            if size > _SIZE_MAX:
                break
            latest.append((num, publication))
        for num, publication in reversed(latest):
            # One that is noted again is the latest, and is kept once.
            self._size += len(publication) - len(self._kept.pop((topic, num), b""))
            self._kept[topic, num] = publication
        while self._size > _SIZE_MAX:
            _, publication = self._kept.popitem(last=False)
            self._size -= len(publication)

    def find(self, topic: TopicKey, nums: Sequence[int], size_target: int) -> list[bytes] | None:
        """Return the first of these publications, up to `size_target` bytes; None if one of them is not cached."""
        found: list[bytes] = []
        size = 0
        for num in nums:
            if found and size >= size_target:
                break
            publication = self._kept.get((topic, num))
            if publication is None:
                return None
            found.append(publication)
            size += len(publication)
        return found
