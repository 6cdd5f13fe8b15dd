"""Tests that never ran: such a run is not one whose failed tests may be repeated."""

from typing import Final

import pytest

_TESTS: Final = """
import os

def test_that_kills_its_worker():
    {kill}

def test_that_never_runs():
    pass
"""
_PLUGINS: Final = ("-p", "tests.support.all_ran", "-p", "no:trio", "-p", "no:cacheprovider", "-q")


@pytest.mark.slow
@pytest.mark.extended
def test_a_run_that_stops_when_workers_crash_is_an_interrupted_one(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_TESTS.format(kill="os._exit(1)"))
    ended = pytester.runpytest_inprocess(*_PLUGINS, "-n", "1", "--max-worker-restart", "0")
    ended.stdout.fnmatch_lines(["*1 tests have no result*", "*test_that_never_runs"])
    assert ended.ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    "argument, status", [("-x", pytest.ExitCode.TESTS_FAILED), ("--collect-only", pytest.ExitCode.OK)]
)
def test_who_asks_for_fewer_tests_is_told_nothing(
    pytester: pytest.Pytester, argument: str, status: pytest.ExitCode
) -> None:
    pytester.makepyfile(_TESTS.format(kill="assert False"))
    ended = pytester.runpytest_inprocess(*_PLUGINS, "-p", "no:xdist", argument)
    assert ended.ret == status
    assert "no result" not in ended.stdout.str()
