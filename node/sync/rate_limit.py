"""Token bucket: limits how many messages a peer may send at once and per second.

No clock inside: who asks says what time it is.
"""


class TokenBucket:
    """A bucket that fills at a steady rate up to a size, and from which each use takes one."""

    def __init__(self, at_once: float, per_second: float) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._left = at_once
        self._asked_at: float | None = None

    def try_acquire(self, now: float) -> bool:
        """Use one; whether there was one left."""
        if self._asked_at is not None:
            self._left = min(self._at_once, self._left + (now - self._asked_at) * self._per_second)
        self._asked_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
