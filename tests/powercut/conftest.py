"""Says loudly where no compiler is: power cuts were not replayed then. In CI there is one, or the test fails."""

import os

import pytest

from tests.powercut.recording import has_compiler

_NO_COMPILER = "gcc is not here: no power cut was replayed (apt-get install gcc)"


@pytest.fixture
def compiler(request: pytest.FixtureRequest) -> None:
    """What the shim that records is built with."""
    if not has_compiler():
        assert not os.environ.get("CI"), _NO_COMPILER
        request.config.stash[_SKIPPED] = True
        pytest.skip(_NO_COMPILER)


_SKIPPED = pytest.StashKey[bool]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(_SKIPPED, False):
        terminalreporter.section("power cuts", sep="!", red=True)
        terminalreporter.line(_NO_COMPILER)
