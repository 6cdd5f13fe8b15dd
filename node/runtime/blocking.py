"""Runs blocking work in threads; tests inject a version that runs it inline.

With threads a mock clock jumps while the work is done, and one seed gives many outcomes; inline, one. The daemon
injects `threads()`.
"""

import gc
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import trio

T = TypeVar("T")

_THREADS_MAX = 8
"""Storage admits one writer anyway; the others read, open batches and check signatures."""
_COLLECT_AFTER = 50_000
"""Objects between two looks for cycles: a few batches' worth."""
_SWITCH_SECONDS = 0.001
"""How long a thread that comes back from the disk or the network waits for one that computes."""


class RunBlocking(Protocol):
    """Runs a synchronous callable to its end and gives its result; cancellation waits for it."""

    async def __call__(self, work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever the work takes
        """Run `work(*args)`."""
        ...


def tune_interpreter() -> None:
    """Collect cycles less often (batches make many objects and no cycles, and looking for them took a fifth of ingest), and
    hand the interpreter over sooner than after Python's 5 ms, which is as long as a batch waits for the disk."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    sys.setswitchinterval(_SWITCH_SECONDS)


def threads() -> RunBlocking:
    """Work runs in a bounded number of worker threads."""
    limiter = trio.CapacityLimiter(_THREADS_MAX)

    async def run(work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever the work takes
        return await trio.to_thread.run_sync(work, *args, limiter=limiter)

    return run


def inline() -> RunBlocking:
    """Work runs where it is asked for: deterministic, for simulations."""

    async def run(work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever the work takes
        await trio.lowlevel.checkpoint()
        return work(*args)

    return run
