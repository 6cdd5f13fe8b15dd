"""How long the machine takes, and how long a test may therefore wait.

A deadline says "this hangs", never "this is slow". So deadlines are far above what is needed, and grow with the time
that this machine takes for a fixed amount of work: a slow processor, or one that other programs use too.
"""

import hashlib
import time
from contextlib import AbstractContextManager
from functools import cache
from typing import Final

import trio

_ROUNDS: Final = 200_000
"""Of hashing: long enough that the scheduler gives other programs their share meanwhile."""
_IDLE_SECONDS: Final = 0.2
"""What they take on an idle core of the machine that the tests were written on (Xeon, 2.1 GHz, Python 3.11)."""
_PATIENCE: Final = 4.0
"""Deadlines are this much above what they say, since the load may come after it was measured."""


@cache
def slowness() -> float:
    """How many times longer this machine takes than an idle one takes: 1 or more. Measured once for each process."""
    return measure_slowness()


def measure_slowness() -> float:
    """The same, measured now, which takes some 0.2 s."""
    began = time.perf_counter()
    data = b"ravel"
    for _ in range(_ROUNDS):
        data = hashlib.sha256(data).digest()
    return max(1.0, (time.perf_counter() - began) / _IDLE_SECONDS)


def patience(seconds: float) -> float:
    """A deadline in seconds of real time for something that takes less than `seconds` on an idle machine."""
    return seconds * _PATIENCE * slowness()


def fail_after(seconds: float) -> AbstractContextManager[trio.CancelScope]:
    """`trio.fail_after` for real time. On trio's MockClock the time is virtual, and the deadline a generous one."""
    return trio.fail_after(patience(seconds))
