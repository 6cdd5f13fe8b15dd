"""Exponential back-off: growing pauses between the tries of one thing that fails."""

import secrets
from typing import Final

_JITTER: Final = 0.3
"""Share of a pause that is random, so that nodes that failed together do not retry together."""
_DOUBLINGS_MAX: Final = 64
"""Doublings between the shortest and the longest pause: more would overflow a float."""
STORE_PAUSE_MIN_SECONDS: Final = 30.0
STORE_PAUSE_MAX_SECONDS: Final = 300.0
"""Seconds between two tries of background work that the store has failed: a full disk may have room again, and each failure
is a line of the log."""


def doubled_pause(failures: int, shortest: float, longest: float) -> float:
    """Return the seconds to wait after so many earlier failures: `shortest` after none, without jitter.

    Callers that store the count of failures themselves use this. All others use `Backoff`.
    """
    return min(shortest * 2.0 ** min(failures, _DOUBLINGS_MAX), longest)


class Backoff:
    """Pauses of `shortest` seconds, doubled after each failure up to `longest`, with jitter.

    Only `reset` shortens them: after a success, or when this machine has slept or changed its network. The length of a try
    does not count: a silent peer takes longest of all.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = shortest
        self._longest = longest
        self._failures = 0

    def fail(self) -> float:
        """Count a failure. Return the seconds to wait before the next try."""
        pause = doubled_pause(self._failures, self._shortest, self._longest)
        self._failures += 1
        return pause * (1 - _JITTER * secrets.randbelow(1000) / 1000)

    def reset(self) -> None:
        """Make the next pause the shortest."""
        self._failures = 0


def store_backoff() -> Backoff:
    """Return the back-off of background work whose store access failed."""
    return Backoff(STORE_PAUSE_MIN_SECONDS, STORE_PAUSE_MAX_SECONDS)
