"""Worker processes answer as the function does, and a dead one costs time and nothing else."""

import os
import signal
from collections.abc import Iterator

import pytest

from node.signature_pool import SignaturePool
from protocol.signing import Claim, check_claims, key_pair, sign


@pytest.fixture
def pool() -> Iterator[SignaturePool]:
    pool = SignaturePool(worker_count=1)
    yield pool
    pool.close()


def _claims(count: int) -> list[Claim]:
    key, secret = key_pair(b"k" * 32)
    digests = [number.to_bytes(32, "big") for number in range(count)]
    claims = [Claim(key, digest, sign(secret, digest)) for digest in digests]
    return [
        claim if number % 3 else Claim(key, claim.digest, bytes(64)) for number, claim in enumerate(claims)
    ]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 1024])
def test_a_pool_answers_as_the_function_does(pool: SignaturePool, count: int) -> None:
    claims = _claims(count)
    assert list(pool.check(claims)) == check_claims(claims)


def test_without_workers_everything_is_checked_here() -> None:
    pool = SignaturePool(worker_count=0)
    claims = _claims(100)
    assert list(pool.check(claims)) == check_claims(claims)
    pool.close()


def test_a_worker_that_dies_is_done_without(pool: SignaturePool) -> None:
    claims = _claims(100)
    pool.check(claims)
    os.kill(pool._workers[0].pid, signal.SIGKILL)
    for _ in range(2):
        assert list(pool.check(claims)) == check_claims(claims)
