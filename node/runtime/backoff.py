"""`Backoff`: growing pauses between the tries of one thing that fails."""

import secrets
from typing import Final

_JITTER: Final = 0.3
"""Share of a pause that is left to chance, so that those who failed together do not try together again."""
_DOUBLINGS_MAX: Final = 64
"""More than any two pauses are apart, and few enough for a float."""
STORE_PAUSE_MIN_SECONDS: Final = 30.0
STORE_PAUSE_MAX_SECONDS: Final = 300.0
"""Seconds between two tries of background work that the store has failed: a full disk may have room again, and each failure
is a line of the log."""


class Backoff:
    """Pauses of `shortest` seconds, then of twice as many each time, up to `longest`.

    Only a success makes them short again. How long a try took says nothing: a peer that is silent takes longest of all.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = shortest
        self._longest = longest
        self._failures = 0

    def fail(self) -> float:
        """Count a failure. Return the seconds to wait before the next try."""
        pause = min(self._shortest * 2.0 ** min(self._failures, _DOUBLINGS_MAX), self._longest)
        self._failures += 1
        return pause * (1 - _JITTER * secrets.randbelow(1000) / 1000)

    def succeed(self) -> None:
        """Have the next pause be the shortest."""
        self._failures = 0


def store_backoff() -> Backoff:
    """Return the pauses of background work that the store has failed."""
    return Backoff(STORE_PAUSE_MIN_SECONDS, STORE_PAUSE_MAX_SECONDS)
