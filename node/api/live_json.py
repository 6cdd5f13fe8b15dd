"""JSON documents as apps follow them: the whole document, whenever it has changed, as a live stream.

A follower's cursor is the digest of what it was told. So a stream that was cut goes on exactly, without memory here, and a
slow follower gets the newest document alone.
"""

from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec
import trio
from blake3 import blake3

from node.api.event_streams import Event
from node.content.json_documents import JsonDocuments
from node.contract.json_documents import JsonDocumentView
from node.sync.hub import Hub
from protocol.ids import TopicKey
from protocol.limits.users import JSON_PAUSE_SECONDS
from storage.repos.repos import Branch

_CURSOR_SIZE: Final = 16
"""Bytes of the digest of a document: equal ones are taken for equal documents."""


class LiveJson:
    """The JSON documents of branches, which are named as `find_branch` takes them, as apps follow them."""

    def __init__(self, hub: Hub, documents: JsonDocuments, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._documents = documents
        self._find_branch = find_branch

    def follow(self, branch: str, name: str, cursor: str) -> "JsonSource":
        """Return a source of a document's states that are not the one with this cursor. Raises ServiceError."""
        target = self._find_branch(branch)
        return JsonSource(self._hub, target, lambda: self._documents.show(branch, name), cursor)


class JsonSource:
    """The states of one JSON document as they come. A look costs as much as reading the document."""

    def __init__(
        self, hub: Hub, branch: Branch, show: Callable[[], Awaitable[JsonDocumentView]], cursor: str
    ) -> None:
        self._hub = hub
        self._branch = branch
        self._show = show
        self._cursor = cursor
        self._changed = trio.Event()
        self._changed.set()
        self._read_at = -JSON_PAUSE_SECONDS

    def start(self) -> None:
        """Be told of changes."""
        self._hub.add(self)

    def stop(self) -> None:
        """Stop listening."""
        self._hub.remove(self)

    def commits_accepted(
        self, _topic: TopicKey, _nums: tuple[int, ...], branches: AbstractSet[int] = frozenset()
    ) -> None:
        """Note accepted commits. Those of the root branch may make commits void."""
        if not branches.isdisjoint(self._hub.replica.tables.with_root(self._branch)):
            self._changed.set()

    def topics_changed(self) -> None:
        """Look again: topics have changed."""
        self._changed.set()

    def missed(self) -> None:
        """Look again: the hub skipped this listener."""
        self._changed.set()

    async def next(self) -> list[Event]:
        """Wait for the next state. Raises ServiceError, StorageError."""
        while True:
            await self._changed.wait()
            await trio.sleep_until(self._read_at + JSON_PAUSE_SECONDS)
            self._changed = trio.Event()
            self._read_at = trio.current_time()
            try:
                view = await self._show()
                cursor = await self._hub.run_blocking(_digest, view)
            except BaseException:  # cancelled before it was told: it has changed still
                self._changed.set()
                raise
            if cursor != self._cursor:
                self._cursor = cursor
                return [Event("document", cursor, view)]


def _digest(view: JsonDocumentView) -> str:
    return blake3(msgspec.json.encode(view)).hexdigest(length=_CURSOR_SIZE)
