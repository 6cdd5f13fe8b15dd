"""Worker processes answer as the function does, and a dead one costs time and nothing else."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from node.sync import signature_pool
from node.sync.signature_pool import SignaturePool
from protocol.ids import Digest, Signature
from protocol.keys import UserSeed
from protocol.signing import Claim, check_claims, key_pair, sign


@pytest.fixture
def pool() -> Iterator[SignaturePool]:
    pool = SignaturePool(worker_count=1)
    yield pool
    pool.close()


def _claims(count: int) -> list[Claim]:
    key, secret = key_pair(UserSeed(b"k" * 32))
    digests = [number.to_bytes(32, "big") for number in range(count)]
    claims = [Claim(key, Digest(digest), sign(secret, digest)) for digest in digests]
    return [
        claim if number % 3 else Claim(key, claim.digest, Signature(bytes(64)))
        for number, claim in enumerate(claims)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 15, 16, 1024])
def test_a_pool_answers_as_the_function_does(pool: SignaturePool, count: int) -> None:
    claims = _claims(count)
    assert list(pool.check(claims)) == check_claims(claims)


def test_without_workers_everything_is_checked_here() -> None:
    pool = SignaturePool(worker_count=0)
    claims = _claims(100)
    assert list(pool.check(claims)) == check_claims(claims)
    pool.close()


@pytest.mark.slow
def test_a_worker_that_dies_is_done_without(pool: SignaturePool) -> None:
    claims = _claims(100)
    pool.check(claims)
    os.kill(pool._workers[0].pid, signal.SIGKILL)
    for _ in range(2):
        assert list(pool.check(claims)) == check_claims(claims)


def test_a_worker_that_dies_is_replaced(pool: SignaturePool, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = _claims(100)
    (first,) = pool._workers
    os.kill(first.pid, signal.SIGKILL)
    expected = list(pool.check(claims))
    (second,) = pool._workers
    assert second.pid != first.pid
    monkeypatch.setattr(signature_pool, "check_claims", lambda _: pytest.fail("it was not asked"))
    assert list(pool.check(claims)) == expected


def test_workers_that_die_one_after_the_other_are_started_again_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, now = list[int](), [0.0]

    def start() -> "subprocess.Popen[bytes]":
        worker = subprocess.Popen(["false"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(worker.wait())
        return worker

    monkeypatch.setattr(SignaturePool, "_start", staticmethod(start))
    pool, claims = SignaturePool(worker_count=1, clock=lambda: now[0]), _claims(16)
    for _ in range(3 * signature_pool._RESTARTS_MAX):
        assert list(pool.check(claims)) == check_claims(claims)
    assert len(started) == 1 + signature_pool._RESTARTS_MAX
    now[0] += signature_pool._RESTARTS_SECONDS
    pool.check(claims)
    assert len(started) == 2 + signature_pool._RESTARTS_MAX
    pool.close()


@pytest.mark.slow
def test_nobody_waits_for_a_worker_that_died_under_another(pool: SignaturePool) -> None:
    claims = _claims(100)
    pool.check(claims)
    os.kill(pool._workers[0].pid, signal.SIGSTOP)
    answers: list[list[bool]] = []
    threads = [threading.Thread(target=lambda: answers.append(list(pool.check(claims)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    os.kill(pool._workers[0].pid, signal.SIGKILL)
    for thread in threads:
        thread.join(10)
    assert answers == [check_claims(claims)] * 3


@pytest.mark.slow
def test_a_worker_that_does_not_answer_is_given_up(
    pool: SignaturePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = _claims(2000)  # more than a pipe holds
    pool.check(claims)
    monkeypatch.setattr(signature_pool, "_ANSWER_SECONDS", 0.01)
    os.kill(pool._workers[0].pid, signal.SIGSTOP)
    assert list(pool.check(claims)) == check_claims(claims)
