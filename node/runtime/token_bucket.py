"""`TokenBucket`: a bound on uses at once and per second. The caller states the time."""


class TokenBucket:
    """A bucket that fills at a steady rate up to a size, and from which each use takes one."""

    def __init__(self, at_once: float, per_second: float) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._left = at_once
        self._asked_at: float | None = None

    def grow(self, count: float) -> None:
        """Enlarge the bucket by so many uses, all of them available at once."""
        self._at_once += count
        self._left += count

    def try_acquire(self, now: float, count: int = 1) -> bool:
        """Take this many uses; return True if that many were left."""
        if self._asked_at is not None:
            self._left = min(self._at_once, self._left + (now - self._asked_at) * self._per_second)
        self._asked_at = now
        if self._left < count:
            return False
        self._left -= count
        return True

    def is_full(self, now: float) -> bool:
        """Return True if it is as if nobody had used it."""
        if self._asked_at is None:
            return True
        return self._left + (now - self._asked_at) * self._per_second >= self._at_once
