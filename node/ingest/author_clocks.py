"""Compares this node's clock with those of authors whose commits arrive just after they are written.

The time of a commit is its author's claim, and a commit may arrive long after it was written. But commits of one author
that arrive one after the other, each by the same difference after its time, were written just then: what was written
before arrives at once. So the difference is that of the two clocks. No message of peers says the time.
"""

import threading
from dataclasses import dataclass
from typing import Final

from protocol.ids import UserId

_AUTHORS_MAX: Final = 64
"""Authors that are remembered, those heard last: two of them tell more than one."""
_APART_MS: Final = 5_000
"""Milliseconds between two arrivals that count: those of one batch tell nothing."""
_ALIKE: Final = 0.5
"""Share of the time between two arrivals by which their differences may differ."""
_ALIKE_MS_MAX: Final = 60_000
"""Milliseconds by which the differences of two arrivals may differ at most: relays and lines delay commits by some
seconds."""
_COUNT_MIN: Final = 3
"""Arrivals with about the same difference that are needed to take it for a difference of clocks."""


@dataclass(frozen=True, slots=True)
class _Heard:
    arrived_ms: int
    ahead_ms: int
    """By how much this clock was ahead of what the commit says."""
    count: int
    """Arrivals in a row with about this difference."""


class AuthorClocks:
    """Record of how far this node's clock is ahead of others'. Thread-safe; forgotten when the daemon stops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: dict[UserId, _Heard] = {}

    def note(self, author: UserId, said_ms: int, now_ms: int) -> None:
        """Note the latest of the arrived commits by other authors. Times are unix milliseconds."""
        with self._lock:
            before = self._heard.get(author)
            apart = _APART_MS if before is None else now_ms - before.arrived_ms
            if before is not None and 0 <= apart < _APART_MS:
                return
            ahead = now_ms - said_ms
            is_alike = (
                before is not None
                and apart > 0
                and abs(ahead - before.ahead_ms) <= min(_ALIKE * apart, _ALIKE_MS_MAX)
            )
            count = before.count + 1 if before is not None and is_alike else 1
            self._heard.pop(author, None)
            self._heard[author] = _Heard(now_ms, ahead, min(count, _COUNT_MIN))
            if len(self._heard) > _AUTHORS_MAX:
                # Heard longest ago: dicts keep the order of `note`, and only `status` and `doctor` read this.
                del self._heard[next(iter(self._heard))]

    def find_ahead(self) -> list[int]:
        """Return by how many milliseconds this clock is ahead of each author's that is known to write now, sorted."""
        with self._lock:
            return sorted(one.ahead_ms for one in self._heard.values() if one.count >= _COUNT_MIN)
