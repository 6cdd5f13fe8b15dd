"""Worker processes that read publications and check signatures in batches, beside the process that judges and stores.

Reading a commit is Python and C in turns, and threads of one process spend more time on waiting for the interpreter than on
the work: in threads ingest is no faster than in one thread. A worker takes a whole batch over a pipe and gives it back
decoded, opened and with its signatures checked (`reading_worker`). It sees the keys of the branch that it reads.

Workers are started when there is work for them, and end when there is none for a while. Small batches, and those that find
no worker, are done in the caller's own thread: slower, never wrong. A worker that dies is replaced, unless they die one
after the other. A batch that two workers have died of is refused, since it may be what they died of.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from node.ingest.publication_reading import OpeningKeys
from node.ingest.reading_worker import (
    ANSWER_HEADER,
    CHECK,
    READ,
    WorkerReading,
    pack_claims,
    pack_reading,
    read_exactly,
    unpack_reading,
)
from node.ingest.worker_process import (
    ANSWER_SECONDS,
    ASKED_MAX,
    BehindAnother,
    Worker,
    start_worker,
    wait_for_readable,
)
from protocol.crypto.signing import Claim, check_claims

log = structlog.get_logger()

WORTH_A_TRIP: Final = 16
"""Claims or publications below which a trip through the pipe costs more than it saves."""
_FREE_SECONDS: Final = 1.0
"""Seconds to wait for a worker that is busy with other batches; after that the work is done here."""
_RESTARTS_MAX: Final = 4
_RESTARTS_SECONDS: Final = 60.0
"""Workers that are started in place of others within so many seconds: what kills each would else cost a start a batch."""


class UnreadableBatch(Exception):
    """Two workers have died while they read a batch."""


def worker_count(most: int) -> int:
    """Return how many workers leave one core to the daemon, `most` at most: none on a machine of one core."""
    return min(most, len(os.sched_getaffinity(0)) - 1)


class ReadingWorkers:
    """Worker processes for `read` and `check`. Thread-safe."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Create a pool of at most `count` workers; none is started yet."""
        self.count = count
        self._clock = clock
        self._changed = threading.Condition()
        self._ready: dict[Worker, int] = {}  # and what each is asked; the latest used last
        self._starting: list[Worker] = []
        self._died: deque[float] = deque()  # when, by the clock
        self._is_closed = False

    def check(self, claims: Sequence[Claim], *, may_wait: bool = True) -> Sequence[bool]:
        """Say of each claim whether it holds. `may_wait` a moment for a worker that is busy."""
        worker = self._take(lambda: may_wait, 1) if len(claims) >= WORTH_A_TRIP else None
        if worker is None:
            return check_claims(claims)
        try:
            with worker.ask(CHECK, pack_claims(claims)) as pipe:
                answer = [byte == 1 for byte in read_exactly(pipe, len(claims))]
        except (OSError, EOFError, BehindAnother) as error:
            self._drop(worker, error)
            return check_claims(claims)
        self._give_back(worker)
        return answer

    def read(
        self, keys: OpeningKeys, items: Sequence[bytes], *, wait_while: Callable[[], bool] = lambda: False
    ) -> WorkerReading | None:
        """Publications read by a worker, their claims checked. None where the caller does better to read them itself.

        It waits for a busy worker a moment, and as long as `wait_while` holds (`look_again`). Raises UnreadableBatch.
        """
        if len(items) < WORTH_A_TRIP:
            return None
        has_died = False
        packed = pack_reading(keys, items)
        worker = self._take(wait_while)
        while worker is not None:
            try:
                with worker.ask(READ, packed) as pipe:
                    (size,) = ANSWER_HEADER.unpack(read_exactly(pipe, ANSWER_HEADER.size))
                    encoded = read_exactly(pipe, size)
            except BehindAnother as error:  # it may be read here, and by another worker as well
                self._drop(worker, error)
                worker = self._take_another() if has_died else self._take(wait_while)
                continue
            except (OSError, EOFError) as error:
                self._drop(worker, error)
                if has_died:
                    raise UnreadableBatch(
                        f"two workers died while they read {len(items)} publications"
                    ) from None
                has_died = True
                # Never here: what may have ended a worker would end the daemon.
                worker = self._take_another()
                continue
            self._give_back(worker)
            return unpack_reading(encoded)
        return None

    def look_again(self) -> None:
        """Have those who wait for a worker look again whether they still do."""
        with self._changed:
            self._changed.notify_all()

    def start_all(self) -> None:
        """Start all workers and wait until they are ready, as what measures them does."""
        with self._changed:
            while len(self._ready) < self.count:
                while self._alive() < self.count:
                    self._starting.append(start_worker())
                wait_for_readable(self._starting, seconds=ANSWER_SECONDS)
                self._look_at_starting()

    def pids(self) -> list[int]:
        """Process ids of all workers that run now."""
        with self._changed:
            return [worker.pid for worker in (*self._ready, *self._starting)]

    def close(self) -> None:
        """End the workers."""
        with self._changed:
            self._is_closed = True
            workers = [*self._ready, *self._starting]
            self._ready.clear()
            self._starting.clear()
            self._changed.notify_all()
        for worker in workers:
            worker.end()

    # --- under the condition's lock ---

    def _alive(self) -> int:
        return len(self._ready) + len(self._starting)

    def _take(self, wait_while: Callable[[], bool], asked_max: int = ASKED_MAX) -> Worker | None:
        """Return a worker that is asked for less than so much, or None. Where all are busy, one more is started."""
        deadline = self._clock() + _FREE_SECONDS
        with self._changed:
            while not self._is_closed:
                self._look_at_starting()
                worker = self._find_free(asked_max)
                if (worker is None or self._ready[worker]) and not self._starting:
                    self._start_another()
                if worker is not None:
                    self._ready[worker] = self._ready.pop(worker) + 1  # the last one now
                    return worker
                left = deadline - self._clock()
                if not self._ready or left <= 0 or not wait_while():
                    return None
                self._changed.wait(left)
        return None

    def _find_free(self, asked_max: int) -> Worker | None:
        """Return the worker with the least work; of these the latest used, so that those not needed end by themselves."""
        for count in range(asked_max):
            for worker in reversed([one for one, asked in self._ready.items() if asked == count]):
                if count or not worker.has_ended:
                    return worker
                del self._ready[worker]
                worker.end()  # it had nothing to do for long
        return None

    def _start_another(self) -> None:
        if self._alive() < self.count and self._may_start():
            try:
                self._starting.append(start_worker())
            except OSError as error:
                log.error("no worker can be started", error=str(error))
                self._died.append(self._clock())

    def _look_at_starting(self) -> None:
        """Workers that have said that they are ready serve from now on; those that ended before have died."""
        for worker in list(self._starting):
            if not wait_for_readable([worker], seconds=0):
                continue
            self._starting.remove(worker)
            if worker.is_ready():
                self._ready[worker] = 0
            else:
                log.error("a worker ended as it started", pid=worker.pid)
                self._died.append(self._clock())
                worker.end()

    def _may_start(self) -> bool:
        while self._died and self._died[0] <= self._clock() - _RESTARTS_SECONDS:
            self._died.popleft()
        return len(self._died) < _RESTARTS_MAX

    def _take_another(self) -> Worker:
        """Replace a worker that died, also where one has to be started. Raises UnreadableBatch."""
        worker = self._take(lambda: True)
        while worker is None:
            with self._changed:
                starting = list(self._starting)
                if self._is_closed or not (starting or self._ready):
                    raise UnreadableBatch("a worker died while it read the batch, and no other can be had")
            if starting and not wait_for_readable(starting, seconds=ANSWER_SECONDS):
                raise UnreadableBatch(
                    "a worker died while it read the batch, and no other has started in time"
                )
            worker = self._take(lambda: True)
        return worker

    # --- the end of what a worker was asked ---

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            if worker in self._ready:
                self._ready[worker] -= 1
            self._changed.notify_all()  # who is woken may want an idle worker, and another one only a place

    def _drop(self, worker: Worker, error: Exception) -> None:
        """Forget a worker that has ended; each of those that asked it says so, and it is counted once."""
        with self._changed:
            if self._ready.pop(worker, None) is not None:
                log.error("a worker died", pid=worker.pid, error=str(error))
                self._died.append(self._clock())
            self._changed.notify_all()
