"""Counts what a relay refuses, to whom and why, for its operator. In memory: it begins anew with the daemon's start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from protocol.limits.peers import RELAY_REFUSALS_MAX

TOPIC: Final = "topic"
COMMITS: Final = "commits"
FILE: Final = "file"
CIRCUIT: Final = "circuit"
LINK: Final = "link"
REFUSED: Final = (TOPIC, COMMITS, FILE, CIRCUIT, LINK)
"""What a relay refuses: to keep a topic, commits of a message, or a file; to open a circuit; a link to an account."""
OTHER: Final = "other"


class Refusal(NamedTuple):
    """Kind of refusal: one of REFUSED, the kind of visitor (`storage.relay.quotas.VISITOR_KINDS`), and the reason's code."""

    what: str
    kind: str
    reason: str


@dataclass(slots=True)
class RefusalCount:
    """Count of one kind of refusal, and the last one's time in unix milliseconds."""

    count: int = 0
    last_at: int = 0


class Refusals:
    """Counters of refusals, by what was refused, to which kind of visitor and why."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._counts: dict[Refusal, RefusalCount] = {}

    @property
    def counts(self) -> Mapping[Refusal, RefusalCount]:
        """All that was refused since the start."""
        return self._counts

    def count(self, what: str, kind: str, reason: str, times: int = 1) -> None:
        """Something was refused."""
        refusal = Refusal(what, kind, reason)
        if refusal not in self._counts and len(self._counts) >= RELAY_REFUSALS_MAX:
            refusal = Refusal(what, kind, OTHER)
        found = self._counts.setdefault(refusal, RefusalCount())
        found.count += times
        found.last_at = self._clock_ms()
