"""Collaborative texts for editors: what of a text is new, and who else has it open, on request and as a live stream.

`node.content.texts` reads and writes texts; `node.sync.presence` knows who is here.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from weakref import WeakSet

import trio

from node.api.event_streams import Event, pause_of
from node.content.lineage import load_state_nums
from node.content.text_words import TextVersion
from node.content.texts import Texts
from node.contract.documents import PresenceRequest
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.sync.presence import Here
from protocol.formats.text import id_text
from protocol.limits.peers import PRESENCE_SECONDS, PRESENCES_HELD_MAX
from protocol.limits.users import TEXT_STREAMS_MAX, TEXT_VECTOR_SIZE_MAX
from protocol.session.presence import PRESENCE_SESSION_SIZE, Presence
from ravel.types.documents import PresenceView, TextChanges
from ravel.types.values import Empty
from storage.repos.repos import Branch


class LiveTexts:
    """The texts of branches, which are named as `find_branch` takes them, as editors follow them."""

    def __init__(self, hub: Hub, texts: Texts, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._texts = texts
        self._find_branch = find_branch
        self._open: WeakSet[TextSource] = WeakSet()
        """Weak: one that is refused before its stream begins is never stopped."""

    async def show(self, branch: str, vector: str, session: str) -> TextChanges:
        """Send an editor the updates that it lacks, and the other editors. Raises ServiceError."""
        target, own = self._find_branch(branch), parse_session(session)
        wanted = parse_bytes("vector", vector, TEXT_VECTOR_SIZE_MAX)
        version = await self._texts.version(target)
        return {
            "branch": id_text(target.branch_id),
            "update": b64encode(await self._texts.lacking(target, version, wanted)).decode(),
            "others": presence_views(self._hub, target, own),
        }

    def follow(self, branch: str, vector: str, session: str) -> "TextSource":
        """Follow a text for an editor. Raises ServiceError; `busy` where too many are followed."""
        target, own = self._find_branch(branch), parse_session(session)
        wanted = parse_bytes("vector", vector, TEXT_VECTOR_SIZE_MAX)
        if len(self._open) >= TEXT_STREAMS_MAX:
            raise ServiceError(
                "busy", f"{TEXT_STREAMS_MAX} texts are followed here", "close a text in another tab"
            )
        source = TextSource(
            self._hub,
            self._texts,
            target,
            wanted,
            own,
            ended=self._open.discard,
            pause=lambda: pause_of(len(self._open)),
        )
        self._open.add(source)
        return source

    async def tell(self, branch: str, said: PresenceRequest) -> Empty:
        """Tell others where an editor is. Raises ServiceError `busy`."""
        target = self._find_branch(branch)
        presence = Presence(
            said.session,
            target.branch_id,
            said.root,
            said.anchor,
            said.head,
            typed=said.typed,
            client=said.client,
            clock=said.clock,
        )
        if not self._hub.presences.announce_presence(target, presence):
            raise ServiceError(
                "busy", f"{PRESENCES_HELD_MAX} editors have texts open here", "close a text in another tab"
            )
        await trio.lowlevel.checkpoint()
        return {}


class TextSource:
    """Source of one text's updates and of its other editors."""

    def __init__(
        self,
        hub: Hub,
        texts: Texts,
        branch: Branch,
        vector: bytes,
        session: bytes,
        *,
        ended: Callable[["TextSource"], None],
        pause: Callable[[], float],
    ) -> None:
        self._ended = ended
        self._pause = pause
        self._hub = hub
        self._texts = texts
        self._branch = branch
        self._nums = hub.replica.tables.with_root(branch)
        self._vector = vector
        self._session = session
        self._told: TextVersion | None = None
        self._told_others: list[PresenceView] | None = None
        self._may_be_new = True
        self._woken = trio.Event()
        self._read_at = float("-inf")
        self._stop_listening: Callable[[], None] = _do_nothing

    def start(self) -> None:
        """Be told of changes."""
        self._hub.follow(self)
        self._stop_listening = self._hub.presences.listen(self._branch.num, self._wake)

    def stop(self) -> None:
        """Stop listening. The editor leaves with its stream."""
        self._ended(self)
        self._hub.unfollow(self)
        self._stop_listening()
        self._hub.presences.leave(self._branch, self._session)

    def branches_changed(self, branches: AbstractSet[int]) -> None:
        """Note new commits and contents. Those of the root branch may make commits void."""
        if not branches.isdisjoint(self._nums):
            self.missed()

    def topics_changed(self) -> None:
        """Read the text again: topics have changed."""
        self.missed()

    def missed(self) -> None:
        """Read the text again."""
        self._may_be_new = True
        self._wake()

    async def next(self) -> list[Event]:
        """Wait for the next events. Raises ServiceError, StorageError."""
        while True:
            await trio.sleep_until(self._read_at + self._pause())  # cursors move all the time
            self._woken = trio.Event()
            self._read_at = trio.current_time()
            events = await self._look_at_text()
            others = presence_views(self._hub, self._branch, self._session)
            if others != self._told_others:
                self._told_others = others
                events.append(Event("presence", "", {"others": others}))
            if events:
                return events
            with trio.move_on_after(PRESENCE_SECONDS / 2 if others else float("inf")):  # one may be forgotten
                await self._woken.wait()

    async def _look_at_text(self) -> list[Event]:
        if not self._may_be_new:
            return []
        self._may_be_new = False
        try:
            self._nums = await self._hub.run_blocking(
                self._load_nums
            )  # before what it reads: no news is missed
            version = await self._texts.version(self._branch)
            events = await self._changes(version)
        except ServiceError as error:
            if error.code == "incomplete" and (self._vector or self._told is not None):
                return []  # contents of a new commit are on their way, and there is news with them
            self._may_be_new = True
            raise
        except BaseException:  # cancelled before it was told: what was new still is
            self._may_be_new = True
            raise
        self._told = version
        return events

    def _load_nums(self) -> set[int]:
        with self._hub.replica.database.read() as connection:
            return load_state_nums(self._hub.replica, connection, self._branch)

    async def _changes(self, version: TextVersion) -> list[Event]:
        told = self._told
        if told is None:
            return [
                await self._update("update", await self._texts.lacking(self._branch, version, self._vector))
            ]
        if told.update == version.update:
            return []
        news = version.news_since(told)
        if news is not None:
            return [await self._update("update", piece) for piece in news]
        # Something counts no more, or less: an editor cannot forget, and begins anew.
        return [await self._update("whole", version.update)]

    async def _update(self, name: str, update: bytes) -> Event:
        """Encode an update in a thread: it may have 64 MiB, which take half a second."""
        return await self._hub.run_blocking(_encoded_update, name, update)

    def _wake(self) -> None:
        self._woken.set()


def presence_views(hub: Hub, branch: Branch, session: bytes) -> list[PresenceView]:
    """List all but one session that have a branch's text open."""
    return [_presence_view(one) for one in hub.presences.editors(branch.num, but=session)]


def parse_session(text: str) -> bytes:
    """Parse the editor's session of a query; an empty text is none. Raises ServiceError `bad_request`."""
    found = parse_bytes("session", text, PRESENCE_SESSION_SIZE)
    if len(found) not in (0, PRESENCE_SESSION_SIZE):
        raise ServiceError("bad_request", f"a session has {PRESENCE_SESSION_SIZE} bytes")
    return found


def parse_bytes(name: str, text: str, size_max: int) -> bytes:
    """Bytes of a query, in URL-safe base64. Raises ServiceError `bad_request`."""
    if len(text) > 4 * (size_max + 2) // 3 + 3:
        raise ServiceError("bad_request", f"{name} has at most {size_max} bytes", "leave it out")
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ServiceError("bad_request", f"{name} is no base64") from None


def _encoded_update(name: str, update: bytes) -> Event:
    event = Event(name, "", {"update": b64encode(update).decode()})
    assert event.encoded, "it is kept with the event"
    return event


def _presence_view(here: Here) -> PresenceView:
    presence = here.presence
    return {
        "session": b64encode(presence.session).decode(),
        "user": id_text(here.user),
        "root": presence.root,
        "anchor": b64encode(presence.anchor).decode(),
        "head": b64encode(presence.head).decode(),
        "typed": presence.typed,
        "client": presence.client,
        "clock": presence.clock,
    }


def _do_nothing() -> None:
    """Do nothing: the source is not started."""
