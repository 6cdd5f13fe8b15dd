"""`Gathering`: updates of one text that come close together are written together.

Someone who types sends several updates a second. With a commit for each, an evening would make ten thousand commits, which
every replica keeps, sends and merges; and each costs a process that tries it. So the first is written at once, and those
after it wait: one second while another editor has the text open, and five while none has.
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Final, Generic, TypeVar

import trio

from node.runtime.group_lane import GroupLane
from protocol.limits.users import (
    TEXT_GATHER_ALONE_SECONDS,
    TEXT_GATHER_COUNT_MAX,
    TEXT_GATHER_SECONDS,
    TEXT_GATHER_SIZE_MAX,
)

A = TypeVar("A")
Write = Callable[[Sequence[bytes]], Awaitable[Sequence[A | Exception]]]
_NEVER: Final = float("-inf")


def next_write_at(written_at: float, *, has_other_editors: bool) -> float:
    """Return when the next commit may be written after one of that moment, in the same seconds."""
    return written_at + (TEXT_GATHER_SECONDS if has_other_editors else TEXT_GATHER_ALONE_SECONDS)


def is_full(sizes: Sequence[int]) -> bool:
    """Return True if updates of these sizes in bytes are written without waiting for more."""
    return len(sizes) >= TEXT_GATHER_COUNT_MAX or sum(sizes) >= TEXT_GATHER_SIZE_MAX


class Gathering(Generic[A]):
    """The updates of one text that wait to be written."""

    def __init__(self, has_other_editors: Callable[[], bool]) -> None:
        self._has_other_editors = has_other_editors
        self._lane: GroupLane[tuple[int, bytes], A] = GroupLane(_Pace(self), TEXT_GATHER_COUNT_MAX)
        self._numbers = count()
        self._waiting: dict[int, int] = {}  # number of an update that no group has taken yet -> its size
        self._grown = trio.Event()
        self._written_at = _NEVER

    async def run(self, update: bytes, write: Write[A]) -> A:
        """Write this update together with others; return the answer of `write` for it. Raises as `write` does."""
        number = next(self._numbers)

        async def write_group(group: Sequence[tuple[int, bytes]]) -> Sequence[A | Exception]:
            for taken, _ in group:
                self._waiting.pop(taken, None)
            return await write([update for _, update in group])

        self._waiting[number] = len(update)
        self._grown.set()
        try:
            return await self._lane.run((number, update), write_group)
        finally:
            self._waiting.pop(number, None)

    async def wait(self) -> None:
        """Wait until the next group may be written."""
        while not is_full([*self._waiting.values()]):
            self._grown = trio.Event()
            with trio.move_on_at(
                next_write_at(self._written_at, has_other_editors=self._has_other_editors())
            ) as scope:
                await self._grown.wait()
            if scope.cancelled_caught:
                return

    def written(self) -> None:
        """Note that a group was written just now."""
        self._written_at = trio.current_time()


class _Pace:
    """Lock of a lane: the leader of the next group gets it at the time of that group."""

    def __init__(self, gathering: Gathering[A]) -> None:
        self._gathering = gathering
        self._lock = trio.StrictFIFOLock()

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        try:
            await self._gathering.wait()
        except BaseException:  # the leader was cancelled, and the next one leads
            self._lock.release()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._gathering.written()
        self._lock.release()
