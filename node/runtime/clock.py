"""System clock with safe bounds (1970 to 2262), a check before a commit is dated, and durations as people read them.

Python reads no clock past April 2262, and raises; commits have no times before 1970.
"""

import time
from typing import Final

from node.runtime.errors import ServiceError

LATEST_MS: Final = 9_223_372_036_000
"""The last whole second that Python reads, in unix milliseconds. What the clock says past that reads as this."""


def now_seconds() -> float:
    """Unix seconds, from 0 to the latest."""
    return _now_ms() / 1000


def now_ms() -> int:
    """Unix milliseconds, from 0 to the latest."""
    return int(_now_ms())


def check_now(ms: int) -> None:
    """Refuse to date by a clock that says nothing usable. Raises ServiceError."""
    if not 0 < ms < LATEST_MS:
        when = "before 1970" if ms <= 0 else "past the year 2262"
        raise ServiceError(
            "bad_request",
            f"this machine's clock says a time {when}, and nothing can be dated with it",
            "set the clock, and keep it right with NTP; nothing was written, and the node goes on",
        )


def _now_ms() -> float:
    try:
        return min(max(time.time() * 1000, 0.0), float(LATEST_MS))
    except OverflowError:
        return float(LATEST_MS)
