"""`Worker`: one process that reads for this one, and the requests that it was sent. It answers them in their order.

A second request may be sent while the first is answered. The worker then goes on at once. Else it would wait until a thread
here has taken the answer and another has sent something; each first waits for the interpreter. That was a quarter of a
worker's time.
"""

import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final

from node.ingest import reading_worker
from node.ingest.reading_worker import READY, REQUEST_HEADER
from protocol.limits.formats import MIB

ASKED_MAX: Final = 2
"""Requests that a worker has at a time: one that it answers, and the next."""
ANSWER_SECONDS: Final = 30.0
"""Seconds after which a worker that does not answer (a batch takes 0.2) is killed."""
_PIPE_SIZE: Final = MIB
"""Bytes that wait in a pipe (Linux lets every user have as many): the answer to 256 small commits, and the next request.
With the usual 64 KiB a worker waits for a thread here eleven times for one answer."""


class BehindAnother(Exception):
    """A worker ended while it answered what it had been asked before: this request is not to blame."""

    def __init__(self) -> None:
        super().__init__("it ended of an earlier request")


class Worker:
    """A process, and what it was asked. Thread-safe."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        """Take over a process with pipes, which says when it is ready."""
        assert process.stdin is not None, "made with pipes"
        assert process.stdout is not None, "made with pipes"
        self._process = process
        self._requests, self._answers = process.stdin, process.stdout
        self._sending = threading.Lock()
        self._turns = threading.Condition()
        self._sent = 0
        self._answered = 0
        self._is_over = False

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Return True if the process is gone."""
        return self._process.poll() is not None

    def is_ready(self) -> bool:
        """Wait for what it says when it has started. False: it has ended instead."""
        return self._answers.read(1) == READY

    @contextmanager
    def ask(self, kind: bytes, packed: bytes) -> Iterator[IO[bytes]]:
        """Send a request; gives the pipe once its answer is the next, which the caller reads whole.

        A worker that does not answer in time is killed. Raises OSError and EOFError where it ended of this request, and
        BehindAnother; it is of no use then.
        """
        with self._sending:
            if self._is_over:
                raise BehindAnother
            place, ahead = self._sent, self._sent - self._answered
            self._sent += 1
            # A pipe has no deadline of its own. What is asked first has one, and so has this one from then on.
            watch = threading.Timer(ANSWER_SECONDS * (1 + ahead), self._process.kill)
            watch.start()
            try:
                self._send(place, REQUEST_HEADER.pack(kind, len(packed)), packed)
            except BaseException:
                watch.cancel()
                self.end()
                raise
        try:
            self._wait_for_turn(place)
            yield self._answers
        except BaseException:
            self.end()  # before the next one has its turn: it would be blamed for this one
            raise
        finally:
            watch.cancel()
            with self._turns:
                self._answered = place + 1
                self._turns.notify_all()

    def _send(self, place: int, *parts: bytes) -> None:
        try:
            for part in parts:
                self._requests.write(part)
            self._requests.flush()
        except (OSError, ValueError):  # closed: `end` was called
            self._wait_for_turn(place)
            raise

    def _wait_for_turn(self, place: int) -> None:
        with self._turns:
            self._turns.wait_for(lambda: self._is_over or self._answered == place)
            if self._is_over:
                raise BehindAnother

    def end(self) -> None:
        """Kill it. What waits for an answer hears of that."""
        with self._turns:
            if self._is_over:
                return
            self._is_over = True
            self._turns.notify_all()
        self._process.kill()
        self._process.wait()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # of what was not written to one that died
                pipe.close()


def start_worker() -> Worker:
    """Start one. Raises OSError."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", reading_worker.__name__],  # -P: never a module of the current folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pipesize=_PIPE_SIZE,
        start_new_session=True,  # a Ctrl-C meant for the daemon must not kill its workers first
    )
    return Worker(process)


def wait_for_readable(workers: Sequence[Worker], *, seconds: float) -> bool:
    """Return True if one of the workers has written something, or ended, within so many seconds."""
    poll = select.poll()  # unlike select() it takes descriptors above 1,023
    for worker in workers:
        poll.register(worker._answers, select.POLLIN)
    return bool(workers) and bool(poll.poll(seconds * 1000))
