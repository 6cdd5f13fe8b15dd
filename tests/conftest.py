"""The rules of the tests, which of them run, and how hard Hypothesis tries.

- A test gives the same result every time; one that does not is a bug, in it or in what it tests.
- No test really sleeps or waits for a clock: time is an argument, trio's MockClock, or an event.
- The network is loopback on port 0, or memory streams. Nothing needs the internet. No port is chosen before it is bound.
- Every async test has a deadline (`tests.support.machine.fail_after`), far above what it needs and longer on a slow machine.
  The timeout in pyproject.toml is only the net below.
- Fakes, not mocks: real stores in `tmp_path`, real nodes (`tests/support/nodes.py`), real signed commits
(`tests/support/builders.py`).
- Warnings are errors. An exception is listed in pyproject.toml with its reason.
- A test that takes over a quarter of a second is marked `slow`, or the run fails (`tests/support/timing.py`).
- A test about cost counts steps, events or SQL statements.
- A name says the rule that is tested; a new test has been seen to fail.

Two tiers. `make test` runs the *quick* one: all but what is marked `extended`, 6 examples of each property. `make test-all`
also runs the *rest*: what is marked `extended`, storage with rows in a real PostgreSQL, and 100 examples of each property.
`make test ARGS=--hypothesis-profile=deep` is a long search with examples that differ from run to run.

`tests/unit` mirrors the packages, `tests/property` holds what is true of all inputs, `tests/vectors` pins bytes.
Workers run side by side (`make test JOBS=n`). All tests of a group (Spark, PostgreSQL) run in one worker, which has one
session or server for them.
"""

import gc
import os
from collections.abc import Generator, Iterator
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import is_hypothesis_test, settings

from storage.engine import database as database_module
from tests.support.stores import share_compiled_statements, share_new_tables, use_memory_for_files

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

pytest_plugins = ["tests.support.timing", "tests.support.all_ran", "tests.support.spreading"]

_CLOCKS = {"autojump_clock", "mock_clock"}
_ROWS_IN = ("sqlite", "postgresql")
_HERE = Path(__file__).parent
_TWICE = [
    _HERE / "unit" / "storage",
    *(
        _HERE / "unit" / "node" / f"{room}/test_{name}.py"
        for room, names in {
            "care": ("fsck", "repair"),
            "content": ("compacting", "document_indexes", "kept_texts"),
            "ingest": ("acceptance",),
            "observe": ("watching",),
            "sync": ("block_repair", "body_fetching", "reconciling", "relay"),
            "timelines": ("voids",),
        }.items()
        for name in names
    ),
]
"""Tests of storage, and those that reach the rest of its SQL: they run once more with rows in PostgreSQL."""
_NO_SERVER = (
    "PostgreSQL is not here: nothing was tested with it (apt-get install postgresql; its driver: make setup)"
)
_FIRST = ("spark", "postgresql", "compiled", "proof")
"""Groups of tests that one worker runs, longest first, so that none is left for the end."""
_COMPILED = ("test_edit_streams", "test_study")
"""Modules whose first test waits 20 s for numba's compiler."""

# No deadline per example: how long one takes says more about the machine than about the code.
settings.register_profile("quick", max_examples=6, deadline=None, derandomize=True)
settings.register_profile("rest", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=2000, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows-in", choices=_ROWS_IN, help="where stores without a URL have their rows")
    parser.addoption("--tier", choices=("quick", "rest", "all"), default="quick", help="which tests run")


def pytest_configure(config: pytest.Config) -> None:
    # Where others run the tests, they wait meanwhile for what is imported here.
    if not config.getoption("numprocesses", None):
        from tests.e2e.cluster import Peer

        Peer.forks = True
    use_memory_for_files()
    share_compiled_statements()
    share_new_tables()
    # Spark's JVM compiles much that a small job runs once: its first compiler will do, and one thread to collect garbage.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile("quick" if config.getoption("--tier") == "quick" else "rest")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from all that is imported and collected: it stays, and there is much of it to visit."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--rows-in")
    path = metafunc.definition.path
    kinds = [chosen] if chosen else list(_ROWS_IN if any(map(path.is_relative_to, _TWICE)) else [])
    marked = [kind for kind in _ROWS_IN if metafunc.definition.get_closest_marker(kind)]
    if kinds and not marked:
        metafunc.parametrize("rows_in", kinds, indirect=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    fixtures = getattr(item, "fixturenames", ())
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if parameters.get("rows_in") == "postgresql" or "postgresql_server" in fixtures:
        item.add_marker("extended")
        item.add_marker(pytest.mark.xdist_group("postgresql"))
    elif "spark" in fixtures:
        item.add_marker(pytest.mark.xdist_group("spark"))
    elif item.path.stem in _COMPILED:
        item.add_marker(pytest.mark.xdist_group("compiled"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if real := [item.nodeid for item in items if _would_wait_in_real_time(item)]:
        raise pytest.UsageError(f"a clock that only a fixture asks for is not the test's: {', '.join(real)}")
    if tier == "all":
        chosen = items
    else:
        chosen = [item for item in items if (_is_of_rest if tier == "rest" else _is_quick)(item)]
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = sorted(chosen, key=_order)


def _would_wait_in_real_time(item: pytest.Item) -> bool:
    """Return True if a fixture asks for a clock and the test does not: pytest-trio knows the test's arguments alone."""
    if not (isinstance(item, pytest.Function) and iscoroutinefunction(item.function)):
        return False
    return (
        any(name in item.fixturenames for name in _CLOCKS)
        and not _CLOCKS & signature(item.function).parameters.keys()
    )


def _is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("extended") is None


def _is_of_rest(item: pytest.Item) -> bool:
    """Return True for a test of the second tier, which repeats properties with more examples."""
    is_repeated = is_hypothesis_test(getattr(item, "obj", None)) and not item.get_closest_marker(
        "same_examples"
    )
    return is_repeated or not _is_quick(item)


def _order(item: pytest.Item) -> int:
    """Groups first, then what takes long, so that all workers end at about the same time."""
    group = item.get_closest_marker("xdist_group")
    if group is not None:
        return _FIRST.index(group.args[0])
    return len(_FIRST) + (item.get_closest_marker("slow") is None)


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
        from tests.support.postgresql import PostgresqlServer, find_programs

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
