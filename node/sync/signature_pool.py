"""Process pool that checks Ed25519 signatures in batches.

A check is 40 microseconds of C that lets other threads run, and thousands of them among threads that run Python spend
more time on waiting for the interpreter than on the curve: in threads of one process ingest is no faster than in one
thread. A worker process takes whole batches of claims over a pipe and answers one byte for each. Workers see public
data only.

Small batches, and those that would have gone to a worker that died, are checked in the caller's own thread: slower,
never wrong. Another is started in its place, unless they die one after the other.
"""

import os
import queue
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Final

import structlog

from protocol.ids import Digest, Signature, UserId
from protocol.signing import Claim, check_claims

log = structlog.get_logger()

_CLAIM_SIZE: Final = 32 + 32 + 64
_LENGTH: Final = struct.Struct("<I")
_WORTH_A_TRIP: Final = 16
"""Claims below which a trip through the pipe costs more than it saves."""
_ANSWER_SECONDS: Final = 30.0
"""Seconds after which a worker that does not answer (a batch takes 0.05) is killed and its batch checked here."""
_RESTARTS_MAX: Final = 4
_RESTARTS_SECONDS: Final = 60.0
"""Workers that are started in place of others within so many seconds: what kills each would else cost a start a batch."""
_WORKERS_MAX: Final = 2
"""Opening and storing keep the main process busier than two workers."""


class SignaturePool:
    """Worker processes for `check`. Thread-safe."""

    def __init__(self, worker_count: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Start the workers: none on a machine of one core."""
        count = min(_WORKERS_MAX, (os.cpu_count() or 1) - 1) if worker_count is None else worker_count
        self._clock = clock
        self._lock = threading.Lock()
        self._restarted: deque[float] = deque()  # when, by the clock
        self._is_closed = False
        # None is the place of a worker that died, so that nobody waits for it.
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes] | None] = queue.SimpleQueue()
        self._has_workers = count > 0
        self._workers = [self._start() for _ in range(count)]
        for worker in self._workers:
            self._idle.put(worker)
        if not self._workers:
            self._idle.put(None)

    def check(self, claims: Sequence[Claim]) -> Sequence[bool]:
        """Say of each claim whether it holds."""
        if len(claims) < _WORTH_A_TRIP:
            return check_claims(claims)
        worker = self._idle.get()
        if worker is None:
            self._idle.put(self._start_again())
            return check_claims(claims)
        try:
            answer = _ask(worker, claims)
        except (OSError, EOFError) as error:
            log.error("signature worker died", pid=worker.pid, error=str(error))
            self._end(worker)
            self._idle.put(self._start_again())
            return check_claims(claims)
        self._idle.put(worker)
        return answer

    def close(self) -> None:
        """Stop the workers."""
        with self._lock:
            self._is_closed = True
            workers = list(self._workers)
        for worker in workers:
            self._end(worker)

    def _start_again(self) -> "subprocess.Popen[bytes] | None":
        """A worker in place of one that died, or None: where there were too many of late, none can be, or it has closed."""
        with self._lock:
            now = self._clock()
            while self._restarted and self._restarted[0] <= now - _RESTARTS_SECONDS:
                self._restarted.popleft()
            if not self._has_workers or self._is_closed or len(self._restarted) >= _RESTARTS_MAX:
                return None
            self._restarted.append(now)
            try:
                worker = self._start()
            except OSError as error:
                log.error("no signature worker can be started", error=str(error))
                return None
            self._workers.append(worker)
        log.info("signature worker started again", pid=worker.pid)
        return worker

    def _end(self, worker: "subprocess.Popen[bytes]") -> None:
        worker.kill()
        worker.wait()
        for pipe in (worker.stdin, worker.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not written to a worker that died
                    pipe.close()
        with self._lock:
            if worker in self._workers:
                self._workers.remove(worker)

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "node.sync.signature_pool",
            ],  # -P: never a module of the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C meant for the daemon must not kill its workers first
        )


def _ask(worker: "subprocess.Popen[bytes]", claims: Sequence[Claim]) -> list[bool]:
    assert worker.stdin is not None, "made with pipes"
    assert worker.stdout is not None, "made with pipes"
    # All three parts have fixed sizes by the types that they were decoded into.
    packed = b"".join(part for claim in claims for part in claim)
    assert len(packed) == _CLAIM_SIZE * len(claims), "claims of another shape"
    watchdog = threading.Timer(_ANSWER_SECONDS, worker.kill)  # a pipe has no deadline of its own
    watchdog.start()
    try:
        worker.stdin.write(_LENGTH.pack(len(packed)) + packed)
        worker.stdin.flush()
        return [byte == 1 for byte in _read(worker.stdout, len(claims))]
    finally:
        watchdog.cancel()


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError("the pipe was closed")
    return data


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """The worker: answer requests until the daemon is gone."""
    while header := requests.read(_LENGTH.size):
        packed = _read(requests, _LENGTH.unpack(header)[0])
        claims = (
            # Whose key each is, only who asked knows.
            (
                UserId(packed[at : at + 32]),
                Digest(packed[at + 32 : at + 64]),
                Signature(packed[at + 64 : at + _CLAIM_SIZE]),
            )
            for at in range(0, len(packed), _CLAIM_SIZE)
        )
        answers.write(bytes(check_claims(claims)))
        answers.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
