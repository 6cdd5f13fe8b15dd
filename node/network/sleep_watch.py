"""Notices that this machine has slept: trio's clock stood still, the other one went on."""

from collections.abc import Callable
from typing import Final

import structlog
import trio

from protocol.limits.peers import IDLE_TIMEOUT_SECONDS

log = structlog.get_logger()

_LOOK_SECONDS: Final = 5.0
"""Seconds between two looks whether the clock has jumped."""


async def watch_clock(clock: Callable[[], float], woken: Callable[[], None]) -> None:
    """Call `woken` after each sleep that ended connections, until cancelled."""
    while True:
        wall, counted = clock(), trio.current_time()
        await trio.sleep(_LOOK_SECONDS)
        slept = clock() - wall - (trio.current_time() - counted)
        if slept >= IDLE_TIMEOUT_SECONDS:
            log.info("woken", slept_seconds=int(slept))
            woken()
