"""Live events about the whole node for a page: peers with their transfers, and repos."""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from node.api.event_streams import Event
from node.network.peers import TOPICS_AT_ONCE
from ravel.types.peers import PeerList
from ravel.types.repos import RepoList

_LOOK_SECONDS: Final = 1.0
"""Between two looks: rates are differences of the counts."""


class SharedPeers:
    """The list of peers for all streams: looked at once in a look's time, and the same object while nothing changes.

    So a hundred pages cost as much as one, and each sees by one comparison whether there is something to send.
    """

    def __init__(self, list_all: Callable[[], Awaitable[PeerList]]) -> None:
        self._list_all = list_all
        self._looking = trio.Lock()
        self._found: PeerList = {"peers": [], "known": [], "banned": []}
        self._look_at = -math.inf

    async def look(self) -> PeerList:
        """Return the list, which is at most half as old as the time between two looks of a stream."""
        async with self._looking:
            if trio.current_time() >= self._look_at:
                self._look_at = trio.current_time() + _LOOK_SECONDS / 2
                found = await self._list_all()
                await self._keep_topics(found)
                if found != self._found:
                    self._found = found
            return self._found

    async def _keep_topics(self, found: PeerList) -> None:
        """Put topics that are as before in the place of equal ones, which then compare by identity."""
        before = {(one["peer"], one["address"]): one["topics"] for one in self._found["peers"]}
        for peer in found["peers"]:
            topics, old = peer["topics"], before.get((peer["peer"], peer["address"]), [])
            for start in range(0, min(len(topics), len(old)), TOPICS_AT_ONCE):
                part = slice(start, start + TOPICS_AT_ONCE)
                if topics[part] == old[part]:
                    topics[part] = old[part]
                await trio.lowlevel.checkpoint()


class NodeSource:
    """Source of the node's events. An event of peers has the whole list, once it differs; one of repos may have
    changes only."""

    def __init__(
        self,
        list_peers: Callable[[], Awaitable[PeerList]],
        list_repos: Callable[[str], Awaitable[RepoList]],
        cursor: str = "",
        *,
        only_changes: bool = False,
    ) -> None:
        """`list_repos` gives what has changed since a cursor. `only_changes`: events have no more than that."""
        self._list_peers = list_peers
        self._list_repos = list_repos
        self._cursor = cursor
        self._only_changes = only_changes
        self._peers: PeerList | None = None
        self._look_at = -1.0

    def start(self) -> None:
        """Do nothing: each look finds what has changed."""

    def stop(self) -> None:
        """Do nothing: a source holds nothing that must be released."""

    async def next(self) -> Sequence[Event]:
        """Wait for changes, which are found within a second. Raises StorageError."""
        while True:
            await trio.sleep_until(self._look_at)
            self._look_at = trio.current_time() + _LOOK_SECONDS
            peers, repos = await self._list_peers(), await self._list_repos(self._cursor)
            if not repos["complete"] and (repos["repos"] or repos["gone"]) and not self._only_changes:
                repos = await self._list_repos("")
            events = []
            if peers is not self._peers:
                self._peers = peers
                events.append(Event("peers", "", peers))
            self._cursor = repos["cursor"]
            if repos["complete"] or repos["repos"] or repos["gone"]:
                events.append(Event("repos", self._cursor if self._only_changes else "", repos))
            if events:
                return events
