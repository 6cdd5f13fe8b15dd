"""Live events about the whole node for a page: peers with their transfers, and repos."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from node.api.event_streams import Event
from node.contract.peers import PeerList
from node.contract.repos import RepoList
from node.sync.hub import Hub
from protocol.ids import TopicKey

_LOOK_SECONDS: Final = 1.0
"""Between two looks: rates are differences of the counts."""


class NodeSource:
    """Each event is a whole list that is other than the one sent before, so there is nothing to resume."""

    def __init__(
        self,
        hub: Hub,
        list_peers: Callable[[], Awaitable[PeerList]],
        list_repos: Callable[[], Awaitable[RepoList]],
    ) -> None:
        self._hub = hub
        self._list_peers = list_peers
        self._list_repos = list_repos
        self._sent: dict[str, PeerList | RepoList] = {}
        self._has_changed = True
        self._look_at = -1.0

    def start(self) -> None:
        """Be told of changes."""
        self._hub.add(self)

    def stop(self) -> None:
        """Be told no more."""
        self._hub.remove(self)

    def commits_accepted(self, _topic: TopicKey, _nums: tuple[int, ...]) -> None:
        """The hub's word."""
        self._has_changed = True

    def topics_changed(self) -> None:
        """The hub's word."""
        self._has_changed = True

    def missed(self) -> None:
        """The hub's word."""
        self._has_changed = True

    async def next(self) -> Sequence[Event]:
        """What has changed, within a second. Raises StorageError."""
        while True:
            await trio.sleep_until(self._look_at)
            self._look_at = trio.current_time() + _LOOK_SECONDS
            found: dict[str, PeerList | RepoList] = {"peers": await self._list_peers()}
            # How a repo stands follows from both; else the store need not be asked.
            if self._has_changed or self._sent.get("peers") != found["peers"]:
                self._has_changed = False
                found["repos"] = await self._list_repos()
            new = {name: value for name, value in found.items() if self._sent.get(name) != value}
            self._sent.update(new)
            if new:
                return [Event(name, "", value) for name, value in new.items()]
