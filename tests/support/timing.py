"""Slow tests are known: a test that takes over a quarter of a second without the mark `slow` fails the run.

Counted is processor time, of the test's process and of the processes that it waited for: what else the machine does makes
it no longer. Waiting counts too, where it is too long for that to be the reason.
"""

import os
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.machine import measure_slowness, slowness

SLOW_SECONDS: Final = 0.25
_WAITED_SECONDS: Final = 4 * SLOW_SECONDS
_TOLERANCE: Final = 2.0
"""From run to run a test's processor time varies by half, as caches and the other worker have it. So a run fails for twice
the time, and no test near the limit fails it now and then."""
_OPTION: Final = "--any-speed"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, action="store_true", help="let tests without the mark `slow` take their time")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    began, used = time.perf_counter(), _processor_seconds()
    yield
    waited, used = time.perf_counter() - began, _processor_seconds() - used
    config = item.config
    # The second tier repeats tests with more examples, and with another database.
    if config.getoption(_OPTION) or config.getoption("--tier") != "quick" or item.get_closest_marker("slow"):
        return
    if _is_slow(used, waited, slowness()) and _is_slow(used, waited, measure_slowness()):
        pytest.fail(
            f"took {used:.2f} s of processor time and {waited:.2f} s by the clock: mark it `slow`, or make it faster",
            pytrace=False,
        )


def _is_slow(used: float, waited: float, scale: float) -> bool:
    return used > _TOLERANCE * SLOW_SECONDS * scale or waited > _TOLERANCE * _WAITED_SECONDS * scale


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
