"""Runs blocking work in threads; tests inject a version that runs it inline.

With threads a mock clock jumps while the work is done, and one seed gives many outcomes; inline, one. The daemon
injects `threads()`.
"""

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import trio

if TYPE_CHECKING:
    from outcome import Outcome

T = TypeVar("T")

_THREADS_MAX = 8
"""Storage admits one writer anyway; the others read, open batches and check signatures."""
_COLLECT_AFTER = 50_000
"""Objects between two looks for cycles: a few batches' worth."""
_M_ARENA_MAX = -8
"""Number of the option of mallopt(3)."""
_ARENAS_MAX = 2
_SWITCH_SECONDS = 0.001
"""How long a thread that comes back from the disk or the network waits for one that computes."""


class RunBlocking(Protocol):
    """Runs a synchronous callable to its end and gives its result; cancellation waits for it."""

    async def __call__(self, work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever the work takes
        """Run `work(*args)`."""
        ...


def tune_interpreter() -> None:
    """Collect cycles less often (batches make many objects and no cycles, and looking for them took a fifth of ingest), and
    hand the interpreter over sooner than after Python's 5 ms, which is as long as a batch waits for the disk. Bound what
    threads keep of freed memory."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    sys.setswitchinterval(_SWITCH_SECONDS)
    _limit_arenas()


def _limit_arenas() -> None:
    """Limit glibc to two memory arenas for all threads, before there are threads; without glibc do nothing.

    Each of sixteen would keep what the largest batch that its thread has seen took: 20 MB under a flood of huge posts.
    The interpreter's lock keeps the threads from allocating at one time.
    """
    with suppress(AttributeError, OSError):  # no such function, or no library of C
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS_MAX)


def threads() -> RunBlocking:
    """Work runs in a bounded number of worker threads.

    As `trio.to_thread.run_sync` does it, which also names the thread anew for each work, and lets other tasks run before it
    begins: 40 of some 200 us of processor time, twice for each write. Work that calls back into trio has to bring trio's
    token.
    """
    limiter = trio.CapacityLimiter(_THREADS_MAX)

    async def run(work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever the work takes
        await trio.lowlevel.checkpoint_if_cancelled()
        place = object()
        try:
            limiter.acquire_on_behalf_of_nowait(place)
        except trio.WouldBlock:
            await limiter.acquire_on_behalf_of(place)
        task, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()

        def resume(result: "Outcome[T]") -> None:
            limiter.release_on_behalf_of(place)
            trio.lowlevel.reschedule(task, result)

        def deliver(result: "Outcome[T]") -> None:
            with suppress(trio.RunFinishedError):  # the loop has ended, and with it the task
                token.run_sync_soon(resume, result)

        try:
            trio.lowlevel.start_thread_soon(partial(copy_context().run, work, *args), deliver)
        except BaseException:  # no thread can be started, or Ctrl-C came: the place would be lost for good
            limiter.release_on_behalf_of(place)
            raise
        found: T = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
        return found

    return run
