"""Rate limits and rules for peer introductions (peer exchange) within one session. Pure.

Only on epochs' own topics, which both sides have shown to know, and only where both have said that they take part. A
relay takes none: it knows its topics' followers, who did not ask it to make them known to one another.
"""

from collections import deque
from collections.abc import Container, Sequence
from itertools import islice
from typing import Final

from protocol.formats.links import PeerAddress
from protocol.ids import TopicKey
from protocol.limits.peers import (
    INTRODUCED_COUNT_MAX,
    INTRODUCED_TO_ONE_MAX,
    INTRODUCED_TOPIC_COUNT_MAX,
    INTRODUCTIONS_SENT_AT_ONCE_MAX,
    INTRODUCTIONS_TAKEN_AT_ONCE_MAX,
)
from protocol.session.allowance import Allowance
from protocol.session.events import PeersFound
from protocol.session.machines.table import PeerFault
from protocol.session.messages import Introduce
from protocol.session.outputs import FindPeers, LearnPeers, Output, Send
from protocol.session.topic_progress import TopicProgress

_CHECKS_BETWEEN: Final = 10
"""Keep-alives between two looks for peers that nobody has said to have come: a topic may be the present epoch's by now."""


class _Budget:
    """Introductions of one topic: how many may be sent and taken now, and what was told."""

    def __init__(self, told: dict[PeerAddress, None]) -> None:
        self.sendable = Allowance(INTRODUCTIONS_SENT_AT_ONCE_MAX, 1)
        self.takeable = Allowance(INTRODUCTIONS_TAKEN_AT_ONCE_MAX, 2)
        self.told = told
        self.is_behind = False  # there was more to tell than could be told


class Introducing:
    """Introductions that may be sent and taken on one session. Topics beyond INTRODUCED_TOPIC_COUNT_MAX take turns."""

    def __init__(self, *, takes_part: bool) -> None:
        self._takes_part = takes_part
        self._peer_takes_part = False
        self._budgets: dict[TopicKey, _Budget] = {}  # by topic, the one that has had it longest first
        # Topics without a budget, which get one in their turn, and what was told on them: it is not told again.
        self._waiting: deque[tuple[TopicKey, dict[PeerAddress, None]]] = deque()
        self._others = _Budget({})  # what is taken on all of these together
        self._checks = 0

    def peer_takes_part(self) -> None:
        """Note that the peer takes introductions, and gives them."""
        self._peer_takes_part = True

    def peer_is_relay(self) -> None:
        """Introduce nobody to the peer, and the peer to nobody: it is a relay."""
        self._takes_part = False

    def joined(self, progress: TopicProgress) -> list[Output]:
        """Introduce peers on a topic that was joined, where that is allowed."""
        if not self._may_introduce(progress):
            return []
        if len(self._budgets) >= INTRODUCED_TOPIC_COUNT_MAX:
            self._waiting.append((progress.topic, {}))
            return []
        self._budgets[progress.topic] = _Budget({})
        return [FindPeers(progress.topic)]

    def _may_introduce(self, progress: TopicProgress) -> bool:
        return self._takes_part and self._peer_takes_part and progress.is_own

    def check(self) -> list[Output]:
        """Allow some more introductions: called at each keep-alive. From time to time other topics have their turn."""
        for budget in (*self._budgets.values(), self._others):
            budget.sendable.check()
            budget.takeable.check()
        self._checks += 1
        is_time = self._checks % _CHECKS_BETWEEN == 0
        if is_time:
            for _ in range(min(len(self._waiting), len(self._budgets))):
                longest = next(iter(self._budgets))
                self._waiting.append((longest, self._budgets.pop(longest).told))
                topic, told = self._waiting.popleft()
                self._budgets[topic] = _Budget(told)
        return [FindPeers(topic) for topic, budget in self._budgets.items() if budget.is_behind or is_time]

    def introduce(self, progress: TopicProgress, event: PeersFound) -> list[Output]:
        """Introduce peers that were not yet, as many as allowed now; the rest is found again at the next check."""
        budget = self._budgets.get(progress.topic)
        if budget is None:
            return []
        found = _unique(event.peers, budget.told)
        fresh = found[:INTRODUCED_COUNT_MAX] if budget.sendable.left else ()
        budget.is_behind = len(fresh) < len(found)
        if not fresh:
            return []
        budget.sendable.take()
        budget.told.update(dict.fromkeys(fresh))
        for oldest in list(islice(budget.told, max(0, len(budget.told) - INTRODUCED_TO_ONE_MAX))):
            del budget.told[oldest]
        return [Send(Introduce(progress.blind, fresh))]

    def handle_introduce(self, progress: TopicProgress, message: Introduce) -> list[Output]:
        """Take peers that the peer introduces, or pass over them: on a slow line many come together.

        It may introduce on topics that have no turn here: which are the first to be joined is not the same on both sides.
        Raises PeerFault where it may not.
        """
        if not self._may_introduce(progress):
            raise PeerFault("unasked_introduction")
        budget = self._budgets.get(progress.topic, self._others)
        return [LearnPeers(progress.topic, message.peers)] if budget.takeable.take() else []


def _unique(peers: Sequence[PeerAddress], told: Container[PeerAddress]) -> tuple[PeerAddress, ...]:
    return tuple(dict.fromkeys(one for one in peers if one not in told))
