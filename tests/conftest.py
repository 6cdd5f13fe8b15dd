"""The rules of the tests, and how hard Hypothesis tries.

- A test gives the same result every time; one that does not is a bug, in it or in what it tests.
- No test really sleeps or waits for a clock: time is an argument, trio's MockClock, or an event.
- The network is loopback on port 0, or memory streams. Nothing needs the internet.
- Every async test has a deadline (`trio.fail_after`); the timeout in pyproject.toml is only the net below.
- Fakes, not mocks: real stores in `tmp_path`, real nodes (`tests/nodes.py`), real signed commits (`tests/builders.py`).
- Warnings are errors. An exception is listed in pyproject.toml with its reason.
- What takes more than a quarter of a second is marked `slow`.
- A name says the rule that is tested; a new test has been seen to fail.

`tests/unit` mirrors the packages, `tests/property` holds what is true of all inputs, `tests/vectors` pins bytes.
Tests of storage run twice, with rows in SQLite and in a real PostgreSQL; with `--rows-in postgresql` (`make test-postgres`)
others do so too. What is about one of the two says so by a mark.
Hypothesis: `dev` by default, `ci` where CI is set, and `make test ARGS=--hypothesis-profile=deep` for a long search.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from storage import database as database_module

if TYPE_CHECKING:
    from tests.postgresql import PostgresqlServer

_ROWS_IN = ("sqlite", "postgresql")
_TWICE = Path(__file__).parent / "unit" / "storage"
_NO_SERVER = (
    "PostgreSQL is not here: nothing was tested with it (apt-get install postgresql; its driver: make setup)"
)

# No deadline per example: how long one takes says more about the machine than about the code.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=2000, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows-in", choices=_ROWS_IN, help="where stores without a URL have their rows")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--rows-in")
    kinds = [chosen] if chosen else list(_ROWS_IN if metafunc.definition.path.is_relative_to(_TWICE) else [])
    marked = [kind for kind in _ROWS_IN if metafunc.definition.get_closest_marker(kind)]
    if kinds and not marked:
        metafunc.parametrize("rows_in", kinds, indirect=True)


@pytest.fixture(autouse=True)
def rows_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Which database stores have their rows in that a test opens without saying so."""
    kind = str(getattr(request, "param", "sqlite"))
    if kind == "postgresql":
        server: PostgresqlServer = request.getfixturevalue("postgresql_server")
        monkeypatch.setattr(database_module, "choose_backend", server.choose)
        yield kind
        server.forget_databases()
    else:
        yield kind


@pytest.fixture(scope="session")
def postgresql_server(request: pytest.FixtureRequest) -> "Iterator[PostgresqlServer]":
    """A real server, started for the first test that asks for it. In CI there is one, or the tests fail."""
    try:
        from tests.postgresql import PostgresqlServer, find_programs

        programs = find_programs()
    except ModuleNotFoundError:  # its driver
        programs = None
    if programs is None:
        assert not os.environ.get("CI"), _NO_SERVER
        request.config.stash[_SKIPPED] = True
        pytest.skip(_NO_SERVER)
    server = PostgresqlServer(programs)
    yield server
    server.remove()


_SKIPPED = pytest.StashKey[bool]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(_SKIPPED, False):
        terminalreporter.section("PostgreSQL", sep="!", red=True)
        terminalreporter.line(_NO_SERVER)
