"""Worker processes that read publications and check signatures in batches, beside the process that judges and stores.

Reading a commit is Python and C in turns, and threads of one process spend more time on waiting for the interpreter than on
the work: in threads ingest is no faster than in one thread. A worker takes a whole batch over a pipe and gives it back
decoded, opened and with its signatures checked (`reading_worker`). It sees the keys of the branch that it reads.

Workers are started when there is work for them, and end when there is none for a while. Small batches, and those that find
no worker, are done in the caller's own thread: slower, never wrong. A worker that dies is replaced, unless they die one
after the other. A batch that two workers have died of is refused, since it may be what they died of.
"""

import os
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final

import structlog

from node.ingest import reading_worker
from node.ingest.publication_reading import OpeningKeys
from node.ingest.reading_worker import (
    ANSWER_HEADER,
    CHECK,
    READ,
    READY,
    REQUEST_HEADER,
    WorkerReading,
    pack_claims,
    pack_reading,
    read_exactly,
    unpack_reading,
)
from protocol.signing import Claim, check_claims

log = structlog.get_logger()
Worker = subprocess.Popen[bytes]

WORTH_A_TRIP: Final = 16
"""Claims or publications below which a trip through the pipe costs more than it saves."""
_ANSWER_SECONDS: Final = 30.0
"""Seconds after which a worker that does not answer (a batch takes 0.2) is killed."""
_FREE_SECONDS: Final = 1.0
"""Seconds to wait for a worker that is busy with another batch; after that the work is done here."""
_RESTARTS_MAX: Final = 4
_RESTARTS_SECONDS: Final = 60.0
"""Workers that are started in place of others within so many seconds: what kills each would else cost a start a batch."""


class UnreadableBatch(Exception):
    """Two workers have died while they read a batch."""


def worker_count(most: int) -> int:
    """As many as leave one core to the daemon itself, and not more than `most`: none on a machine of one core."""
    return min(most, len(os.sched_getaffinity(0)) - 1)


class ReadingWorkers:
    """Worker processes for `read` and `check`. Thread-safe."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        """At most `count` workers; none is started yet."""
        self.count = count
        self._clock = clock
        self._changed = threading.Condition()
        self._idle: list[Worker] = []  # the latest used last, so that those not needed end by themselves
        self._starting: list[Worker] = []
        self._busy: set[Worker] = set()
        self._died: deque[float] = deque()  # when, by the clock
        self._is_closed = False

    def check(self, claims: Sequence[Claim], *, may_wait: bool = True) -> Sequence[bool]:
        """Say of each claim whether it holds. `may_wait` a moment for a worker that is busy."""
        worker = self._take(lambda: may_wait) if len(claims) >= WORTH_A_TRIP else None
        if worker is None:
            return check_claims(claims)
        try:
            with _watched(worker):
                pipe = _send(worker, CHECK, pack_claims(claims))
                answer = [byte == 1 for byte in read_exactly(pipe, len(claims))]
        except (OSError, EOFError) as error:
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
                with _watched(worker):
                    pipe = _send(worker, READ, packed)
                    (size,) = ANSWER_HEADER.unpack(read_exactly(pipe, ANSWER_HEADER.size))
                    encoded = read_exactly(pipe, size)
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
        """Those who wait for a worker look again whether they still do."""
        with self._changed:
            self._changed.notify_all()

    def start_all(self) -> None:
        """Start all workers and wait until they are ready, as what measures them does."""
        with self._changed:
            while len(self._idle) + len(self._busy) < self.count:
                while self._alive() < self.count:
                    self._starting.append(_start())
                _wait_for_readable(self._starting, seconds=_ANSWER_SECONDS)
                self._look_at_starting()

    def pids(self) -> list[int]:
        """Process ids of all workers that run now."""
        with self._changed:
            return [worker.pid for worker in (*self._idle, *self._starting, *self._busy)]

    def close(self) -> None:
        """End the workers."""
        with self._changed:
            self._is_closed = True
            workers = [*self._idle, *self._starting, *self._busy]
            self._idle.clear()
            self._starting.clear()
            self._changed.notify_all()
        for worker in workers:
            _end(worker)

    # --- under the condition's lock ---

    def _alive(self) -> int:
        return len(self._idle) + len(self._starting) + len(self._busy)

    def _take(self, wait_while: Callable[[], bool]) -> Worker | None:
        """A worker for the caller alone, or None. Another is started where all are busy and there may be more."""
        deadline = self._clock() + _FREE_SECONDS
        with self._changed:
            while not self._is_closed:
                self._look_at_starting()
                while self._idle:
                    worker = self._idle.pop()
                    if worker.poll() is None:
                        self._busy.add(worker)
                        return worker
                    _end(worker)  # it had nothing to do for long
                if not self._starting and self._alive() < self.count and self._may_start():
                    try:
                        self._starting.append(_start())
                    except OSError as error:
                        log.error("no worker can be started", error=str(error))
                        self._died.append(self._clock())
                left = deadline - self._clock()
                if not self._busy or left <= 0 or not wait_while():
                    return None
                self._changed.wait(left)
        return None

    def _look_at_starting(self) -> None:
        """Workers that have said that they are ready are idle now; those that ended before have died."""
        for worker in list(self._starting):
            assert worker.stdout is not None, "made with pipes"
            if not _wait_for_readable([worker], seconds=0):
                continue
            self._starting.remove(worker)
            if worker.stdout.read(1) == READY:
                self._idle.append(worker)
            else:
                log.error("a worker ended as it started", pid=worker.pid)
                self._died.append(self._clock())
                _end(worker)

    def _may_start(self) -> bool:
        while self._died and self._died[0] <= self._clock() - _RESTARTS_SECONDS:
            self._died.popleft()
        return len(self._died) < _RESTARTS_MAX

    def _take_another(self) -> Worker:
        """A worker in place of one that died, also where one has to be started. Raises UnreadableBatch."""
        worker = self._take(lambda: True)
        while worker is None:
            with self._changed:
                starting = list(self._starting)
                if self._is_closed or not (starting or self._busy):
                    raise UnreadableBatch("a worker died while it read the batch, and no other can be had")
            if starting and not _wait_for_readable(starting, seconds=_ANSWER_SECONDS):
                raise UnreadableBatch(
                    "a worker died while it read the batch, and no other has started in time"
                )
            worker = self._take(lambda: True)
        return worker

    # --- the end of a worker's turn ---

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            self._busy.discard(worker)
            if not self._is_closed:
                self._idle.append(worker)
            self._changed.notify()

    def _drop(self, worker: Worker, error: Exception) -> None:
        log.error("a worker died", pid=worker.pid, error=str(error))
        _end(worker)
        with self._changed:
            self._busy.discard(worker)
            self._died.append(self._clock())
            self._changed.notify()


def _start() -> Worker:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", reading_worker.__name__],  # -P: never a module of the current folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C meant for the daemon must not kill its workers first
    )


def _wait_for_readable(workers: Sequence[Worker], *, seconds: float) -> bool:
    """Whether one of the workers has written something, or ended, within so many seconds."""
    poll = select.poll()  # unlike select() it takes descriptors above 1,023
    for worker in workers:
        assert worker.stdout is not None, "made with pipes"
        poll.register(worker.stdout, select.POLLIN)
    return bool(workers) and bool(poll.poll(seconds * 1000))


def _end(worker: Worker) -> None:
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not written to a worker that died
                pipe.close()


@contextmanager
def _watched(worker: Worker) -> Iterator[None]:
    """Kill a worker that does not answer in time: a pipe has no deadline of its own."""
    timer = threading.Timer(_ANSWER_SECONDS, worker.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _send(worker: Worker, kind: bytes, packed: bytes) -> IO[bytes]:
    """Send a request; gives the pipe of its answer."""
    assert worker.stdin is not None, "made with pipes"
    assert worker.stdout is not None, "made with pipes"
    worker.stdin.write(REQUEST_HEADER.pack(kind, len(packed)))
    worker.stdin.write(packed)
    worker.stdin.flush()
    return worker.stdout
