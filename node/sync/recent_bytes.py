"""A rate of bytes over the last minute. Pure: time is an argument, in seconds."""

from collections import deque
from typing import Final

_SLOT_SECONDS: Final = 5.0
_SLOT_COUNT: Final = 12


class RecentBytes:
    """Bytes by slots of 5 seconds, of the last 60."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._slots: deque[tuple[int, int]] = deque(maxlen=_SLOT_COUNT + 1)  # number, bytes

    def add(self, count: int, now: float) -> None:
        """So many bytes have passed."""
        number = int(now // _SLOT_SECONDS)
        if self._slots and self._slots[-1][0] == number:
            count += self._slots.pop()[1]
        self._slots.append((number, count))

    def per_second(self, now: float) -> float:
        """Bytes a second of the last minute, or since the beginning."""
        seconds = min(_SLOT_SECONDS * _SLOT_COUNT, max(1.0, now - self._began))
        first = int((now - _SLOT_SECONDS * _SLOT_COUNT) // _SLOT_SECONDS)
        return sum(count for number, count in self._slots if number > first) / seconds
