"""Timeline edits for API clients: as pages on request, and as a live stream."""

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Final, cast

import trio
from sqlalchemy import Connection

from node.api.event_streams import Event, pause_of
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.timelines.views import edit_cursor_text, place_text, timeline_items
from protocol.formats.text import id_text
from protocol.limits.users import EVENT_WINDOW, EVENT_WINDOW_SIZE
from ravel.types.commits import EditItem, TimelineItem
from ravel.types.timelines import EditView, EditWindow
from storage.commits.commits import load_rows, load_sizes
from storage.commits.edits import (
    START,
    Cursor,
    Edit,
    StoredEdits,
    find_edit_positions,
    load_edits,
    load_last_change,
)
from storage.repos.repos import Branch

_CURSOR: Final = re.compile(r"([0-9a-f]{8})-([0-9]{1,16})-([0-9]{1,16})(?:\.([0-9]{1,16}))?")


class Edits:
    """The edits of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._find_branch = find_branch
        self._reads = SharedReads(hub)

    async def window(self, branch: str, since: str, limit: int, *, positions: bool = False) -> EditWindow:
        """Return at most `limit` edits after the cursor `since`; without one, from the start. Raises ServiceError.

        From the start also where the cursor is of another branch, as of the one that `main` meant before, or of a store that
        this one was made anew in place of.
        """
        target = self._find_branch(branch)
        cursor = parse_cursor(since, self._hub.store_name, target)
        return await self._hub.run_blocking(self._window, target, cursor, limit, positions)

    def follow(self, find: Callable[[], Branch], since: str, *, positions: bool = False) -> "EditSource":
        """Return a source of edits as they come, of the branch that `find` returns. Raises ServiceError.

        It is asked again when the name may mean another one, whose edits then come from the start.
        """
        cursor = parse_cursor(since, self._hub.store_name, find())
        return EditSource(self._hub, self._reads, find, cursor, positions=positions)

    def _window(self, branch: Branch, since: Cursor, limit: int, positions: bool) -> EditWindow:
        window, edits = read_window(self._hub, branch, since, limit, positions=positions)
        with self._hub.replica.database.read() as connection:
            last = load_last_change(connection, branch.num)
        return {
            "branch": id_text(branch.branch_id),
            "edits": edits,
            "reset": window.is_reset,
            "cursor": edit_cursor_text(self._hub.store_name, branch, window.next),
            "more": window.has_more,
            "last": edit_cursor_text(self._hub.store_name, branch, Cursor(last)),
        }


class EditSource:
    """Live source of one branch's edits. They are read from the store when it has changed; slow readers take no memory."""

    def __init__(
        self,
        hub: Hub,
        reads: "SharedReads",
        find: Callable[[], Branch],
        since: Cursor,
        *,
        positions: bool = False,
    ) -> None:
        self._hub = hub
        self._reads = reads
        self._find = find
        self._branch = find()
        self._may_be_other = False
        self._cursor = since
        self._has_positions = positions
        self._changed = trio.Event()
        self._may_have_more = True
        self._read_at = float("-inf")

    def start(self) -> None:
        """Be told of changes."""
        self._hub.follow(self)
        self._reads.followers += 1

    def stop(self) -> None:
        """Stop listening."""
        self._hub.unfollow(self)
        self._reads.followers -= 1

    def branches_changed(self, branches: AbstractSet[int]) -> None:
        """Note new commits. Those of the root branch may make commits void, or move them."""
        if not branches.isdisjoint(self._hub.replica.tables.with_root(self._branch)):
            self._changed.set()

    def topics_changed(self) -> None:
        """Look again: topics have changed, and names may have."""
        self._may_be_other = True
        self._changed.set()

    def missed(self) -> None:
        """Look again: the hub skipped this listener, and the next read starts at the cursor."""
        self.topics_changed()

    async def next(self) -> list[Event]:
        """Wait for the next edits. Raises StorageError."""
        while True:
            if not self._may_have_more:
                await self._changed.wait()
                self._may_have_more = True  # also when this is cancelled before they are read
                await self._pause()
            self._changed = trio.Event()
            self._read_at = trio.current_time()
            if self._may_be_other:
                self._may_be_other = False
                self._find_again()
            window, events = await self._reads.read(self._branch, self._cursor, positions=self._has_positions)
            self._cursor = window.next
            self._may_have_more = window.has_more
            if events:
                return events

    def _find_again(self) -> None:
        """Begin anew with another branch, if the name means that now. One that has become unclear means what it meant."""
        with suppress(ServiceError):
            found = self._find()
            if found.num != self._branch.num:
                self._branch, self._cursor = found, START

    async def _pause(self) -> None:
        """Wait before the next look: not at all after a quiet time, else until more edits can come together."""
        until = self._read_at + self._reads.pause
        if trio.current_time() < until:
            await trio.sleep_until(until)


Window = tuple[StoredEdits, list[EditView]]
Told = tuple[StoredEdits, list[Event]]


@dataclass(slots=True)
class _Read:
    done: trio.Event = field(default_factory=trio.Event)
    told: Told | None = None


class SharedReads:
    """Reads windows for event streams. Those that stand at one cursor, as most do, are served by one read."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.followers = 0
        """Streams that are open."""
        self._running: dict[tuple[int, Cursor, int, bool], _Read] = {}

    @property
    def pause(self) -> float:
        """Seconds between two looks of one stream."""
        return pause_of(self.followers)

    async def read(self, branch: Branch, since: Cursor, *, positions: bool = False) -> Told:
        """Read a window of edits as events, with all that was noted before this call. Raises StorageError."""
        key = (branch.num, since, self._hub.changes.count, positions)
        while (running := self._running.get(key)) is not None:
            await running.done.wait()
            if running.told is not None:
                return running.told
        read = self._running[key] = _Read()
        try:
            look = partial(
                read_window,
                self._hub,
                branch,
                since,
                EVENT_WINDOW,
                positions=positions,
                size_max=EVENT_WINDOW_SIZE,
            )
            window, edits = await self._hub.run_blocking(look)
            told = read.told = (window, self._events_of(branch, window, edits))
        finally:  # who waits reads for itself where this was cancelled or failed
            del self._running[key]
            read.done.set()
        return told

    def _events_of(self, branch: Branch, window: StoredEdits, edits: list[EditView]) -> list[Event]:
        events = [Event("edit", edit["cursor"], edit) for edit in edits]
        if window.is_reset:
            before = edit_cursor_text(self._hub.store_name, branch, Cursor(window.next.change, 0))
            events.insert(0, Event("reset", before, {"cursor": before}))
        return events


def read_window(
    hub: Hub,
    branch: Branch,
    since: Cursor,
    limit: int,
    *,
    positions: bool = False,
    size_max: int | None = None,
) -> Window:
    """Read a window of edits and their views; with `positions`, where they can be told.

    Of commits of more than `size_max` bytes together it has fewer, at least one.
    """
    with hub.replica.database.read() as connection:
        window = load_edits(connection, branch.num, since, limit)
        if size_max is not None and len(window.edits) > 1:
            fit = _count_fitting(connection, window, size_max)
            if fit < len(window.edits):
                window = load_edits(connection, branch.num, since, fit)
        shown_ids = [edit.commit_id for edit in window.edits if edit.shows_commit]
        rows = list(load_rows(connection, shown_ids).values())
        items = {item["commit"]: item for item in timeline_items(connection, hub.replica, rows, 0)}
        found = find_edit_positions(connection, branch.num, window) if positions else None
    shown = [_edit_view(hub.store_name, branch, edit, items) for edit in window.edits]
    for view, position in zip(shown, found or (), strict=found is not None):
        view["position"] = position.after
        view["position_before"] = position.before
    return window, shown


def _count_fitting(connection: Connection, window: StoredEdits, size_max: int) -> int:
    """Count how many edits of a window fit into `size_max` bytes, at least one."""
    sizes = load_sizes(connection, [edit.commit_id for edit in window.edits if edit.shows_commit])
    totals = accumulate(sizes.get(edit.commit_id, 0) for edit in window.edits)
    return max(1, sum(total <= size_max for total in totals))


def _edit_view(store: str, branch: Branch, edit: Edit, items: dict[str, TimelineItem]) -> EditView:
    commit = id_text(edit.commit_id)
    shown: EditView = {
        "cursor": edit_cursor_text(store, branch, edit.cursor),
        "edit": edit.kind,
        "commit": commit,
        "place": place_text(edit.passed, edit.rank, edit.commit_id),
    }
    if edit.shows_commit:
        # Position and place are of now; the edit's place is of its moment.
        fields = {name: value for name, value in items[commit].items() if name not in ("position", "place")}
        shown["item"] = cast("EditItem", fields)
    return shown


def parse_cursor(text: str, store: str, branch: Branch) -> Cursor:
    """Parse a text of `edit_cursor_text`; an empty text, or one of another store or branch, is the start.

    Raises ServiceError `bad_request`.
    """
    if not text:
        return START
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise ServiceError(
            "bad_request", f"{text[:40]!r} is not the cursor of an edit", "leave it out to begin anew"
        )
    if found[1] != store or int(found[2]) != branch.num:
        return START
    return Cursor(int(found[3]), int(found[4]) if found[4] else None)
