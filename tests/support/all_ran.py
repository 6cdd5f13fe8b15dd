"""A run in which tests were collected and never ran does not end as one in which tests failed.

Where more workers crash than xdist replaces, it stops, says so to nobody under `-q`, and the run ends with the status of
failed tests. CI repeats what failed, and would take the tests that never ran for good.
"""

from typing import Final

import pytest

_NAME: Final = "all_ran"
_SHOWN_MAX: Final = 5
"""Tests that are named: all would hide the summary."""


class AllRan:
    """Which tests are to run, by the ids of this process or of xdist's workers, and which have ended."""

    def __init__(self) -> None:
        self._collected: dict[str, None] = {}  # in their order
        self._ended: set[str] = set()
        self._is_incomplete = False

    @property
    def left(self) -> list[str]:
        """Tests that did not run."""
        return [one for one in self._collected if one not in self._ended]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called where tests run in this process."""
        self._collected.update(dict.fromkeys(item.nodeid for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Called for each worker, also for one that takes the place of another."""
        self._collected.update(dict.fromkeys(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called for each phase of a test, and for one in which a worker crashed."""
        self._ended.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End the run as an interrupted one, unless it was asked to stop at a failure."""
        seems_complete = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self.left and seems_complete and not session.shouldfail:
            self._is_incomplete = True
            session.exitstatus = pytest.ExitCode.INTERRUPTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say so."""
        if self._is_incomplete:
            terminalreporter.section(f"{len(self.left)} tests have no result", sep="!", red=True)
            for one in self.left[:_SHOWN_MAX]:
                terminalreporter.line(one)


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run, where it is this process that knows all of it."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(AllRan(), _NAME)
