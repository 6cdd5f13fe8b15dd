"""Slow tests are known: a test that takes over a quarter of a second without the mark `slow` fails the run.

Counted is processor time, of the test's process and of the processes that it waited for: what else the machine does makes
it no longer. Waiting counts too, where it is too long for that to be the reason.

The first test that needs a module or a table pays for loading it. So a test that took too long runs once more, and only a
second time over the limit fails it.
"""

import os
import time
from collections.abc import Iterator
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

from tests.support.machine import measure_slowness, slowness

SLOW_SECONDS: Final = 0.25
_WAITED_SECONDS: Final = 4 * SLOW_SECONDS
_TOLERANCE: Final = 2.0
"""From run to run a test's processor time varies by half, as caches and the other worker have it. So a run fails for twice
the time, and no test near the limit fails it now and then."""
_OPTION: Final = "--any-speed"
_RUNS_OVER = pytest.StashKey[int]()
_RUNS: Final = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, action="store_true", help="let tests without the mark `slow` take their time")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test that must be quick, and once more where it was not."""
    config = item.config
    # The second tier repeats tests with more examples, and with another database.
    if config.getoption(_OPTION) or config.getoption("--tier") != "quick" or item.get_closest_marker("slow"):
        return None
    item.stash[_RUNS_OVER] = 0
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for number in range(1, _RUNS + 1):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if item.stash[_RUNS_OVER] < number or any(report.outcome != "passed" for report in reports):
            break
        item._initrequest()  # type: ignore[attr-defined]  # all that pytest offers; pytest-rerunfailures does it too
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    began, used = time.perf_counter(), _processor_seconds()
    yield
    waited, used = time.perf_counter() - began, _processor_seconds() - used
    if _RUNS_OVER not in item.stash:
        return
    if not (_is_slow(used, waited, slowness()) and _is_slow(used, waited, measure_slowness())):
        return
    item.stash[_RUNS_OVER] += 1
    if item.stash[_RUNS_OVER] == _RUNS:
        pytest.fail(
            f"took {used:.2f} s of processor time and {waited:.2f} s by the clock, and as long in the run before: "
            "mark it `slow`, or make it faster",
            pytrace=False,
        )


def _is_slow(used: float, waited: float, scale: float) -> bool:
    return used > _TOLERANCE * SLOW_SECONDS * scale or waited > _TOLERANCE * _WAITED_SECONDS * scale


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
