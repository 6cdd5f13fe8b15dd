"""Quotas of a relay's circuits: how many at a time, their bytes a second and a day, and how often nodes are named.

All is counted for the peer that asks for a circuit, in both directions: whom it calls has not asked for that. Strangers of
one subnet have a second account together, since new keys cost nothing. What is used is in memory only, and begins anew with
the relay's start.

Bytes are counted when they come. A peer that has used up its rate is not cut off: the relay passes on no more credit until
it may send again, so that nothing piles up here.

How often strangers of one subnet are named to nodes that meet on a topic is counted for subnet and topic.

Pure but for its memory: time is an argument, in seconds.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from node.runtime.token_bucket import TokenBucket
from protocol.ids import PeerId, TopicKey
from protocol.limits.network import (
    CIRCUIT_ACCOUNTS_MAX,
    CIRCUIT_SUBNET_SHARE,
    CIRCUITS_OPENED_AT_ONCE_MAX,
    CIRCUITS_OPENED_PER_SECOND,
    NODE_OF_SUBNET_NAMED_SECONDS,
    NODES_OF_SUBNET_NAMED_AT_ONCE_MAX,
    TOPICS_OF_SUBNET_NAMED_MAX,
)
from protocol.session.circuits import CircuitEnd
from storage.relay.quotas import Visitor

DAY_SECONDS = 24 * 3600.0
_LOOKED_AT = 16
"""Topics of a subnet of which a look is taken whether they can be forgotten."""
_SLOT_SECONDS: Final = 5.0
_SLOT_COUNT: Final = 12


@dataclass(frozen=True, slots=True)
class CircuitQuotas:
    """Quotas that a relay's operator sets: circuits of all and of one peer, and one peer's bytes per second and day."""

    total: int
    peer: int
    rate: int
    day: int
    takes_strangers: bool = True


class CircuitAccount:
    """Circuits and bytes that one peer, or the strangers of one subnet, use."""

    def __init__(self, quotas: CircuitQuotas, share: int, full: CircuitEnd, now: float) -> None:
        """`share`: how many times one peer's part it has; `full`: what is said when it has as many circuits as it may."""
        self._circuits_max = quotas.peer * share
        self._rate = quotas.rate * share
        self._day_max = quotas.day * share
        self._full = full
        self._opened = TokenBucket(CIRCUITS_OPENED_AT_ONCE_MAX * share, CIRCUITS_OPENED_PER_SECOND * share)
        self._left = float(self._rate)  # bytes that may pass now; below 0 what has passed too early
        self._filled_at = self._day_began = now
        self._of_day = 0
        self.circuits = 0
        """Circuits that are open or being opened."""

    def refusal(self, now: float) -> CircuitEnd | None:
        """Return the reason why it may open no circuit now, or None."""
        if self.circuits >= self._circuits_max:
            return self._full
        if self.is_day_used(now):
            return CircuitEnd.DAY_USED
        return None if self._opened.try_acquire(now) else self._full

    def use(self, count: int, now: float) -> None:
        """Count bytes that have come."""
        self._fill(now)
        self._left -= count
        self._of_day += count

    def is_day_used(self, now: float) -> bool:
        """Return True if all bytes of this day are used. A day begins when the account is first used, and after each day."""
        if now - self._day_began >= DAY_SECONDS:
            self._day_began, self._of_day = now, 0
        return self._of_day >= self._day_max

    def bytes_of_day(self, now: float) -> int:
        """Bytes of this day."""
        return 0 if now - self._day_began >= DAY_SECONDS else self._of_day

    def wait_seconds(self, now: float) -> float:
        """Seconds until it may send again; 0 now."""
        self._fill(now)
        return max(0.0, -self._left / self._rate)

    @property
    def is_settled(self) -> bool:
        """Return True if it can be forgotten for another one: it has no circuit."""
        return self.circuits == 0

    def _fill(self, now: float) -> None:
        self._left = min(float(self._rate), self._left + (now - self._filled_at) * self._rate)
        self._filled_at = now


class CircuitAccounts:
    """Accounts of all peers that use circuits. Their number is bounded."""

    def __init__(self, quotas: CircuitQuotas) -> None:
        self.quotas = quotas
        self._accounts: OrderedDict[PeerId | str, CircuitAccount] = OrderedDict()

    def __len__(self) -> int:
        """Count the accounts that are remembered."""
        return len(self._accounts)

    def find(self, peer: PeerId) -> CircuitAccount | None:
        """Return a peer's own account, if it is remembered."""
        return self._accounts.get(peer)

    def of(self, visitor: Visitor, now: float) -> tuple[CircuitAccount, ...]:
        """Return the accounts of a peer: its own, and its subnet's where it is a stranger."""
        own = self._find(visitor.peer, 1, CircuitEnd.PEER_FULL, now)
        if visitor.is_known:
            return (own,)
        return own, self._find(visitor.subnet, CIRCUIT_SUBNET_SHARE, CircuitEnd.SUBNET_FULL, now)

    def _find(self, name: PeerId | str, share: int, full: CircuitEnd, now: float) -> CircuitAccount:
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = CircuitAccount(self.quotas, share, full, now)
            if len(self._accounts) > CIRCUIT_ACCOUNTS_MAX:
                self._forget_one(name)
        self._accounts.move_to_end(name)
        return account

    def _forget_one(self, but: PeerId | str) -> None:
        """Forget the one used longest ago without a circuit. Circuits are far fewer than accounts, so there is one."""
        settled = (name for name, one in self._accounts.items() if one.is_settled and name != but)
        del self._accounts[next(settled)]


class NamingQuotas:
    """Allowance of strangers of one subnet to be named to others on a topic."""

    def __init__(self) -> None:
        # By subnet, the longest unused first.
        self._subnets: OrderedDict[str, dict[TopicKey, TokenBucket]] = OrderedDict()
        self._count = 0

    def take(self, topic: TopicKey, subnet: str, now: float) -> bool:
        """Use one; whether there was one left.

        What was used on a topic is not forgotten for another topic of the same subnet: strangers would empty one, and meet
        on topics of their own until it is new again. A subnet that was named on too many is not named on others.
        """
        buckets = self._subnets.setdefault(subnet, {})
        self._subnets.move_to_end(subnet)
        if topic not in buckets:
            if len(buckets) >= TOPICS_OF_SUBNET_NAMED_MAX:
                self._forget_full(buckets, now)
            if len(buckets) >= TOPICS_OF_SUBNET_NAMED_MAX:
                return False
            buckets[topic] = TokenBucket(NODES_OF_SUBNET_NAMED_AT_ONCE_MAX, 1 / NODE_OF_SUBNET_NAMED_SECONDS)
            self._count += 1
            if self._count > CIRCUIT_ACCOUNTS_MAX:
                self._count -= len(self._subnets.popitem(last=False)[1])
        return buckets[topic].try_acquire(now)

    def _forget_full(self, buckets: dict[TopicKey, TokenBucket], now: float) -> None:
        """Forget those that say nothing more, of a few: a look at all takes as long as all else of a meeting."""
        for topic in list(islice(buckets, _LOOKED_AT)):
            bucket = buckets.pop(topic)
            if bucket.is_full(now):
                self._count -= 1
            else:
                buckets[topic] = bucket  # the next look is at others


def refusal(
    accounts: Sequence[CircuitAccount], quotas: CircuitQuotas, visitor: Visitor, total: int, now: float
) -> CircuitEnd | None:
    """Return the reason why a peer may open no circuit now, None if it may. `total` circuits are open."""
    if not (visitor.is_known or quotas.takes_strangers):
        return CircuitEnd.NOT_KNOWN
    if total >= quotas.total:
        return CircuitEnd.RELAY_FULL
    for account in accounts:
        reason = account.refusal(now)
        if reason is not None:
            return reason
    return None


class RecentBytes:
    """Bytes of the last 60 seconds, by slots of 5. Time is an argument, in seconds."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._slots: deque[tuple[int, int]] = deque(maxlen=_SLOT_COUNT + 1)  # number, bytes

    def add(self, count: int, now: float) -> None:
        """Count bytes that have passed."""
        number = int(now // _SLOT_SECONDS)
        if self._slots and self._slots[-1][0] == number:
            count += self._slots.pop()[1]
        self._slots.append((number, count))

    def per_second(self, now: float) -> float:
        """Bytes a second of the last minute, or since the beginning."""
        seconds = min(_SLOT_SECONDS * _SLOT_COUNT, max(1.0, now - self._began))
        first = int((now - _SLOT_SECONDS * _SLOT_COUNT) // _SLOT_SECONDS)
        return sum(count for number, count in self._slots if number > first) / seconds
