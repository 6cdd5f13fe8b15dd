"""How much of a relay's circuits a peer may use: circuits at a time, bytes a second, bytes a day.

All is counted for the peer that asks for a circuit, in both directions: whom it calls has not asked for that. Strangers of
one subnet have a second account together, since new keys cost nothing. What is used is in memory only, and begins anew with
the relay's start.

Bytes are counted when they come. A peer that has used up its rate is not cut off: the relay passes on no more credit until
it may send again, so that nothing piles up here.

Pure but for its memory: time is an argument, in seconds.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from node.sync.rate_limit import TokenBucket
from protocol.circuits import CircuitEnd
from protocol.ids import PeerId
from protocol.limits.peers import (
    CIRCUIT_ACCOUNTS_MAX,
    CIRCUIT_SUBNET_SHARE,
    CIRCUITS_OPENED_AT_ONCE_MAX,
    CIRCUITS_OPENED_PER_SECOND,
)
from storage.relay.quotas import Visitor

DAY_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class CircuitQuotas:
    """What a relay's operator allows: circuits of all and of one peer, and one peer's bytes per second and per day."""

    total: int
    peer: int
    rate: int
    day: int
    takes_strangers: bool = True


class CircuitAccount:
    """What one peer, or the strangers of one subnet, use of circuits."""

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
        """Why it may open no circuit now."""
        if self.circuits >= self._circuits_max:
            return self._full
        if self.is_day_used(now):
            return CircuitEnd.DAY_USED
        return None if self._opened.try_acquire(now) else self._full

    def use(self, count: int, now: float) -> None:
        """So many bytes have come."""
        self._fill(now)
        self._left -= count
        self._of_day += count

    def is_day_used(self, now: float) -> bool:
        """Whether all bytes of this day are used. A day begins when the account is first used, and after each day."""
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
        """Whether it can be forgotten for another one: it has no circuit."""
        return self.circuits == 0

    def _fill(self, now: float) -> None:
        self._left = min(float(self._rate), self._left + (now - self._filled_at) * self._rate)
        self._filled_at = now


class CircuitAccounts:
    """All accounts, of which only so many are remembered."""

    def __init__(self, quotas: CircuitQuotas) -> None:
        self.quotas = quotas
        self._accounts: OrderedDict[PeerId | str, CircuitAccount] = OrderedDict()

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._accounts)

    def find(self, peer: PeerId) -> CircuitAccount | None:
        """A peer's own account, if it is remembered."""
        return self._accounts.get(peer)

    def of(self, visitor: Visitor, now: float) -> tuple[CircuitAccount, ...]:
        """The accounts of a peer: its own, and its subnet's where it is a stranger."""
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


def refusal(
    accounts: Sequence[CircuitAccount], quotas: CircuitQuotas, visitor: Visitor, total: int, now: float
) -> CircuitEnd | None:
    """Why a peer may open no circuit now, while `total` are open."""
    if not (visitor.is_known or quotas.takes_strangers):
        return CircuitEnd.NOT_KNOWN
    if total >= quotas.total:
        return CircuitEnd.RELAY_FULL
    for account in accounts:
        reason = account.refusal(now)
        if reason is not None:
            return reason
    return None
