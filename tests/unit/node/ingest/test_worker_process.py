"""A worker is sent its next request while it answers one, and only what it ended of is blamed for that."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from node.ingest import worker_process
from node.ingest.reading_worker import CHECK, pack_claims, read_exactly
from node.ingest.reading_workers import WORTH_A_TRIP, ReadingWorkers
from node.ingest.worker_process import BehindAnother, Worker, start_worker, wait_for_readable
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import Claim, check_claims, key_pair, sign
from protocol.ids import Digest, Signature
from tests.support.machine import patience

SILENT = "import sys; sys.stdout.write('+'); sys.stdout.flush(); sys.stdin.buffer.read()"
"""A worker that takes whatever is sent, and never answers."""


def _silent() -> Worker:
    command = [sys.executable, "-S", "-c", SILENT]
    return Worker(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))


@pytest.fixture
def silent() -> Iterator[Worker]:
    worker = _silent()
    assert worker.is_ready()
    yield worker
    worker.end()


def _claims(first: int, count: int = WORTH_A_TRIP) -> list[Claim]:
    key, secret = key_pair(UserSeed(b"k" * 32))
    digests = [number.to_bytes(32, "big") for number in range(first, first + count)]
    claims = [Claim(key, Digest(digest), sign(secret, digest)) for digest in digests]
    return [*claims[:first], claims[first]._replace(signature=Signature(bytes(64))), *claims[first + 1 :]]


class _Asker:
    """Asks a worker in a thread of its own."""

    def __init__(self, worker: Worker, claims: list[Claim]) -> None:
        self.outcome: list[bytes] | Exception = []
        self._thread = threading.Thread(target=self._ask, args=(worker, claims))
        self._thread.start()

    def _ask(self, worker: Worker, claims: list[Claim]) -> None:
        try:
            with worker.ask(CHECK, pack_claims(claims)) as pipe:
                self.outcome = [read_exactly(pipe, len(claims))]
        except Exception as error:
            self.outcome = error

    def wait(self) -> list[bytes] | Exception:
        self._thread.join(patience(20))
        assert not self._thread.is_alive()
        return self.outcome


def _until(is_so: Callable[[], bool]) -> None:
    changed = threading.Event()
    for _ in range(int(patience(2000))):
        if is_so():
            return
        changed.wait(0.01)
    raise AssertionError("it does not come to that")


@pytest.mark.slow
def test_each_of_several_requests_gets_its_own_answer() -> None:
    worker = start_worker()
    assert wait_for_readable([worker], seconds=patience(20))
    assert worker.is_ready()
    batches = [_claims(number) for number in range(WORTH_A_TRIP)]
    askers = [_Asker(worker, claims) for claims in batches]
    answers = [asker.wait() for asker in askers]
    assert answers == [[bytes(check_claims(claims))] for claims in batches]
    worker.end()


def test_the_next_request_is_sent_while_one_is_answered(silent: Worker) -> None:
    first = _Asker(silent, _claims(0))
    _until(lambda: silent._sent == 1)
    second = _Asker(silent, _claims(1))
    _until(lambda: silent._sent == 2)
    silent._process.kill()
    assert isinstance(first.wait(), EOFError), "it ended while it answered this one"
    assert isinstance(second.wait(), BehindAnother)


def test_one_that_ended_before_refuses_further_requests(silent: Worker) -> None:
    silent._process.kill()
    silent._process.wait()
    assert isinstance(_Asker(silent, _claims(0)).wait(), OSError | EOFError)
    assert isinstance(_Asker(silent, _claims(0)).wait(), OSError | ValueError | BehindAnother)


def test_a_request_behind_one_that_is_never_answered_ends_too(
    silent: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "ANSWER_SECONDS", 0.2)
    first = _Asker(silent, _claims(0))
    _until(lambda: silent._sent == 1)
    second = _Asker(silent, _claims(1, 20_000))  # more than the pipe holds
    assert isinstance(first.wait(), EOFError)
    assert isinstance(second.wait(), BehindAnother)


def test_what_waited_behind_another_is_done_without_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.ingest.reading_workers.start_worker", _silent)
    workers, answers = ReadingWorkers(1), list[list[bool]]()
    workers.start_all()
    (worker,) = workers._ready
    first = _Asker(worker, _claims(0))
    _until(lambda: worker._sent == 1)
    workers._ready[worker] = 0  # so that `check` asks it, too
    claims = _claims(1)
    thread = threading.Thread(target=lambda: answers.append(list(workers.check(claims))))
    thread.start()
    _until(lambda: worker._sent == 2)
    worker._process.kill()
    assert isinstance(first.wait(), EOFError)
    thread.join(patience(20))
    assert answers == [check_claims(claims)]
    assert len(workers._died) == 1
    workers.close()
