"""Limits how many messages a peer may send at once and per second, by token buckets.

No clock inside: who asks says what time it is.
"""

from node.sync.circuit_port import is_of_large_circuit
from protocol.limits.peers import (
    KEEP_ALIVE_SECONDS,
    KEEP_ALIVES_AT_ONCE_MAX,
    MESSAGES_AT_ONCE_MAX,
    MESSAGES_PER_SECOND_MAX,
    TOPIC_COUNT_MAX,
    UNKNOWN_MESSAGES_AT_ONCE_MAX,
    UNKNOWN_MESSAGES_PER_SECOND_MAX,
)
from protocol.messages import KeepAlive, Message


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

    def try_acquire(self, now: float) -> bool:
        """Use one; whether there was one left."""
        if self._asked_at is not None:
            self._left = min(self._at_once, self._left + (now - self._asked_at) * self._per_second)
        self._asked_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def is_full(self, now: float) -> bool:
        """Whether it is as if nobody had used it."""
        if self._asked_at is None:
            return True
        return self._left + (now - self._asked_at) * self._per_second >= self._at_once


class MessageRates:
    """How many messages of one peer are taken. The smallest cost the sender nothing, and this node its time."""

    def __init__(self) -> None:
        self._keep_alives = TokenBucket(KEEP_ALIVES_AT_ONCE_MAX, 1 / KEEP_ALIVE_SECONDS)
        self._unknown = TokenBucket(UNKNOWN_MESSAGES_AT_ONCE_MAX, UNKNOWN_MESSAGES_PER_SECOND_MAX)
        self._messages = TokenBucket(MESSAGES_AT_ONCE_MAX, MESSAGES_PER_SECOND_MAX)
        self._joined = TOPIC_COUNT_MAX

    def join_topics(self, count: int) -> None:
        """Note how many topics are joined. Each one beyond TOPIC_COUNT_MAX adds its share of messages, once."""
        self._messages.grow(max(0, count - self._joined) * MESSAGES_AT_ONCE_MAX / TOPIC_COUNT_MAX)
        self._joined = max(count, self._joined)

    def find_flood(self, message: Message | None, now: float) -> str:
        """Why a message (None: of an unknown kind) is one too many, or an empty text. `now` is in seconds."""
        if message is None and not self._unknown.try_acquire(now):
            return "too_many_unknown_messages"
        if isinstance(message, KeepAlive) and not self._keep_alives.try_acquire(now):
            return "too_many_keep_alives"
        is_taken = is_of_large_circuit(message) or self._messages.try_acquire(now)
        return "" if is_taken else "too_many_messages"
