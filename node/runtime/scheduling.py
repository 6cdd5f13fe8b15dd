"""Fair CPU scheduling between peers: accounts of the work that each causes, turns, and budgets that disconnect peers.

Everything that a peer makes this node do is charged to its account, in seconds of the processor: measured where a thread
did it, a fixed price for each frame and byte. Strangers of one network share one account, so that new keys buy nothing. Two
uses are made of it:

- *turns*: a `FairLock` is handed from account to account by deficit round robin, so that what is expensive delays its own
  account alone. Work is done in slices (`SlicePace` says how large), and the lock is given up between them.
- *budget*: work that came to nothing stays on the account and is forgiven slowly. Beyond one bound the peer is read from
  less often, beyond another it is left. What was of use is earned back at once, so an honest sync of any size costs nothing.
  Before the first of them it already gives way to requests of this user that are at work (`UserRequests`).

No clock inside: the ledger asks the one that it is given.
"""

import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from node.runtime.user_requests import GivingWay
from protocol.ids import PeerId
from protocol.limits.peers import (
    ACCOUNTS_MAX,
    FRUITLESS_FORGIVEN_SHARE,
    FRUITLESS_SECONDS_MAX,
    FRUITLESS_SLOWED_SECONDS,
    FRUITLESS_SLOWED_SHARE,
    GIVING_WAY_FRUITLESS_SECONDS,
    PAUSED_WORK_SECONDS_MIN,
    SLICE_SECONDS,
    SLOWED_PAUSE_SECONDS_MAX,
    STRANGERS_SLOWED_SECONDS,
)

SHORT_COUNT_MAX: Final = 64
"""Publications of a batch that counts as short: some milliseconds of work, where a full one takes a tenth of a second."""
_OVERTAKEN_MAX: Final = 8
"""Short batches that may overtake a waiting long batch of the same account: half of a full batch's time."""
_FIRST_COUNT: Final = 64
"""Publications of a first slice, of whose cost nothing is known: all at the cost of the dearest commits took seconds."""
_DEBT_MAX_SECONDS: Final = 2.0
"""Seconds of others' work that an account waits for at most after it has worked alone, however long that was."""
_TELLING_COUNT_MIN: Final = 16
"""Publications below which a slice tells nothing of larger ones: most of its cost is that of a transaction."""


_REST_FACTOR: Final = 4
"""Times as long as a round took that is rested after it. In a flood of root branch commits each calls for another round, and
writes of this user wait for the same locks."""
_REST_SECONDS_MAX: Final = 0.5


async def rest_after(began: float, ended: float) -> None:
    """Rest after a round of upkeep that has `ended`: so rounds take a fifth of the time, however often they are due."""
    rest = ended + min(_REST_FACTOR * (ended - began), _REST_SECONDS_MAX) - trio.current_time()
    if rest > 0:
        await trio.sleep(rest)


class WorkAccount:
    """Account of the work that a peer, or the strangers of a network together, have caused."""

    def __init__(
        self,
        clock: Callable[[], float],
        slowed_after: float = FRUITLESS_SLOWED_SECONDS,
        gives_way_after: float = GIVING_WAY_FRUITLESS_SECONDS,
    ) -> None:
        """`slowed_after`: seconds of fruitless work from which on the account is read from more slowly.

        `gives_way_after`: the same, from which on it gives way to requests of this user.
        """
        self._clock = clock
        self._slowed_after = slowed_after
        self._gives_way_after = gives_way_after
        self._fruitless = 0.0
        self._asked_at = clock()
        self._unpaused = 0.0  # charged, and not yet paused for
        self._paused_until = 0.0
        self._is_over = False
        self.used = 0.0
        """Seconds of the processor, altogether."""
        self.credit = 0.0
        """Seconds that it may use before others have their turn; below 0 what it has used before its turn."""
        self.reading, self.storing = SlicePace(), SlicePace()

    def charge(self, seconds: float) -> None:
        """Charge an account for work that it caused; `earn` gives back the cost of useful work."""
        self.used += seconds
        self._fruitless = self.fruitless + seconds
        self._unpaused += seconds
        self._is_over = self._is_over or self._fruitless > FRUITLESS_SECONDS_MAX

    def earn(self, seconds: float) -> None:
        """Take back the charge for work that was of use."""
        self._fruitless = max(0.0, self.fruitless - seconds)
        self._unpaused = max(0.0, self._unpaused - seconds)

    @property
    def fruitless(self) -> float:
        """Seconds of work that came to nothing, as far as they are not forgiven yet."""
        now = self._clock()
        passed = max(
            0.0, now - self._asked_at
        )  # another run of trio's loop begins to count anywhere, also before
        self._fruitless = max(0.0, self._fruitless - passed * FRUITLESS_FORGIVEN_SHARE)
        self._asked_at = now
        return self._fruitless

    @property
    def is_over(self) -> bool:
        """Return True if it has used up its budget, until most is forgiven: to return at once does not help a peer."""
        if self._is_over and self.fruitless <= FRUITLESS_SLOWED_SECONDS:
            self._is_over = False
        return self._is_over

    @property
    def gives_way(self) -> bool:
        """Return True if requests of this user go before it: of work that is not over it is not known what comes of it."""
        return self.fruitless > self._gives_way_after

    def pop_pause(self) -> float:
        """Return the seconds to pause before reading more, so that fruitless work takes a share of the processor only.

        All connections of the account wait for the same time: one pause of each would give each connection that share.
        """
        if self.fruitless <= self._slowed_after:
            return 0.0
        now = self._asked_at
        if self._unpaused >= PAUSED_WORK_SECONDS_MIN:
            due = max(now, self._paused_until) + self._unpaused / FRUITLESS_SLOWED_SHARE
            self._unpaused, self._paused_until = 0.0, min(due, now + SLOWED_PAUSE_SECONDS_MAX)
        # The bound again, for a clock that another run of trio's loop has set back.
        return min(max(0.0, self._paused_until - now), SLOWED_PAUSE_SECONDS_MAX)

    @property
    def is_settled(self) -> bool:
        """Return True if it can be forgotten without loss to others."""
        return not self._is_over and self.fruitless == 0 and self.credit >= 0


class WorkBill:
    """Cost of one piece of work. Many go on at a time, and each earns back its own cost alone."""

    def __init__(self, account: WorkAccount) -> None:
        self.account = account
        self.total = 0.0

    def charge(self, seconds: float) -> None:
        """Charge the account."""
        self.total += seconds
        self.account.charge(seconds)

    def earn(self, share: float = 1.0) -> None:
        """Take back a share of all of it, which was of use."""
        self.account.earn(self.total * min(1.0, share))


class SlicePace:
    """Estimate of how many publications fit a slice, by what the last ones cost."""

    def __init__(self) -> None:
        self._seconds_each = SLICE_SECONDS / _FIRST_COUNT

    @property
    def count(self) -> int:
        """Publications of the next slice, one at least."""
        return max(1, int(SLICE_SECONDS / self._seconds_each))

    def note(self, count: int, seconds: float) -> None:
        """Note how long so many took. What is dearer counts at once, what is cheaper by and by."""
        if count < min(_TELLING_COUNT_MIN, self.count) and seconds < SLICE_SECONDS:
            return
        each = max(seconds, 1e-6) / count
        self._seconds_each = each if each > self._seconds_each else (self._seconds_each + each) / 2


NOBODY: Final = PeerId(b"")
"""Whose account has what no peer has caused."""


class Ledger:
    """Accounts of all peers. Their number is bounded."""

    def __init__(self, clock: Callable[[], float] = trio.current_time) -> None:
        """`clock` counts seconds."""
        self._clock = clock
        self._accounts: OrderedDict[PeerId | str, WorkAccount] = OrderedDict()

    def of_peer(self, peer: PeerId) -> WorkAccount:
        """Return the account of a peer that is known."""
        return self._find(peer)

    def of_strangers(self, network: str, slowed_after: float = STRANGERS_SLOWED_SECONDS) -> WorkAccount:
        """Return the one account of all strangers of a network (`reach.network_of`)."""
        return self._find(network, slowed_after)

    def __len__(self) -> int:
        """Count the accounts that are remembered."""
        return len(self._accounts)

    def _find(self, name: PeerId | str, slowed_after: float = FRUITLESS_SLOWED_SECONDS) -> WorkAccount:
        account = self._accounts.get(name)
        if account is None:
            gives_way_after = math.inf if name == NOBODY else GIVING_WAY_FRUITLESS_SECONDS
            account = self._accounts[name] = WorkAccount(self._clock, slowed_after, gives_way_after)
            if len(self._accounts) > ACCOUNTS_MAX:
                self._forget_one(name)
        self._accounts.move_to_end(name)
        return account

    def _forget_one(self, but: PeerId | str) -> None:
        """Forget the account that was used longest ago, preferably one that owes nothing."""
        names = [name for name in self._accounts if name != but]
        del self._accounts[next((name for name in names if self._accounts[name].is_settled), names[0])]


class FairLock:
    """A lock that accounts take in turn, each as long as its credit lasts: deficit round robin, paid afterwards.

    What the work has really cost is read from its bill afterwards, since it is not known before. Within one account, short
    work goes before long work that waits, some times in a row at most.
    """

    def __init__(self, places: int = 1, giving_way: GivingWay | None = None) -> None:
        """`places`: how many hold it at a time. In `giving_way` accounts let requests of this user go before each slice."""
        self._free = places
        self._giving_way = giving_way
        self._waiting: OrderedDict[int, _Queue] = (
            OrderedDict()
        )  # by account's identity, in the order of turns

    @asynccontextmanager
    async def held(self, bill: WorkBill, count: int = 1) -> AsyncIterator[None]:
        """Hold the lock for work on this many publications."""
        account, before = bill.account, bill.total
        if self._giving_way is not None and account.gives_way:
            await self._giving_way.wait()
        await self._acquire(account, is_short=count <= SHORT_COUNT_MAX)
        try:
            yield
        finally:
            account.credit = max(account.credit - (bill.total - before), -_DEBT_MAX_SECONDS)
            self._release()

    @property
    def is_held(self) -> bool:
        """Return True if no place is free."""
        return not self._free

    async def _acquire(self, account: WorkAccount, *, is_short: bool) -> None:
        if self._free:
            assert not self._waiting, "a free place is taken at once"
            self._free -= 1
            return
        queue = self._waiting.get(id(account))
        if queue is None:
            queue = self._waiting[id(account)] = _Queue(account)
        event = queue.add(is_short=is_short)
        try:
            await event.wait()
        except trio.Cancelled:
            if event.is_set():  # it was handed over a moment before
                self._release()
            else:
                queue.remove(event)
                if not queue.waiting:
                    del self._waiting[id(account)]
            raise

    def _release(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        queue = self._choose()
        event = queue.pop_next()
        if not queue.waiting:
            del self._waiting[id(queue.account)]
            queue.account.credit = min(queue.account.credit, 0.0)  # what was not used in time is lost
        event.set()

    def _choose(self) -> "_Queue":
        """Choose the first with credit left; if none has any, after as many rounds of SLICE_SECONDS as it takes."""
        ready = next((queue for queue in self._waiting.values() if queue.account.credit > 0), None)
        if ready is None:
            ready = max(self._waiting.values(), key=lambda queue: queue.account.credit)
            rounds = int(-ready.account.credit // SLICE_SECONDS) + 1
            for queue in self._waiting.values():
                queue.account.credit += rounds * SLICE_SECONDS
        # Those before it have no credit: they are behind it until they get some.
        while next(iter(self._waiting.values())) is not ready:
            self._waiting.move_to_end(next(iter(self._waiting)))
        return ready


class _Queue:
    """Work of one account that waits for a lock."""

    def __init__(self, account: WorkAccount) -> None:
        self.account = account
        self.waiting: deque[tuple[bool, trio.Event]] = deque()  # whether it is short
        self._overtaken = 0  # times in a row that the first was not the next

    def add(self, *, is_short: bool) -> trio.Event:
        event = trio.Event()
        self.waiting.append((is_short, event))
        return event

    def remove(self, event: trio.Event) -> None:
        self.waiting.remove(next(one for one in self.waiting if one[1] is event))

    def pop_next(self) -> trio.Event:
        chosen = self.waiting[0]
        if self._overtaken < _OVERTAKEN_MAX:
            chosen = next((one for one in self.waiting if one[0]), chosen)
        self._overtaken = 0 if chosen is self.waiting[0] else self._overtaken + 1
        self.waiting.remove(chosen)
        return chosen[1]
