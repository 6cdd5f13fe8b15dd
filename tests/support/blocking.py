"""Runs blocking work inline, in place of threads: with a mock clock, and one outcome for each seed."""

from collections.abc import Callable
from typing import Any, TypeVar

import trio

from node.runtime.blocking import RunBlocking

T = TypeVar("T")


def inline() -> RunBlocking:
    """Work runs where it is asked for: deterministic, for simulations."""

    async def run(work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever the work takes
        await trio.lowlevel.checkpoint()
        return work(*args)

    return run
